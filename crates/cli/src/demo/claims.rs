//! The four claims, and the conditions a document must meet for each.

use landspeed_model::{
    Cause, Confidence, DemoBar, DemoChart, DemoPart, LossLocation, Metric, RunDocument, Status, SweepCell,
    SweepDocument, Verdict,
};
use landspeed_units::BitRate;
use serde::Serialize;

/// Minimum ratio of goodput with the large buffer to goodput with the small one.
pub const MIN_BUFFER_GAIN: f64 = 4.0;

/// The result of checking a claim against a document.
#[derive(Debug, Default)]
pub struct ClaimResult {
    /// The measured values, as text.
    pub measured: String,
    /// Each contradiction between document and claim; empty if the claim holds.
    pub failures: Vec<String>,
    /// The measured values as bars.
    pub chart: DemoChart,
}

impl ClaimResult {
    fn require(&mut self, holds: bool, failure: impl FnOnce() -> String) {
        if !holds {
            self.failures.push(failure());
        }
    }

    fn require_complete(&mut self, document: &RunDocument) {
        let why = document.errors.first().map_or_else(String::new, |error| format!(": {}", error.message));
        self.require(document.status == Status::Complete, || format!("the test did not complete{why}"));
    }
}

/// Checks the accounting: sent bytes = received + lost + queued, and the kernel's count of acknowledged bytes
/// agrees.
pub fn accounting(document: &RunDocument) -> ClaimResult {
    let c = &document.conservation;
    let [offered, delivered, lost, queued] = [c.offered, c.delivered, c.lost, c.queued].map(|n| n.unwrap_or(0));
    let senders = || document.streams.iter().filter_map(|s| s.sender.as_ref());
    let acked: u64 = senders().filter_map(|end| end.bytes_acked).sum();
    let unacked: u64 = senders().filter_map(|end| end.send_queue_bytes).sum();
    let mut checked = ClaimResult {
        measured: format!(
            "{} B sent = {} B received + {} B lost + {} B queued at the end; {} B acknowledged; {}",
            with_separators(offered),
            with_separators(delivered),
            with_separators(lost),
            with_separators(queued),
            with_separators(acked),
            goodput(document.summary.goodput_bps)
        ),
        chart: DemoChart {
            caption: "Bytes of the transfer".to_owned(),
            bars: vec![
                bar("sent", [part("sent", offered as f64, bytes(offered))]),
                bar(
                    "accounted for",
                    [
                        part("received", delivered as f64, bytes(delivered)),
                        part("lost", lost as f64, bytes(lost)),
                        part("queued", queued as f64, bytes(queued)),
                    ],
                ),
            ],
            limit: None,
        },
        ..ClaimResult::default()
    };
    checked.require_complete(document);
    let missing = i128::from(offered) - i128::from(delivered) - i128::from(lost) - i128::from(queued);
    checked.require(c.offered.is_some(), || "what was sent is unknown".to_owned());
    checked.require(delivered > 0, || "nothing was received".to_owned());
    checked.require(missing == 0, || format!("{missing} B unaccounted for"));
    checked.require(c.holds && c.unaccounted_bytes == Some(0), || {
        let by = c.unaccounted_bytes.map_or("unknown".to_owned(), |bytes| format!("{bytes} B"));
        format!("the document's own accounting does not balance ({by})")
    });
    checked.require(acked + unacked == offered, || {
        format!(
            "the kernel counts {} B acknowledged, {} B were sent",
            with_separators(acked),
            with_separators(offered)
        )
    });
    let read: u64 = document.streams.iter().flat_map(|s| &s.intervals).map(|i| i.bytes).sum();
    checked.require(read == delivered, || {
        format!("the intervals add up to {} B, {} B were received", with_separators(read), with_separators(delivered))
    });
    checked
}

/// Checks that the verdict names the injected fault, a slow reader. `blind` is the verdict on the same
/// measurements without the `--read-rate` parameter.
pub fn fault(document: &RunDocument, blind: &Verdict) -> ClaimResult {
    let verdict = &document.verdict;
    let mut checked = ClaimResult {
        measured: format!(
            "verdict {}, confidence {}; {} when diagnosis does not see --read-rate; {}",
            verdict.cause.name(),
            word(verdict.confidence),
            blind.cause.name(),
            goodput(document.summary.goodput_bps)
        ),
        chart: DemoChart {
            caption: "What limited the sender, % of the time".to_owned(),
            bars: vec![bar(
                "time",
                verdict.epochs.iter().filter(|epoch| epoch.share_permille >= 10).map(|epoch| {
                    let percent = f64::from(epoch.share_permille) / 10.0;
                    part(&word(epoch.state), percent, format!("{percent:.1} %"))
                }),
            )],
            limit: None,
        },
        ..ClaimResult::default()
    };
    checked.require_complete(document);
    checked.require(verdict.cause == Cause::SlowReader, || {
        format!("the verdict is {}, the fault is a slow reader", verdict.cause.name())
    });
    checked.require(verdict.confidence == Confidence::High, || {
        format!("the confidence is {}", word(verdict.confidence))
    });
    checked.require(blind.cause == Cause::SlowReader, || {
        format!("when diagnosis does not see --read-rate the verdict is {}", blind.cause.name())
    });
    checked
}

/// Checks that every datagram is received or lost, and that the kernel's socket drop counter confirms each loss.
pub fn datagrams(document: &RunDocument) -> ClaimResult {
    let Some(udp) = &document.udp else {
        let mut checked = ClaimResult::default();
        checked.require_complete(document);
        checked.require(false, || "the document has no UDP accounting".to_owned());
        return checked;
    };
    let (Some(sent), Some(delivered), Some(difference)) = (udp.sent_packets, udp.delivered_packets, udp.lost_packets)
    else {
        let mut checked = ClaimResult::default();
        checked.require_complete(document);
        checked.require(false, || "the number of lost packets is unknown".to_owned());
        return checked;
    };
    let lost = u64::try_from(difference).unwrap_or(0);
    let ends = || document.streams.iter().filter_map(|s| s.receiver.as_ref()?.udp.as_ref());
    let dropped: u64 = ends().filter_map(|end| end.socket_drops).sum();
    let mut checked = ClaimResult {
        measured: format!(
            "{} sent = {} received + {} lost; the kernel counted {} dropped at the receiver's socket",
            with_separators(sent),
            with_separators(delivered),
            with_separators(lost),
            with_separators(dropped)
        ),
        chart: DemoChart {
            caption: "Packets".to_owned(),
            bars: vec![
                bar("sent", [part("sent", sent as f64, with_separators(sent))]),
                bar(
                    "accounted for",
                    [
                        part("received", delivered as f64, with_separators(delivered)),
                        part("dropped at the receiver's socket", dropped as f64, with_separators(dropped)),
                    ],
                ),
            ],
            limit: None,
        },
        ..ClaimResult::default()
    };
    checked.require_complete(document);
    checked.require(delivered > 0, || "nothing was received".to_owned());
    checked
        .require(lost > 0, || "no packet was lost, though the receiver reads slower than packets arrive".to_owned());
    let missing = i128::from(sent) - i128::from(delivered) - i128::from(difference);
    checked.require(missing == 0 && document.conservation.holds, || format!("{missing} packets unaccounted for"));
    checked.require(dropped == lost, || {
        format!("landspeed counts {} lost, the kernel {} dropped", with_separators(lost), with_separators(dropped))
    });
    let elsewhere: Vec<String> = document
        .conservation
        .losses
        .iter()
        .filter(|loss| loss.place != LossLocation::ReceiverSocket || !loss.exact)
        .map(|loss| format!("{} lost at {}", with_separators(loss.packets), word(loss.place)))
        .collect();
    checked.require(elsewhere.is_empty(), || format!("not at the receiver's socket: {}", elsewhere.join(", ")));
    checked
}

/// Checks that the large buffer carries more than the small one, that neither exceeds the link rate, and that a
/// repeated run is identical.
pub fn buffers(sweep: &SweepDocument, link_bps: f64) -> ClaimResult {
    let label = |cell: &SweepCell| cell.levels.values().next().and_then(|v| v.as_str()).unwrap_or("?").to_owned();
    let goodput = |cell: &SweepCell| -> f64 {
        let flows = cell.runs.first().map(|run| run.flows.as_slice()).unwrap_or_default();
        flows.iter().filter_map(|flow| flow.figures.get(Metric::Goodput.field())).sum()
    };
    let rates: Vec<(String, f64)> = sweep.cells.iter().map(|cell| (label(cell), goodput(cell))).collect();
    let mut checked = ClaimResult {
        chart: DemoChart {
            caption: "Goodput (receiver) by size of the switch buffer".to_owned(),
            bars: rates
                .iter()
                .map(|(label, bps)| bar(&format!("{label} buffer"), [part("", *bps, rate(*bps))]))
                .collect(),
            limit: Some(part("link rate", link_bps, rate(link_bps))),
        },
        ..ClaimResult::default()
    };
    for cell in &sweep.cells {
        let run = cell.runs.first();
        let why =
            run.and_then(|run| run.problems.first().cloned()).unwrap_or_else(|| "it did not complete".to_owned());
        checked.require(run.is_some_and(|run| run.usable), || format!("buffer {}: {why}", label(cell)));
    }
    let [(small_label, small), (large_label, large)] = &rates[..] else {
        checked.require(false, || format!("{} cells where two were expected", rates.len()));
        return checked;
    };
    let same = sweep.digests.as_ref().is_some_and(|digests| digests.compared > 0 && digests.different.is_empty());
    let environment = sweep.environments.first();
    checked.measured = format!(
        "{} with {small_label}, {} with {large_label}: {:.1}×; the {small_label} run repeated is {}; Linux {} ({})",
        rate(*small),
        rate(*large),
        large / small.max(1.0),
        if same { "identical" } else { "different" },
        environment.and_then(|environment| environment.kernel.as_deref()).unwrap_or_default(),
        environment.and_then(|environment| environment.hosts.get("lab.kernel_build")).map_or("", String::as_str)
    );
    checked.require(*small > 0.0 && large / small >= MIN_BUFFER_GAIN, || {
        format!("the large buffer carries {:.2}× as much, less than {MIN_BUFFER_GAIN}×", large / small.max(1.0))
    });
    for (label, bps) in &rates {
        checked.require(*bps <= link_bps, || {
            format!("buffer {label}: {} over a link of {}", rate(*bps), rate(link_bps))
        });
    }
    checked.require(same, || "two runs of the same cell have different digests".to_owned());
    checked
}

fn bar(label: &str, parts: impl IntoIterator<Item = DemoPart>) -> DemoBar {
    DemoBar { label: label.to_owned(), parts: parts.into_iter().filter(|part| part.value > 0.0).collect() }
}

fn part(label: &str, value: f64, text: String) -> DemoPart {
    DemoPart { label: label.to_owned(), value, text }
}

fn rate(bps: f64) -> String {
    BitRate::from_bps(bps.max(0.0) as u64).to_string()
}

fn goodput(bps: Option<f64>) -> String {
    bps.map_or_else(|| "goodput unknown".to_owned(), |bps| format!("goodput {}", rate(bps)))
}

fn bytes(bytes: u64) -> String {
    format!("{} B", with_separators(bytes))
}

/// Formats a number with separators: `1,234,567`.
fn with_separators(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Returns a value's serialized name, such as `slow-reader`.
fn word(value: impl Serialize) -> String {
    serde_json::to_value(value).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use landspeed_flow::client::{Request, Target, not_started_document};
    use landspeed_model::{
        Direction, ErrorEntry, Interval, Parameters, PhaseName, PlacedLoss, Stream, StreamEnd, UdpEnd, UdpTotals,
    };
    use serde_json::json;

    use super::*;

    /// Returns a complete run of one stream, with a receiver that read 1000 B in one interval.
    fn run(sender: StreamEnd, receiver: StreamEnd) -> RunDocument {
        let request = Request {
            target: Target { host: "127.0.0.1".to_owned(), port: None },
            parameters: Parameters::default(),
            key: None,
            command: Vec::new(),
            data: None,
            local_port: None,
            start_ns: None,
        };
        let none = ErrorEntry { code: String::new(), message: String::new(), advice: None };
        let mut document = not_started_document(&request, none);
        document.status = Status::Complete;
        document.errors.clear();
        document.streams = vec![Stream {
            id: 0,
            direction: Direction::Upload,
            client_addr: String::new(),
            server_addr: String::new(),
            intervals: vec![Interval {
                start_ns: 0,
                end_ns: 1,
                phase: PhaseName::Steady,
                bytes: 1000,
                packets: None,
            }],
            intervals_from: "receiver".to_owned(),
            sender: Some(sender),
            receiver: Some(receiver),
        }];
        let c = &mut document.conservation;
        (c.holds, c.unaccounted_bytes, c.intervals_minus_totals_bytes) = (true, Some(0), 0);
        (c.offered, c.delivered, c.lost, c.queued) = (Some(1000), Some(1000), Some(0), Some(0));
        document
    }

    fn transfer() -> RunDocument {
        let sender = StreamEnd { bytes: 1000, bytes_acked: Some(1000), ..StreamEnd::default() };
        run(sender, StreamEnd { bytes: 1000, ..StreamEnd::default() })
    }

    fn datagram_run() -> RunDocument {
        let udp = UdpEnd { delivered_packets: 70, socket_drops: Some(30), ..UdpEnd::default() };
        let mut document = run(StreamEnd::default(), StreamEnd { udp: Some(udp), ..StreamEnd::default() });
        document.udp = Some(UdpTotals {
            sent_packets: Some(100),
            delivered_packets: Some(70),
            lost_packets: Some(30),
            ..UdpTotals::default()
        });
        let source = "SO_RXQ_OVFL".to_owned();
        document.conservation.losses =
            vec![PlacedLoss { place: LossLocation::ReceiverSocket, packets: 30, exact: true, source }];
        document
    }

    fn slow_reader() -> RunDocument {
        let mut document = transfer();
        (document.verdict.cause, document.verdict.confidence) = (Cause::SlowReader, Confidence::High);
        document
    }

    fn sweep() -> SweepDocument {
        let cell = |buffer: &str, bps: f64| {
            json!({
                "id": "", "levels": { "buffer": buffer },
                "runs": [{
                    "block": 0, "place": 0, "seed": 1, "usable": true, "document": "", "started": "", "wall_s": 1.0,
                    "worker": "", "flows": [{ "name": "tcp", "figures": { "goodput_bps": bps } }],
                }],
            })
        };
        let sweep = json!({
            "schema": landspeed_model::SWEEP_SCHEMA, "landspeed": { "version": "", "server_version": null },
            "started": "", "command": [], "name": "", "plan": "", "id": "", "factors": [],
            "design": { "kind": "full", "blocks": 1, "seed": 1 },
            "engine": { "name": "local", "jobs": 1, "workers": [], "requeued": 0 },
            "status": "complete", "ended_because": "", "errors": [], "warnings": [], "metrics": [],
            "cells": [cell("50KB", 1e8), cell("5MB", 9e8)],
            "digests": { "compared": 1 }, "wall_s": 1.0, "overhead_s": 0.0,
        });
        serde_json::from_value(sweep).expect("a sweep")
    }

    /// Applies `change` to a document that satisfies the claim, and returns the failures.
    #[track_caller]
    fn failure<D>(mut document: D, change: impl Fn(&mut D), check: impl Fn(&D) -> ClaimResult) -> String {
        let sound = check(&document).failures;
        assert!(sound.is_empty(), "before the change: {sound:?}");
        change(&mut document);
        check(&document).failures.join("; ")
    }

    #[test]
    fn unaccounted_bytes_fail_the_accounting_claim() {
        let missing = failure(transfer(), |d| d.conservation.offered = Some(1001), accounting);
        assert!(missing.starts_with("1 B unaccounted for"), "{missing}");
        let surplus = failure(transfer(), |d| d.conservation.queued = Some(1), accounting);
        assert_eq!(surplus, "-1 B unaccounted for");
        let intervals = failure(transfer(), |d| d.streams[0].intervals[0].bytes = 999, accounting);
        assert_eq!(intervals, "the intervals add up to 999 B, 1,000 B were received");
        let kernel =
            failure(transfer(), |d| d.streams[0].sender.as_mut().expect("there").bytes_acked = Some(1), accounting);
        assert_eq!(kernel, "the kernel counts 1 B acknowledged, 1,000 B were sent");
        let partial = failure(transfer(), |d| d.status = Status::Partial, accounting);
        assert_eq!(partial, "the test did not complete");
    }

    #[test]
    fn wrong_cause_or_lower_confidence_fails_the_fault_claim() {
        let named = |d: &RunDocument| fault(d, &slow_reader().verdict);
        let cause = failure(slow_reader(), |d| d.verdict.cause = Cause::ReceiverCpu, named);
        assert_eq!(cause, "the verdict is receiver-cpu, the fault is a slow reader");
        let unsure = failure(slow_reader(), |d| d.verdict.confidence = Confidence::Medium, named);
        assert_eq!(unsure, "the confidence is medium");
        let checked = fault(&slow_reader(), &Verdict { cause: Cause::Undetermined, ..slow_reader().verdict });
        assert_eq!(checked.failures, ["when diagnosis does not see --read-rate the verdict is undetermined"]);
    }

    #[test]
    fn unaccounted_packets_fail_the_udp_claim() {
        let missing = failure(datagram_run(), |d| d.udp.as_mut().expect("there").sent_packets = Some(101), datagrams);
        assert_eq!(missing, "1 packets unaccounted for");
        let kernel = failure(
            datagram_run(),
            |d| d.streams[0].receiver.as_mut().expect("there").udp.as_mut().expect("there").socket_drops = Some(29),
            datagrams,
        );
        assert_eq!(kernel, "landspeed counts 30 lost, the kernel 29 dropped");
        let place = failure(datagram_run(), |d| d.conservation.losses[0].place = LossLocation::Network, datagrams);
        assert_eq!(place, "not at the receiver's socket: 30 lost at network");
        let none = failure(datagram_run(), |d| d.udp = None, datagrams);
        assert_eq!(none, "the document has no UDP accounting");
    }

    #[test]
    fn wrong_goodput_or_digest_fails_the_buffer_scene() {
        let check = |sweep: &SweepDocument| buffers(sweep, 1e9);
        let set = |sweep: &mut SweepDocument, bps: f64| {
            sweep.cells[1].runs[0].flows[0].figures.insert("goodput_bps".to_owned(), bps);
        };
        let little = failure(sweep(), |sweep| set(sweep, 2e8), check);
        assert_eq!(little, "the large buffer carries 2.00× as much, less than 4×");
        let much = failure(sweep(), |sweep| set(sweep, 1.1e9), check);
        assert!(much.starts_with("buffer 5MB: 1.10 Gb/s over a link of"), "{much}");
        let other = failure(sweep(), |sweep| sweep.digests = None, check);
        assert_eq!(other, "two runs of the same cell have different digests");
        let invalid = failure(sweep(), |sweep| sweep.cells[0].runs[0].usable = false, check);
        assert_eq!(invalid, "buffer 50KB: it did not complete");
    }

    #[test]
    fn long_numbers_have_separators() {
        assert_eq!([0, 999, 1000, 1_234_567].map(with_separators), ["0", "999", "1,000", "1,234,567"]);
    }
}
