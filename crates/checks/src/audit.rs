//! Audits of a host: all checks and their outcomes.

use landspeed_model::{Answer, Facts, Finding, Goal, InterfaceFacts};
use thiserror::Error;

use crate::check::{Check, Effect, Outcome, Problem, Scope};
use crate::gain::gains;
use crate::registry;
use crate::view::View;

/// Maximum depth of stacked interfaces (a VLAN on a bond on a device is three).
const MAX_STACK_DEPTH: usize = 8;

/// Outcomes of all checks of a host.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Audit {
    /// Interface that was checked: the goal's, else that of the default route.
    pub interface: Option<String>,
    /// Devices at the bottom of its stack; the interface itself if nothing is below it.
    pub ports: Vec<String>,
    /// Findings by decreasing severity, then in registry order.
    pub findings: Vec<Finding>,
    /// Checks that passed.
    pub passed: Vec<Answer>,
    /// Checks that do not apply to this host.
    pub not_applicable: Vec<Answer>,
    /// Checks whose facts are unknown.
    pub unknown: Vec<Answer>,
}

/// Errors of [`audit`].
#[derive(Debug, Error, PartialEq, Eq)]
pub enum AuditError {
    /// The goal names an interface that the host does not have.
    #[error("there is no interface `{name}` here; there is: {known}")]
    UnknownInterface {
        /// Interface named by the goal.
        name: String,
        /// Comma-separated names of the host's interfaces.
        known: String,
    },
}

/// Runs every check for which `chosen` returns true.
///
/// # Errors
/// The goal names an interface that the facts do not have.
pub fn audit(facts: &Facts, goal: &Goal, chosen: &dyn Fn(&Check) -> bool) -> Result<Audit, AuditError> {
    audit_with(facts, goal, registry::all().filter(|check| chosen(check)))
}

pub(crate) fn audit_with<'c>(
    facts: &Facts,
    goal: &Goal,
    checks: impl IntoIterator<Item = &'c Check>,
) -> Result<Audit, AuditError> {
    let top = top(facts, goal)?;
    let bottom_interfaces = top.map(|top| bottom_interfaces(facts, top)).unwrap_or_default();
    let mut audit = Audit {
        interface: top.map(|top| top.name.clone()),
        ports: bottom_interfaces.iter().map(|port| port.name.clone()).collect(),
        ..Audit::default()
    };
    for check in checks {
        for (interface, outcome) in outcomes(facts, goal, check)? {
            audit.add_outcome(check, interface, outcome);
        }
    }
    audit.findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    Ok(audit)
}

/// Runs one check: once for the host or the interface, or once for each port.
pub(crate) fn outcomes<'a>(
    facts: &'a Facts,
    goal: &Goal,
    check: &Check,
) -> Result<Vec<(Option<&'a InterfaceFacts>, Outcome)>, AuditError> {
    let top = top(facts, goal)?;
    let bottom_interfaces = top.map(|top| bottom_interfaces(facts, top)).unwrap_or_default();
    let view = View { facts, goal, top, bottom: bottom_interfaces.first().copied(), ports: bottom_interfaces.len() };
    Ok(match check.scope {
        Scope::Host => vec![(None, (check.evaluate)(&view))],
        Scope::Interface => vec![(top, (check.evaluate)(&view))],
        Scope::Port if bottom_interfaces.is_empty() => vec![(None, (check.evaluate)(&view))],
        Scope::Port => bottom_interfaces
            .iter()
            .map(|port| (Some(*port), (check.evaluate)(&View { bottom: Some(port), ..view })))
            .collect(),
    })
}

fn top<'a>(facts: &'a Facts, goal: &Goal) -> Result<Option<&'a InterfaceFacts>, AuditError> {
    let Some(name) = goal.interface.as_ref().or(facts.default_interface.known()) else { return Ok(None) };
    let found = facts.interfaces.iter().find(|interface| interface.name == *name);
    if found.is_none() && goal.interface.is_some() {
        let known: Vec<_> = facts.interfaces.iter().map(|interface| interface.name.as_str()).collect();
        let known = if known.is_empty() { "none but loopback".into() } else { known.join(", ") };
        return Err(AuditError::UnknownInterface { name: name.clone(), known });
    }
    Ok(found)
}

/// Returns the devices at the bottom of the stack below `top`; `top` itself if nothing is below it.
fn bottom_interfaces<'a>(facts: &'a Facts, top: &'a InterfaceFacts) -> Vec<&'a InterfaceFacts> {
    let mut level = vec![top];
    // A corrupt recording may contain a cycle of interfaces: limit the depth.
    for _ in 0..MAX_STACK_DEPTH {
        let below = |interface: &&'a InterfaceFacts| {
            let lower = interface.lower.iter().filter_map(|name| facts.interfaces.iter().find(|i| i.name == *name));
            let lower: Vec<_> = lower.collect();
            if lower.is_empty() { vec![*interface] } else { lower }
        };
        let mut next: Vec<&InterfaceFacts> = Vec::new();
        for interface in level.iter().flat_map(below) {
            if !next.iter().any(|known| known.name == interface.name) {
                next.push(interface);
            }
        }
        level = next;
    }
    level
}

impl Audit {
    fn add_outcome(&mut self, check: &Check, interface: Option<&InterfaceFacts>, outcome: Outcome) {
        let interface = interface.map(|interface| interface.name.clone());
        let answer =
            |text| Answer { code: check.code.into(), title: check.title.into(), interface: interface.clone(), text };
        match outcome {
            Outcome::Pass(text) => self.passed.push(answer(text)),
            Outcome::NotApplicable(text) => self.not_applicable.push(answer(text)),
            Outcome::Unknown(text) => self.unknown.push(answer(text)),
            Outcome::Finding(problem) => self.findings.push(finding(check, interface, *problem)),
        }
    }
}

/// Effect of a finding for which neither a source nor the lab has a figure.
const NO_FIGURE: &str = "No figure in the sources.";

/// Returns the effect of the recommendation: from a source, else as measured in the lab.
fn effect(check: &Check, effect: &Effect) -> String {
    let measured = || gains().iter().find(|gain| gain.codes.iter().any(|code| code == check.code));
    effect.sentence().or_else(|| Some(measured()?.headline())).unwrap_or_else(|| NO_FIGURE.into())
}

fn finding(check: &Check, interface: Option<String>, problem: Problem) -> Finding {
    let (source, sources) = check.sources.split_first().map_or(("", &[][..]), |(first, rest)| (*first, rest));
    Finding {
        code: check.code.into(),
        name: check.name(),
        group: check.group.name().into(),
        severity: problem.severity.unwrap_or(check.severity),
        title: check.title.into(),
        interface,
        observed: problem.observed,
        recommended: problem.recommended,
        why: problem.why,
        effect: effect(check, &problem.effect),
        by_hand: problem.by_hand,
        applicability: problem.applicability,
        source: source.into(),
        sources: sources.iter().map(|&source| source.into()).collect(),
        changes: problem.changes,
    }
}
