//! The terms of the glossary, `docs/glossary.md`.

const GLOSSARY: &str = include_str!("../../../../docs/glossary.md");

/// A row of the glossary.
pub struct Term {
    /// Its cell, such as `cwnd, ssthresh`.
    written: &'static str,
    /// The names in the cell; one in parentheses is a name, too.
    pub names: Vec<&'static str>,
    /// What it means, Markdown.
    pub meaning: &'static str,
    source: &'static str,
}

impl Term {
    /// Returns its page, Markdown.
    pub fn page(&self) -> String {
        let mut page = format!("# {}\n\n{}\n", self.written, self.meaning);
        if !self.source.is_empty() {
            page.push_str("\nSource: ");
            page.push_str(self.source);
            page.push('\n');
        }
        page
    }
}

/// Returns every term, in the order of the glossary.
pub fn terms() -> impl Iterator<Item = Term> {
    let rows = GLOSSARY.lines().filter_map(|line| {
        let cells: Vec<&str> = line.strip_prefix('|')?.strip_suffix('|')?.split('|').map(str::trim).collect();
        <[&str; 3]>::try_from(cells).ok()
    });
    rows.filter(|[term, ..]| *term != "term" && !term.starts_with("--")).map(|[written, meaning, source]| {
        let names = written.split([',', '(', ')']).map(str::trim).filter(|name| !name.is_empty()).collect();
        Term { written, names, meaning, source }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_of_the_glossary_is_a_term() {
        let rows = GLOSSARY.lines().filter(|line| line.starts_with('|')).count();
        let headings = GLOSSARY.lines().filter(|line| line.starts_with("| term |")).count();
        assert_eq!(terms().count() + 2 * headings, rows);
        assert!(terms().count() > 60);
        let limited =
            terms().find(|term| term.names.contains(&"rwnd") && term.written.contains('(')).expect("a term");
        assert_eq!(limited.names, ["receiver-limited", "rwnd"]);
        assert!(
            limited.page().starts_with("# receiver-limited (rwnd)\n\nless than two segments"),
            "{}",
            limited.page()
        );
    }
}
