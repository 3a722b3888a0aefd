//! Links and headings of Markdown.

use std::ops::Range;

/// A link `[words](target)`: places in the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    pub all: Range<usize>,
    pub words: Range<usize>,
    pub target: Range<usize>,
}

/// Returns the links of a page and its pictures, outside of code.
pub fn links(text: &str) -> Vec<Link> {
    let text = without_code(text);
    let mut found = Vec::new();
    for (middle, _) in text.match_indices("](") {
        let Some(length) = text[middle + 2..].find(')') else { continue };
        let target = middle + 2..middle + 2 + length;
        // The bracket that this one closes.
        let mut depth = 0;
        let start = text[..middle].char_indices().rev().find_map(|(at, char)| {
            match char {
                ']' => depth += 1,
                '[' if depth == 0 => return Some(at),
                '[' => depth -= 1,
                _ => {}
            }
            None
        });
        if let Some(start) = start {
            found.push(Link { all: start..target.end + 1, words: start + 1..middle, target });
        }
    }
    found
}

/// Returns the anchors of a page's headings.
pub fn anchors(text: &str) -> Vec<String> {
    let text = without_code_blocks(text);
    let mut found: Vec<String> = Vec::new();
    let headings = text.lines().filter(|line| line.starts_with('#'));
    for heading in headings.map(|line| line.trim_start_matches('#').trim()) {
        let heading = links(heading).into_iter().rev().fold(heading.to_owned(), |mut heading, link| {
            let words = heading[link.words].to_owned();
            heading.replace_range(link.all, &words);
            heading
        });
        let kept = heading.to_lowercase();
        let kept = kept.chars().filter(|char| char.is_alphanumeric() || matches!(char, ' ' | '-' | '_'));
        let anchor: String = kept.map(|char| if char == ' ' { '-' } else { char }).collect();
        let same = found.iter().filter(|other| other.strip_prefix(&anchor).is_some_and(is_number)).count();
        found.push(if same == 0 { anchor } else { format!("{anchor}-{same}") });
    }
    found
}

/// Whether it is what a repeated anchor has behind it: nothing, or `-1`.
fn is_number(rest: &str) -> bool {
    rest.is_empty() || rest.strip_prefix('-').is_some_and(|number| number.parse::<usize>().is_ok())
}

/// The text with every byte of code blocks and inline code replaced by a space: places stay.
fn without_code(text: &str) -> String {
    let text = without_code_blocks(text);
    let mut out = String::with_capacity(text.len());
    let mut rest = &*text;
    while let Some(at) = rest.find('`') {
        let ticks = rest[at..].len() - rest[at..].trim_start_matches('`').len();
        let (before, code) = rest.split_at(at);
        out.push_str(before);
        let Some(length) = code[ticks..].find(&code[..ticks]) else {
            out.push_str(code);
            return out;
        };
        let code_end = length + 2 * ticks;
        out.extend(std::iter::repeat_n(' ', code_end));
        rest = &code[code_end..];
    }
    out.push_str(rest);
    out
}

fn without_code_blocks(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut in_block = false;
    for line in text.split_inclusive('\n') {
        let fence = line.trim_start().starts_with("```");
        if in_block || fence {
            out.extend(std::iter::repeat_n(' ', line.trim_end_matches('\n').len()));
            out.push_str(if line.ends_with('\n') { "\n" } else { "" });
        } else {
            out.push_str(line);
        }
        in_block ^= fence;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_found_outside_of_code() {
        let text = "a [b µ](c.md#d), ![e](f.png) and `[g](h)`\n```\n[i](j)\n```\n[`k`](l)\n";
        let found: Vec<&str> = links(text).into_iter().map(|link| &text[link.target]).collect();
        assert_eq!(found, ["c.md#d", "f.png", "l"]);
        let words: Vec<&str> = links(text).into_iter().map(|link| &text[link.words]).collect();
        assert_eq!(words, ["b µ", "e", "`k`"]);
    }

    #[test]
    fn anchors_are_those_of_forges_and_of_mdbook() {
        let text = "# A: `b` & C\n## Part\n```\n# no\n```\n## Part\n## [Link](x.md) two\n";
        assert_eq!(anchors(text), ["a-b--c", "part", "part-1", "link-two"]);
    }
}
