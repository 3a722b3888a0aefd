//! Cost of sampling: goodput with a sample every millisecond compared with one every second.

use super::tcp::stream;
use crate::bench::Bench;
use crate::bench::case::{Case, Role};
use crate::bench::row::{Better, Unit};

/// The rival is landspeed itself with the longer interval.
pub fn case(bench: &Bench, name: &str) -> Case {
    let ours = bench.tools.ours();
    Case::new(name)
        .metric("goodput", Unit::Bps, Better::Higher, Some(0.98))
        .with(Role::Ours, "landspeed -i 0.001", &ours, stream(bench.seconds, &["-i", "0.001"]))
        .with(Role::Rival, "landspeed -i 1", &ours, stream(bench.seconds, &["-i", "1"]))
}
