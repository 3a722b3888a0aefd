//! The scenarios that `landspeed lab new` writes.

/// A commented scenario, ready to run: four hosts on two switches, 10 Gb/s and an RTT of 50 ms between these, a
/// buffer of 1 MB, and two TCP streams that compete with 2 Gb/s of UDP.
pub const TEMPLATE: &str = include_str!("template.toml");

/// A path through a low-orbit satellite with a hand-over every 5 s.
pub const SATELLITE: &str = include_str!("examples/satellite.toml");

/// A sender of 10 Gb/s and a receiver whose CPU is slower, with one core and with two.
pub const SLOW_RECEIVER: &str = include_str!("examples/slow-receiver.toml");

/// A download over a cellular link whose rate changes, with a deep buffer and with fq_codel.
pub const CELLULAR: &str = include_str!("examples/cellular.toml");
