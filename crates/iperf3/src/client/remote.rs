//! The server's side of a document, as far as iperf3 reports it.

use landspeed_flow::assemble::{self, CollectedRun};
use landspeed_flow::control::printable;
use landspeed_flow::end::{EndReport, Job, Side, StreamReport};
use landspeed_flow::layout::StreamSpec;
use landspeed_model::{Direction, Iperf3End, Parameters, Protocol, RunDocument, StreamEnd, UdpEnd};
use serde_json::Value;

use crate::dialect::MAX_BLOCK;
use crate::identity;
use crate::results::{Results, StreamResult};

/// Parts that a landspeed server would have reported.
fn not_visible(p: &Parameters) -> Vec<String> {
    let mut list = vec![
        "the server's host: CPU, interface, drops, settings".to_owned(),
        "the offset of the two clocks".to_owned(),
    ];
    if p.direction != Direction::Download {
        list.push("the receiver over time: its reads, queue and window; iperf3 reports its total".to_owned());
    }
    if p.direction != Direction::Upload {
        list.push(if p.protocol == Protocol::Tcp {
            "the sender's tcp_info (window, RTT, limits); iperf3 reports its bytes and retransmits".to_owned()
        } else {
            "scheduled departures, and packets refused by the sender's host".to_owned()
        });
    }
    if p.protocol == Protocol::Udp && p.direction != Direction::Download {
        list.push(
            "duplicates, reordering and the place of losses; iperf3 reports the number of missing datagrams"
                .to_owned(),
        );
    }
    list
}

/// Server information before the server has reported anything.
pub fn unknown(p: &Parameters) -> Iperf3End {
    Iperf3End { results: Value::Null, output: None, not_visible: not_visible(p) }
}

/// Builds the document of a run, with notes on how iperf3's totals affect the accounting.
pub fn document(found: CollectedRun, remote: Iperf3End) -> RunDocument {
    let has_totals = found.server.is_some();
    let mut document = assemble::document(found);
    document.iperf3 = Some(remote);
    if has_totals {
        add_accounting(&mut document);
    }
    document
}

/// Adds notes on differences that result from how iperf3 counts.
fn add_accounting(document: &mut RunDocument) {
    let parameters = document.effective.as_ref().unwrap_or(&document.requested);
    let accounting = &mut document.conservation;
    accounting.notes.push("the server's figures are from iperf3's results".to_owned());
    if parameters.protocol != Protocol::Tcp {
        return;
    }
    // A server that ends its sending threads during a write (3.16 and later) does not count that write.
    let unfinished = document.streams.iter().filter(|s| s.direction == Direction::Download).count() as i64
        * parameters.write_bytes.min(MAX_BLOCK) as i64;
    let Some(unaccounted) = accounting.unaccounted_bytes else { return };
    if (-unfinished..0).contains(&unaccounted) {
        accounting.holds = accounting.intervals_minus_totals_bytes == 0;
        accounting.notes.push(format!(
            "{} B more arrived than iperf3 counted: a write that was in progress when it ended its thread is not counted",
            -unaccounted
        ));
    }
    if unaccounted > 0 {
        let why = "iperf3 stops reading at the end of a test: bytes in its socket buffer are not counted";
        accounting.notes.push(why.to_owned());
    }
}

/// Version of the server, from its JSON output.
pub fn version(output: &Value) -> Option<String> {
    let text = output.get("start")?.get("version")?.as_str()?;
    Some(printable(text, 40))
}

/// Converts the totals of the remote end, which is on this side of the test, to a report without samples. `omits`: its UDP
/// bytes are without the omitted part, unlike its datagrams; the report has those of the whole test.
pub fn report_of(
    side: Side,
    theirs: &Results,
    specs: &[StreamSpec],
    near: &EndReport,
    omits: bool,
) -> Result<EndReport, String> {
    let mut report = EndReport::default();
    for (index, spec) in specs.iter().enumerate() {
        let number = identity::number(index);
        let Some(said) = theirs.stream(number) else {
            return Err(format!("its results lack stream {number}"));
        };
        let Some(near) = near.streams.iter().find(|s| s.id == spec.id) else { continue };
        let sends = spec.job(side) == Job::Send;
        let mut end = stream_end(said, sends, near.end.udp.as_ref());
        if omits {
            end.bytes = bytes_of_whole_test(said, &end, &near.end);
        }
        report.streams.push(StreamReport {
            id: spec.id,
            direction: spec.direction,
            sends,
            local_addr: near.peer_addr.clone(),
            peer_addr: near.local_addr.clone(),
            end,
        });
    }
    Ok(report)
}

/// Bytes that a UDP receiver got in the whole test: all datagrams have the length of the sender's.
fn bytes_of_whole_test(said: &StreamResult, end: &StreamEnd, sender: &StreamEnd) -> u64 {
    let sent = sender.udp.as_ref().map_or(0, |udp| udp.sent_packets);
    let length = sender.bytes.checked_div(sent).unwrap_or(0);
    match &end.udp {
        Some(udp) => udp.delivered_packets.saturating_mul(length),
        None => said.bytes.saturating_add(said.omitted_packets.unwrap_or(0).saturating_mul(length)),
    }
}

fn stream_end(said: &StreamResult, sends: bool, near: Option<&UdpEnd>) -> StreamEnd {
    let udp = near.and_then(|_| {
        if sends {
            return Some(UdpEnd { sent_packets: said.packets, ..UdpEnd::default() });
        }
        // Some releases count below zero with reordering: then it is unknown how many arrived.
        let missing = said.errors.and_then(|errors| u64::try_from(errors).ok())?;
        Some(UdpEnd {
            delivered_packets: said.packets.checked_sub(missing)?,
            highest_seq: said.packets,
            jitter_ns: said.jitter_s.map(|seconds| (seconds * 1e9) as u64),
            timestamps: said.jitter_s.map(|_| "iperf3's, when it read them".to_owned()),
            ..UdpEnd::default()
        })
    });
    StreamEnd { bytes: said.bytes, retransmits: said.retransmits.filter(|_| sends), udp, ..StreamEnd::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_an_omitted_part_are_part_of_the_test() {
        let sender = StreamEnd {
            bytes: 3000,
            udp: Some(UdpEnd { sent_packets: 30, ..UdpEnd::default() }),
            ..StreamEnd::default()
        };
        // 30 datagrams, 4 lost; 10 of them in the omitted part.
        let said = StreamResult { packets: 30, errors: Some(4), bytes: 1700, ..StreamResult::default() };
        let end = stream_end(&said, false, sender.udp.as_ref());
        assert_eq!(bytes_of_whole_test(&said, &end, &sender), 2600);
        let reordered = StreamResult { errors: Some(-1), omitted_packets: Some(9), ..said };
        let end = stream_end(&reordered, false, sender.udp.as_ref());
        assert_eq!(bytes_of_whole_test(&reordered, &end, &sender), 2600);
    }

    #[test]
    fn impossible_error_counts_are_unknown() {
        let delivered = |errors| {
            let said = StreamResult { packets: 1000, errors, ..StreamResult::default() };
            stream_end(&said, false, Some(&UdpEnd::default())).udp.map(|udp| udp.delivered_packets)
        };
        assert_eq!((delivered(Some(0)), delivered(Some(3)), delivered(Some(1000))), (Some(1000), Some(997), Some(0)));
        assert_eq!((delivered(Some(-3)), delivered(Some(1001)), delivered(None)), (None, None, None));
    }
}
