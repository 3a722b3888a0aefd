//! The scenario file's JSON Schema.

use super::Scenario;

/// Returns the JSON Schema of a scenario file, for its TOML converted to JSON. The descriptions are the
/// docstrings of [`Scenario`] and of its parts.
pub fn schema() -> serde_json::Value {
    schemars::schema_for!(Scenario).to_value()
}
