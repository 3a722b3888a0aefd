//! Template of an inventory.

/// A commented inventory to start from.
pub const TEMPLATE: &str = include_str!("template.toml");
