//! Packs long lists of similar rows into columns.
//!
//! A test sampled every millisecond has tens of thousands of samples of some fifty fields each, most of which
//! never change: 100 MB of JSON for ten seconds of four streams. As columns, with constants stored once and
//! counters as differences, a twentieth of that remains, without loss. `web/src/unpack.ts` is the inverse.
//!
//! A column of `n` values is one of
//! - `[v, …]`: the values themselves;
//! - `{"$c": v}`: `n` times the same;
//! - `{"$d": [first, difference, …]}`: whole numbers;
//! - `{"$o": {key: column, …}, "$z": [row, …]}`: objects, field by field; rows listed in `$z` are null. A
//!   field that a row lacks is unpacked as null, which means the same in our documents;
//! - `{"$a": [column, …]}`: arrays of one length, position by position.
//!
//! A packed list is a column with `"$n"`, its length.

use serde::Serialize;
use serde_json::{Map, Value, json};

/// Minimum length of a packed list: shorter ones stay readable for people who open the file.
const MIN_PACKED_ROWS: usize = 32;

/// Returns a list of rows, packed if it has at least [`MIN_PACKED_ROWS`] of them.
pub(crate) fn rows<T: Serialize>(rows: &[T]) -> Result<Value, serde_json::Error> {
    // Through text: an `f32` keeps its few digits, while `to_value` would widen it.
    let values = rows
        .iter()
        .map(|row| serde_json::from_str(&serde_json::to_string(row)?))
        .collect::<Result<Vec<Value>, _>>()?;
    if values.len() < MIN_PACKED_ROWS {
        return Ok(Value::Array(values));
    }
    let length = values.len();
    let mut packed = match column(values) {
        Value::Object(packed) => packed,
        other => return Ok(other),
    };
    packed.insert("$n".to_owned(), length.into());
    Ok(Value::Object(packed))
}

fn column(values: Vec<Value>) -> Value {
    if values.iter().all(|v| *v == values[0]) {
        return json!({ "$c": values[0] });
    }
    if values.iter().all(|v| v.is_object() || v.is_null()) {
        return objects(values);
    }
    if let Some(length) = common_length(&values) {
        return arrays(values, length);
    }
    differences(&values).unwrap_or(Value::Array(values))
}

fn objects(values: Vec<Value>) -> Value {
    let rows = values.len();
    let mut nulls = Vec::new();
    let mut fields: Map<String, Value> = Map::new();
    let mut columns: Vec<(String, Vec<Value>)> = Vec::new();
    for (row, value) in values.into_iter().enumerate() {
        let Value::Object(object) = value else {
            nulls.push(Value::from(row));
            continue;
        };
        for (key, value) in object {
            let at = columns.iter().position(|(k, _)| *k == key).unwrap_or_else(|| {
                columns.push((key, Vec::new()));
                columns.len() - 1
            });
            columns[at].1.resize(row, Value::Null);
            columns[at].1.push(value);
        }
    }
    for (key, mut values) in columns {
        values.resize(rows, Value::Null);
        fields.insert(key, column(values));
    }
    let mut packed = json!({ "$o": fields });
    if !nulls.is_empty() {
        packed["$z"] = Value::Array(nulls);
    }
    packed
}

fn arrays(values: Vec<Value>, length: usize) -> Value {
    let mut positions: Vec<Vec<Value>> = (0..length).map(|_| Vec::with_capacity(values.len())).collect();
    for value in values {
        if let Value::Array(items) = value {
            for (position, item) in positions.iter_mut().zip(items) {
                position.push(item);
            }
        }
    }
    json!({ "$a": positions.into_iter().map(column).collect::<Vec<_>>() })
}

/// Returns the common length of the values, if all are non-empty arrays.
fn common_length(values: &[Value]) -> Option<usize> {
    let length = values.first()?.as_array()?.len();
    let same = values.iter().all(|v| v.as_array().is_some_and(|a| a.len() == length));
    (same && length > 0).then_some(length)
}

/// Returns integers as a start and differences. Not beyond 2^53, where JavaScript numbers are no longer exact.
fn differences(values: &[Value]) -> Option<Value> {
    const MAX_EXACT_INTEGER: u64 = 1 << 53;
    let mut last = 0;
    let mut out = Vec::with_capacity(values.len());
    for value in values {
        let number = value.as_i64().filter(|n| n.unsigned_abs() <= MAX_EXACT_INTEGER)?;
        out.push(Value::from(number - last));
        last = number;
    }
    Some(json!({ "$d": out }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rust version of the page's `unpack`.
    fn unpack(column: &Value, length: usize) -> Vec<Value> {
        if let Value::Array(values) = column {
            return values.clone();
        }
        if let Some(value) = column.get("$c") {
            return vec![value.clone(); length];
        }
        if let Some(differences) = column.get("$d") {
            let mut sum = 0;
            return differences
                .as_array()
                .unwrap()
                .iter()
                .map(|d| {
                    sum += d.as_i64().unwrap();
                    Value::from(sum)
                })
                .collect();
        }
        if let Some(Value::Array(positions)) = column.get("$a") {
            let columns: Vec<Vec<Value>> = positions.iter().map(|c| unpack(c, length)).collect();
            return (0..length).map(|row| columns.iter().map(|c| c[row].clone()).collect()).collect();
        }
        let mut rows = vec![Map::new(); length];
        for (key, column) in column["$o"].as_object().unwrap() {
            for (row, value) in rows.iter_mut().zip(unpack(column, length)) {
                row.insert(key.clone(), value);
            }
        }
        let mut rows: Vec<Value> = rows.into_iter().map(Value::Object).collect();
        for row in column.get("$z").and_then(Value::as_array).into_iter().flatten() {
            rows[row.as_u64().unwrap() as usize] = Value::Null;
        }
        rows
    }

    #[test]
    fn packed_rows_round_trip() {
        let original: Vec<Value> = (0..100i64)
            .map(|i| {
                json!({
                    "counter": i * i * 1_000_003,
                    "falling": -i,
                    "same": "text",
                    "share": 0.1 * i as f64,
                    "sometimes": if i % 7 == 0 { Value::Null } else { json!({ "a": i, "b": null }) },
                    "cores": [{ "user": i }, if i == 3 { Value::Null } else { json!({ "user": 1 }) }],
                    "ragged": vec![i; (i % 3) as usize],
                    "huge": u64::MAX - i as u64,
                })
            })
            .collect();
        let packed = rows(&original).unwrap();
        assert_eq!(packed["$n"], 100);
        assert!(packed.to_string().len() < serde_json::to_string(&original).unwrap().len() / 2);
        assert_eq!(unpack(&packed, 100), original);
    }

    #[test]
    fn short_lists_are_not_packed() {
        assert_eq!(rows(&[1, 2, 3]).unwrap(), json!([1, 2, 3]));
        assert_eq!(rows::<u8>(&[]).unwrap(), json!([]));
    }

    #[test]
    fn f32_values_keep_their_digits() {
        let packed = rows(&[0.1f32; 40]).unwrap();
        assert_eq!(packed, json!({ "$c": 0.1, "$n": 40 }));
    }
}
