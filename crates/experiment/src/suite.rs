//! Scenario texts of the cases of a suite.

use landspeed_lab::suite::{CONGESTION_LABEL, Case, Suite};
use landspeed_model::Criterion;
use toml_edit::{Array, ArrayOfTables, DocumentMut, Item, Table, Value, value};

use crate::edit;

/// Returns the scenario of a case: its base with the case's keys, a factor with the congestion controls of the flow
/// `test` (or of all hosts, without such a flow), and the criteria.
///
/// # Errors
/// If a key of the case does not exist in its base.
pub fn scenario(suite: &Suite, case: &Case, congestion: &[String], runs: u32) -> Result<String, String> {
    let mut scenario: DocumentMut = case.base().parse().map_err(|why| format!("{}: {why}", case.name))?;
    for (key, to) in &case.set {
        edit::replace(&mut scenario, key, editable(to)).map_err(|why| format!("{}: {why}", case.name))?;
    }
    for (key, text) in [("name", &case.name), ("description", &case.title)] {
        scenario.insert(key, value(text.as_str()));
    }
    scenario.insert("repeats", value(i64::from(runs)));
    let has_test = case.base().contains("name = \"test\"");
    let key = if has_test { "flow.test.congestion" } else { "hosts.congestion" };
    let mut axis = Table::from_iter([("key", value(key)), ("label", value(CONGESTION_LABEL))]);
    axis.insert("values", value(Array::from_iter(congestion)));
    axis.set_position(Some(isize::MAX));
    scenario.insert("vary", Item::ArrayOfTables(ArrayOfTables::from_iter([axis])));
    let mut reference = Table::from_iter([
        ("source", value(format!("{}: {}", suite.source, case.section))),
        (
            "reported",
            value(case.hidden.as_ref().map_or_else(
                || case.title.clone(),
                |hidden| format!("{}. Not visible from outside: {hidden}", case.title),
            )),
        ),
    ]);
    reference.insert("criteria", Item::ArrayOfTables(case.criteria.iter().map(criterion).collect()));
    reference.set_position(Some(isize::MAX));
    scenario.insert("reference", Item::Table(reference));
    Ok(scenario.to_string())
}

/// Converts a parsed value to one of a text that is edited.
fn editable(value: &toml::Value) -> Value {
    match value {
        toml::Value::String(text) => text.as_str().into(),
        toml::Value::Integer(number) => (*number).into(),
        toml::Value::Float(number) => (*number).into(),
        toml::Value::Boolean(on) => (*on).into(),
        toml::Value::Datetime(time) => time.to_string().into(),
        toml::Value::Array(values) => Value::Array(values.iter().map(editable).collect()),
        toml::Value::Table(table) => {
            Value::InlineTable(table.iter().map(|(key, value)| (key.as_str(), editable(value))).collect())
        }
    }
}

fn criterion(criterion: &Criterion) -> Table {
    let mut table = Table::from_iter([("name", value(criterion.name.as_str()))]);
    let numbers = [
        ("at_least", criterion.at_least),
        ("at_most", criterion.at_most),
        ("from_s", criterion.from_s),
        ("until_s", criterion.until_s),
    ];
    for (key, number) in numbers {
        if let Some(number) = number {
            table.insert(key, value(number));
        }
    }
    table.insert("unit", value(criterion.unit.as_str()));
    let figure = serde_json::to_value(criterion.figure).ok();
    if let Some(figure) = figure.as_ref().and_then(serde_json::Value::as_str) {
        table.insert("figure", value(figure));
    }
    for (key, flow) in [("flow", &criterion.flow), ("beside", &criterion.beside)] {
        if let Some(flow) = flow {
            table.insert(key, value(flow.as_str()));
        }
    }
    for (key, levels) in [("cell", Some(&criterion.cell)), ("over", criterion.over.as_ref())] {
        let levels = levels.into_iter().flatten().filter_map(|(name, level)| Some((name, level.as_str()?)));
        let levels: toml_edit::InlineTable =
            levels.map(|(name, level)| (name.as_str(), Value::from(level))).collect();
        if !levels.is_empty() {
            table.insert(key, value(levels));
        }
    }
    table.insert("source", value(criterion.source.as_str()));
    table
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use landspeed_lab::{scenario, suite};

    #[test]
    fn every_case_of_every_suite_is_a_valid_scenario() {
        for name in suite::names() {
            let suite = suite::find(name).unwrap_or_else(|why| panic!("{why}"));
            let names: BTreeSet<&str> = suite.cases.iter().map(|case| case.name.as_str()).collect();
            assert_eq!(names.len(), suite.cases.len(), "{name}: two cases have one name");
            for case in suite.cases.iter().filter(|case| !case.criteria.is_empty()) {
                let text =
                    super::scenario(&suite, case, &suite.congestion, 2).unwrap_or_else(|why| panic!("{name}: {why}"));
                let loaded = scenario::load(&text).unwrap_or_else(|p| panic!("{}\n{text}", p.named(&case.name)));
                assert_eq!(loaded.cells.len(), suite.congestion.len() * 2, "{name}: {}", case.name);
                for cell in &loaded.cells {
                    landspeed_lab::plan::plan(&cell.scenario, &[])
                        .unwrap_or_else(|why| panic!("{}: {why}", case.name));
                }
                let compares = case.criteria.iter().any(|criterion| criterion.over.is_some());
                assert!(!compares || suite.baseline.is_some(), "{name}: {} compares with nothing", case.name);
            }
            let open: Vec<&str> = suite
                .cases
                .iter()
                .filter(|case| case.criteria.is_empty() && case.hidden.is_none())
                .map(|case| case.name.as_str())
                .collect();
            assert!(open.is_empty(), "{name}: neither criteria nor a reason: {open:?}");
        }
    }
}
