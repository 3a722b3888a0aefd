//! Links of the built site.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// Returns the number of links within the site, and those without a target or that load something from elsewhere.
pub fn check(site: &Path) -> Result<(usize, Vec<String>)> {
    let mut pages: BTreeMap<PathBuf, String> = BTreeMap::new();
    let mut open = vec![site.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(&directory).with_context(|| format!("cannot list {}", directory.display()))? {
            let path = entry?.path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|found| found == "html") && !path.ends_with("404.html") {
                let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
                pages.insert(path, text);
            }
        }
    }
    let ids: BTreeMap<&PathBuf, BTreeSet<&str>> =
        pages.iter().map(|(path, text)| (path, values(text, "id").collect())).collect();
    let (mut count, mut problems) = (0, Vec::new());
    for (path, text) in &pages {
        let shown = path.strip_prefix(site).unwrap_or(path).display();
        for (name, target) in
            ["href", "src"].into_iter().flat_map(|name| values(text, name).map(move |to| (name, to)))
        {
            if target.contains("://") || target.starts_with("mailto:") {
                if name == "src" {
                    problems.push(format!("{shown}: loads {target}"));
                }
                continue;
            }
            count += 1;
            let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
            let file = if file.is_empty() { path.clone() } else { normal(&path.with_file_name(file)) };
            let file = if file.is_dir() { file.join("index.html") } else { file };
            if !file.exists() {
                problems.push(format!("{shown}: {target}: no such file"));
            } else if !anchor.is_empty() && ids.get(&file).is_some_and(|ids| !ids.contains(anchor)) {
                problems.push(format!("{shown}: {target}: no such anchor"));
            }
        }
    }
    Ok((count, problems))
}

/// The values of an attribute in HTML.
fn values<'a>(html: &'a str, name: &str) -> impl Iterator<Item = &'a str> + use<'a> {
    let start = match name {
        "id" => " id=\"",
        "href" => " href=\"",
        _ => " src=\"",
    };
    html.split(start).skip(1).filter_map(|rest| rest.split('"').next())
}

/// The path without `..`.
fn normal(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        if part.as_os_str() == ".." {
            out.pop();
        } else {
            out.push(part);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broken_links_anchors_and_remote_scripts_are_reported() {
        let site = tempfile::tempdir().unwrap();
        fs::create_dir(site.path().join("a")).unwrap();
        fs::write(site.path().join("b.html"), "<h1 id=\"x\"></h1>").unwrap();
        let page = "<a href=\"../b.html#x\"><a href=\"../b.html#y\"><a href=\"c.html\"><a href=\"https://x.example/\"><script src=\"https://y.example/z.js\">";
        fs::write(site.path().join("a").join("p.html"), page).unwrap();
        let (count, problems) = check(site.path()).unwrap();
        assert_eq!(count, 3);
        let expect = [
            "a/p.html: ../b.html#y: no such anchor",
            "a/p.html: c.html: no such file",
            "a/p.html: loads https://y.example/z.js",
        ];
        assert_eq!(problems, expect);
    }
}
