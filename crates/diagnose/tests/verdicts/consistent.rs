//! Verdicts do not contradict the rest of their documents.

use landspeed_diagnose::{WITHDRAWN, contradictions, diagnose, diagnose_lab};
use landspeed_model::{Direction, LabDocument, Verdict};
use proptest::prelude::*;

use super::lab::{KNOWN, as_sender_view, as_two_hosts, fixture};

/// A change that leaves a document well-formed but inconsistent.
#[derive(Debug, Clone)]
enum Change {
    Retransmits(u32),
    NeverArrived(u32),
    ReceiveWindow(f64),
    Rtt(u32),
    QueueDrops(u64),
    LinkLost(u64),
    HostDrops(u64),
    Reordering(u32),
    Bytes(f64),
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        prop_oneof![Just(0), 1_u32..100_000].prop_map(Change::Retransmits),
        prop_oneof![Just(0), 1_u32..100_000].prop_map(Change::NeverArrived),
        (0.0..1.0).prop_map(Change::ReceiveWindow),
        (1_u32..1_000_000).prop_map(Change::Rtt),
        prop_oneof![Just(0), 1_u64..100_000].prop_map(Change::QueueDrops),
        prop_oneof![Just(0), 1_u64..100_000].prop_map(Change::LinkLost),
        prop_oneof![Just(0), 1_u64..100_000].prop_map(Change::HostDrops),
        prop_oneof![Just(0), 1_u32..100_000].prop_map(Change::Reordering),
        (0.01..3.0).prop_map(Change::Bytes),
    ]
}

/// Value of a counter at sample `at` of `of`, growing evenly to `end`.
fn grown(end: u32, at: usize, of: usize) -> u32 {
    (u64::from(end) * at as u64 / of.max(1) as u64) as u32
}

fn apply(lab: &mut LabDocument, change: &Change) {
    let run = lab.flows[0].run.as_mut().expect("a run");
    for stream in &mut run.streams {
        let sender = stream.sender.as_mut().expect("a sender");
        let count = sender.samples.len().saturating_sub(1);
        for (at, sample) in sender.samples.iter_mut().enumerate() {
            let t_us = sample.t_ns / 1000;
            let Some(tcp) = sample.tcp.as_deref_mut() else { continue };
            match *change {
                Change::Retransmits(end) => tcp.total_retrans = grown(end, at, count),
                Change::ReceiveWindow(share) => tcp.rwnd_limited_us = Some((t_us as f64 * share) as u64),
                Change::Rtt(us) => tcp.rtt_us = us,
                Change::Reordering(end) => tcp.reord_seen = Some(grown(end, at, count)),
                _ => {}
            }
        }
        if let Change::NeverArrived(lost) = *change
            && let Some(sent) = sender.samples.iter().rev().find_map(|s| s.tcp.as_deref()?.data_segs_out)
            && let Some(receiver) = &mut stream.receiver
            && let Some(tcp) = receiver.samples.iter_mut().rev().find_map(|s| s.tcp.as_deref_mut())
        {
            tcp.data_segs_in = Some(sent.saturating_sub(lost));
        }
    }
    match *change {
        Change::QueueDrops(drops) => {
            for queue in &mut lab.queues {
                queue.drops = drops;
                let points = queue.series.drops.len().max(1) as u64;
                queue.series.drops.iter_mut().for_each(|point| *point = drops / points);
            }
        }
        Change::LinkLost(lost) => lab.links.iter_mut().for_each(|link| link.lost = lost),
        Change::HostDrops(dropped) => lab.host_drops.iter_mut().for_each(|drops| drops.dropped = dropped),
        Change::Bytes(factor) => {
            for queue in &mut lab.queues {
                queue.series.bytes.iter_mut().for_each(|bytes| *bytes = (*bytes as f64 * factor) as u64);
            }
        }
        _ => {}
    }
}

/// Objections to a verdict: statements its document contradicts, or that it was withdrawn.
fn contradictions_found(verdict: &Verdict, mut found: Vec<String>) -> Vec<String> {
    if verdict.summary.contains(WITHDRAWN) {
        found.push(verdict.summary.clone());
    }
    found
}

#[test]
fn no_recorded_lab_run_has_its_verdict_withdrawn() {
    for (name, ..) in KNOWN {
        let lab = fixture(name);
        for flow in &lab.flows {
            let Some(run) = &flow.run else { continue };
            for &direction in run.requested.direction.parts() {
                let verdict = diagnose_lab(&lab, flow, direction).expect("a run");
                assert_eq!(
                    contradictions_found(&verdict, contradictions(run, Some(&lab), &verdict)),
                    Vec::<String>::new(),
                    "{name}"
                );
            }
        }
    }
}

#[test]
fn a_verdict_that_its_document_contradicts_is_withdrawn() {
    // The document shows no drops by the receiving host, so a verdict that names them is withdrawn.
    let mut lab = fixture(KNOWN[0].0);
    let flow = lab.flows[0].clone();
    let verdict = diagnose_lab(&lab, &flow, Direction::Upload).expect("a run");
    let run = flow.run.as_ref().expect("a run");
    let doctored = Verdict { cause: landspeed_model::Cause::ReceiverHostDrops, ..verdict };
    lab.host_drops.iter_mut().for_each(|drops| drops.dropped = 0);
    let found = contradictions(run, Some(&lab), &doctored);
    assert!(found.iter().any(|what| what.contains("receiving host")), "{found:?}");
    let withdrawn = landspeed_diagnose::withdraw_contradicted(doctored, run, Some(&lab));
    assert_eq!(withdrawn.cause, landspeed_model::Cause::Undetermined);
    assert!(withdrawn.summary.contains(WITHDRAWN), "{}", withdrawn.summary);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]

    #[test]
    fn no_verdict_contradicts_its_document(
        which in 0..KNOWN.len(), changes in proptest::collection::vec(change(), 0..5),
    ) {
        let mut lab = fixture(KNOWN[which].0);
        for change in &changes {
            apply(&mut lab, change);
        }
        let verdict = diagnose_lab(&lab, &lab.flows[0], Direction::Upload).expect("a run");
        // The totals of a changed lab document need not agree with its series: only the run is checked.
        let run = lab.flows[0].run.as_ref().expect("a run");
        prop_assert_eq!(contradictions(run, None, &verdict), Vec::<String>::new(), "{:#?}", verdict);
        for run in [as_two_hosts(&lab), as_sender_view(&lab)] {
            let verdict = diagnose(&run, Direction::Upload);
            prop_assert_eq!(contradictions_found(&verdict, contradictions(&run, None, &verdict)), Vec::<String>::new(), "{:#?}", verdict);
        }
    }
}
