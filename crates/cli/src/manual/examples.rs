//! Examples and remarks after the options in a command's help.

use clap::Command;

/// An example command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Example {
    /// The command line.
    pub line: String,
    /// Its explanation; empty if there is none.
    pub comment: String,
}

/// Returns the examples and the other paragraphs after the options in a command's help.
pub fn read(command: &Command) -> (Vec<Example>, Vec<String>) {
    let help = command.get_after_long_help().or_else(|| command.get_after_help());
    help.map(ToString::to_string).as_deref().map(split).unwrap_or_default()
}

/// Splits the help into the indented lines below `Examples:` and the other paragraphs.
fn split(help: &str) -> (Vec<Example>, Vec<String>) {
    let mut examples: Vec<Example> = Vec::new();
    let mut paragraphs = vec![String::new()];
    let mut in_examples = false;
    for line in help.lines() {
        let indent = line.len() - line.trim_start().len();
        let text = line.trim();
        match examples.last_mut() {
            _ if line == "Examples:" => in_examples = true,
            _ if text.is_empty() => {
                in_examples = false;
                paragraphs.push(String::new());
            }
            // Lines indented deeper than a command continue the explanation above.
            Some(last) if in_examples && indent > 2 => join(&mut last.comment, text),
            _ if in_examples => {
                let (line, comment) = text.split_once("  ").unwrap_or((text, ""));
                examples.push(Example { line: line.to_owned(), comment: comment.trim().to_owned() });
            }
            _ => join(paragraphs.last_mut().expect("never empty"), text),
        }
    }
    paragraphs.retain(|paragraph| !paragraph.is_empty());
    (examples, paragraphs)
}

fn join(to: &mut String, text: &str) {
    if !to.is_empty() {
        to.push(' ');
    }
    to.push_str(text);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn example_comments_are_next_to_or_below_commands() {
        let (examples, paragraphs) = split(
            "Examples:\n  a run             fast\n  a run --long --line\n                    slow\n  a stop\n\nOne\ntwo.\n\nThree.",
        );
        let expect = [("a run", "fast"), ("a run --long --line", "slow"), ("a stop", "")];
        let is: Vec<_> = examples.iter().map(|e| (e.line.as_str(), e.comment.as_str())).collect();
        assert_eq!(is, expect);
        assert_eq!(paragraphs, ["One two.", "Three."]);
    }
}
