//! Cleans up roff so that mandoc and groff accept it without warnings: ASCII only, short lines, no redundant
//! spacing.

use clap_mangen::roff::Roff;

/// Maximum length of a text line, bytes, as checked by `mandoc -T lint`.
const WIDTH: usize = 79;

const PREAMBLE: &str = ".\\\" Made by `landspeed man DIRECTORY` from the program's own definitions.\n";

/// Joins the parts of a page.
pub fn page(head: &Roff, options: &str, tail: &Roff) -> String {
    let (head, tail) = (head.render(), tail.render());
    let mut lines: Vec<&str> = Vec::new();
    for part in [&head, options, &tail] {
        // Each part begins with the same two lines that define the apostrophe; they are kept once.
        lines.extend(part.lines().filter(|line| !line.contains(".ds Aq")));
    }
    let mut out = String::from(PREAMBLE);
    for line in head.lines().filter(|line| line.contains(".ds Aq")) {
        out.push_str(line);
        out.push('\n');
    }
    // mandoc warns about empty lines.
    lines.retain(|line| !line.trim().is_empty());
    for (index, line) in lines.iter().enumerate() {
        if line.starts_with('.') {
            // `.br` is only needed between two text lines.
            let next = lines.get(index + 1);
            if *line == ".br" && next.is_none_or(|next| next.starts_with('.')) {
                continue;
            }
            out.push_str(&ascii(line));
            out.push('\n');
        } else {
            wrap(&ascii(&code(line.trim_end())), &mut out);
        }
    }
    out
}

/// Sets text in backticks in bold.
fn code(line: &str) -> String {
    let parts: Vec<&str> = line.split('`').collect();
    if parts.len().is_multiple_of(2) {
        return line.replace('`', "\\(ga");
    }
    let mut out = String::new();
    for (index, part) in parts.iter().enumerate() {
        match index % 2 {
            0 => out.push_str(part),
            _ => out.extend(["\\fB", part, "\\fR"]),
        }
    }
    out
}

/// Escapes non-ASCII characters, and `~` and `^`, which formatters replace.
fn ascii(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    for char in line.chars() {
        match char {
            '~' => out.push_str("\\(ti"),
            '^' => out.push_str("\\(ha"),
            char if char.is_ascii() => out.push(char),
            char => out.extend(["\\[u", &format!("{:04X}", u32::from(char)), "]"]),
        }
    }
    out
}

/// Wraps a line between words. A continuation line that begins like a roff request is escaped.
fn wrap(line: &str, out: &mut String) {
    let mut width = 0;
    for word in line.split(' ') {
        if width > 0 && width + 1 + word.len() > WIDTH {
            out.push('\n');
            width = 0;
            if word.starts_with(['.', '\'']) {
                out.push_str("\\&");
            }
        } else if width > 0 {
            out.push(' ');
            width += 1;
        }
        out.push_str(word);
        width += word.len();
    }
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrapped_lines_never_begin_like_roff_requests() {
        let mut out = String::new();
        wrap(&format!("{} .hidden {}", "word ".repeat(15), "x".repeat(100)), &mut out);
        assert!(out.lines().count() > 2 && out.lines().all(|line| !line.starts_with('.')), "{out}");
    }

    #[test]
    fn non_ascii_characters_and_backticks_are_escaped() {
        assert_eq!(ascii("5 µs – ~/x"), "5 \\[u00B5]s \\[u2013] \\(ti/x");
        assert_eq!(code("see `tune plan`."), "see \\fBtune plan\\fR.");
        assert_eq!(code("a ` alone"), "a \\(ga alone");
    }
}
