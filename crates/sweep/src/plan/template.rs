//! Template of a plan.

/// A commented plan, printed by `landspeed sweep --new`.
pub const TEMPLATE: &str = include_str!("template.toml");
