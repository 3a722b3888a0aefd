//! The far end as far as iperf3 tells of it.

use landspeed_model::{Direction, Parameters, Protocol, StreamEnd, UdpEnd};
use serde_json::Value;

use crate::control::printable;
use crate::end::{EndReport, Job, StreamReport};
use crate::iperf3::identity;
use crate::iperf3::results::{Results, StreamResult};
use crate::layout::StreamSpec;

/// What a landspeed at the far end would have told.
pub fn not_visible(p: &Parameters) -> Vec<String> {
    let mut list = vec![
        "the far host: its processors, interface, drops, settings".to_owned(),
        "how the two clocks are aligned, and so when the far end did what".to_owned(),
    ];
    if p.direction != Direction::Download {
        list.push(
            "the receiver over time: its reads, its queue, its window's memory; iperf3 tells its total".to_owned(),
        );
    }
    if p.direction != Direction::Upload {
        list.push(if p.protocol == Protocol::Tcp {
            "the sender's tcp_info (window, round trips, what limited it); iperf3 tells its bytes and retransmits"
                .to_owned()
        } else {
            "when datagrams were meant to leave, and what the sender's own host refused".to_owned()
        });
    }
    if p.protocol == Protocol::Udp && p.direction != Direction::Download {
        list.push(
            "duplicates, reordering and the place of losses; iperf3 tells a number of missing datagrams".to_owned(),
        );
    }
    list
}

/// The version in a server's JSON output.
pub fn version(output: &Value) -> Option<String> {
    let text = output.get("start")?.get("version")?.as_str()?;
    Some(printable(text, 40))
}

/// The server's totals as a report without a timeline.
pub fn server_report(theirs: &Results, specs: &[StreamSpec], near: &EndReport) -> Result<EndReport, String> {
    let mut report = EndReport::default();
    for (index, spec) in specs.iter().enumerate() {
        let number = identity::number(index);
        let Some(said) = theirs.stream(number) else {
            return Err(format!("its results lack stream {number}"));
        };
        let Some(near) = near.streams.iter().find(|s| s.id == spec.id) else { continue };
        let sends = spec.server_job == Job::Send;
        report.streams.push(StreamReport {
            id: spec.id,
            direction: spec.direction,
            sends,
            local_addr: near.peer_addr.clone(),
            peer_addr: near.local_addr.clone(),
            end: stream_end(said, sends, near.end.udp.as_ref()),
        });
    }
    Ok(report)
}

fn stream_end(said: &StreamResult, sends: bool, near: Option<&UdpEnd>) -> StreamEnd {
    let udp = near.map(|_| {
        if sends {
            UdpEnd { sent_packets: said.packets, ..UdpEnd::default() }
        } else {
            UdpEnd {
                delivered_packets: said.packets.saturating_sub(said.errors),
                highest_seq: said.packets,
                jitter_ns: Some((said.jitter_s * 1e9) as u64),
                timestamps: Some("iperf3's, when it read them".to_owned()),
                ..UdpEnd::default()
            }
        }
    });
    StreamEnd { bytes: said.bytes, retransmits: said.retransmits.filter(|_| sends), udp, ..StreamEnd::default() }
}
