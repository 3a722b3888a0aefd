//! Terminal output of the demo, at most 80 columns wide.

use std::path::Path;

use landspeed_model::{DemoDocument, DemoResult, DemoScene};

/// Maximum line width, columns.
const WIDTH: usize = 80;
/// Column where the text after a label begins.
const MARGIN: usize = 12;

/// Returns the introduction.
pub fn opening() -> String {
    "Four claims, each checked on this machine. Both ends run here, over loopback;\n\
     no root, no second host, nothing leaves the machine.\n"
        .to_owned()
}

/// Formats a scene's title and claim.
pub fn before(number: usize, scene: &DemoScene) -> String {
    format!("\n{number}  {}\n{}", scene.title, labelled("claim", &scene.claim))
}

/// Formats the measured values, and whether the claim holds.
pub fn after(scene: &DemoScene) -> String {
    let reason = scene.reason.as_deref().unwrap_or_default();
    let measured = if scene.measured.is_empty() { String::new() } else { labelled("measured", &scene.measured) };
    let result = match scene.result {
        DemoResult::Holds => "   claim holds\n".to_owned(),
        DemoResult::Fails => labelled("claim", &format!("FAILS: {reason}")),
        // Commands to paste are not wrapped.
        DemoResult::NotChecked if reason.contains('\n') => format!("   not checked: {reason}\n"),
        DemoResult::NotChecked => labelled("not checked:", reason),
    };
    measured + &result
}

/// Formats the overall result and the path of the report.
pub fn closing(document: &DemoDocument, out: &Path) -> String {
    let named = |result: DemoResult| -> Vec<&str> {
        document.scenes.iter().filter(|scene| scene.result == result).map(|scene| scene.name.as_str()).collect()
    };
    let (failed, skipped) = (named(DemoResult::Fails), named(DemoResult::NotChecked));
    let total = document.scenes.len();
    let mut text = format!("\n{} of {total} claims hold", named(DemoResult::Holds).len());
    for (what, names) in [("FAILED", &failed), ("not checked", &skipped)] {
        if !names.is_empty() {
            text += &["; ", what, ": ", &names.join(", ")].concat();
        }
    }
    format!("{text}. {:.0} s.\nreport  {}\n", document.wall_s, out.join("index.html").display())
}

/// Formats a label and its text, wrapped between words.
fn labelled(label: &str, content: &str) -> String {
    let mut text = format!("   {label}");
    let mut at = text.chars().count();
    let mut fresh = at >= MARGIN;
    for word in content.split_whitespace() {
        let len = word.chars().count();
        if !fresh && at < MARGIN {
            text.push_str(&" ".repeat(MARGIN - at));
            at = MARGIN;
        } else if at + 1 + len > WIDTH {
            text.push('\n');
            text.push_str(&" ".repeat(MARGIN));
            at = MARGIN;
        } else {
            text.push(' ');
            at += 1;
        }
        fresh = true;
        text.extend(word.chars().filter(|c| !c.is_control()));
        at += len;
    }
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scene(result: DemoResult, reason: Option<&str>) -> DemoScene {
        DemoScene {
            name: "udp".to_owned(),
            title: "UDP".to_owned(),
            claim: "every packet is received or lost, and the kernel's drop counter confirms each and every loss"
                .to_owned(),
            result,
            measured: "45,120 sent".to_owned(),
            reason: reason.map(str::to_owned),
            report: None,
            document: None,
            chart: None,
        }
    }

    #[test]
    fn scene_text_fits_80_columns() {
        let scene = scene(DemoResult::Fails, Some("landspeed counts 30 lost, the kernel 29 dropped"));
        let text = before(3, &scene) + &after(&scene);
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        assert_eq!(
            text,
            "\n3  UDP\n   claim    every packet is received or lost, and the kernel's drop counter\n            \
             confirms each and every loss\n   measured 45,120 sent\n   claim    FAILS: landspeed counts 30 lost, the \
             kernel 29 dropped\n"
        );
    }

    #[test]
    fn commands_in_reasons_are_not_wrapped() {
        let why = "building a kernel needs flex. Install:\n    Debian:  sudo apt-get install flex";
        assert!(after(&scene(DemoResult::NotChecked, Some(why))).ends_with("sudo apt-get install flex\n"));
    }
}
