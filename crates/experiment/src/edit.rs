//! Edits a scenario's text for `--set`. Keeps line numbers where possible, so that messages refer to the right
//! line.

use toml_edit::{Array, ArrayOfTables, DocumentMut, Item, RawString, Table, Value, value};

/// Returns the text with each `KEY=VALUE[,VALUE...]` applied. Text that is not TOML is returned unchanged:
/// loading the scenario reports the error.
pub fn set(text: &str, sets: &[String]) -> String {
    let Ok(mut scenario) = text.parse::<DocumentMut>() else { return text.to_owned() };
    for set in sets {
        let (key, values) = set.split_once('=').unwrap_or((set, ""));
        let values: Vec<Value> = values.split(',').map(|value| literal(value.trim())).collect();
        match (key.trim(), values.as_slice()) {
            ("repeats", [one]) => set_top(&mut scenario, "repeats", one),
            (key, values) => vary(&mut scenario, key, values.iter().collect()),
        }
    }
    scenario.to_string()
}

/// Returns the text with each key set to one value and nothing varied; `sets` contains (label, key, value).
/// Text that is not TOML is returned unchanged.
pub fn fix(text: &str, sets: &[(&str, &str, Value)]) -> String {
    let Ok(mut scenario) = text.parse::<DocumentMut>() else { return text.to_owned() };
    scenario.remove("vary");
    // Reference figures and criteria refer to varied cells, which are removed.
    if let Some(reference) = scenario.get_mut("reference").and_then(Item::as_table_like_mut) {
        reference.remove("figures");
        reference.remove("criteria");
    }
    scenario.insert("repeats", value(1));
    let mut axes = ArrayOfTables::new();
    for (label, key, set) in sets {
        let mut axis = Table::from_iter([("key", value(*key)), ("label", value(*label))]);
        axis.insert("values", value(Array::from_iter([set])));
        axis.set_position(Some(isize::MAX));
        axes.push(axis);
    }
    if !axes.is_empty() {
        scenario.insert("vary", Item::ArrayOfTables(axes));
    }
    scenario.to_string()
}

/// Replaces the value of a key, a dotted path; flows, links and the like are named by position or `name`. Missing tables
/// on the path are created.
///
/// # Errors
/// If a part of the path is neither a table nor in a list.
pub fn replace(scenario: &mut DocumentMut, key: &str, to: Value) -> Result<(), String> {
    let wrong = |part: &str| format!("cannot set {key}: there is no `{part}`");
    let mut at = scenario.as_item_mut();
    let mut rest = key;
    while let Some((part, inner)) = rest.split_once('.') {
        if let Item::ArrayOfTables(tables) = at {
            let named = |table: &Table| table.get("name").and_then(Item::as_str) == Some(part);
            let index = part.parse().ok().or_else(|| tables.iter().position(named)).ok_or_else(|| wrong(part))?;
            return replace_in(tables.get_mut(index).ok_or_else(|| wrong(part))?, inner, to);
        }
        at = at.as_table_like_mut().ok_or_else(|| wrong(part))?.entry(part).or_insert(Item::Table(Table::new()));
        rest = inner;
    }
    at.as_table_like_mut().ok_or_else(|| wrong(rest))?.insert(rest, value(to));
    Ok(())
}

/// Replaces the value of a key within a table.
fn replace_in(table: &mut Table, key: &str, to: Value) -> Result<(), String> {
    match key.split_once('.') {
        None => {
            table.insert(key, value(to));
            Ok(())
        }
        Some((first, rest)) => {
            let inner = table.entry(first).or_insert(value(toml_edit::InlineTable::new()));
            let inner =
                inner.as_table_like_mut().ok_or_else(|| format!("cannot set {key}: `{first}` is not a table"))?;
            inner.insert(rest, value(to));
            Ok(())
        }
    }
}

/// A key varied by a scenario.
pub struct Varied {
    /// Dotted path of the key.
    pub key: String,
    /// Column heading in tables; `None` if the key has no label.
    pub label: Option<String>,
    /// Levels, as TOML.
    pub values: Vec<String>,
}

/// Returns the keys that a scenario varies; none if the text is not TOML: loading the scenario reports the error.
pub fn varied(text: &str) -> Vec<Varied> {
    let Ok(scenario) = text.parse::<DocumentMut>() else { return Vec::new() };
    let axes = scenario.get("vary").and_then(Item::as_array_of_tables).into_iter().flatten();
    axes.filter_map(|axis| {
        let text = |key: &str| axis.get(key).and_then(Item::as_str).map(str::to_owned);
        let values = axis.get("values").and_then(Item::as_array)?;
        let values = values.iter().map(|value| value.clone().decorated("", "").to_string()).collect();
        Some(Varied { key: text("key")?, label: text("label"), values })
    })
    .collect()
}

/// A program to add to a scenario.
pub struct AddedProgram<'a> {
    /// Name of the program.
    pub name: &'a str,
    /// Its host.
    pub host: &'a str,
    /// Program and arguments.
    pub run: &'a [String],
    /// Start time.
    pub at: Option<&'a str>,
    /// When to stop it.
    pub stop: Option<&'a str>,
}

/// Returns the text with further programs at the end. Text that is not TOML is returned unchanged.
pub fn add_programs(text: &str, programs: &[AddedProgram<'_>]) -> String {
    let Ok(mut scenario) = text.parse::<DocumentMut>() else { return text.to_owned() };
    let tables = scenario.entry("program").or_insert(Item::ArrayOfTables(ArrayOfTables::new()));
    // Loading the scenario reports the wrong type.
    let Some(tables) = tables.as_array_of_tables_mut() else { return text.to_owned() };
    for program in programs {
        let mut table = Table::from_iter([("name", value(program.name)), ("host", value(program.host))]);
        table.insert("run", value(Array::from_iter(program.run)));
        for (key, time) in [("at", program.at), ("stop", program.stop)] {
            if let Some(time) = time {
                table.insert(key, value(time));
            }
        }
        table.set_position(Some(isize::MAX));
        tables.push(table);
    }
    scenario.to_string()
}

/// Returns the hosts of a scenario in the order of its links; none if the text is not TOML.
pub fn hosts(text: &str) -> Vec<String> {
    let Ok(scenario) = text.parse::<DocumentMut>() else { return Vec::new() };
    let links = scenario.get("link").and_then(Item::as_array_of_tables).into_iter().flatten();
    let ends = links.filter_map(|link| link.get("between").and_then(Item::as_array)).flatten();
    let is_host = |name: &&str| scenario.get("host").is_some_and(|hosts| hosts.get(name).is_some());
    let mut found: Vec<String> = Vec::new();
    for name in ends.filter_map(Value::as_str).filter(is_host) {
        if !found.iter().any(|known| known == name) {
            found.push(name.to_owned());
        }
    }
    found
}

/// Returns a value as TOML: unchanged if it parses, a string otherwise.
fn literal(text: &str) -> Value {
    text.parse().unwrap_or_else(|_| text.into())
}

/// Sets the values of the `[[vary]]` with this label or key; adds one at the end if there is none.
fn vary(scenario: &mut DocumentMut, name: &str, mut values: Array) {
    let axes = std::mem::take(scenario.entry("vary").or_insert(Item::ArrayOfTables(ArrayOfTables::new())));
    scenario["vary"] = match axes.into_array_of_tables() {
        Ok(mut axes) => {
            let find = |by: &str| axes.iter().position(|axis| axis.get(by).and_then(Item::as_str) == Some(name));
            if let Some(axis) = find("label").or_else(|| find("key")).and_then(|at| axes.get_mut(at)) {
                let lines = axis.get("values").map_or(0, |values| values.to_string().matches('\n').count());
                values.set_trailing("\n".repeat(lines));
                axis.insert("values", value(values));
            } else {
                let mut axis = Table::from_iter([("key", value(name)), ("values", value(values))]);
                axis.set_position(Some(isize::MAX));
                axes.push(axis);
            }
            Item::ArrayOfTables(axes)
        }
        // Loading the scenario reports the wrong type.
        Err(other) => other,
    };
}

/// Sets a top-level key that cannot be varied. A new key replaces the blank line before the first table.
fn set_top(scenario: &mut DocumentMut, key: &str, to: &Value) {
    if scenario.insert(key, value(to)).is_some() {
        return;
    }
    let first = scenario.iter_mut().find_map(|(_, item)| match item {
        Item::Table(table) => Some(table.decor_mut()),
        Item::ArrayOfTables(tables) => tables.get_mut(0).map(Table::decor_mut),
        _ => None,
    });
    if let Some(first) = first
        && let Some(rest) = first.prefix().and_then(RawString::as_str).and_then(|before| before.strip_prefix('\n'))
    {
        first.set_prefix(rest.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "name = \"n\"\n\n[[vary]]\nkey = \"a.b\"\nlabel = \"x\"\nvalues = [\n  [1],\n  2,\n]\n\n[[vary]] # more\n\
                        key = \"c\"\nvalues = [1]\n[hosts]\nkey = 1\n";

    fn after(sets: &[&str]) -> String {
        set(TEXT, &sets.iter().map(|&set| set.to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn set_values_are_toml_or_strings() {
        for (text, toml) in [("4", "4"), ("true", "true"), ("\"64MB\"", "\"64MB\""), ("64MB", "\"64MB\"")] {
            assert_eq!(literal(text).to_string(), toml);
        }
        assert!(literal("a\nb = 1").is_str() && literal("fq_codel").is_str());
    }

    #[test]
    fn replaced_axes_keep_label_and_line_numbers() {
        for name in ["a.b", "x"] {
            assert_eq!(after(&[&format!("{name}=3,4MB")]), TEXT.replace("\n  [1],\n  2,\n]", "3, \"4MB\"\n\n\n]"));
        }
        assert_eq!(after(&["c=2"]), TEXT.replace("[1]\n[hosts]", "[2]\n[hosts]"));
        assert_eq!(after(&["d=2"]), format!("{TEXT}\n[[vary]]\nkey = \"d\"\nvalues = [2]\n"));
    }

    #[test]
    fn keys_are_replaced_by_name_position_or_table() {
        let mut scenario: DocumentMut =
            "[hosts]\nqdisc = \"fq\"\n[[link]]\nrate = \"1G\"\n[[flow]]\nname = \"f\"\ntime = \"1s\"\n"
                .parse()
                .expect("TOML");
        for key in ["hosts.qdisc", "link.0.rate", "flow.f.time", "flow.0.omit", "link.0.forward.loss", "time"] {
            replace(&mut scenario, key, Value::from("new")).unwrap_or_else(|why| panic!("{why}"));
        }
        let text = scenario.to_string();
        assert_eq!(text.matches("\"new\"").count(), 6, "{text}");
        for key in ["link.1.rate", "flow.g.time", "hosts.qdisc.kind"] {
            assert!(replace(&mut scenario, key, Value::from(1)).is_err_and(|why| why.contains(key)), "{key}");
        }
    }

    #[test]
    fn repeats_is_replaced_or_fills_a_blank_line() {
        let once = after(&["repeats=1"]);
        assert_eq!(once, TEXT.replace("\"\n\n[[vary]]\n", "\"\nrepeats = 1\n[[vary]]\n"));
        assert_eq!(set(&once, &["repeats=2".to_owned()]), once.replace("repeats = 1", "repeats = 2"));
    }

    #[test]
    fn a_fixed_scenario_varies_only_what_is_set() {
        let sets = [("buffer", "a.b", "3".parse().expect("TOML")), ("z", "y", Value::from("4MB"))];
        let fixed = fix(TEXT, &sets);
        let varied = varied(&fixed);
        let found: Vec<_> =
            varied.iter().map(|axis| (axis.label.as_deref(), axis.key.as_str(), &axis.values[..])).collect();
        assert_eq!(
            found,
            [(Some("buffer"), "a.b", &["3".to_owned()][..]), (Some("z"), "y", &["\"4MB\"".to_owned()])]
        );
        assert!(fixed.contains("repeats = 1") && fixed.contains("[hosts]"));
        assert_eq!(self::varied(TEXT).iter().map(|axis| axis.values.len()).collect::<Vec<_>>(), [2, 1]);
    }

    #[test]
    fn added_programs_follow_the_scenario() {
        let text = "name = \"n\"\n[host.b]\n[host.a]\n[switch.s]\n[[link]]\nbetween = [\"a\", \"s\"]\n[[link]]\nbetween = [\"s\", \"b\"]\n";
        assert_eq!(hosts(text), ["a", "b"]);
        let run = ["sh", "-c", "echo \"x\""].map(str::to_owned);
        let program = AddedProgram { name: "p", host: "a", run: &run, at: Some("1s"), stop: None };
        let expected =
            "\n[[program]]\nname = \"p\"\nhost = \"a\"\nrun = [\"sh\", \"-c\", 'echo \"x\"']\nat = \"1s\"\n";
        assert_eq!(add_programs(text, &[program]), format!("{text}{expected}"));
    }

    #[test]
    fn invalid_scenarios_are_returned_unchanged() {
        for text in ["vary = 3\n", "[[vary]\n"] {
            assert_eq!(set(text, &["a=1".to_owned()]), text);
        }
    }
}
