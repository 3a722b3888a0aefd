//! `--event TIME:KEY=VALUE`: changes of a path from the command line.

use std::fmt::Write as _;

use anyhow::{Context as _, bail};

/// Advice on the notation.
const NOTATION: &str = "Write TIME:KEY=VALUE, such as 5s:rate=10M or 8s:link.1.reverse.delay=80ms.";

/// Returns the text of a path file with an `[[event]]` for each option at its end.
///
/// # Errors
/// If an option does not have the form `TIME:KEY=VALUE`.
pub fn add(text: &str, events: &[String]) -> anyhow::Result<String> {
    let mut text = text.to_owned();
    for event in events {
        let failed = || format!("cannot read --event {event}\n{NOTATION}");
        let (at, change) = event.split_once(':').with_context(failed)?;
        let (key, value) = change.split_once('=').with_context(failed)?;
        let mut steps: Vec<&str> = key.trim().split('.').collect();
        let mut table = format!("\n[[event]]\nat = {}\n", quoted(at.trim()));
        if steps.first() == Some(&"link") && steps.len() > 2 {
            let number: u32 = steps[1].parse().ok().with_context(failed)?;
            let _ = writeln!(table, "link = {number}");
            steps.drain(..2);
        }
        if let Some(direction @ ("forward" | "reverse")) = steps.first().copied().filter(|_| steps.len() > 1) {
            let _ = writeln!(table, "direction = \"{direction}\"");
            steps.remove(0);
        }
        let [key] = steps.as_slice() else { bail!(failed()) };
        if key.is_empty() || !key.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-') {
            bail!(failed());
        }
        let is_toml = format!("{key} = {value}").parse::<toml::Table>().is_ok();
        let value = if is_toml { value.trim().to_owned() } else { quoted(value.trim()) };
        let _ = writeln!(table, "{key} = {value}");
        if !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(&table);
    }
    Ok(text)
}

/// Returns a text in quotes, as TOML and JSON have it.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use landspeed_emulation::load;

    use super::add;

    const PATH: &str = "name = \"two links\"\n[[link]]\nrate = \"1G\"\n[[link]]\nrate = \"100M\"\ndelay = \"5ms\"";

    #[test]
    fn options_become_events_of_the_path() {
        let options = ["5s:link.1.reverse.delay=80ms", "6s:link.0.down=true", "7s:link.0.queue={ kind = \"pie\" }"];
        let text = add(PATH, &options.map(str::to_owned)).expect("three events");
        let loaded = load(&text, &mut |_| Err(String::new())).unwrap_or_else(|problems| panic!("{problems}"));
        assert_eq!(loaded.path.event.len(), 3);
        assert_eq!((loaded.forward.changes().len(), loaded.reverse.changes().len()), (2, 3));
        assert_eq!(loaded.reverse.changes()[0].at_ns, 5_000_000_000);
        assert_eq!(loaded.reverse.changes()[0].change.delay_ns, Some(80_000_000));
    }

    #[test]
    fn options_of_another_form_are_refused() {
        for option in ["rate=10M", "5s:rate", "5s:link.x.rate=1M", "5s:link.1.queue.limit=1MB", "5s:=1"] {
            assert!(add(PATH, &[option.to_owned()]).is_err(), "{option}");
        }
    }
}
