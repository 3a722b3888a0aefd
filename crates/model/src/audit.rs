//! `landspeed.audit/1`: the audit of a host's settings.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{BuildInfo, Change, Facts, Warning};

/// Purpose of the host, against which its settings are checked.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Goal {
    /// Rate the host should reach, bits/s; `None`: the speed of the interface.
    pub rate_bps: Option<u64>,
    /// Longest RTT at which the host should reach the rate, nanoseconds.
    pub rtt_ns: Option<u64>,
    /// Role of the host.
    pub role: Role,
    /// Interface the data uses; `None`: the interface of the default route.
    pub interface: Option<String>,
}

/// Role of a host. It decides which advice applies and how severe a finding is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Data transfer node in production: fast, fair to other traffic, running for months.
    #[default]
    Dtn,
    /// Benchmark host: repeatable maximum figures, other uses ignored.
    Benchmark,
    /// Latency: small messages, low tail latency.
    Latency,
    /// Virtual machine: CPUs, interrupts and NIC are controlled by the host below.
    Guest,
    /// Router: forwards packets of other hosts.
    Router,
}

/// Severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// For information; no action needed.
    Note,
    /// Costs part of the rate, or matters some of the time.
    Minor,
    /// The goal cannot be reached under common conditions.
    Major,
    /// The goal cannot be reached, or the host misbehaves.
    Critical,
}

/// Whether a program may apply a recommendation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Applicability {
    /// Takes effect immediately, does not disturb traffic, and can be rolled back.
    Safe,
    /// Disturbs traffic briefly, or helps some traffic at the expense of other: read before applying.
    NeedsCare,
    /// Must be done by a person: firmware, boot loader, hardware, configuration of another program.
    #[default]
    DisplayOnly,
}

/// Audit of one host: findings and the facts they are based on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AuditDocument {
    /// Always `landspeed.audit/1`.
    pub schema: String,
    /// Program that wrote the document.
    pub landspeed: BuildInfo,
    /// Command line, one argument per element.
    pub command: Vec<String>,
    /// Start, RFC 3339 UTC.
    pub started: String,
    /// Goal the host was checked against.
    pub goal: Goal,
    /// Host name.
    pub hostname: String,
    /// The audited interface; `None` if none was given and the host has no default route.
    pub interface: Option<String>,
    /// Ports below the interface (bond, bridge or VLAN); the interface itself if there are none.
    pub ports: Vec<String>,
    /// Findings, most severe first.
    pub findings: Vec<Finding>,
    /// Checks that passed.
    pub passed: Vec<Answer>,
    /// Checks that do not apply to this host, with the reason.
    pub not_applicable: Vec<Answer>,
    /// Checks without a result because a fact is unknown, with the reason.
    pub unknown: Vec<Answer>,
    /// Audit of the peer; `None` if it was not requested.
    pub peer: Option<Box<AuditDocument>>,
    /// Differences between the two hosts that matter to a transfer.
    pub differences: Vec<Difference>,
    /// Conditions that limit the audit itself.
    pub warnings: Vec<Warning>,
    /// Facts of the host that the checks used.
    pub facts: Box<Facts>,
}

/// A check that found a problem.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// Stable code (`TCP-004`), never reused.
    pub code: String,
    /// Short name of the check (`fq-on-every-queue`).
    pub name: String,
    /// Group of the check (`tcp`).
    pub group: String,
    /// Severity on this host.
    pub severity: Severity,
    /// Title of the check (`Steal time`).
    pub title: String,
    /// Interface the finding is about; `None` if it is about the host.
    pub interface: Option<String>,
    /// Observed state.
    pub observed: String,
    /// Recommended state.
    pub recommended: String,
    /// Reason to change the observed state.
    pub why: String,
    /// Measured effect of the change, with its source; a standard sentence if no source measured one.
    pub effect: String,
    /// Command or procedure to check the state by hand.
    pub by_hand: String,
    /// Whether a program may apply the recommendation.
    pub applicability: Applicability,
    /// Primary source of the recommendation.
    pub source: String,
    /// Further sources of the recommendation.
    pub sources: Vec<String>,
    /// Changes that `landspeed tune` would make; empty if none.
    pub changes: Vec<Change>,
}

/// Result of a check without a finding.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Answer {
    /// Stable code (`TCP-004`).
    pub code: String,
    /// Title of the check.
    pub title: String,
    /// Interface the check is about; `None` if it is about the host.
    pub interface: Option<String>,
    /// Observed state, or the reason the check does not apply or has no result.
    pub text: String,
}

/// Difference between the two audited hosts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Difference {
    /// The setting or fact that differs.
    pub what: String,
    /// Value on the local host.
    pub here: String,
    /// Value on the peer.
    pub there: String,
    /// Effect of the difference on a transfer.
    pub why: String,
}
