//! Prints the schema the page's types are made from, for `npm --prefix web run schema`: `schema` that of the run
//! document, `schema lab` what the lab's documents have besides.

use serde_json::{Map, Value, json};

fn main() {
    let schema = match std::env::args().nth(1).as_deref() {
        None | Some("run") => landspeed_model::schema("run").expect("the model has a run document"),
        Some("lab") => lab(),
        Some(other) => panic!("no schema `{other}`: run or lab"),
    };
    println!("{schema:#}");
}

/// The definitions of both of the lab's documents that the run document does not have.
fn lab() -> Value {
    let run = landspeed_model::schema("run").expect("the model has a run document");
    let mut definitions = Map::new();
    for (name, title) in [("lab", "LabDocument"), ("labset", "LabSetDocument")] {
        let mut schema = landspeed_model::schema(name).expect("the model has the lab's documents");
        let object = schema.as_object_mut().expect("a schema is an object");
        if let Some(Value::Object(more)) = object.remove("$defs") {
            definitions.extend(more);
        }
        definitions.insert(title.to_owned(), schema);
    }
    definitions.retain(|name, _| name != "RunDocument" && run["$defs"].get(name).is_none());
    json!({ "$defs": definitions })
}
