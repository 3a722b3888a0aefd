//! Markdown as plain text for a terminal: what the pages of causes, checks and terms use of it.

use crate::text::Page;

/// A line of output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    Heading(String),
    Text(String),
}

/// Lays out a page of the directory `directory` (for its links), wrapped at `width` columns.
pub fn lines(page: &str, directory: &str, width: usize) -> Vec<Line> {
    let mut out = Vec::new();
    let mut lines = page.lines().peekable();
    while let Some(line) = lines.next() {
        if let Some(heading) = line.strip_prefix('#') {
            let text = plain(heading.trim_start_matches('#').trim(), directory);
            out.push(Line::Heading(crate::text::strip_backticks(&text)));
        } else if line.starts_with("```") {
            out.extend(
                lines
                    .by_ref()
                    .take_while(|line| !line.starts_with("```"))
                    .map(|line| Line::Text(if line.is_empty() { String::new() } else { format!("    {line}") })),
            );
        } else if line.starts_with('|') {
            let mut rows = vec![line];
            while let Some(row) = lines.next_if(|line| line.starts_with('|')) {
                rows.push(row);
            }
            out.extend(table(&rows, directory).into_iter().map(Line::Text));
        } else if line.trim().is_empty() {
            out.push(Line::Text(String::new()));
        } else {
            // A paragraph or a list item, with its continuation lines.
            let (first, mut content) = match line.strip_prefix("- ") {
                Some(item) => ("- ", item.to_owned()),
                None => ("", line.to_owned()),
            };
            while let Some(more) = lines.next_if(|line| continues(line)) {
                content.push(' ');
                content.push_str(more.trim());
            }
            let mut laid = Page::with_width(width);
            laid.paragraph(first, first.len(), &plain(&content, directory));
            out.extend(laid.text.lines().map(|line| Line::Text(line.to_owned())));
        }
    }
    out
}

/// Whether a line continues the paragraph or list item above it.
fn continues(line: &str) -> bool {
    !line.trim().is_empty() && !["- ", "#", "|", "```"].iter().any(|mark| line.starts_with(mark))
}

/// Removes emphasis, and writes links as text: a page of the terminal by its name, another page by its path, an
/// address beside its text.
fn plain(text: &str, directory: &str) -> String {
    let mut out = String::with_capacity(text.len());
    // Nothing is marked inside of code.
    for (index, part) in text.split('`').enumerate() {
        if index > 0 {
            out.push('`');
        }
        match index % 2 {
            0 => out.push_str(&part.replace("**", "").replace('*', "")),
            _ => out.push_str(part),
        }
    }
    while let Some((start, middle, end)) = link(&out) {
        let (words, target) = (&out[start + 1..middle], &out[middle + 2..end]);
        let written = match target.strip_suffix(".md") {
            _ if target.starts_with("http") => format!("{words} ({target})"),
            // A cause or a check: its name is what `explain` takes.
            Some(name) if !name.contains('/') && !directory.is_empty() => words.to_owned(),
            _ if words.strip_suffix(".md").is_some() => resolve(directory, target),
            _ => words.to_owned(),
        };
        out.replace_range(start..=end, &written);
    }
    out
}

/// Finds the first link, `[words](target)`: the places of `[`, `]` and `)`.
fn link(text: &str) -> Option<(usize, usize, usize)> {
    let middle = text.find("](")?;
    let start = text[..middle].rfind('[')?;
    let end = middle + text[middle..].find(')')?;
    Some((start, middle, end))
}

/// The path of a link's target in the repository, without its anchor.
fn resolve(directory: &str, target: &str) -> String {
    let target = target.split('#').next().unwrap_or(target);
    match target.strip_prefix("../") {
        Some(above) => format!("docs/{above}"),
        None if directory.is_empty() => format!("docs/{target}"),
        None => format!("{directory}/{target}"),
    }
}

/// Lays out a table in columns, without its rules.
fn table(rows: &[&str], directory: &str) -> Vec<String> {
    let rows: Vec<Vec<String>> = rows
        .iter()
        .filter(|row| !row.starts_with("|--"))
        .map(|row| {
            let cells = row.trim_matches('|').split('|');
            cells.map(|cell| crate::text::strip_backticks(&plain(cell.trim(), directory))).collect()
        })
        .collect();
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns)
        .map(|column| {
            rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
        })
        .collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).map(|(cell, &width)| format!("{cell:<width$}"));
        format!("    {}", cells.collect::<Vec<_>>().join("  ")).trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markdown_becomes_plain_text() {
        let page = "# title: `x`\n\n## Part\n\nA **word** and `a * b`, see [storage](storage.md) and\n[verdicts.md](../verdicts.md#order).\n\n\
                    - one item\n  goes on\n- two\n\n```\ncode   stays\n```\n\n| a | b |\n|---|---|\n| `1` | long |\n";
        let text = |text: &str| Line::Text(text.to_owned());
        let expect = vec![
            Line::Heading("title: 'x'".to_owned()),
            text(""),
            Line::Heading("Part".to_owned()),
            text(""),
            text("A word and 'a * b', see storage and"),
            text("docs/verdicts.md."),
            text(""),
            text("- one item goes on"),
            text("- two"),
            text(""),
            text("    code   stays"),
            text(""),
            text("    a    b"),
            text("    '1'  long"),
        ];
        assert_eq!(lines(page, "docs/causes", 40), expect);
        let source = "Source: [SMT](https://docs.kernel.org/x.html), landspeed, [trace.md](trace.md)";
        let wide = "Source: SMT (https://docs.kernel.org/x.html), landspeed, docs/trace.md";
        assert_eq!(lines(source, "", 200), [text(wide)]);
    }
}
