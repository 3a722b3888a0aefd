//! Prints the schema that the page's types are made from (`npm --prefix web run schema`): every type of every document
//! that a page is drawn from, one a line, without words and limits.

use std::collections::BTreeMap;

use serde_json::Value;

/// Documents that a page is drawn from, with the names of their types.
const DOCUMENTS: [(&str, &str); 8] = [
    ("run", "RunDocument"),
    ("lab", "LabDocument"),
    ("labset", "LabSetDocument"),
    ("audit", "AuditDocument"),
    ("trace", "TraceDocument"),
    ("tracecomparison", "TraceComparison"),
    ("watch", "WatchDocument"),
    ("figures", "FiguresDocument"),
];

/// What of a schema says which values there are.
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

/// The schema of each type, by name.
pub fn types() -> BTreeMap<String, Value> {
    let mut types = BTreeMap::new();
    for (document, name) in DOCUMENTS {
        let mut schema = landspeed_model::schema(document).expect("the model has the document");
        if let Some(Value::Object(more)) = schema.as_object_mut().and_then(|object| object.remove("$defs")) {
            types.extend(more.into_iter().map(|(name, schema)| (name, plain(schema))));
        }
        // A document that holds another of its kind calls it by its name.
        let text = plain(schema).to_string().replace(r##""$ref":"#""##, &format!(r##""$ref":"#/$defs/{name}""##));
        types.insert(name.to_owned(), serde_json::from_str(&text).expect("it was JSON"));
    }
    types
}

/// A schema without words and limits.
fn plain(schema: Value) -> Value {
    match schema {
        Value::Object(mut object) => {
            object.retain(|key, _| KEPT.contains(&key.as_str()));
            for (key, value) in &mut object {
                let inner = std::mem::take(value);
                *value = match inner {
                    // Its keys are names of fields.
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
