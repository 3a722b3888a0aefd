//! A plan to start from.

/// A commented plan: `landspeed sweep --new`.
pub const TEMPLATE: &str = include_str!("template.toml");
