//! Trace files that a scenario names: their contents replace the names, so that its text says everything about the
//! run.

use landspeed_lab::scenario::{RateSource, inline_trace};
use toml_edit::{Array, DocumentMut, InlineTable, Item, Value};

/// Maximum size of a trace file, bytes.
pub const MAX_BYTES: u64 = 64 << 20;

/// Returns the text with the rates of the traces it names in place of their file names; `read` returns the text of a
/// file. Text that is not TOML is returned unchanged: loading the scenario reports the error.
///
/// # Errors
/// Returns which trace cannot be used, and why, with its line.
pub fn inline(text: &str, read: &mut dyn FnMut(&str) -> Result<String, String>) -> Result<String, String> {
    let Ok(mut scenario) = text.parse::<DocumentMut>() else { return Ok(text.to_owned()) };
    let Some(links) = scenario.get_mut("link").and_then(Item::as_array_of_tables_mut) else {
        return Ok(text.to_owned());
    };
    let mut replaced = false;
    for (index, link) in links.iter_mut().enumerate() {
        let mut rate = |item: Option<&mut Item>| -> Result<(), String> {
            let Some(item) = item else { return Ok(()) };
            let Some((source, file)) = named(item) else { return Ok(()) };
            let failed = |why: String| format!("cannot use the trace {file} of link {index}: {why}");
            let text = read(&file).map_err(failed)?;
            if let Some(source) = inline_trace(&source, &text).map_err(failed)? {
                *item = Item::Value(value(&source));
                replaced = true;
            }
            Ok(())
        };
        rate(link.get_mut("rate"))?;
        for direction in ["forward", "reverse"] {
            let own = link.get_mut(direction).and_then(Item::as_table_like_mut);
            rate(own.and_then(|own| own.get_mut("rate")))?;
        }
    }
    Ok(if replaced { scenario.to_string() } else { text.to_owned() })
}

/// Returns the trace that a rate names, and its file.
fn named(rate: &Item) -> Option<(RateSource, String)> {
    let table = rate.as_table_like()?;
    let file = |key: &str| table.get(key).and_then(Item::as_str).map(str::to_owned);
    let mahimahi = file("mahimahi").map(|file| (RateSource::Mahimahi(file.clone()), file));
    mahimahi.or_else(|| file("rattan").map(|file| (RateSource::Rattan(file.clone()), file)))
}

fn value(source: &RateSource) -> Value {
    let mut table = InlineTable::new();
    match source {
        RateSource::Opportunities(times) => {
            table.insert("opportunities", times.iter().map(|ms| *ms as i64).collect::<Array>().into());
        }
        RateSource::Steps(steps) => {
            let step = |step: &landspeed_lab::scenario::RateChange| {
                InlineTable::from_iter([("for", step.duration.to_string()), ("rate", step.rate.to_string())])
            };
            table.insert("steps", steps.steps.iter().map(step).collect::<Array>().into());
            if steps.repeat {
                table.insert("repeat", true.into());
            }
        }
        RateSource::Fixed(rate) => return rate.to_string().into(),
        RateSource::Mahimahi(_) | RateSource::Rattan(_) => {}
    }
    table.into()
}

#[cfg(test)]
mod tests {
    use super::inline;

    const SCENARIO: &str = "name = \"n\"\n[[link]]\nrate = { mahimahi = \"cell.trace\" }\n[link.reverse]\n\
                            rate = { rattan = \"up.json\" }\n[[link]]\nrate = \"1G\"\n";

    fn read(name: &str) -> Result<String, String> {
        match name {
            "cell.trace" => Ok("0\n5\n12\n".to_owned()),
            "up.json" => Ok(r#"{"RepeatedBwPatternConfig":{"count":0,"pattern":[{"StaticBwConfig":{"bw":"1Mbps","duration":"1s"}}]}}"#
                .to_owned()),
            _ => Err("no such file".to_owned()),
        }
    }

    #[test]
    fn trace_files_become_part_of_the_scenario() {
        let text = inline(SCENARIO, &mut read).expect("both traces");
        assert!(text.contains("rate = { opportunities = [0, 5, 12] }"), "{text}");
        assert!(text.contains("repeat = true") && !text.contains("rattan"), "{text}");
        assert_eq!(text.lines().count(), SCENARIO.lines().count(), "line numbers stay");
    }

    #[test]
    fn a_bad_trace_is_named_with_its_line() {
        let mut descending = |_: &str| Ok("5\n4\n".to_owned());
        let error = inline(SCENARIO, &mut descending).expect_err("times descend");
        assert_eq!(error, "cannot use the trace cell.trace of link 0: line 2: 4 is before 5; times must ascend");
        let error = inline(SCENARIO, &mut |_| Err("no such file".to_owned())).expect_err("no file");
        assert_eq!(error, "cannot use the trace cell.trace of link 0: no such file");
        let mut empty = |_: &str| Ok(String::new());
        let error = inline(SCENARIO, &mut empty).expect_err("empty");
        assert!(error.ends_with("the trace is empty"), "{error}");
    }
}
