//! The generated pages: one for each check, and their index.

use std::fmt::Write as _;

use landspeed_model::{Finding, Severity};

use crate::advice::NOT_MEASURED;
use crate::audit::audit_with;
use crate::check::Check;
use crate::gain::{Gain, gains};
use crate::{example, registry};

/// What an audit of the example host finds by `check`, when it is put out of order for it.
pub(crate) fn example_finding(check: &Check) -> Option<Finding> {
    let (mut facts, mut goal) = (example::facts(), example::goal());
    (check.example.bad)(&mut facts, &mut goal);
    audit_with(&facts, &goal, [check]).ok()?.findings.into_iter().next()
}

/// The page of one check, Markdown.
pub fn page(check: &Check) -> String {
    let mut page = format!("# {} {}\n\n", check.code, check.title);
    let _ = writeln!(
        page,
        "`{}` · group {} · {} · since {}\n",
        check.name,
        check.group.name(),
        severity(check.severity),
        check.since
    );
    for line in check.docs.lines() {
        let _ = writeln!(page, "{}", line.strip_prefix(' ').unwrap_or(line));
    }
    if let Some(finding) = example_finding(check) {
        let _ = writeln!(page, "\n## What it says, for example\n");
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
    let _ = write!(page, "\n## Does it help?\n\n{}", gained(check));
    let _ = writeln!(page, "\n## Sources\n");
    for source in check.sources {
        let _ = writeln!(page, "- {source}");
    }
    page
}

/// What following the check was seen to bring: here, else by others, else nothing.
fn gained(check: &Check) -> String {
    let here: Vec<_> = gains().iter().filter(|gain| gain.codes.iter().any(|code| code == check.code)).collect();
    if !here.is_empty() {
        let tables: Vec<_> = here.into_iter().map(Gain::section).collect();
        return tables.join("\n");
    }
    let effect = example_finding(check).map(|finding| finding.effect).unwrap_or_default();
    match Cited::of(&effect) {
        Cited::Nothing => "No gain has been measured here and none is cited.\n".to_owned(),
        Cited::Reckoned => format!("No gain has been measured here. {effect}\n"),
        Cited::Measured => format!("No gain has been measured here; measured by others: {effect}\n"),
    }
}

/// What the effect of a finding rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cited {
    /// Nothing: the sources have no figure, or it has no effect.
    Nothing,
    /// Arithmetic or a standard.
    Reckoned,
    /// A source that measured it.
    Measured,
}

impl Cited {
    /// By the first words of `effect`, and whether it has a figure and whose it is.
    pub(crate) fn of(effect: &str) -> Self {
        const MEASURED_BY: [&str; 5] = ["ESnet", "Red Hat", "Neugebauer", "deck", "AmLight"];
        let nothing = effect.starts_with("No figure") && !effect.contains(|c: char| c.is_ascii_digit());
        if nothing || effect == NOT_MEASURED {
            Self::Nothing
        } else if MEASURED_BY.iter().any(|name| effect.contains(name))
            && effect.contains(|c: char| c.is_ascii_digit())
        {
            Self::Measured
        } else {
            Self::Reckoned
        }
    }
}

/// The list of all checks, Markdown.
pub fn index() -> String {
    let mut index = String::from(
        "# Checks\n\nGenerated from the checks themselves: `cargo run -p landspeed-checks --example docs`.\n\
         `landspeed check` asks all of them; `landspeed check --explain CODE` prints one of these pages.\n",
    );
    let mut group = None;
    for check in registry::all() {
        if group != Some(check.group) {
            group = Some(check.group);
            let _ = writeln!(index, "\n## {}\n\n| code | about | weight |\n|---|---|---|", check.group.name());
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_without_a_source_is_not_called_measured() {
        assert_eq!(Cited::of(NOT_MEASURED), Cited::Nothing);
        assert_eq!(Cited::of("By arithmetic: 60.0 Gb/s of the goal are out of reach."), Cited::Reckoned);
        assert_eq!(Cited::of("ESnet 2016: 57 Gb/s with powersave, 79 Gb/s with performance."), Cited::Measured);
        for check in registry::all() {
            let effect = example_finding(check).map(|finding| finding.effect).unwrap_or_default();
            let figure = effect.chars().any(|c| c.is_ascii_digit());
            assert!(Cited::of(&effect) != Cited::Measured || figure, "{}: {effect}", check.code);
        }
    }
}
