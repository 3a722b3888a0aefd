//! JSON as other programs write it: with repeated keys, and with `nan` and `inf` instead of numbers.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use thiserror::Error;

/// Keys that iperf3 before 3.11 writes twice with `--bidir`, first for the forward direction (esnet/iperf 952).
const REPEATED_KEYS: [&str; 3] = ["sum", "sum_sent", "sum_received"];

/// Place and reason of damage in a text.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("damaged at byte {at}: {why}")]
pub struct Damage {
    /// Offset, bytes.
    pub at: usize,
    /// What is wrong there, for an error message.
    pub why: String,
}

/// Maximum memory of the values of a file, estimated, bytes. A document of one hour with 128 streams needs a quarter.
const MAX_VALUES_BYTES: u64 = 8 << 30;

/// Checks that the values of a file fit into memory, by its commas, colons and brackets: a few compressed kilobytes can stand
/// for values of many gigabytes.
///
/// # Errors
/// They take more than 8 GiB.
pub fn check_memory(bytes: &[u8]) -> Result<(), TooManyValues> {
    if takes_more(bytes, MAX_VALUES_BYTES) { Err(TooManyValues) } else { Ok(()) }
}

/// Whether the values of a text take more than `limit` bytes of memory.
fn takes_more(bytes: &[u8], limit: u64) -> bool {
    let mut estimate: u64 = 0;
    bytes.chunks(1 << 16).any(|chunk| {
        estimate += chunk.iter().map(|byte| memory_of(*byte)).sum::<u64>();
        estimate > limit
    })
}

/// Memory of a value, by the byte before it: an object is a tree whose smallest node has room for eleven fields.
fn memory_of(byte: u8) -> u64 {
    match byte {
        b',' | b':' | b'[' => 64,
        b'{' => 704,
        _ => 0,
    }
}

/// Reason why a file is not parsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("its values would take more than 8 GiB of memory")]
pub struct TooManyValues;

/// Parses one value. `nan` and `inf` become null. A repeated sum of iperf3 is inserted under the name that iperf3
/// 3.11 gives it, `…_bidir_reverse`; of other repeated keys, the last counts.
pub fn parse(text: &str) -> Result<Value, Damage> {
    let strict = match serde_json::from_str::<Repeated>(text) {
        Ok(value) => return Ok(value.0),
        Err(why) => why,
    };
    let (cleaned, added) = without_nan(text);
    match serde_json::from_str::<Repeated>(&cleaned) {
        Ok(value) => Ok(value.0),
        Err(_) if added.is_none() => Err(Damage { at: offset(text, &strict), why: reason(&strict) }),
        Err(why) => {
            let at = offset(&cleaned, &why);
            let shifted = added.iter().flatten().filter(|place| **place < at).count();
            Err(Damage { at: at - shifted, why: reason(&why) })
        }
    }
}

/// Returns the end of the object or array that begins at `at`; `None` if it is not closed.
pub fn end_of_value(text: &str, at: usize) -> Option<usize> {
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    for (i, byte) in text.bytes().enumerate().skip(at) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return Some(i + 1);
                }
            }
            _ => {}
        }
    }
    None
}

/// Replaces `nan` and `inf` in any spelling by null. Also returns the places in the result at which a byte was
/// added; `None` if nothing was replaced.
fn without_nan(text: &str) -> (String, Option<Vec<usize>>) {
    let (mut cleaned, mut added) = (String::with_capacity(text.len()), None::<Vec<usize>>);
    let (mut in_string, mut escaped, mut rest) = (false, false, text);
    while let Some(c) = rest.chars().next() {
        let token = if in_string { 0 } else { rest.find(ends_token).unwrap_or(rest.len()) };
        if token == 0 {
            match c {
                _ if escaped => escaped = false,
                '\\' if in_string => escaped = true,
                '"' => in_string = !in_string,
                _ => {}
            }
            cleaned.push(c);
            rest = &rest[c.len_utf8()..];
            continue;
        }
        let (word, after) = rest.split_at(token);
        if is_not_a_number(word) {
            let places = added.get_or_insert_default();
            let start = cleaned.len();
            cleaned.push_str("null");
            // Padding keeps the offsets of what follows.
            cleaned.extend(std::iter::repeat_n(' ', word.len().saturating_sub(4)));
            places.extend(std::iter::repeat_n(start + 3, 4_usize.saturating_sub(word.len())));
        } else {
            cleaned.push_str(word);
        }
        rest = after;
    }
    (cleaned, added)
}

fn ends_token(c: char) -> bool {
    c.is_whitespace() || matches!(c, ',' | ':' | '[' | ']' | '{' | '}' | '"')
}

/// Whether a token is what C libraries print for a number that is not finite: `-nan`, `inf`, `-nan(ind)`, `1.#INF`.
fn is_not_a_number(token: &str) -> bool {
    let word = token.trim_start_matches(['-', '+']).to_ascii_lowercase();
    word == "nan" || word.starts_with("nan(") || word == "inf" || word == "infinity" || word.starts_with("1.#")
}

/// Converts the line and column of an error to an offset.
fn offset(text: &str, error: &serde_json::Error) -> usize {
    let line: usize = text.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum();
    (line + error.column().saturating_sub(1)).min(text.len())
}

/// The reason without line and column, which count from the document's beginning.
fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.rsplit_once(" at line ").map_or(text.clone(), |(reason, _)| reason.to_owned())
}

/// A value whose repeated keys are kept.
struct Repeated(Value);

impl<'de> Deserialize<'de> for Repeated {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyValue)
    }
}

struct AnyValue;

impl<'de> Visitor<'de> for AnyValue {
    type Value = Repeated;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Repeated, E> {
        Ok(Repeated(Value::Null))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Repeated, E> {
        Ok(Repeated(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Repeated, E> {
        Ok(Repeated(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Repeated, E> {
        Ok(Repeated(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Repeated, E> {
        Ok(Repeated(Number::from_f64(value).map_or(Value::Null, Value::Number)))
    }

    fn visit_str<E>(self, value: &str) -> Result<Repeated, E> {
        Ok(Repeated(value.into()))
    }

    fn visit_string<E>(self, value: String) -> Result<Repeated, E> {
        Ok(Repeated(value.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Repeated, A::Error> {
        let mut list = Vec::new();
        while let Some(Repeated(item)) = items.next_element()? {
            list.push(item);
        }
        Ok(Repeated(Value::Array(list)))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Repeated, A::Error> {
        let mut map = Map::new();
        while let Some((key, Repeated(value))) = entries.next_entry::<String, Repeated>()? {
            if map.contains_key(&key) && REPEATED_KEYS.contains(&key.as_str()) {
                map.insert(format!("{key}_bidir_reverse"), value);
            } else {
                map.insert(key, value);
            }
        }
        Ok(Repeated(Value::Object(map)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_would_fill_the_memory_are_not_parsed() {
        assert!(takes_more(&b"{\"a\":1},".repeat(11_000), 8 << 20));
        assert!(takes_more(&b"[1,".repeat(70_000), 8 << 20));
        assert!(!takes_more(&b"\"a string\" 12345 ".repeat(10_000), 8 << 20));
        assert_eq!(check_memory(b"{\"a\":1}"), Ok(()));
    }

    #[test]
    fn values_that_are_not_numbers_become_null() {
        let text = r#"{"a": -nan, "b":nan,"c": [inf,-inf, NaN,Infinity], "d": -nan(ind), "e": 1.#INF, "f": "nan, inf", "g": 2}"#;
        let value = parse(text).expect("JSON");
        for key in ["a", "b", "d", "e"] {
            assert!(value[key].is_null(), "{key}: {value}");
        }
        assert_eq!(value["c"], serde_json::json!([null, null, null, null]));
        assert_eq!((value["f"].as_str(), value["g"].as_i64()), (Some("nan, inf"), Some(2)));
    }

    #[test]
    fn syntax_errors_give_the_byte_of_the_original_text() {
        let error = parse("{\"a\": 1,\n \"b\": oops}").expect_err("no JSON");
        assert_eq!(error.at, 15, "{error:?}");
        let error = parse("{\"a\": nan, \"b\": inf,\n \"b\": oops}").expect_err("no JSON");
        assert_eq!(error.at, 27, "{error:?}");
        assert!(!error.why.contains("line"), "{error:?}");
    }

    #[test]
    fn repeated_sums_are_the_reverse_direction() {
        let value = parse(r#"{"sum": 1, "sum_sent": 2, "sum": 3, "other": 4, "other": 5}"#).expect("JSON");
        let expected = serde_json::json!({"sum": 1, "sum_sent": 2, "sum_bidir_reverse": 3, "other": 5});
        assert_eq!(value, expected);
    }

    #[test]
    fn braces_in_strings_do_not_end_a_value() {
        let text = r#"x {"a": "}\"{", "b": [{}]} y"#;
        assert_eq!(end_of_value(text, 2), Some(text.len() - 2));
        assert_eq!(end_of_value("{\"a\": {}", 0), None);
    }
}
