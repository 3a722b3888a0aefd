//! Checks of qdiscs and pacing, one per file.

use landspeed_model::{Applicability, InterfaceFacts, KernelOption, QdiscFacts, Role, Severity};
use landspeed_quote::shell_word;

use crate::advice::tc_rate;
use crate::check::{Check, Group, Problem};
use crate::view::View;

mod default_qdisc;
mod fq_on_every_queue;
mod no_queue;
mod one_rate_on_every_queue;
mod one_root_for_many_queues;
mod pacing;
mod qdisc_drops;
mod rate_below_goal;

const GROUP: Group = Group::Qdisc;

/// Checks of this group, by code.
pub(crate) static CHECKS: &[&Check] = &[
    &fq_on_every_queue::CHECK,
    &no_queue::CHECK,
    &one_root_for_many_queues::CHECK,
    &default_qdisc::CHECK,
    &pacing::CHECK,
    &rate_below_goal::CHECK,
    &qdisc_drops::CHECK,
    &one_rate_on_every_queue::CHECK,
];

/// Root qdiscs that only pass packets to the qdisc of a transmit queue.
const PER_QUEUE_ROOTS: [&str; 3] = ["mq", "mqprio", "taprio"];

/// Root and leaf qdiscs of an interface.
pub(crate) struct Queueing<'a> {
    /// Kind of the root.
    pub(crate) root: &'a str,
    /// Qdiscs in which packets wait: the leaves of a multi-queue root, else the root.
    pub(crate) leaves: Vec<&'a QdiscFacts>,
}

impl<'a> Queueing<'a> {
    /// Sorts an interface's qdiscs; `None` without a root.
    pub(crate) fn of(qdiscs: &'a [QdiscFacts]) -> Option<Self> {
        let root = qdiscs.iter().find(|qdisc| qdisc.parent.is_none())?;
        if !PER_QUEUE_ROOTS.contains(&root.kind.as_str()) {
            return Some(Self { root: &root.kind, leaves: vec![root] });
        }
        let below = |qdisc: &&QdiscFacts| {
            let parent = qdisc.parent.as_deref().and_then(|parent| parent.split_once(':'));
            // A root that the kernel attached has handle 0:, which the parents of its leaves omit (`:1`).
            parent.is_some_and(|(major, _)| {
                format!("{major}:") == root.handle || (major.is_empty() && root.handle == "0:")
            })
        };
        Some(Self { root: &root.kind, leaves: qdiscs.iter().filter(below).collect() })
    }

    /// Whether every queue has its own qdisc.
    pub(crate) fn per_queue(&self) -> bool {
        PER_QUEUE_ROOTS.contains(&self.root)
    }

    /// Whether all qdiscs in which packets wait are `fq`.
    pub(crate) fn all_fq(&self) -> bool {
        !self.leaves.is_empty() && self.leaves.iter().all(|leaf| leaf.kind == "fq")
    }

    /// Formats the kinds of the leaves with their counts, the most frequent first: `15 fq, 1 pfifo_fast`.
    pub(crate) fn kinds(&self) -> String {
        let mut kinds: Vec<(&str, usize)> = Vec::new();
        for leaf in &self.leaves {
            match kinds.iter_mut().find(|(kind, _)| *kind == leaf.kind) {
                Some((_, count)) => *count += 1,
                None => kinds.push((&leaf.kind, 1)),
            }
        }
        kinds.sort_by_key(|&(_, count)| std::cmp::Reverse(count));
        let texts: Vec<_> = kinds.into_iter().map(|(kind, count)| format!("{count} {kind}")).collect();
        texts.join(", ")
    }

    /// Returns the distinct rate limits per flow, lowest first; `None` stands for no limit.
    pub(crate) fn rates(&self) -> Vec<Option<u64>> {
        let mut rates: Vec<_> = self.leaves.iter().map(|leaf| leaf.max_rate_bps).collect();
        rates.sort_unstable();
        rates.dedup();
        rates
    }
}

/// Maximum number of streams that transfer programs usually open; the sources' experiments use four.
const STREAMS: u64 = 8;

/// Maximum `maxrate` of `fq`, bits/s: its netlink attribute has 32 bits of bytes/s, of which the largest value
/// stands for no limit (Linux net/sched/sch_fq.c, TCA_FQ_FLOW_MAX_RATE).
const MAX_RATE_BPS: u64 = (u32::MAX as u64 - 1) * 8;

/// Returns the recommended qdisc of every queue: `fq`, with the highest current rate unless it makes the goal
/// unreachable. All checks of these queues use it, so that their changes agree.
fn desired(view: &View<'_>, queueing: &Queueing<'_>) -> String {
    let reaches = |rate: &u64| {
        *rate <= MAX_RATE_BPS
            && view.rate_bps().known().is_none_or(|goal| goal.div_ceil((*rate).max(1)) <= streams(view))
    };
    match queueing.rates().into_iter().flatten().max().filter(reaches) {
        Some(rate) => format!("fq maxrate {}", tc_rate(rate)),
        None => "fq".into(),
    }
}

/// Returns the number of flows that may share the goal: one for a benchmark.
fn streams(view: &View<'_>) -> u64 {
    if view.role() == Role::Benchmark { 1 } else { STREAMS }
}

/// Returns whether this kernel has `fq`; `None` if that is unknown. A qdisc in use, the default qdisc or a
/// loaded module prove it; only a configuration with `is not set` disproves it.
fn has_fq(view: &View<'_>) -> Option<bool> {
    let facts = view.facts;
    let attached = |interface: &InterfaceFacts| {
        interface.qdiscs.known().is_some_and(|qdiscs| qdiscs.iter().any(|qdisc| qdisc.kind == "fq"))
    };
    let default = view.sysctl("net.core.default_qdisc").known().is_some_and(|name| *name == "fq");
    let loaded = facts.modules.known().is_some_and(|modules| modules.contains_key("sch_fq"));
    match facts.kernel.option("CONFIG_NET_SCH_FQ") {
        _ if default || loaded || facts.interfaces.iter().any(attached) => Some(true),
        KernelOption::Built => Some(true),
        KernelOption::NotSet => Some(false),
        KernelOption::Unknown => None,
    }
}

/// Returns the problem unchanged, or without its changes on a kernel that was built without `fq`.
fn if_fq_exists(view: &View<'_>, problem: Problem) -> Problem {
    if has_fq(view) != Some(false) {
        return problem;
    }
    Problem {
        severity: Some(problem.severity.unwrap_or(Severity::Minor).min(Severity::Minor)),
        recommended: format!(
            "{}; this kernel was built without fq (CONFIG_NET_SCH_FQ is not set)",
            problem.recommended
        ),
        applicability: Applicability::DisplayOnly,
        changes: Vec::new(),
        ..problem
    }
}

/// Returns `tc -s qdisc show dev eth0` for this port.
fn by_hand(port: &InterfaceFacts) -> String {
    format!("tc -s qdisc show dev {}", shell_word(&port.name))
}

/// Expands to the qdiscs of the port; returns from the check if they are absent or unknown.
macro_rules! queueing {
    ($port:expr) => {
        match super::Queueing::of(known!(&$port.qdiscs)) {
            Some(queueing) => queueing,
            None => return $crate::check::Outcome::unknown("the kernel named no root qdisc"),
        }
    };
}
use queueing;

#[cfg(test)]
mod tests {
    use super::*;

    fn qdisc(kind: &str, handle: &str, parent: Option<&str>) -> QdiscFacts {
        QdiscFacts {
            kind: kind.into(),
            handle: handle.into(),
            parent: parent.map(Into::into),
            ..QdiscFacts::default()
        }
    }

    #[test]
    fn leaves_are_found_below_an_automatic_root() {
        let qdiscs = [qdisc("mq", "0:", None), qdisc("fq", "0:", Some(":1")), qdisc("pfifo_fast", "0:", Some(":2"))];
        let queueing = Queueing::of(&qdiscs).expect("a root");
        assert_eq!(queueing.kinds(), "1 fq, 1 pfifo_fast");
        assert!(queueing.per_queue() && !queueing.all_fq());
    }

    #[test]
    fn qdiscs_outside_the_tree_are_not_leaves() {
        let qdiscs = [
            qdisc("mq", "8001:", None),
            qdisc("fq", "8002:", Some("8001:1")),
            qdisc("ingress", "ffff:", Some("ffff:fff1")),
        ];
        assert!(Queueing::of(&qdiscs).expect("a root").all_fq());
        assert!(Queueing::of(&[]).is_none());
    }
}
