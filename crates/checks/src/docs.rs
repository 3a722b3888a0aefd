//! Generated documentation: one page for each check, and an index.

use std::fmt::Write as _;

use landspeed_model::{Facts, Finding, Goal, Severity};

use crate::audit::{audit_with, outcomes};
use crate::check::{Check, Effect, Outcome, Problem};
use crate::gain::{Gain, gains};
use crate::{example, registry};

/// Returns the example host with the fault that `check` finds, and its goal. For tests that apply
/// recommendations.
pub fn failing_example(check: &Check) -> (Facts, Goal) {
    let (mut facts, mut goal) = (example::facts(), example::goal());
    (check.example.bad)(&mut facts, &mut goal);
    (facts, goal)
}

/// Returns the audit's finding for `check` on its failing example.
pub(crate) fn example_finding(check: &Check) -> Option<Finding> {
    let (facts, goal) = failing_example(check);
    audit_with(&facts, &goal, [check]).ok()?.findings.into_iter().next()
}

/// Returns the problem that `check` reports on its failing example.
pub(crate) fn example_problem(check: &Check) -> Option<Problem> {
    let (facts, goal) = failing_example(check);
    outcomes(&facts, &goal, check).ok()?.into_iter().find_map(|(_, outcome)| match outcome {
        Outcome::Finding(problem) => Some(*problem),
        _ => None,
    })
}

/// Returns the page of one check, Markdown.
pub fn page(check: &Check) -> String {
    let mut page = format!("# {} {}\n\n", check.code, check.title);
    let _ = writeln!(
        page,
        "`{}` · group {} · {} · since {}\n",
        check.name(),
        check.group.name(),
        severity(check.severity),
        check.since
    );
    for line in check.docs.lines() {
        let _ = writeln!(page, "{}", line.strip_prefix(' ').unwrap_or(line));
    }
    if let Some(finding) = example_finding(check) {
        let _ = writeln!(page, "\n## Example finding\n");
        let rows = [
            ("Observed", finding.observed),
            ("Recommended", finding.recommended),
            ("Why", finding.why),
            ("Effect", finding.effect),
            ("By hand", format!("`{}`", finding.by_hand)),
        ];
        for (name, text) in rows {
            let _ = writeln!(page, "- **{name}**: {text}");
        }
        for change in finding.changes.iter().take(3) {
            let _ = writeln!(page, "- **Change**: {} to `{}`", change.target, change.desired);
        }
    }
    let _ = write!(page, "\n## Effect\n\n{}", effect_section(check));
    let _ = writeln!(page, "\n## Sources\n");
    for source in check.sources {
        let _ = writeln!(page, "- {source}");
    }
    page
}

/// Returns the effect of following the check: the lab's figures, else what others measured, else that there is
/// no figure.
fn effect_section(check: &Check) -> String {
    let here: Vec<_> = gains().iter().filter(|gain| gain.codes.iter().any(|code| code == check.code)).collect();
    if !here.is_empty() {
        let tables: Vec<_> = here.into_iter().map(Gain::section).collect();
        return tables.join("\n");
    }
    let effect = example_problem(check).map_or(Effect::NotMeasured, |problem| problem.effect);
    let sentence = effect.sentence().unwrap_or_default();
    match effect {
        Effect::Measured(..) => format!("Not measured by landspeed. Measured by others: {sentence}\n"),
        Effect::Arithmetic(_) => format!("Not measured by landspeed. {sentence}\n"),
        Effect::Stated(..) => format!("No figure. {sentence}\n"),
        Effect::NotMeasured => "No figure: neither landspeed nor the sources measured it.\n".to_owned(),
    }
}

/// Returns the list of all checks, Markdown.
pub fn index() -> String {
    let mut index = String::from(
        "# Checks\n\n`landspeed check` runs all of these; `landspeed explain CODE` prints one of these pages. They are \
         generated from the checks: `cargo run -p landspeed-checks --example docs`.\n",
    );
    let mut group = None;
    for check in registry::all() {
        if group != Some(check.group) {
            group = Some(check.group);
            let _ = writeln!(index, "\n## {}\n\n| code | about | severity |\n|---|---|---|", check.group.name());
        }
        let _ = writeln!(index, "| [{0}]({0}.md) | {1} | {2} |", check.code, check.title, severity(check.severity));
    }
    index
}

fn severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Note => "note",
        Severity::Minor => "minor",
        Severity::Major => "major",
        Severity::Critical => "critical",
    }
}
