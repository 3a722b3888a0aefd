//! The scenario file's JSON Schema.

use super::Scenario;

/// The JSON Schema of a scenario file, once its TOML is taken as JSON. Its descriptions are the docstrings of
/// [`Scenario`] and what it is made of.
pub fn schema() -> serde_json::Value {
    schemars::schema_for!(Scenario).to_value()
}
