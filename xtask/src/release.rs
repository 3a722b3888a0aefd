//! `cargo xtask release`: tags the commit of a release, after checking that it is one.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

/// Options of `cargo xtask release`.
#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// Check only, and tag nothing
    #[arg(long)]
    dry_run: bool,
}

/// Files with an example that installs the newest version.
const WITH_VERSION: [&str; 2] = ["packaging/ansible/playbook.yml", "docs/ansible.md"];

/// Tags HEAD of the workspace as `vVERSION`.
pub fn run(options: &Options) -> Result<()> {
    let root = crate::law::root();
    let tag = tag(&root, env!("CARGO_PKG_VERSION"), options.dry_run)?;
    if options.dry_run {
        println!("{tag}: ready; run `cargo xtask release` to tag it");
    } else {
        println!("{tag}: tagged; publish it with `git push origin {tag}`");
    }
    Ok(())
}

/// Checks the tree at `root` and tags its HEAD; returns the tag.
fn tag(root: &Path, version: &str, dry_run: bool) -> Result<String> {
    let tag = format!("v{version}");
    let changes = git(root, &["status", "--porcelain"])?;
    ensure!(changes.is_empty(), "cannot tag {tag}: the tree has changes:\n{changes}\nCommit or remove them.");
    let existing = git(root, &["tag", "--list", &tag])?;
    ensure!(
        existing.is_empty(),
        "cannot tag {tag}: there is such a tag\nRaise workspace.package.version in Cargo.toml."
    );
    let changelog = std::fs::read_to_string(root.join("CHANGELOG.md")).context("cannot read CHANGELOG.md")?;
    check_changelog(&changelog, version).with_context(|| format!("cannot tag {tag}"))?;
    for path in WITH_VERSION {
        let text = std::fs::read_to_string(root.join(path)).with_context(|| format!("cannot read {path}"))?;
        let line = format!("landspeed_serve_version: {version}\n");
        ensure!(text.contains(&line), "cannot tag {tag}: {path} installs another version\nWrite `{}`.", line.trim());
    }
    if !dry_run {
        git(root, &["tag", "--annotate", &tag, "--message", &format!("landspeed {version}")])?;
    }
    Ok(tag)
}

/// The newest section must be this version, with its date and some text, below an empty *Unreleased*.
fn check_changelog(changelog: &str, version: &str) -> Result<()> {
    let mut sections =
        changelog.split("\n## ").skip(1).map(|section| section.split_once('\n').unwrap_or((section, "")));
    let Some((title, unreleased)) = sections.next() else { bail!("CHANGELOG.md has no section") };
    ensure!(title.trim() == "[Unreleased]", "CHANGELOG.md does not begin with `## [Unreleased]`");
    let Some((title, text)) = sections.next() else {
        bail!("CHANGELOG.md has no section `## [{version}] - YYYY-MM-DD` below *Unreleased*");
    };
    let date = title.strip_prefix(&format!("[{version}] - ")).map(str::trim);
    ensure!(
        date.is_some_and(is_date),
        "the newest section of CHANGELOG.md is `## {title}`\nName it `## [{version}] - YYYY-MM-DD`."
    );
    ensure!(!text.trim().is_empty(), "the section of {version} in CHANGELOG.md is empty");
    ensure!(
        unreleased.trim().is_empty(),
        "CHANGELOG.md has unreleased changes above the section of {version}\nMove them into it, or raise the version."
    );
    Ok(())
}

/// Whether it is a day as `YYYY-MM-DD`.
fn is_date(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let number = |part: &str, digits: usize| {
        (part.len() == digits && part.bytes().all(|byte| byte.is_ascii_digit()))
            .then(|| part.parse::<u32>().ok())
            .flatten()
    };
    let [year, month, day] = parts[..] else { return false };
    let (Some(year), Some(month), Some(day)) = (number(year, 4), number(month, 2), number(day, 2)) else {
        return false;
    };
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        2 => 28 + u32::from(leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return false,
    };
    (1..=days).contains(&day)
}

fn git(root: &Path, arguments: &[&str]) -> Result<String> {
    let mut git = Command::new("git");
    let output = git.arg("-C").arg(root).args(arguments).stdin(Stdio::null()).output().context("cannot run git")?;
    ensure!(
        output.status.success(),
        "git {} failed: {}",
        arguments[0],
        String::from_utf8_lossy(&output.stderr).trim()
    );
    Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "# Changelog\n\n## [Unreleased]\n\n## [0.2.0] - 2026-11-27\n\n### Added\n\n- Packages.\n";

    fn refusal(changelog: &str) -> String {
        format!("{:#}", check_changelog(changelog, "0.2.0").expect_err("not a release"))
    }

    #[test]
    fn a_release_needs_its_dated_section_and_no_change_above_it() {
        check_changelog(GOOD, "0.2.0").expect("a release");
        assert!(refusal("# Changelog\n").contains("has no section"));
        assert!(
            refusal("# Changelog\n\n## [Unreleased]\n\n- Packages.\n")
                .contains("has no section `## [0.2.0] - YYYY-MM-DD`")
        );
        assert!(refusal(&GOOD.replace("0.2.0", "0.1.0")).contains("newest section of CHANGELOG.md is `## [0.1.0]"));
        assert!(refusal(&GOOD.replace(" - 2026-11-27", "")).contains("Name it"));
        assert!(refusal(&GOOD.replace("11-27", "02-29")).contains("Name it"));
        assert!(refusal(&GOOD.replace("### Added\n\n- Packages.\n", "")).contains("is empty"));
        assert!(refusal(&GOOD.replace("[Unreleased]\n", "[Unreleased]\n\n- More.\n")).contains("unreleased changes"));
    }

    #[test]
    fn days_exist() {
        for day in ["2024-02-29", "2026-12-31"] {
            assert!(is_date(day), "{day}");
        }
        for day in ["2026-02-29", "2026-13-01", "2026-00-10", "2026-04-31", "26-11-27", "2026-11-2", "YYYY-MM-DD", ""]
        {
            assert!(!is_date(day), "{day}");
        }
    }

    #[test]
    fn a_version_is_tagged_once_and_from_a_clean_tree() {
        let made = tempfile::tempdir().unwrap();
        let root = made.path();
        let git = |arguments: &[&str]| git(root, arguments).unwrap();
        git(&["init", "--quiet"]);
        for (name, value) in [
            ("user.name", "a"),
            ("user.email", "a@example.org"),
            ("tag.gpgSign", "false"),
            ("commit.gpgSign", "false"),
        ] {
            git(&["config", name, value]);
        }
        std::fs::write(root.join("CHANGELOG.md"), GOOD).unwrap();
        for path in WITH_VERSION {
            std::fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
            std::fs::write(root.join(path), "    landspeed_serve_version: 0.1.0\n").unwrap();
        }
        let refused = |version: &str| format!("{:#}", tag(root, version, false).expect_err("refused"));
        assert!(refused("0.2.0").contains("the tree has changes:\n?? CHANGELOG.md"), "{}", refused("0.2.0"));
        let commit = || {
            git(&["add", "."]);
            git(&["commit", "--quiet", "--message", "a release"]);
        };
        commit();
        assert!(refused("0.2.0").contains("playbook.yml installs another version"), "{}", refused("0.2.0"));
        for path in WITH_VERSION {
            std::fs::write(root.join(path), "    landspeed_serve_version: 0.2.0\n").unwrap();
        }
        commit();
        assert!(refused("0.3.0").contains("cannot tag v0.3.0"), "{}", refused("0.3.0"));
        assert_eq!(tag(root, "0.2.0", true).unwrap(), "v0.2.0");
        assert_eq!(git(&["tag"]), "");
        assert_eq!(tag(root, "0.2.0", false).unwrap(), "v0.2.0");
        assert_eq!(git(&["cat-file", "-t", "v0.2.0"]), "tag");
        assert!(refused("0.2.0").contains("there is such a tag"), "{}", refused("0.2.0"));
    }
}
