//! The manual pages in common formatters.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use super::{Installed, find};

fn pages(installed: &Installed) -> Vec<PathBuf> {
    let pages: Vec<_> =
        installed.files().iter().filter(|file| file.ends_with(".1")).map(|file| installed.path(file)).collect();
    assert!(pages.len() > 20, "{pages:?}");
    pages
}

fn text_of(page: &PathBuf) -> String {
    std::fs::read_to_string(page).unwrap_or_else(|error| panic!("{}: {error}", page.display()))
}

#[test]
fn mandoc_lint_accepts_every_page() {
    if find("mandoc").is_none() {
        landspeed_testkit::skip!("there is no mandoc");
    }
    let Some(installed) = Installed::new() else { return };
    for page in pages(&installed) {
        let out = Command::new("mandoc").args(["-T", "lint"]).arg(&page).output().expect("mandoc runs");
        let said = String::from_utf8_lossy(&out.stdout);
        assert!(out.status.success() && said.is_empty(), "{said}");
    }
}

#[test]
fn groff_renders_every_page_without_a_warning() {
    if find("groff").is_none() {
        landspeed_testkit::skip!("there is no groff");
    }
    let Some(installed) = Installed::new() else { return };
    for page in pages(&installed) {
        let mut groff = Command::new("groff");
        let out = groff.args(["-ww", "-man", "-Tutf8"]).arg(&page).stdin(Stdio::null()).output().expect("groff runs");
        let said = String::from_utf8_lossy(&out.stderr);
        // A minimal groff lacks the man macros.
        if said.contains("can't find macro file") {
            landspeed_testkit::skip!("this groff has no manual macros");
        }
        assert!(out.status.success() && said.is_empty(), "{}: {said}", page.display());
    }
}

#[test]
fn every_page_has_standard_sections_and_valid_references() {
    let Some(installed) = Installed::new() else { return };
    let pages = pages(&installed);
    let names: Vec<String> =
        pages.iter().map(|page| page.file_stem().expect("a name").to_string_lossy().into_owned()).collect();
    for page in &pages {
        let text = text_of(page);
        for section in ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXIT STATUS", "SEE ALSO"] {
            let heading = [format!(".SH {section}\n"), format!(".SH \"{section}\"\n")];
            assert!(heading.iter().any(|heading| text.contains(heading)), "{}: no {section}", page.display());
        }
        assert!(text.contains(" 2023-11-14 "), "the date of SOURCE_DATE_EPOCH: {text}");
        let (_, others) = text.split_once("SEE ALSO").expect("just seen");
        for other in others.split("\\fB").skip(1).filter_map(|rest| rest.split("\\fR").next()) {
            let other = other.replace("\\-", "-");
            assert!(names.contains(&other), "{} names {other}", page.display());
        }
    }
}

#[test]
fn pages_have_the_examples_of_the_help() {
    let Some(installed) = Installed::new() else { return };
    let run = text_of(&installed.path("usr/share/man/man1/landspeed-run.1")).replace("\\-", "-");
    assert!(run.contains("EXAMPLES") && run.contains("landspeed run dtn.example -R -P 4 --report run.html"), "{run}");
    // A page without own examples shows those of the parent command that use it.
    let plan = text_of(&installed.path("usr/share/man/man1/landspeed-tune-plan.1")).replace("\\-", "-");
    assert!(plan.contains("landspeed tune plan --goal 100G --rtt 92ms"), "{plan}");
}

#[test]
fn man_renders_the_page_of_the_program() {
    let Some(man) = find("man") else { landspeed_testkit::skip!("there is no man") };
    let Some(installed) = Installed::new() else { return };
    let page = installed.path("usr/share/man/man1/landspeed.1");
    let out =
        Command::new(man).arg("-l").arg("--warnings").arg(page).env("MANWIDTH", "80").output().expect("man runs");
    let (text, said) = (String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    // Containers replace man by a script that reports missing pages.
    if text.contains("minimized") || said.contains("minimized") {
        landspeed_testkit::skip!("this system was minimized: man shows nothing");
    }
    assert!(out.status.success() && said.is_empty(), "{said}");
    assert!(text.contains("landspeed-run(1)") && text.contains("EXIT STATUS"), "{text}");
}
