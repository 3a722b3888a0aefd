//! The server's end, as far as iperf3 reports it.

use landspeed_model::{Direction, Parameters, Protocol, StreamEnd, UdpEnd};
use serde_json::Value;

use crate::control::printable;
use crate::end::{EndReport, Job, StreamReport};
use crate::iperf3::identity;
use crate::iperf3::results::{Results, StreamResult};
use crate::layout::StreamSpec;

/// What a landspeed server would have reported.
pub fn not_visible(p: &Parameters) -> Vec<String> {
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
