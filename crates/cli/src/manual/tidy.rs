//! Roff that every formatter renders without a complaint: plain ASCII, short lines, no spacing on top of spacing.

use clap_mangen::roff::Roff;

/// The longest line of text, bytes; `mandoc -T lint` says so.
const WIDTH: usize = 79;

const PREAMBLE: &str = ".\\\" Made by `landspeed man DIRECTORY` from the program's own definitions.\n";

/// One page from its parts.
pub fn page(head: &Roff, options: &str, tail: &Roff) -> String {
    let (head, tail) = (head.render(), tail.render());
    let mut lines: Vec<&str> = Vec::new();
    for part in [&head, options, &tail] {
        // Each part brings the same two lines, which define what an apostrophe is.
        lines.extend(part.lines().filter(|line| !line.contains(".ds Aq")));
    }
    let mut out = String::from(PREAMBLE);
    for line in head.lines().filter(|line| line.contains(".ds Aq")) {
        out.push_str(line);
        out.push('\n');
    }
    // mandoc warns of empty lines.
    lines.retain(|line| !line.trim().is_empty());
    for (index, line) in lines.iter().enumerate() {
        if line.starts_with('.') {
            // A break is one between two lines of text, and does nothing elsewhere.
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

/// `` `landspeed check` `` in bold, as manuals have it.
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

/// Letters beyond ASCII, and the two that formatters draw as something else, as escapes.
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

/// Breaks lines between words. A line of text never begins like a request.
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
    fn long_lines_are_broken_and_never_begin_like_a_request() {
        let mut out = String::new();
        wrap(&format!("{} .hidden {}", "word ".repeat(15), "x".repeat(100)), &mut out);
        assert!(out.lines().count() > 2 && out.lines().all(|line| !line.starts_with('.')), "{out}");
    }

    #[test]
    fn letters_of_other_alphabets_and_code_are_escaped() {
        assert_eq!(ascii("5 µs – ~/x"), "5 \\[u00B5]s \\[u2013] \\(ti/x");
        assert_eq!(code("see `tune plan`."), "see \\fBtune plan\\fR.");
        assert_eq!(code("a ` alone"), "a \\(ga alone");
    }
}
