//! Fields of comma-separated values (RFC 4180).

use crate::printable;

/// Returns a field of a CSV file.
///
/// A field that a spreadsheet would evaluate begins with an apostrophe, which marks it as text: one that begins with
/// `=`, `+`, `@`, a tab, a full-width form of these, or with `-` and is not a number
/// (<https://owasp.org/www-community/attacks/CSV_Injection>). What a terminal would interpret is escaped
/// ([`printable`]). A field with a quote, a line break or a character that separates fields in some country (comma,
/// semicolon, tab) is quoted.
pub fn csv_field(text: &str) -> String {
    let shown = printable(text);
    let is_formula = match shown.chars().next() {
        Some('=' | '+' | '@' | '\t' | '＝' | '＋' | '－' | '＠') => true,
        Some('-') => shown.parse::<f64>().is_err(),
        _ => false,
    };
    let mark = if is_formula { "'" } else { "" };
    if shown.contains(['"', ',', ';', '\t', '\n', '\r']) {
        format!("\"{mark}{}\"", shown.replace('"', "\"\""))
    } else {
        format!("{mark}{shown}")
    }
}

/// Returns a line of a CSV file with its end.
pub fn csv_line(fields: impl IntoIterator<Item: AsRef<str>>) -> String {
    let fields: Vec<String> = fields.into_iter().map(|field| csv_field(field.as_ref())).collect();
    fields.join(",") + "\r\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formulas_are_marked_as_text() {
        for formula in ["=1+1", "+1", "@SUM(A1)", "-1+1", "\t=1", "＝1", "＋1", "－1", "＠x"] {
            let field = csv_field(formula);
            assert!(field.trim_start_matches('"').starts_with('\''), "{formula:?}: {field}");
        }
        assert_eq!(csv_field("=HYPERLINK(\"http://x/\"&A1)"), "\"'=HYPERLINK(\"\"http://x/\"\"&A1)\"");
    }

    #[test]
    fn numbers_and_plain_text_stay() {
        for plain in ["", "-1", "-0.5", "-1e-9", "12", "dtn1.example", "a=b", "a-b", "10 Gb/s"] {
            assert_eq!(csv_field(plain), plain);
        }
    }

    #[test]
    fn separators_and_line_breaks_are_quoted() {
        assert_eq!(csv_line(["a,b", "c\"d", "e\nf", "g;=1", "h"]), "\"a,b\",\"c\"\"d\",\"e\nf\",\"g;=1\",h\r\n");
    }

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(csv_field("a\u{1b}[31m\u{9b}\u{202e}"), "a\\u001b[31m\\u009b\\u202e");
        assert_eq!(csv_field("\r=1"), "\\u000d=1");
    }
}
