//! Rates, sizes, times and ratios with units: parsed from user input, printed for people.
//!
//! ```
//! use landspeed_units::{BitRate, Bytes, Nanos, Ratio};
//!
//! assert_eq!("10G".parse(), Ok(BitRate::from_bps(10_000_000_000)));
//! assert_eq!("4MiB".parse(), Ok(Bytes::new(4 << 20)));
//! assert_eq!("92ms".parse(), Ok(Nanos::from_millis(92)));
//! assert_eq!(BitRate::from_bps(9_412_000_000).to_string(), "9.41 Gb/s");
//! assert_eq!("1/22000".parse::<Ratio>().unwrap().to_string(), "0.00455%");
//! assert_eq!(
//!     "-1".parse::<BitRate>().unwrap_err().to_string(),
//!     "`-1` is not a rate: rates are positive, for example 10G or 300m",
//! );
//! ```
#![forbid(unsafe_code)]

mod bytes;
mod error;
mod nanos;
mod number;
mod rate;
mod ratio;

pub use bytes::Bytes;
pub use error::{ParseError, Quantity};
pub use nanos::{Micros, Nanos};
pub use rate::BitRate;
pub use ratio::Ratio;
