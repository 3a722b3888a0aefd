//! Changes to a scenario's text for `--set`. They keep line numbers where possible, so that messages point at the right line.

/// Removes the `[[vary]]` of `key`, if there is one, and returns its label: `--set` replaces what the scenario varies.
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

/// Returns the key of the `[[vary]]` with this label: tables and charts show labels, so `--set` takes them.
pub fn key_labelled(text: &str, label: &str) -> Option<String> {
    let table: toml::Table = toml::from_str(text).ok()?;
    let mut axes = table.get("vary")?.as_array()?.iter();
    let axis = axes.find(|axis| axis.get("label").and_then(toml::Value::as_str) == Some(label))?;
    axis.get("key")?.as_str().map(str::to_owned)
}

/// Sets a top-level key that cannot be varied, such as `repeats`.
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

/// Returns whether a line is a table header. Lines of multi-line arrays begin with a bracket too, but have no name.
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
    fn a_removed_axis_leaves_its_label_and_all_line_numbers() {
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
    fn a_label_gives_its_key() {
        assert_eq!(key_labelled(TEXT, "x"), Some("a.b".to_owned()));
        assert_eq!(key_labelled(TEXT, "a.b"), None);
    }

    #[test]
    fn a_top_level_key_is_replaced_or_added() {
        let mut text = TEXT.to_owned();
        set_top(&mut text, "repeats", "1");
        assert_eq!(text, TEXT.replace("repeats = 3", "repeats = 1"));
        set_top(&mut text, "time", "\"1s\"");
        assert!(text.starts_with("time = \"1s\"\nname"), "{text}");
    }
}
