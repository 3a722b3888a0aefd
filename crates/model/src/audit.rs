//! What an audit of a host came to (`landspeed.audit/1`).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{BuildInfo, Change, Facts, Warning};

/// What the host is to do.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Goal {
    /// The rate it is to reach, bits/s; without one, that of the interface.
    pub rate_bps: Option<u64>,
    /// The longest round trip it is to reach it over, nanoseconds.
    pub rtt_ns: Option<u64>,
    /// The host's job.
    pub role: Role,
    /// The interface the data takes; without one, that of the default route.
    pub interface: Option<String>,
}

/// A host's job. It decides which advice applies and how heavy a finding weighs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// A data transfer node in production: fast, fair to others, left running for months.
    #[default]
    Dtn,
    /// A benchmark: one figure, repeatable, whatever else suffers.
    Benchmark,
    /// Small messages, short tails.
    Latency,
    /// A virtual machine: the CPUs, the interrupts and the NIC belong to the host below.
    Guest,
    /// It forwards other hosts' packets.
    Router,
}

/// How much a finding weighs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing; nothing has to be done.
    Note,
    /// Costs some of the goal, or some of the time.
    Minor,
    /// The goal is out of reach under common conditions.
    Major,
    /// The goal is out of reach, or the host misbehaves.
    Critical,
}

/// Whether a recommendation may be carried out by a program.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Applicability {
    /// Takes effect at once, disturbs nothing, and can be rolled back.
    Safe,
    /// Disturbs traffic for a moment, or helps some and harms others: read before applying.
    NeedsCare,
    /// A person has to do it: firmware, boot loader, hardware, another program's configuration.
    #[default]
    DisplayOnly,
}

/// An audit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AuditDocument {
    /// `landspeed.audit/1`.
    pub schema: String,
    /// The program.
    pub landspeed: BuildInfo,
    /// Command line.
    pub command: Vec<String>,
    /// When it began, RFC 3339 UTC.
    pub started: String,
    /// What the host is to do.
    pub goal: Goal,
    /// The host's name.
    pub hostname: String,
    /// The interface that was judged, and the ports it consists of.
    pub interface: Option<String>,
    /// Ports below the interface; the interface itself where there are none.
    pub ports: Vec<String>,
    /// What should be looked at, the worst first.
    pub findings: Vec<Finding>,
    /// What is as it should be.
    pub passed: Vec<Answer>,
    /// What does not apply here, and why.
    pub not_applicable: Vec<Answer>,
    /// What is unknown, and why.
    pub unknown: Vec<Answer>,
    /// The peer's audit, when one was asked for.
    pub peer: Option<Box<AuditDocument>>,
    /// Where both ends differ in a way that matters.
    pub differences: Vec<Difference>,
    /// What to know about the audit itself.
    pub warnings: Vec<Warning>,
    /// The facts it rests on.
    pub facts: Box<Facts>,
}

/// Something that should be looked at.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// Stable code (`TCP-004`), never reused.
    pub code: String,
    /// Short name of the check (`fq-on-every-queue`).
    pub name: String,
    /// Group (`tcp`).
    pub group: String,
    /// How much it weighs.
    pub severity: Severity,
    /// What it is about.
    pub title: String,
    /// The interface, if it is about one.
    pub interface: Option<String>,
    /// What was seen.
    pub observed: String,
    /// What should be there.
    pub recommended: String,
    /// Why.
    pub why: String,
    /// What it brings, with the figure its source measured; says so where no source has one.
    pub effect: String,
    /// How to look at it by hand.
    pub by_hand: String,
    /// Whether a program may carry it out.
    pub applicability: Applicability,
    /// The source of the recommendation.
    pub source: String,
    /// Further sources.
    pub sources: Vec<String>,
    /// What `landspeed tune` would change.
    pub changes: Vec<Change>,
}

/// A check that found nothing to do, and what it says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Answer {
    /// Stable code.
    pub code: String,
    /// What it is about.
    pub title: String,
    /// The interface, if it is about one.
    pub interface: Option<String>,
    /// What was seen, or why there is no answer.
    pub text: String,
}

/// Something in which two hosts differ.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Difference {
    /// What.
    pub what: String,
    /// Here.
    pub here: String,
    /// There.
    pub there: String,
    /// Why it matters.
    pub why: String,
}
