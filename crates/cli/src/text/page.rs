//! Two-column text, wrapped at the terminal's width.

use std::fmt::Write as _;
use std::sync::OnceLock;

use crate::terminal;

/// Width that contents are chosen for, and of the output if standard output is not a terminal and `COLUMNS` is not set.
pub(super) const STANDARD_WIDTH: usize = 80;
/// Minimum width: below it, the terminal's own wrapping is easier to read.
const MIN_WIDTH: usize = 40;
/// Column where the second column begins.
const MARGIN: usize = 11;

/// Returns the width to wrap at, columns.
pub fn width() -> usize {
    static WIDTH: OnceLock<usize> = OnceLock::new();
    *WIDTH.get_or_init(|| {
        let environment = || std::env::var("COLUMNS").ok()?.parse().ok();
        terminal::columns().or_else(environment).unwrap_or(STANDARD_WIDTH).max(MIN_WIDTH)
    })
}

/// Two-column text under construction.
pub struct Page {
    /// Text laid out so far.
    pub text: String,
    width: usize,
}

impl Default for Page {
    fn default() -> Self {
        Self::with_width(width())
    }
}

impl Page {
    /// Creates a page that wraps at `width` columns.
    pub fn with_width(width: usize) -> Self {
        Self { text: String::new(), width }
    }

    /// Adds a labelled paragraph, wrapped between words.
    pub fn line(&mut self, label: &str, content: &str) {
        self.paragraph(&format!("  {label}"), MARGIN, content);
    }

    /// Adds a paragraph that begins with `first` and continues at column `margin`, wrapped between words.
    pub fn paragraph(&mut self, first: &str, margin: usize, content: &str) {
        let _ = write!(self.text, "{first:<margin$}");
        let mut column = margin.max(first.chars().count());
        // A first column that is full is followed by a space.
        let mut begun = first.trim_end().chars().count() < margin || first.is_empty();
        let content = strip_backticks(&keep_commands_whole(content, self.width.saturating_sub(margin)));
        for word in content.split_whitespace() {
            let len = word.chars().count();
            if begun && column == margin {
                // The first word of a line needs no space before it.
            } else if column + 1 + len > self.width {
                let _ = write!(self.text, "\n{:margin$}", "");
                column = margin;
            } else {
                self.text.push(' ');
                column += 1;
            }
            begun = true;
            self.text.extend(word.chars().filter(|c| !c.is_control()).map(|c| if c == BLANK { ' ' } else { c }));
            column += len;
        }
        self.text.push('\n');
    }

    /// Returns the number of lines of a paragraph.
    pub fn lines_of(&self, content: &str) -> usize {
        let mut page = Self::with_width(self.width);
        page.line("", content);
        page.text.lines().count()
    }

    /// Adds an unwrapped line, such as a command to paste.
    pub fn raw(&mut self, label: &str, content: &str) {
        let _ = writeln!(self.text, "  {label:<width$}{content}", width = MARGIN - 2);
    }
}

/// Placeholder for a space that must not be wrapped; printed as a space.
const BLANK: char = '\u{e000}';

/// Keeps commands in backticks on one line if they fit `columns`, so that they can be pasted.
fn keep_commands_whole(content: &str, columns: usize) -> String {
    let parts = content.split('`').enumerate().map(|(i, part)| {
        let keeps = i % 2 == 1 && part.chars().count() + 2 <= columns;
        if keeps { part.replace(' ', &BLANK.to_string()) } else { part.to_owned() }
    });
    parts.collect::<Vec<_>>().join("`")
}

/// Replaces Markdown's backticks: quotes around commands, nothing around options.
pub fn strip_backticks(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for (i, part) in text.split('`').enumerate() {
        let quote = if i % 2 == 1 && !part.starts_with('-') && !part.contains('\'') { "'" } else { "" };
        out += quote;
        out += part;
        out += quote;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_fits_stays_on_one_line() {
        let mut page = Page::with_width(60);
        page.line("next", "Raise the limit and run again: `sysctl -w net.core.rmem_max=1048576`. Then measure.");
        assert!(page.text.contains("'sysctl -w net.core.rmem_max=1048576'"), "{}", page.text);
    }

    #[test]
    fn lines_fold_between_words_at_any_width() {
        let content = "the receive window was full 97 % of the time data was outstanding; an-unbreakable-word-of-fifty-columns-and-a-few-more";
        for width in [40, 80, 160] {
            let mut page = Page::with_width(width);
            page.line("cause", content);
            page.line("a-long-label", content);
            assert!(page.text.contains("  a-long-label the receive"), "{}", page.text);
            for line in page.text.lines() {
                let long_word = line.split_whitespace().last().is_some_and(|word| word.len() > 45);
                assert!(line.chars().count() <= width || long_word, "{width}: {line}");
            }
            let words: Vec<&str> = page.text.split_whitespace().collect();
            let expected: Vec<&str> = content.split_whitespace().collect();
            assert_eq!(words[1..=expected.len()], expected, "no word is split");
        }
    }

    #[test]
    fn commands_are_quoted_without_backticks() {
        assert_eq!(
            strip_backticks("look at `tc -s qdisc`, or `--pace 1.9G`"),
            "look at 'tc -s qdisc', or --pace 1.9G"
        );
    }
}
