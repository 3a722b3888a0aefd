//! The pages of the site: where each comes from, where it goes, and its links.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::markdown::{anchors, links};
use super::summary;

/// Pages outside of `docs/`, with their places in the site.
const OUTSIDE: [(&str, &str); 6] = [
    ("ARCHITECTURE.md", "project/architecture.md"),
    ("CHANGELOG.md", "project/changelog.md"),
    ("CONTRIBUTING.md", "project/contributing.md"),
    ("SECURITY.md", "project/reporting.md"),
    ("crates/README.md", "project/crates.md"),
    ("python/README.md", "python.md"),
];

/// Where the generated pages go: links to them have a target in the site only.
const GENERATED: &str = "reference/";

const SUMMARY: &str = "SUMMARY.md";

#[derive(Debug)]
struct Page {
    /// Path in the repository.
    origin: String,
    text: String,
}

/// Pages by their path in the site, and files beside them.
#[derive(Debug, Default)]
pub struct Pages {
    pages: BTreeMap<String, Page>,
    /// Other files of `docs/`, by their path below it.
    files: Vec<String>,
    summary: String,
}

impl Pages {
    /// Reads the pages of the repository.
    pub fn collect(root: &Path) -> Result<Self> {
        let mut found = Self::default();
        for path in files_below(&root.join("docs"))? {
            let text = |path: &str| read(&root.join("docs").join(path));
            match path.as_str() {
                SUMMARY => found.summary = text(&path)?,
                "book.toml" => {}
                page if page.strip_suffix(".md").is_some() => {
                    let page = Page { origin: format!("docs/{path}"), text: text(&path)? };
                    found.pages.insert(path, page);
                }
                _ => found.files.push(path),
            }
        }
        for (origin, place) in OUTSIDE {
            let page = Page { origin: origin.to_owned(), text: read(&root.join(origin))? };
            found.pages.insert(place.to_owned(), page);
        }
        Ok(found)
    }

    /// Adds the generated pages in a directory.
    pub fn add_generated(&mut self, directory: &Path) -> Result<()> {
        for path in files_below(directory)? {
            let text = read(&directory.join(&path))?;
            let place = format!("{GENERATED}{path}");
            self.pages.insert(place.clone(), Page { origin: format!("docs/{place}"), text });
        }
        Ok(())
    }

    /// Number of pages.
    pub fn len(&self) -> usize {
        self.pages.len()
    }

    /// Makes every link one within the site; a link to a file that is not in the site becomes its text. Returns links
    /// without a target.
    pub fn rewrite_links(&mut self, root: &Path) -> Vec<String> {
        let places: BTreeMap<String, String> =
            self.pages.iter().map(|(place, page)| (page.origin.clone(), place.clone())).collect();
        let known: BTreeMap<String, Vec<String>> =
            self.pages.iter().map(|(place, page)| (place.clone(), anchors(&page.text))).collect();
        let mut problems = Vec::new();
        for (place, page) in &mut self.pages {
            let mut text = page.text.clone();
            // From the last to the first: the places of the others stay.
            for link in links(&page.text).into_iter().rev() {
                let target = &page.text[link.target.clone()];
                if target.contains("://") || target.starts_with("mailto:") {
                    continue;
                }
                let mut problem = |what: &str| {
                    let line = page.text[..link.target.start].lines().count();
                    problems.push(format!("{}:{line}: {target}: {what}", page.origin));
                };
                let (file, anchor) = target.split_once('#').map_or((target, None), |(file, name)| (file, Some(name)));
                let origin = if file.is_empty() { page.origin.clone() } else { resolve(&page.origin, file) };
                let generated = origin.strip_prefix("docs/").filter(|path| path.starts_with(GENERATED));
                let goal = places.get(&origin).map(String::as_str);
                if let Some(goal) = goal {
                    if anchor.is_some_and(|anchor| !known[goal].iter().any(|known| known == anchor)) {
                        problem("no such heading");
                    }
                    let anchor = anchor.map(|anchor| format!("#{anchor}")).unwrap_or_default();
                    // mdBook makes `index.html` of a README.
                    let goal = goal.replace("README.md", "index.md");
                    let written = if file.is_empty() { anchor } else { relative(place, &goal) + &anchor };
                    text.replace_range(link.target, &written);
                } else if generated.is_some()
                    || origin.strip_prefix("docs/").is_some_and(|path| self.files.contains(&path.to_owned()))
                {
                    // A generated page, whose link is checked in the built site, or a picture.
                } else if root.join(&origin).exists() {
                    let words = page.text[link.words.clone()].to_owned();
                    text.replace_range(link.all, &words);
                } else {
                    problem("no such file");
                }
            }
            page.text = text;
        }
        problems
    }

    /// The table of contents, with the pages of every directory that it names.
    fn contents(&self) -> String {
        let titles = self.pages.iter().map(|(place, page)| (place.clone(), title(&page.text)));
        summary::expand(&self.summary, &titles.collect())
    }

    /// Returns pages that the table of contents lacks or has twice, and entries without a page.
    pub fn summary_problems(&self) -> Vec<String> {
        let contents = self.contents();
        let entries: Vec<&str> = links(&contents).into_iter().map(|link| &contents[link.target]).collect();
        let wrong =
            self.pages.keys().filter_map(|place| match entries.iter().filter(|entry| *entry == place).count() {
                1 => None,
                count => Some(format!("docs/SUMMARY.md: {count} entries for {place}")),
            });
        let unknown =
            entries.iter().filter(|entry| !self.pages.contains_key(**entry) && !entry.starts_with(GENERATED));
        wrong.chain(unknown.map(|entry| format!("docs/SUMMARY.md: no page {entry}"))).collect()
    }

    /// Writes everything that mdBook reads.
    pub fn write(&self, root: &Path, directory: &Path) -> Result<()> {
        let write = |path: &str, content: &[u8]| {
            let path = directory.join(path);
            fs::create_dir_all(path.parent().unwrap_or(directory))
                .and_then(|()| fs::write(&path, content))
                .with_context(|| format!("cannot write {}", path.display()))
        };
        for (place, page) in &self.pages {
            write(place, page.text.as_bytes())?;
        }
        for file in &self.files {
            let path = root.join("docs").join(file);
            write(file, &fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?)?;
        }
        write(SUMMARY, self.contents().as_bytes())
    }
}

/// The first heading, as plain text.
fn title(text: &str) -> String {
    let line = text.lines().find_map(|line| line.strip_prefix("# ")).unwrap_or("?");
    line.replace('`', "")
}

/// The path that a link in `origin` leads to, from the root of the repository.
fn resolve(origin: &str, link: &str) -> String {
    let mut parts: Vec<&str> = origin.split('/').collect();
    parts.pop();
    for part in link.split('/') {
        match part {
            "." | "" => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// The link from one page of the site to another.
fn relative(from: &str, to: &str) -> String {
    let up = from.matches('/').count();
    let common = from.split('/').zip(to.split('/')).take(up).take_while(|(a, b)| a == b).count();
    let rest: Vec<&str> = to.split('/').skip(common).collect();
    "../".repeat(up - common) + &rest.join("/")
}

/// Paths of all files below a directory, relative to it, sorted.
fn files_below(directory: &Path) -> Result<Vec<String>> {
    let mut found = Vec::new();
    let mut open: Vec<PathBuf> = vec![directory.to_owned()];
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(&next).with_context(|| format!("cannot list {}", next.display()))? {
            let path = entry?.path();
            if path.is_dir() {
                open.push(path);
            } else {
                found.push(path.strip_prefix(directory)?.to_string_lossy().into_owned());
            }
        }
    }
    found.sort();
    Ok(found)
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_relative_to_the_page_in_the_site() {
        assert_eq!(resolve("docs/causes/a.md", "../verdicts.md"), "docs/verdicts.md");
        assert_eq!(resolve("docs/a.md", "../SECURITY.md"), "SECURITY.md");
        assert_eq!(relative("causes/a.md", "verdicts.md"), "../verdicts.md");
        assert_eq!(relative("causes/a.md", "causes/b.md"), "b.md");
        assert_eq!(relative("a.md", "project/b.md"), "project/b.md");
    }

    #[test]
    fn links_that_leave_the_site_are_text_and_broken_ones_are_reported() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("Makefile"), "").unwrap();
        let text = "See [the Makefile](../Makefile), [B](b.md#part), [no](c.md) and [no part](b.md#other).\n";
        let page = |origin: &str, text: &str| Page { origin: origin.to_owned(), text: text.to_owned() };
        let mut pages = Pages::default();
        pages.pages.insert("a.md".to_owned(), page("docs/a.md", text));
        pages.pages.insert("b.md".to_owned(), page("docs/b.md", "# B\n\n## Part\n"));
        let problems = pages.rewrite_links(root.path());
        assert_eq!(problems, ["docs/a.md:1: b.md#other: no such heading", "docs/a.md:1: c.md: no such file"]);
        assert!(pages.pages["a.md"].text.starts_with("See the Makefile, [B](b.md#part), "));
    }
}
