//! A verdict never contradicts the rest of its document.

use landspeed_diagnose::{diagnose, diagnose_lab};
use landspeed_model::{Cause, Direction, LabDocument, RunDocument, Verdict};
use proptest::prelude::*;

use super::lab::{KNOWN, as_the_sender, as_two_hosts, fixture};

/// Everything in `verdict` that the document of its run (and lab) contradicts.
pub fn contradictions(run: &RunDocument, lab: Option<&LabDocument>, verdict: &Verdict) -> Vec<String> {
    let mut found = Vec::new();
    let mut never = |wrong: bool, what: String| {
        if wrong {
            found.push(what);
        }
    };
    for reading in &verdict.evidence {
        never(!reading.met, format!("evidence that was not met: {} {}", reading.metric, reading.value));
        never(!reading.value.is_finite(), format!("evidence that is not a number: {}", reading.metric));
    }
    for reading in &verdict.ruled_out {
        never(reading.met, format!("a cause is ruled out by a reading that was met: {}", reading.metric));
        never(reading.about == verdict.cause, format!("the cause that is named is ruled out: {}", reading.metric));
    }
    let total: u32 = verdict.epochs.iter().map(|epoch| epoch.share_permille).sum();
    never(!verdict.epochs.is_empty() && total != 1000, format!("the epochs' shares add up to {total}"));
    let named = verdict.cause != Cause::Undetermined;
    never(named && verdict.evidence.is_empty(), "a cause without evidence".to_owned());

    let last = |of: &dyn Fn(&landspeed_model::TcpInfo) -> u64| -> u64 {
        let ends = run.streams.iter().filter_map(|stream| stream.sender.as_ref());
        ends.filter_map(|end| end.samples.iter().rev().find_map(|s| s.tcp.as_deref())).map(of).sum()
    };
    let retransmits = last(&|tcp| u64::from(tcp.total_retrans));
    let marks = last(&|tcp| u64::from(tcp.delivered_ce.unwrap_or(0)));
    let lost = run.udp.as_ref().map_or(0, |udp| udp.lost_packets.unsigned_abs() + udp.refused_packets);
    let needs_loss = matches!(
        verdict.cause,
        Cause::NetworkLoss | Cause::NetworkCongestion | Cause::ShallowBuffer | Cause::Policer
    );
    never(needs_loss && retransmits + marks + lost == 0, "loss is named and nothing was lost".to_owned());
    let bbr =
        run.streams.iter().filter_map(|stream| stream.sender.as_ref()?.congestion.as_deref()).any(|cc| cc == "bbr");
    never(bbr && verdict.next_step.contains("--congestion bbr"), "BBR is advised to a BBR flow".to_owned());

    let Some(lab) = lab else { return found };
    let busiest = lab.links.iter().map(|link| link.utilisation).fold(0.0, f64::max);
    let full = verdict.cause == Cause::LinkRate || verdict.summary.contains("is full");
    // Over the whole run, with start and end in it.
    never(full && busiest < 0.5, format!("a link is called full, and none was used more than {busiest:.2}"));
    let dropped: u64 = lab.queues.iter().map(|queue| queue.drops).sum();
    let queue = matches!(verdict.cause, Cause::ShallowBuffer | Cause::Policer);
    never(queue && dropped == 0, "a queue overflows and none dropped anything".to_owned());
    let on_links: u64 = lab.links.iter().map(|link| link.lost).sum();
    never(verdict.cause == Cause::NetworkLoss && on_links == 0, "links lose packets and none lost any".to_owned());
    let by_hosts: u64 = lab.host_drops.iter().map(|drops| drops.dropped).sum();
    let host = verdict.cause == Cause::ReceiverHostDrops;
    never(host && by_hosts == 0, "the receiving host drops packets and dropped none".to_owned());
    found
}

/// A change to a document that keeps it well-formed and makes its parts disagree.
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

/// `counter` at sample `at` of `of`, growing evenly to `end`.
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
        // The totals of a changed document need not agree with its series: what is checked is the run's side.
        let run = lab.flows[0].run.as_ref().expect("a run");
        prop_assert_eq!(contradictions(run, None, &verdict), Vec::<String>::new(), "{:#?}", verdict);
        for run in [as_two_hosts(&lab), as_the_sender(&lab)] {
            let verdict = diagnose(&run, Direction::Upload);
            prop_assert_eq!(contradictions(&run, None, &verdict), Vec::<String>::new(), "{:#?}", verdict);
        }
    }
}
