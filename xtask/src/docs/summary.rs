//! The table of contents, `docs/SUMMARY.md`: where it has `<!-- DIRECTORY/ -->`, the pages of that directory are listed.

use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Replaces each comment by the entries of a directory, whose pages are in `titles` by their place in the site. A page
/// whose name begins with that of another, as `landspeed-lab-run` and `landspeed-lab`, is below it.
pub fn expand(summary: &str, titles: &BTreeMap<String, String>) -> String {
    let mut out = String::new();
    for line in summary.lines() {
        let directory = line.trim().strip_prefix("<!-- ").and_then(|rest| rest.strip_suffix("/ -->"));
        let Some(directory) = directory else {
            let _ = writeln!(out, "{line}");
            continue;
        };
        let indent = line.len() - line.trim_start().len();
        let mut above: Vec<&str> = Vec::new();
        let mut pages: Vec<(&str, &String, &String)> = titles
            .iter()
            .filter_map(|(place, title)| {
                let name = place.strip_prefix(directory)?.strip_prefix('/')?.strip_suffix(".md")?;
                // A page with a separate entry is not repeated.
                let listed = summary.contains(&format!("({place})"));
                (!name.contains('/') && !listed).then_some((name, place, title))
            })
            .collect();
        pages.sort();
        for (name, place, title) in pages {
            while above.last().is_some_and(|last| !name.strip_prefix(last).is_some_and(|rest| rest.starts_with('-')))
            {
                above.pop();
            }
            // The name of a cause is enough beside its page.
            let title = title.split(": ").next().unwrap_or(title).replace(['[', ']'], "");
            let _ = writeln!(out, "{:width$}- [{title}]({place})", "", width = indent + 2 * above.len());
            above.push(name);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_are_listed_with_pages_below_others() {
        let titles = ["c/a.md", "c/a-b.md", "c/ab.md", "c/README.md", "c/d/x.md", "c/a-c.md"]
            .map(|place| (place.to_owned(), place.to_owned()));
        let expanded = expand("# Part\n\n- [C](c/README.md)\n  <!-- c/ -->\n- [D](c/a-c.md)\n", &titles.into());
        let expect = "# Part\n\n- [C](c/README.md)\n  - [c/a.md](c/a.md)\n    - [c/a-b.md](c/a-b.md)\n  - [c/ab.md](c/ab.md)\n- [D](c/a-c.md)\n";
        assert_eq!(expanded, expect);
    }
}
