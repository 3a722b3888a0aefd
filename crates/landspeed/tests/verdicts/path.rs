//! The paths that verdicts are tried on.

use landspeed_testkit::netns::Namespace;
use landspeed_testkit::pair::Pair;
use landspeed_testkit::wire::{Leg, RIGHT, Wire};

/// The program under test.
pub const PROGRAM: &str = env!("CARGO_BIN_EXE_landspeed");

/// Congestion controls every case is tried under.
pub const CONTROLS: [&str; 2] = ["cubic", "bbr"];

/// Ten milliseconds each way.
pub const DELAY_NS: u64 = 10_000_000;

/// A pair of ends joined by a wire. The fields go in the order written: the server, the wire, the namespaces.
pub struct Across {
    pub pair: Pair,
    _wire: Wire,
    pub left: Namespace,
    pub right: Namespace,
}

impl Across {
    /// The client on the left, the server on the right. The error says why this cannot be had here.
    pub fn new(legs: [Leg; 2]) -> Result<Self, String> {
        let (left, right) = (Namespace::new("left")?, Namespace::new("right")?);
        let wire = Wire::between(&left, &right, legs, 1)?;
        let pair = Pair::across(PROGRAM, &left, &right, RIGHT);
        Ok(Self { pair, _wire: wire, left, right })
    }

    /// A path of 20 ms with nothing else to it.
    pub fn long() -> Result<Self, String> {
        let leg = Leg { delay_ns: DELAY_NS, ..Leg::default() };
        Self::new([leg, leg])
    }
}

/// The value, or a skip that says why there is none.
#[macro_export]
macro_rules! or_skip {
    ($made:expr) => {
        match $made {
            Ok(made) => made,
            Err(why) => landspeed_testkit::skip!("{why}"),
        }
    };
}
