//! Text in two columns, folded at the terminal's width.

use std::fmt::Write as _;
use std::io::IsTerminal as _;
use std::sync::OnceLock;

/// Width where standard output is not a terminal and `COLUMNS` is not set.
const UNKNOWN_WIDTH: usize = 80;
/// Narrower than this, folding makes text harder to read than the terminal's own wrapping.
const LEAST_WIDTH: usize = 40;
/// Where the second column begins.
const MARGIN: usize = 11;

/// Width to fold at, columns.
fn width() -> usize {
    static WIDTH: OnceLock<usize> = OnceLock::new();
    *WIDTH.get_or_init(|| {
        let terminal = || {
            let size = terminal_size::terminal_size_of(std::io::stdout());
            size.filter(|_| std::io::stdout().is_terminal()).map(|(width, _)| usize::from(width.0))
        };
        let environment = || std::env::var("COLUMNS").ok()?.parse().ok();
        terminal().or_else(environment).unwrap_or(UNKNOWN_WIDTH).max(LEAST_WIDTH)
    })
}

/// Text being laid out in two columns.
pub struct Page {
    /// What is laid out so far.
    pub text: String,
    width: usize,
}

impl Default for Page {
    fn default() -> Self {
        Self::with_width(width())
    }
}

impl Page {
    /// Folds at `width` columns.
    pub fn with_width(width: usize) -> Self {
        Self { text: String::new(), width }
    }

    /// A labelled paragraph, folded between words.
    pub fn line(&mut self, label: &str, content: &str) {
        let _ = write!(self.text, "  {label:<width$}", width = MARGIN - 2);
        let mut column = MARGIN.max(2 + label.chars().count());
        // A label that fills its column is followed by a blank.
        let mut begun = label.chars().count() < MARGIN - 2;
        let content = unmarked(&unbroken(content, self.width - MARGIN));
        for word in content.split_whitespace() {
            let len = word.chars().count();
            if begun && column == MARGIN {
                // The first word of a line stands wherever it fits.
            } else if column + 1 + len > self.width {
                let _ = write!(self.text, "\n{:MARGIN$}", "");
                column = MARGIN;
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

    /// Lines that a paragraph takes.
    pub fn lines_of(&self, content: &str) -> usize {
        let mut page = Self::with_width(self.width);
        page.line("", content);
        page.text.lines().count()
    }

    /// A line that is not folded, such as a command to paste.
    pub fn raw(&mut self, label: &str, content: &str) {
        let content: String = content.chars().filter(|c| !c.is_control()).collect();
        let _ = writeln!(self.text, "  {label:<width$}{content}", width = MARGIN - 2);
    }
}

/// A blank at which a line is not folded, until it is printed.
const BLANK: char = '\u{e000}';

/// `content` whose commands in backticks stay on one line, where they fit `columns`: they can be pasted.
fn unbroken(content: &str, columns: usize) -> String {
    let parts = content.split('`').enumerate().map(|(i, part)| {
        let keeps = i % 2 == 1 && part.chars().count() + 2 <= columns;
        if keeps { part.replace(' ', &BLANK.to_string()) } else { part.to_owned() }
    });
    parts.collect::<Vec<_>>().join("`")
}

/// Text without Markdown's backticks: documents mark commands with them, a terminal shows them as quotes. Options need none.
pub fn unmarked(text: &str) -> String {
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
            page.line("limit", content);
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
        assert_eq!(unmarked("look at `tc -s qdisc`, or `--pace 1.9G`"), "look at 'tc -s qdisc', or --pace 1.9G");
    }
}
