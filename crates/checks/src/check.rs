//! What a check is, and what it may answer.

use landspeed_model::{Applicability, Change, Facts, Goal, Severity};

use crate::source::Passage;
use crate::view::View;

/// One check. Declared by `declare_check!`, one in a file.
#[derive(Debug, Clone, Copy)]
pub struct Check {
    /// Stable code (`TCP-004`), never reused.
    pub code: &'static str,
    /// The module that declares it.
    pub module: &'static str,
    /// The group it is listed in.
    pub group: Group,
    /// What it is about, a noun.
    pub title: &'static str,
    /// Whether it is asked once, or for each port.
    pub scope: Scope,
    /// How much a finding weighs unless it says otherwise.
    pub severity: Severity,
    /// The version of landspeed that had it first.
    pub since: &'static str,
    /// Where the advice comes from: the first is shown with the finding.
    pub sources: &'static [&'static str],
    /// The declaration's documentation, Markdown.
    pub docs: &'static str,
    /// The check itself.
    pub evaluate: fn(&View<'_>) -> Outcome,
    /// A host that has the problem and one that does not.
    pub example: Example,
}

impl Check {
    /// Short name, the file's in kebab case.
    pub fn name(&self) -> String {
        self.module.rsplit("::").next().unwrap_or_default().replace('_', "-")
    }

    /// What it alone says of a host.
    #[cfg(test)]
    pub(crate) fn ask(&self, facts: &Facts, goal: &Goal) -> crate::audit::Audit {
        crate::audit::audit_with(facts, goal, [self]).expect("the example's interface is there")
    }
}

/// How the host in good order (module `example`) is changed so that a check finds something. Tests and the generated pages
/// both use it.
#[derive(Debug, Clone, Copy)]
pub struct Example {
    /// Makes the check pass, where the host in good order by itself does not.
    pub good: fn(&mut Facts, &mut Goal),
    /// Makes the check find something.
    pub bad: fn(&mut Facts, &mut Goal),
}

/// Where a check is listed, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Group {
    /// CPUs, frequency, idle states, NUMA nodes.
    Cpu,
    /// The device on its bus.
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
    /// What tuning guides hand down that helps no more, or never did.
    Folklore,
}

impl Group {
    /// As it is written in documents and directory names.
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

/// How often a check is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Once for the host.
    Host,
    /// Once for the interface the data takes, the topmost: a bond or VLAN rather than what is below it.
    Interface,
    /// Once for each port: the devices at the bottom of the interface.
    Port,
}

/// A check's answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// All is well; what was seen.
    Pass(String),
    /// Something should be looked at.
    Finding(Box<Problem>),
    /// It does not apply; why.
    NotApplicable(String),
    /// Unknown; why.
    Unknown(String),
}

/// What a check found. By default it needs manual action and has no measured gain.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Problem {
    /// Weighs differently than the check's own severity.
    pub severity: Option<Severity>,
    /// What was seen, with figures.
    pub observed: String,
    /// What should be there, with figures.
    pub recommended: String,
    /// Why, in a sentence or two.
    pub why: String,
    /// What it brings, and how that is known.
    pub effect: Effect,
    /// A command that shows it.
    pub by_hand: String,
    /// Whether a program may carry it out.
    pub applicability: Applicability,
    /// What to change; empty for what only a person can.
    pub changes: Vec<Change>,
}

/// What a recommendation brings, and how that is known.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Effect {
    /// Others measured it. Every figure of the text stands in the passages, or is a ratio or a percentage of two that do.
    Measured(String, Vec<&'static Passage>),
    /// It follows from what was observed, by a formula or a standard.
    Arithmetic(String),
    /// A source of the check states it without a figure: the text, and the beginning of that source.
    Stated(String, &'static str),
    /// No source says anything: the lab's figure is shown where there is one.
    #[default]
    NotMeasured,
}

impl Effect {
    /// What `passages` say.
    pub(crate) fn measured(text: impl Into<String>, passages: &[&'static Passage]) -> Self {
        Self::Measured(text.into(), passages.to_vec())
    }

    /// What follows from the observed values.
    pub(crate) fn arithmetic(text: impl Into<String>) -> Self {
        Self::Arithmetic(text.into())
    }

    /// What `source`, one of the check's own, states.
    pub(crate) fn stated(text: impl Into<String>, source: &'static str) -> Self {
        Self::Stated(text.into(), source)
    }

    /// The sentence that a finding shows; `None` where no source says anything.
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
    /// The same problem with what its solution brings.
    pub(crate) fn with_effect(self, effect: Effect) -> Self {
        Self { effect, ..self }
    }
}

impl Outcome {
    /// All is well.
    pub fn pass(seen: impl Into<String>) -> Self {
        Self::Pass(seen.into())
    }

    /// Something was found.
    pub fn found(problem: Problem) -> Self {
        Self::Finding(Box::new(problem))
    }

    /// It does not apply.
    pub fn not_applicable(why: impl Into<String>) -> Self {
        Self::NotApplicable(why.into())
    }

    /// Unknown.
    pub fn unknown(why: impl Into<String>) -> Self {
        Self::Unknown(why.into())
    }
}

/// Declares a check: its documentation, then its fields. The file supplies its name and `fn evaluate(&View) -> Outcome`, its
/// directory the group. A check asks about the host and is as old as landspeed unless it says otherwise; `good` and `bad` are
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

/// What was given, else the default.
macro_rules! given {
    ($default:expr) => {
        $default
    };
    ($default:expr, $given:expr) => {
        $given
    };
}

/// The value of a `Fact`, or the check's answer for want of it.
macro_rules! known {
    ($fact:expr) => {
        match $fact {
            landspeed_model::Fact::Known(value) => value,
            landspeed_model::Fact::Absent(why) => return $crate::check::Outcome::NotApplicable(why.to_string()),
            landspeed_model::Fact::Unknown(why) => return $crate::check::Outcome::Unknown(why.to_string()),
        }
    };
}

/// A slide of that deck, as a check's source.
macro_rules! esnet_2016 {
    ($slide:literal) => {
        concat!(
            "Hanford and Tierney (ESnet), Recent Linux TCP Updates, and how to tune your 100G host, 2016: ",
            $slide
        )
    };
}

/// A slide of that deck, as a check's source.
macro_rules! lbnl_2015 {
    ($slide:literal) => {
        concat!("Smitasin and Tierney (LBNL, ESnet), Evaluating Network Buffer Size Requirements, 2015: ", $slide)
    };
}

/// A slide of that deck, as a check's source.
macro_rules! esnet_2014 {
    ($slide:literal) => {
        concat!("Tierney, Pouyoul and Hanford (ESnet), Experiences with 40G Hosts, 2014: ", $slide)
    };
}

/// A slide of that deck, as a check's source.
macro_rules! red_hat_2012 {
    ($slide:literal) => {
        concat!("Wagner (Red Hat), Achieving Top Network Performance, 2012: ", $slide)
    };
}

/// A slide of that deck, as a check's source.
macro_rules! tokyo_2006 {
    ($slide:literal) => {
        concat!("Tamatsukuri et al. (University of Tokyo), Linux TCP/IP Performance on Long Fat-pipe Network toward Internet2 Land Speed Record, 2006: ", $slide)
    };
}
