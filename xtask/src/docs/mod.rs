//! `cargo xtask docs`: the documentation site in `target/docs`: the pages of `docs/`, and pages that are generated from
//! the program. It needs no network to be read.

mod html;
mod markdown;
mod pages;
mod summary;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use pages::Pages;

/// The version `docs/book.toml` was written for.
const MDBOOK: &str = "0.5.4";

/// Builds the site, and checks every link of it.
pub fn run() -> Result<()> {
    let root = crate::law::root();
    let target = root.join("target");
    let (work, site) = (target.join("site"), target.join("docs"));
    for old in [&work, &site] {
        if old.exists() {
            fs::remove_dir_all(old).with_context(|| format!("cannot remove {}", old.display()))?;
        }
    }
    let generated = work.join("generated");
    reference(&root, &generated)?;
    let mut pages = Pages::collect(&root)?;
    pages.add_generated(&generated)?;
    let problems = [pages.summary_problems(), pages.rewrite_links(&root)].concat();
    ensure!(problems.is_empty(), "{}", problems.join("\n"));
    pages.write(&root, &work.join("src"))?;
    let config = fs::copy(root.join("docs").join("book.toml"), work.join("book.toml"));
    config.context("cannot copy docs/book.toml")?;
    let build = Command::new(mdbook(&root)?).arg("build").arg(&work).arg("--dest-dir").arg(&site).output();
    let build = build.context("cannot run mdbook")?;
    let said = String::from_utf8_lossy(&build.stderr);
    ensure!(build.status.success() && !said.contains("WARN"), "mdbook build failed:\n{said}");
    let (links, problems) = html::check(&site)?;
    ensure!(problems.is_empty(), "{}", problems.join("\n"));
    println!("{}: {} pages, {links} links checked", site.join("index.html").display(), pages.len());
    Ok(())
}

/// Generates the reference: a test of `cli` writes it.
fn reference(root: &Path, directory: &Path) -> Result<()> {
    fs::create_dir_all(directory).with_context(|| format!("cannot make {}", directory.display()))?;
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut test = Command::new(cargo);
    test.current_dir(root).args(["test", "--quiet", "--package", "landspeed-cli", "--lib", "reference::"]);
    let output = test.env("LANDSPEED_REFERENCE", directory).output().context("cannot run cargo")?;
    let said = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
    ensure!(output.status.success(), "the reference was not generated:\n{said}");
    Ok(())
}

/// mdBook of the pinned version, below `target/tools`; compiled once.
fn mdbook(root: &Path) -> Result<PathBuf> {
    let place = root.join("target").join("tools").join(format!("mdbook-{MDBOOK}"));
    let program = place.join("bin").join("mdbook");
    if program.exists() {
        return Ok(program);
    }
    println!("mdbook {MDBOOK} is compiled, once: this takes some minutes");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut install = Command::new(cargo);
    install.args(["install", "--quiet", "--locked", "mdbook", "--version", MDBOOK]);
    install.args(["--no-default-features", "--features", "search", "--root"]).arg(&place);
    let status = install.status().context("cannot run cargo")?;
    ensure!(status.success() && program.exists(), "cargo install mdbook failed");
    Ok(program)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_link_of_the_documentation_has_a_target() {
        let root = crate::law::root();
        let mut pages = Pages::collect(&root).unwrap();
        let problems = pages.rewrite_links(&root);
        assert!(pages.len() > 200 && problems.is_empty(), "{}", problems.join("\n"));
    }

    #[test]
    fn every_page_is_in_the_summary_once() {
        let pages = Pages::collect(&crate::law::root()).unwrap();
        let problems = pages.summary_problems();
        assert!(problems.is_empty(), "{}", problems.join("\n"));
    }
}
