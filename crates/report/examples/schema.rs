//! Prints the schema from which the page's types are generated (`npm --prefix web run schema`): every type of
//! every document that a page renders, one per line, without descriptions and limits.

use std::collections::BTreeMap;

use serde_json::Value;

/// Rendered documents, with the names of their types.
const DOCUMENTS: [(&str, &str); 7] = [
    ("run", "RunDocument"),
    ("lab", "LabDocument"),
    ("audit", "AuditDocument"),
    ("trace", "TraceDocument"),
    ("tracecomparison", "TraceComparison"),
    ("watch", "WatchDocument"),
    ("figures", "FiguresDocument"),
];

/// Schema keywords that determine the possible values.
const KEPT: &[&str] = &[
    "$ref",
    "additionalProperties",
    "anyOf",
    "const",
    "enum",
    "items",
    "maxItems",
    "minItems",
    "oneOf",
    "prefixItems",
    "properties",
    "required",
    "type",
];

fn main() {
    let lines: Vec<String> =
        types().iter().map(|(name, schema)| format!("{}:{schema}", Value::from(name.as_str()))).collect();
    println!("{{\n{}\n}}", lines.join(",\n"));
}

/// Returns the schema of each type, by name.
pub fn types() -> BTreeMap<String, Value> {
    let mut types = BTreeMap::new();
    for (document, name) in DOCUMENTS {
        let mut schema = landspeed_model::schema(document).expect("the model has the document");
        if let Some(Value::Object(more)) = schema.as_object_mut().and_then(|object| object.remove("$defs")) {
            types.extend(more.into_iter().map(|(name, schema)| (name, plain(schema))));
        }
        // A document that contains another of its kind refers to it by name.
        let text = plain(schema).to_string().replace(r##""$ref":"#""##, &format!(r##""$ref":"#/$defs/{name}""##));
        types.insert(name.to_owned(), serde_json::from_str(&text).expect("it was JSON"));
    }
    types
}

/// Removes descriptions and limits from a schema.
fn plain(schema: Value) -> Value {
    match schema {
        Value::Object(mut object) => {
            object.retain(|key, _| KEPT.contains(&key.as_str()));
            for (key, value) in &mut object {
                let inner = std::mem::take(value);
                *value = match inner {
                    // The keys of `properties` are field names.
                    Value::Object(fields) if key == "properties" => {
                        fields.into_iter().map(|(name, field)| (name, plain(field))).collect()
                    }
                    other if key == "const" || key == "enum" => other,
                    other => plain(other),
                };
            }
            Value::Object(object)
        }
        Value::Array(all) => all.into_iter().map(plain).collect(),
        other => other,
    }
}
