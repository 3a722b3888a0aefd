//! Prints the schema the page's types are made from, for `npm --prefix web run schema`: `schema` that of the run
//! document, `schema lab` what the lab's documents have besides, `schema audit` what an audit has besides,
//! `schema trace` what captures have besides.

use serde_json::{Map, Value, json};

fn main() {
    let schema = match std::env::args().nth(1).as_deref() {
        None | Some("run") => landspeed_model::schema("run").expect("the model has a run document"),
        Some("lab") => besides(&[("lab", "LabDocument"), ("labset", "LabSetDocument")]),
        Some("audit") => besides(&[("audit", "AuditDocument")]),
        Some("trace") => besides(&[("trace", "TraceDocument"), ("tracecomparison", "TraceComparison")]),
        Some(other) => panic!("no schema `{other}`: run, lab, audit or trace"),
    };
    println!("{schema:#}");
}

/// The definitions of some documents that the run document does not have.
fn besides(documents: &[(&str, &str)]) -> Value {
    let run = landspeed_model::schema("run").expect("the model has a run document");
    let mut definitions = Map::new();
    for (name, title) in documents {
        let mut schema = landspeed_model::schema(name).expect("the model has the document");
        let object = schema.as_object_mut().expect("a schema is an object");
        if let Some(Value::Object(more)) = object.remove("$defs") {
            definitions.extend(more);
        }
        // A document that holds another of its kind calls it by its new name.
        let text = schema.to_string().replace(r##""$ref":"#""##, &format!(r##""$ref":"#/$defs/{title}""##));
        definitions.insert((*title).to_owned(), serde_json::from_str(&text).expect("it was JSON"));
    }
    definitions.retain(|name, _| name != "RunDocument" && run["$defs"].get(name).is_none());
    json!({ "$defs": definitions })
}
