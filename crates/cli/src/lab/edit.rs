//! Changes to a scenario's text that keep its lines where they are as far as can be, so that messages point at them.

/// Takes out the `[[vary]]` that varies `key`, if there is one, and returns its label: what is set from outside replaces what
/// the scenario varies by itself.
pub fn take_axis(text: &mut String, key: &str) -> Option<String> {
    let lines: Vec<&str> = text.lines().collect();
    let starts = (0..lines.len()).filter(|&at| lines[at].split('#').next().unwrap_or("").trim() == "[[vary]]");
    let (start, end, label) = starts.into_iter().find_map(|start| {
        let end = (start + 1..lines.len()).find(|&at| is_header(lines[at])).unwrap_or(lines.len());
        let block: toml::Table = toml::from_str(&lines[start + 1..end].join("\n")).ok()?;
        let label = block.get("label").and_then(|label| label.as_str()).map(str::to_owned);
        (block.get("key")?.as_str()? == key).then_some((start, end, label))
    })?;
    let kept = lines.iter().enumerate().map(|(at, line)| if (start..end).contains(&at) { "" } else { *line });
    *text = kept.collect::<Vec<_>>().join("\n");
    label
}

/// The key that a `[[vary]]` of this label varies: tables and charts show the label, so it is what is set.
pub fn key_labelled(text: &str, label: &str) -> Option<String> {
    let table: toml::Table = toml::from_str(text).ok()?;
    let mut axes = table.get("vary")?.as_array()?.iter();
    let axis = axes.find(|axis| axis.get("label").and_then(toml::Value::as_str) == Some(label))?;
    axis.get("key")?.as_str().map(str::to_owned)
}

/// Sets a key of the scenario itself which cannot be varied, such as `repeats`.
pub fn set_top(text: &mut String, key: &str, value: &str) {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let tables = lines.iter().position(|line| is_header(line)).unwrap_or(lines.len());
    let is_key = |line: &String| line.split_once('=').is_some_and(|(name, _)| name.trim() == key);
    match lines[..tables].iter().position(is_key) {
        Some(at) => lines[at] = format!("{key} = {value}"),
        None => lines.insert(0, format!("{key} = {value}")),
    }
    *text = lines.join("\n");
}

/// Whether a line begins a table. Arrays over several lines begin with a bracket, too, but hold no name.
fn is_header(line: &str) -> bool {
    let line = line.trim_start();
    let name = line.trim_start_matches('[');
    line.len() > name.len() && name.starts_with(|c: char| c.is_ascii_alphabetic()) && line.contains(']')
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "name = \"n\"\nrepeats = 3\n[[vary]]\nkey = \"a.b\"\nlabel = \"x\"\nvalues = [\n  [1],\n  2,\n]\n\n[[vary]] # more\nkey = \"c\"\n\
                        values = [1]\n[hosts]\nkey = 1";

    #[test]
    fn an_axis_that_is_set_goes_and_leaves_its_label_and_every_line_in_place() {
        let mut text = TEXT.to_owned();
        assert_eq!(take_axis(&mut text, "a.b"), Some("x".to_owned()));
        assert_eq!(text.lines().count(), TEXT.lines().count());
        assert!(!text.contains("a.b") && text.lines().nth(10) == Some("[[vary]] # more"), "{text}");
        assert_eq!(take_axis(&mut text, "c"), None);
        assert!(!text.contains("vary") && text.ends_with("[hosts]\nkey = 1"), "{text}");
        let before = text.clone();
        assert_eq!(take_axis(&mut text, "c"), None);
        assert_eq!(text, before);
    }

    #[test]
    fn a_label_stands_for_the_key_it_names() {
        assert_eq!(key_labelled(TEXT, "x"), Some("a.b".to_owned()));
        assert_eq!(key_labelled(TEXT, "a.b"), None);
    }

    #[test]
    fn a_key_of_the_scenario_is_replaced_or_added() {
        let mut text = TEXT.to_owned();
        set_top(&mut text, "repeats", "1");
        assert_eq!(text, TEXT.replace("repeats = 3", "repeats = 1"));
        set_top(&mut text, "time", "\"1s\"");
        assert!(text.starts_with("time = \"1s\"\nname"), "{text}");
    }
}
