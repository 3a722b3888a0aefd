//! Checks a verdict against the counters of its document (rule 10 of honest measurement).

use landspeed_model::{
    CONTRADICTION, Cause, Confidence, LabDocument, PhaseName, RunDocument, Stream, TcpInfo, Verdict,
};

/// Begins the reason in the summary of a withdrawn verdict.
pub const WITHDRAWN: &str = "the document contradicts";

/// Returns the verdict, or an undetermined one with the reason in its summary if the document contradicts
/// it or itself.
pub fn withdraw_contradicted(verdict: Verdict, run: &RunDocument, lab: Option<&LabDocument>) -> Verdict {
    let found = contradictions(run, lab, &verdict);
    let (summary, next_step) = if contradicts_itself(run) {
        ("its figures contradict each other".to_owned(), "Read the warnings, and run again.")
    } else if found.is_empty() {
        return verdict;
    } else {
        let found = found.join("; ");
        (
            format!("{WITHDRAWN} the verdict its readings suggest ({found})"),
            "Report this as a defect of landspeed, with the document that `--json` writes.",
        )
    };
    Verdict {
        cause: Cause::Undetermined,
        confidence: Confidence::Low,
        summary: format!("The cause is undetermined: {summary}."),
        place: None,
        evidence: Vec::new(),
        ruled_out: Vec::new(),
        next_step: next_step.to_owned(),
        ..verdict
    }
}

/// Whether the run was found to contradict itself when its document was made.
pub(crate) fn contradicts_itself(run: &RunDocument) -> bool {
    run.warnings.iter().any(|warning| warning.code == CONTRADICTION)
}

/// Lists every statement of `verdict` that the document of its run (and lab) contradicts.
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
    let shares: u32 = verdict.epochs.iter().map(|epoch| epoch.share_permille).sum();
    never(!verdict.epochs.is_empty() && shares != 1000, format!("the epochs' shares add up to {shares}"));
    let named = verdict.cause != Cause::Undetermined;
    never(named && verdict.evidence.is_empty(), "a cause without evidence".to_owned());

    let last = |of: &dyn Fn(&TcpInfo) -> u64| -> u64 {
        let ends = run.streams.iter().filter_map(|stream| stream.sender.as_ref());
        ends.filter_map(|end| end.samples.iter().rev().find_map(|s| s.tcp.as_deref()))
            .map(of)
            .fold(0, u64::saturating_add)
    };
    let retransmits = last(&|tcp| u64::from(tcp.total_retrans));
    let marks = last(&|tcp| u64::from(tcp.delivered_ce.unwrap_or(0)));
    // A receiver sees only that segments are missing, not that they are retransmitted.
    let received = run.streams.iter().filter(|stream| stream.sender.is_none()).filter_map(|s| s.receiver.as_ref());
    let disordered = received
        .filter_map(|end| end.samples.iter().rev().find_map(|sample| sample.tcp.as_deref()?.rcv_ooopack))
        .map(u64::from)
        .fold(0, u64::saturating_add);
    let datagrams = |of: &dyn Fn(&Stream) -> Option<u64>| total(run.streams.iter().filter_map(of));
    let sent = datagrams(&|stream| Some(stream.sender.as_ref()?.udp.as_ref()?.sent_packets));
    let delivered = datagrams(&|stream| Some(stream.receiver.as_ref()?.udp.as_ref()?.delivered_packets));
    let placed = run.udp.as_ref().map_or(0, |udp| {
        let lost = udp.lost_packets.map_or(0, i64::unsigned_abs);
        lost.saturating_add(udp.refused_packets.unwrap_or(0))
    });
    let lost = placed.max(sent.saturating_sub(delivered));
    let needs_loss = matches!(
        verdict.cause,
        Cause::NetworkLoss | Cause::NetworkCongestion | Cause::ShallowBuffer | Cause::Policer
    );
    let nothing = retransmits == 0 && marks == 0 && lost == 0 && disordered == 0;
    never(needs_loss && nothing, "loss is named and nothing was lost".to_owned());
    let bbr =
        run.streams.iter().filter_map(|stream| stream.sender.as_ref()?.congestion.as_deref()).any(|cc| cc == "bbr");
    never(bbr && verdict.next_step.contains("--congestion bbr"), "BBR is advised to a BBR flow".to_owned());

    let Some(lab) = lab else { return found };
    let busiest = lab.links.iter().map(|link| link.utilisation).fold(0.0, f64::max);
    // A core may be full as well.
    let of_cpu = matches!(verdict.cause, Cause::SenderCpu | Cause::ReceiverCpu);
    let full = verdict.cause == Cause::LinkRate || (!of_cpu && verdict.summary.contains("is full"));
    // A link that was full in the steady phase was used for at least that share of the whole run.
    let steady = run.phases.iter().filter(|phase| phase.name == PhaseName::Steady);
    let steady_ns = steady.map(|phase| phase.end_ns.saturating_sub(phase.start_ns)).max().unwrap_or(0);
    let least = 0.5 * (steady_ns as f64 / (lab.virtual_s * 1e9).max(1.0)).min(1.0);
    never(full && busiest < least, format!("a link is called full, and none was used more than {busiest:.2}"));
    let dropped = total(lab.queues.iter().map(|queue| queue.drops));
    let queue = matches!(verdict.cause, Cause::ShallowBuffer | Cause::Policer);
    never(queue && dropped == 0, "a queue overflows and none dropped anything".to_owned());
    let on_links = total(lab.links.iter().map(|link| link.lost));
    never(verdict.cause == Cause::NetworkLoss && on_links == 0, "links lose packets and none lost any".to_owned());
    let by_hosts = total(lab.host_drops.iter().map(|drops| drops.dropped));
    let host = verdict.cause == Cause::ReceiverHostDrops;
    never(host && by_hosts == 0, "the receiving host drops packets and dropped none".to_owned());
    found
}

/// Saturating sum: counters of a document may have any value.
fn total(counters: impl Iterator<Item = u64>) -> u64 {
    counters.fold(0, u64::saturating_add)
}
