//! A page for each JSON document and input file: every path with its type and meaning, from the schema.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::Value;

use super::{ReferencePage, cell, code_cell};
use crate::schema;

/// Fields of an object that is written once for each page, and then referred to.
const MANY_FIELDS: usize = 4;

pub fn pages() -> Vec<ReferencePage> {
    let schemas: Vec<(&str, Value)> = schema::names().filter_map(|name| Some((name, schema::find(name)?))).collect();
    let titles: BTreeMap<String, &str> = schemas
        .iter()
        .filter_map(|(name, schema)| Some((schema.get("title")?.as_str()?.to_owned(), *name)))
        .collect();
    let mut pages = vec![("documents/README.md".to_owned(), index(&schemas))];
    pages.extend(schemas.iter().map(|(name, schema)| (format!("documents/{name}.md"), page(name, schema, &titles))));
    pages
}

fn index(schemas: &[(&str, Value)]) -> String {
    let mut index = String::from(
        "# JSON by path\n\nEvery field of every document that landspeed writes, and of the files that it reads.\n\n\
         | document | |\n|---|---|\n",
    );
    for (name, schema) in schemas {
        let _ = writeln!(index, "| [`{name}`]({name}.md) | {} |", cell(&description(schema).unwrap_or_default()));
    }
    index
}

fn page(name: &str, schema: &Value, titles: &BTreeMap<String, &str>) -> String {
    let is_input = [schema::SCENARIO, schema::PATH].contains(&name);
    let title = schema["properties"]["schema"]["const"].as_str();
    let mut page = format!("# {name}{}\n\n", if is_input { ": the file" } else { "" });
    if let Some(text) = description(schema) {
        let _ = write!(page, "{}\n\n", text.replace('<', "\\<"));
    }
    if let Some(title) = title {
        let _ = write!(page, "The document `{title}`. ");
    }
    let _ = write!(
        page,
        "`landspeed schema {name}` prints its JSON Schema. `[]` stands for every item of a list, `*` for any key. A field that is \
         `null` is unknown or does not apply.\n\n| path | type | meaning |\n|---|---|---|\n"
    );
    let mut walk =
        Walk { definitions: &schema["$defs"], titles, own: name, seen: BTreeMap::new(), rows: String::new() };
    walk.fields(schema, "");
    page.push_str(&walk.rows);
    page
}

struct Walk<'a> {
    definitions: &'a Value,
    /// Titles of the documents, with their names.
    titles: &'a BTreeMap<String, &'a str>,
    own: &'a str,
    /// Definitions that are written, with their paths.
    seen: BTreeMap<String, String>,
    rows: String,
}

impl Walk<'_> {
    /// Writes a row for each field of an object, and what is below it.
    fn fields(&mut self, object: &Value, path: &str) {
        let mut fields: Vec<_> = object["properties"].as_object().into_iter().flatten().collect();
        // What is written once is written at the path that people look for.
        fields.sort_by_key(|(key, _)| (key.starts_with("reverse_"), *key == "receiver"));
        for (key, field) in fields {
            let simple = key.chars().all(|char| char.is_ascii_alphanumeric() || char == '_');
            let path = if simple { format!("{path}.{key}") } else { format!("{path}[\"{key}\"]") };
            self.row(field, &path);
        }
        for alternative in alternatives(object) {
            let alternative = self.resolved(alternative).1.clone();
            self.fields(&alternative, path);
        }
    }

    fn row(&mut self, field: &Value, path: &str) {
        let meaning = description(field).or_else(|| description(self.resolved(field).1)).unwrap_or_default();
        let (target, path) = Self::innermost(field, path.to_owned());
        let (name, resolved) = self.resolved(target);
        let (name, resolved) = (name.map(str::to_owned), resolved.clone());
        let kind = self.kind(target);
        let count =
            resolved["properties"].as_object().map_or(0, serde_json::Map::len) + alternatives(&resolved).count();
        let is_object = resolved["properties"].is_object()
            || alternatives(&resolved).any(|one| self.resolved(one).1["properties"].is_object());
        let mut kind = cell(&kind);
        let mut below = is_object;
        if let Some(name) = name.filter(|_| is_object) {
            if let Some(document) = self.titles.get(&name).filter(|document| **document != self.own) {
                kind = format!("[{name}]({document}.md)");
                below = false;
            } else if let Some(written) = self.seen.get(&name) {
                kind = format!("as {}", code_cell(written));
                below = false;
            } else if count >= MANY_FIELDS {
                self.seen.insert(name, path.clone());
            }
        }
        let _ = writeln!(self.rows, "| {} | {kind} | {} |", code_cell(&path), cell(&meaning));
        if below {
            self.fields(&resolved, &path);
        }
    }

    /// Descends through lists and maps to what they contain.
    fn innermost(mut value: &Value, mut path: String) -> (&Value, String) {
        loop {
            value = not_null(value);
            if value["items"].is_object() {
                path.push_str("[]");
                value = &value["items"];
            } else if value["additionalProperties"].is_object() {
                path.push_str(".*");
                value = &value["additionalProperties"];
            } else {
                return (value, path);
            }
        }
    }

    /// Follows references to a definition; with its name.
    fn resolved<'v>(&'v self, value: &'v Value) -> (Option<&'v str>, &'v Value) {
        let value = not_null(value);
        match value["$ref"].as_str().and_then(|reference| reference.strip_prefix("#/$defs/")) {
            Some(name) => {
                let (deeper, found) = self.resolved(&self.definitions[name]);
                (deeper.or(Some(name)), found)
            }
            None => (None, value),
        }
    }

    /// The type in words: `integer`, `string or number`, the values of an enumeration.
    fn kind(&self, value: &Value) -> String {
        let (_, value) = self.resolved(value);
        if let Some(constant) = value.get("const") {
            return format!("`{}`", constant.as_str().map_or_else(|| constant.to_string(), str::to_owned));
        }
        let constants: Vec<String> = [&value["enum"]]
            .into_iter()
            .flat_map(|list| list.as_array().into_iter().flatten())
            .chain(alternatives(value).flat_map(|one| match one.get("const") {
                Some(constant) => vec![constant],
                None => one["enum"].as_array().into_iter().flatten().collect(),
            }))
            .filter_map(|constant| Some(format!("`{}`", constant.as_str()?)))
            .collect();
        if !constants.is_empty() {
            return constants.join(", ");
        }
        let mut kinds: Vec<String> = match &value["type"] {
            Value::String(kind) => vec![kind.clone()],
            Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
            _ => alternatives(value).map(|one| self.kind(one)).collect(),
        };
        kinds.retain(|kind| kind != "null");
        kinds.dedup();
        if kinds.is_empty() { "any".to_owned() } else { kinds.join(" or ") }
    }
}

/// The alternatives of a value other than null.
fn alternatives(value: &Value) -> impl Iterator<Item = &Value> {
    let lists = ["anyOf", "oneOf", "allOf"].into_iter().filter_map(|key| value[key].as_array());
    lists.flatten().filter(|one| one["type"] != "null")
}

/// A value or null: the value.
fn not_null(value: &Value) -> &Value {
    let mut other = alternatives(value);
    match (other.next(), other.next()) {
        (Some(one), None) if value["properties"].is_null() => one,
        _ => value,
    }
}

/// The first paragraph of a description.
fn description(value: &Value) -> Option<String> {
    let text = value["description"].as_str()?;
    let first = text.split("\n\n").next()?;
    Some(
        first
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
            .replace("`None`", "`null`")
            .replace("[`", "`")
            .replace("`]", "`"),
    )
}
