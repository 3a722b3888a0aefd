//! Checks and their outcomes.

use landspeed_model::{Applicability, Change, Facts, Goal, Severity};

use crate::source::Passage;
use crate::view::View;

/// A check. Declared by `declare_check!`, one per file.
#[derive(Debug, Clone, Copy)]
pub struct Check {
    /// Stable code (`TCP-004`), never reused.
    pub code: &'static str,
    /// Module path of the declaration.
    pub module: &'static str,
    /// The group it is listed in.
    pub group: Group,
    /// Subject of the check, a noun phrase.
    pub title: &'static str,
    /// Whether it runs once for the host or interface, or once for each port.
    pub scope: Scope,
    /// Severity of a finding, unless the finding has its own.
    pub severity: Severity,
    /// First version of landspeed with this check.
    pub since: &'static str,
    /// Sources of the advice; the first is shown with the finding.
    pub sources: &'static [&'static str],
    /// Documentation from the declaration, Markdown.
    pub docs: &'static str,
    /// Function that evaluates the check.
    pub evaluate: fn(&View<'_>) -> Outcome,
    /// Changes that make the example host pass and fail.
    pub example: Example,
}

impl Check {
    /// Returns the short name: the file name in kebab case.
    pub fn name(&self) -> String {
        self.module.rsplit("::").next().unwrap_or_default().replace('_', "-")
    }

    /// Audits a host with this check alone.
    #[cfg(test)]
    pub(crate) fn audit_alone(&self, facts: &Facts, goal: &Goal) -> crate::audit::Audit {
        crate::audit::audit_with(facts, goal, [self]).expect("the example's interface is there")
    }
}

/// Changes to the example host (module `example`) that make a check pass or fail. Used by tests and the
/// generated pages.
#[derive(Debug, Clone, Copy)]
pub struct Example {
    /// Makes the check pass; does nothing if the unchanged example host passes.
    pub good: fn(&mut Facts, &mut Goal),
    /// Makes the check report a finding.
    pub bad: fn(&mut Facts, &mut Goal),
}

/// Groups of checks, in the order of lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Group {
    /// CPUs, frequency, idle states, NUMA nodes.
    Cpu,
    /// The PCI device: slot, link, IOMMU.
    Pci,
    /// Interrupts, queues and steering.
    Interrupts,
    /// The interface: MTU, rings, offloads, flow control, drops.
    Interface,
    /// Queueing disciplines and pacing.
    Qdisc,
    /// Buffers and memory limits.
    Buffers,
    /// TCP and UDP behaviour.
    Tcp,
    /// Virtual machines, containers, clocks, other programs that tune.
    Environment,
    /// Settings from tuning guides that no longer help, or never did.
    Folklore,
}

impl Group {
    /// Returns the name used in documents and directory names.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Pci => "pci",
            Self::Interrupts => "interrupts",
            Self::Interface => "interface",
            Self::Qdisc => "qdisc",
            Self::Buffers => "buffers",
            Self::Tcp => "tcp",
            Self::Environment => "environment",
            Self::Folklore => "folklore",
        }
    }
}

/// Scope of a check: how often it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Once for the host.
    Host,
    /// Once for the topmost interface: a bond or VLAN rather than the devices below it.
    Interface,
    /// Once for each port: the devices at the bottom of the interface's stack.
    Port,
}

/// Outcome of a check.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// The check passed; observed values.
    Pass(String),
    /// The check has a finding.
    Finding(Box<Problem>),
    /// The check does not apply; reason.
    NotApplicable(String),
    /// The facts are unknown; reason.
    Unknown(String),
}

/// A finding of a check. By default it needs manual action and has no measured effect.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Problem {
    /// Severity, if it differs from the check's own.
    pub severity: Option<Severity>,
    /// Observed values, with figures.
    pub observed: String,
    /// Recommended values, with figures.
    pub recommended: String,
    /// Reason, in one or two sentences.
    pub why: String,
    /// Expected effect and its evidence.
    pub effect: Effect,
    /// Command that shows the observed values.
    pub by_hand: String,
    /// Whether landspeed may apply the changes.
    pub applicability: Applicability,
    /// Changes to apply; empty for manual action.
    pub changes: Vec<Change>,
}

/// Expected effect of a recommendation, by its evidence.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Effect {
    /// Measured by others. Every figure in the text is in the passages, or is a ratio or a percentage of two
    /// that are.
    Measured(String, Vec<&'static Passage>),
    /// Calculated from the observed values by a formula or a standard.
    Arithmetic(String),
    /// Stated by a source of the check without a figure: the text, and the beginning of that source.
    Stated(String, &'static str),
    /// No source has an effect: the lab's figure is shown if there is one.
    #[default]
    NotMeasured,
}

impl Effect {
    /// Returns an effect that `passages` report.
    pub(crate) fn measured(text: impl Into<String>, passages: &[&'static Passage]) -> Self {
        Self::Measured(text.into(), passages.to_vec())
    }

    /// Returns an effect calculated from the observed values.
    pub(crate) fn arithmetic(text: impl Into<String>) -> Self {
        Self::Arithmetic(text.into())
    }

    /// Returns an effect stated by `source`, one of the check's own.
    pub(crate) fn stated(text: impl Into<String>, source: &'static str) -> Self {
        Self::Stated(text.into(), source)
    }

    /// Returns the sentence that a finding shows; `None` if no source has an effect.
    pub(crate) fn sentence(&self) -> Option<String> {
        match self {
            Self::Measured(text, passages) => {
                let mut places: Vec<String> = Vec::new();
                for passage in passages {
                    let place = format!("{}, \"{}\"", passage.document.short, passage.place);
                    if !places.contains(&place) {
                        places.push(place);
                    }
                }
                Some(format!("{} ({}).", text.trim_end_matches('.'), places.join("; ")))
            }
            Self::Arithmetic(text) => Some(text.clone()),
            Self::Stated(text, source) => Some(format!("{} ({source}).", text.trim_end_matches('.'))),
            Self::NotMeasured => None,
        }
    }
}

impl Problem {
    /// Returns the problem with its effect set.
    pub(crate) fn with_effect(self, effect: Effect) -> Self {
        Self { effect, ..self }
    }
}

impl Outcome {
    /// Returns an outcome that passes, with the observed values.
    pub fn pass(seen: impl Into<String>) -> Self {
        Self::Pass(seen.into())
    }

    /// Returns an outcome with a finding.
    pub fn found(problem: Problem) -> Self {
        Self::Finding(Box::new(problem))
    }

    /// Returns an outcome that does not apply, with the reason.
    pub fn not_applicable(why: impl Into<String>) -> Self {
        Self::NotApplicable(why.into())
    }

    /// Returns an unknown outcome, with the reason.
    pub fn unknown(why: impl Into<String>) -> Self {
        Self::Unknown(why.into())
    }
}

/// Declares a check from its documentation and fields. The file supplies its name and `fn evaluate(&View) ->
/// Outcome`, its directory the group. Scope and first version default to the host and 0.1; `good` and `bad` are
/// the fields of its `Example`.
macro_rules! declare_check {
    (
        $(#[doc = $docs:literal])+
        code: $code:literal,
        title: $title:literal,
        $(scope: $scope:ident,)?
        severity: $severity:ident,
        $(since: $since:literal,)?
        sources: [$($source:expr),+ $(,)?],
        $(good: $good:expr,)?
        bad: $bad:expr $(,)?
    ) => {
        $(#[doc = $docs])+
        pub(crate) static CHECK: $crate::check::Check = $crate::check::Check {
            code: $code,
            module: module_path!(),
            group: super::GROUP,
            title: $title,
            scope: given!($crate::check::Scope::Host $(, $crate::check::Scope::$scope)?),
            severity: landspeed_model::Severity::$severity,
            since: given!("0.1" $(, $since)?),
            sources: &[$($source),+],
            docs: concat!($($docs, "\n"),+),
            evaluate,
            example: $crate::check::Example { good: given!(|_, _| {} $(, $good)?), bad: $bad },
        };
    };
}

/// Expands to the given value, else to the default.
macro_rules! given {
    ($default:expr) => {
        $default
    };
    ($default:expr, $given:expr) => {
        $given
    };
}

/// Expands to the value of a `Fact`; returns from the check if it is absent or unknown.
macro_rules! known {
    ($fact:expr) => {
        match $fact {
            landspeed_model::Fact::Known(value) => value,
            landspeed_model::Fact::Absent(why) => return $crate::check::Outcome::NotApplicable(why.to_string()),
            landspeed_model::Fact::Unknown(why) => return $crate::check::Outcome::Unknown(why.to_string()),
        }
    };
}

/// A slide of the ESnet deck of 2016, as a check's source.
macro_rules! esnet_2016 {
    ($slide:literal) => {
        concat!(
            "Hanford and Tierney (ESnet), Recent Linux TCP Updates, and how to tune your 100G host, 2016: ",
            $slide
        )
    };
}

/// A slide of the LBNL deck of 2015, as a check's source.
macro_rules! lbnl_2015 {
    ($slide:literal) => {
        concat!("Smitasin and Tierney (LBNL, ESnet), Evaluating Network Buffer Size Requirements, 2015: ", $slide)
    };
}

/// A slide of the ESnet deck of 2014, as a check's source.
macro_rules! esnet_2014 {
    ($slide:literal) => {
        concat!("Tierney, Pouyoul and Hanford (ESnet), Experiences with 40G Hosts, 2014: ", $slide)
    };
}

/// A slide of the Red Hat deck of 2012, as a check's source.
macro_rules! red_hat_2012 {
    ($slide:literal) => {
        concat!("Wagner (Red Hat), Achieving Top Network Performance, 2012: ", $slide)
    };
}

/// A slide of the Tokyo deck of 2006, as a check's source.
macro_rules! tokyo_2006 {
    ($slide:literal) => {
        concat!("Tamatsukuri et al. (University of Tokyo), Linux TCP/IP Performance on Long Fat-pipe Network toward Internet2 Land Speed Record, 2006: ", $slide)
    };
}
