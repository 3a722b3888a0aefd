//! The scenario that `landspeed lab new` writes.

/// A commented scenario, ready to run: four hosts on two switches, 10 Gb/s and an RTT of 50 ms between these, a
/// buffer of 1 MB, and two TCP streams that compete with 2 Gb/s of UDP.
pub const TEMPLATE: &str = include_str!("template.toml");
