//! Control protocol: a preface on every connection, then framed messages on the control connection.
//!
//! Everything uses one port. A TCP connection opens with a fixed-size [`preface`] that distinguishes control
//! connections from data connections of an accepted test; with a key, each data socket also proves which stream
//! it belongs to ([`credentials`]). Control messages are JSON in length-prefixed frames; with a pre-shared key
//! the frames are Noise transport messages ([`channel`]).

pub mod changes;
pub mod channel;
pub mod credentials;
pub mod deadline;
pub(crate) mod entry;
pub mod frames;
pub mod hello;
pub mod keyed_hello;
pub mod message;
pub mod patient;
pub(crate) mod plausible;
pub mod preface;
pub mod third_party;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Longest text of a peer in characters: a kernel command line has up to 4096 (x86).
const MAX_CHARACTERS: usize = 4096;

/// Returns the letters, digits and hyphens of a peer's identifier, up to 64: identifiers reach file names and commands.
pub fn identifier(text: &str) -> String {
    text.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-').take(64).collect()
}

/// Makes a peer's text printable: escapes control characters and truncates to `most` characters.
pub fn printable(text: &str, most: usize) -> String {
    let mut shown = String::with_capacity(text.len().min(most));
    for (i, c) in text.chars().enumerate() {
        if i == most {
            shown.push('…');
            break;
        }
        if c.is_control() { shown.extend(c.escape_default()) } else { shown.push(c) }
    }
    shown
}

/// Deserializes a value after [`make_printable`]. From bytes, as everywhere else: each type then needs only one
/// deserializer in the program.
///
/// # Errors
/// The value is no longer a valid `T`.
pub fn deserialize_value<T: DeserializeOwned>(value: &Value) -> Result<T, serde_json::Error> {
    serde_json::from_slice(&serde_json::to_vec(value)?)
}

/// Makes all strings printable: they come from the server and reach terminals and pages.
pub fn make_printable(value: &mut Value) {
    match value {
        Value::String(text) => *text = printable(text, MAX_CHARACTERS),
        Value::Array(values) => values.iter_mut().for_each(make_printable),
        Value::Object(fields) => fields.values_mut().for_each(make_printable),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Returns a copy whose strings are printable.
///
/// # Errors
/// The copy is no longer a valid `T`.
pub fn printable_copy<T: Serialize + DeserializeOwned>(said: &T) -> Result<T, serde_json::Error> {
    let mut value = serde_json::to_value(said)?;
    make_printable(&mut value);
    deserialize_value(&value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_are_no_paths() {
        assert_eq!(identifier("0f-3A"), "0f-3A");
        assert_eq!(identifier("/../../etc/x\n;$(y)"), "etcxy");
        assert_eq!(identifier(&"a".repeat(100)).len(), 64);
    }

    #[test]
    fn strings_from_the_server_contain_no_escape_sequences() {
        let mut value = serde_json::json!({ "a": ["\u{1b}[2J"], "b": { "c": "x".repeat(5000) } });
        make_printable(&mut value);
        assert_eq!(value["a"][0], "\\u{1b}[2J");
        assert_eq!(value["b"]["c"].as_str().map(|text| text.chars().count()), Some(MAX_CHARACTERS + 1));
    }
}
