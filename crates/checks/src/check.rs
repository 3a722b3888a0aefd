//! What a check is, and what it may answer.

use landspeed_model::{Applicability, Change, Facts, Goal, Severity};

use crate::view::View;

/// One check. Declared by `declare_check!`, one in a file.
#[derive(Debug, Clone, Copy)]
pub struct Check {
    /// Stable code (`TCP-004`), never reused.
    pub code: &'static str,
    /// Short name, the file's in kebab case.
    pub name: &'static str,
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
    /// Processors, frequency, idle states, memory nodes.
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
    /// It cannot be told; why.
    Unknown(String),
}

/// What a check found.
#[derive(Debug, Clone, PartialEq)]
pub struct Problem {
    /// Weighs differently than the check's own severity.
    pub severity: Option<Severity>,
    /// What was seen, with figures.
    pub observed: String,
    /// What should be there, with figures.
    pub recommended: String,
    /// Why, in a sentence or two.
    pub why: String,
    /// What it brings: the source's measured figure and whose it is, or that nobody measured any.
    pub effect: String,
    /// A command that shows it.
    pub by_hand: String,
    /// Whether a program may carry it out.
    pub applicability: Applicability,
    /// What to change; empty for what only a person can.
    pub changes: Vec<Change>,
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

    /// It cannot be told.
    pub fn unknown(why: impl Into<String>) -> Self {
        Self::Unknown(why.into())
    }
}

/// Declares a check: its documentation, then its fields. The file supplies `fn evaluate(&View) -> Outcome`.
macro_rules! declare_check {
    (
        $(#[doc = $docs:literal])+
        code: $code:literal,
        name: $name:literal,
        group: $group:ident,
        title: $title:literal,
        scope: $scope:ident,
        severity: $severity:ident,
        since: $since:literal,
        sources: [$($source:expr),+ $(,)?],
        example: { good: $good:expr, bad: $bad:expr $(,)? } $(,)?
    ) => {
        $(#[doc = $docs])+
        pub(crate) static CHECK: $crate::check::Check = $crate::check::Check {
            code: $code,
            name: $name,
            group: $crate::check::Group::$group,
            title: $title,
            scope: $crate::check::Scope::$scope,
            severity: landspeed_model::Severity::$severity,
            since: $since,
            sources: &[$($source),+],
            docs: concat!($($docs, "\n"),+),
            evaluate,
            example: $crate::check::Example { good: $good, bad: $bad },
        };
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
