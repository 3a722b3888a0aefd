//! Matches the client's and the server's half of each stream, and divides the receiver's samples into
//! intervals.

use landspeed_model::{Direction, Interval, Sample, Stream, StreamEnd};

use crate::end::{EndReport, PhaseEnds, RrReport, StreamReport};

/// Returns all streams that either side reported, by number.
pub fn join(client: Option<&EndReport>, server: Option<&EndReport>) -> Vec<Stream> {
    let mut ids: Vec<u32> =
        [client, server].into_iter().flatten().flat_map(|r| r.streams.iter().map(|s| s.id)).collect();
    ids.sort_unstable();
    ids.dedup();
    ids.into_iter().filter_map(|id| assemble_stream(id, client, server)).collect()
}

/// Returns the request/response streams, with the totals of both sides and without samples.
pub fn transactions(client: Option<&EndReport>, server: Option<&EndReport>) -> Vec<Stream> {
    let mut ids: Vec<u32> =
        [client, server].into_iter().flatten().flat_map(|r| r.rr_streams.iter().map(|s| s.id)).collect();
    ids.sort_unstable();
    ids.dedup();
    let of =
        |report: Option<&EndReport>, id: u32| report.and_then(|r| r.rr_streams.iter().find(|s| s.id == id).cloned());
    let end = |report: &RrReport| StreamEnd {
        thread_cpu_ns: report.thread_cpu_ns,
        error: report.error.clone(),
        ..StreamEnd::default()
    };
    ids.into_iter()
        .map(|id| {
            let (near, far) = (of(client, id), of(server, id));
            let (client_addr, server_addr) = match (&near, &far) {
                (Some(near), _) => (near.local_addr.clone(), near.peer_addr.clone()),
                (None, Some(far)) => (far.peer_addr.clone(), far.local_addr.clone()),
                (None, None) => (String::new(), String::new()),
            };
            Stream {
                id,
                direction: Direction::Upload,
                client_addr,
                server_addr,
                intervals: Vec::new(),
                intervals_from: "none".to_owned(),
                sender: near.as_ref().map(end),
                receiver: far.as_ref().map(end),
            }
        })
        .collect()
}

fn assemble_stream(id: u32, client: Option<&EndReport>, server: Option<&EndReport>) -> Option<Stream> {
    let of = |report: Option<&EndReport>| {
        report.and_then(|r| r.streams.iter().find(|s| s.id == id).map(|s| (s.clone(), r.cuts)))
    };
    let (near, far) = (of(client), of(server));
    let direction = near.as_ref().or(far.as_ref())?.0.direction;
    let (client_addr, server_addr) = match (&near, &far) {
        (Some((near, _)), _) => (near.local_addr.clone(), near.peer_addr.clone()),
        (None, Some((far, _))) => (far.peer_addr.clone(), far.local_addr.clone()),
        (None, None) => return None,
    };
    let pick = |sends: bool| {
        let matching = |end: &&(StreamReport, PhaseEnds)| end.0.sends == sends;
        near.as_ref().filter(matching).or(far.as_ref().filter(matching))
    };
    let (sender, receiver) = (pick(true), pick(false));
    // An iperf3 server reports only totals.
    let over_time = |end: &&(StreamReport, PhaseEnds)| !end.0.end.samples.is_empty();
    let (intervals, intervals_from) = match (receiver.filter(over_time), sender.filter(over_time)) {
        (Some((receiver, cuts)), _) => (intervals(&receiver.end.samples, cuts, |s| Some(s.bytes)), "receiver"),
        // Without samples from the receiver, the ACKs that TCP got are the best estimate. What UDP sent is none.
        (None, Some((sender, cuts))) if sender.end.samples.iter().any(|sample| acked(sample).is_some()) => {
            let base = sender.end.samples.iter().find_map(acked).unwrap_or(0);
            (intervals(&sender.end.samples, cuts, |s| Some(acked(s)?.saturating_sub(base))), "sender")
        }
        _ => (Vec::new(), "none"),
    };
    Some(Stream {
        id,
        direction,
        client_addr,
        server_addr,
        intervals,
        intervals_from: intervals_from.to_owned(),
        sender: sender.map(|(s, _)| s.end.clone()),
        receiver: receiver.map(|(r, _)| r.end.clone()),
    })
}

fn acked(sample: &Sample) -> Option<u64> {
    sample.tcp.as_ref()?.bytes_acked
}

/// Returns the differences between consecutive samples that have a count. The first sample is at the start, the last
/// after the stream's end, so the intervals add up to the total.
fn intervals(samples: &[Sample], cuts: &PhaseEnds, bytes: impl Fn(&Sample) -> Option<u64>) -> Vec<Interval> {
    let mut result = Vec::with_capacity(samples.len());
    let (mut start_ns, mut bytes_before, mut packets_before) = (0, 0, 0);
    for sample in samples {
        let Some(now) = bytes(sample) else { continue };
        if sample.t_ns == start_ns && now == bytes_before {
            continue;
        }
        result.push(Interval {
            start_ns,
            end_ns: sample.t_ns,
            phase: cuts.phase_ending_at(sample.t_ns),
            bytes: now.saturating_sub(bytes_before),
            packets: sample.packets.map(|n| n.saturating_sub(packets_before)),
        });
        (start_ns, bytes_before) = (sample.t_ns, now);
        packets_before = sample.packets.unwrap_or(packets_before);
    }
    result
}

#[cfg(test)]
mod tests {
    use landspeed_model::PhaseName::{Drain, Omitted, Startup, Steady};

    use super::*;

    #[test]
    fn intervals_add_up_and_lie_within_one_phase() {
        let cuts = PhaseEnds {
            startup_end_ns: Some(10),
            omit_end_ns: Some(100),
            steady_end_ns: Some(300),
            end_ns: Some(320),
        };
        let at = |t_ns, bytes| Sample { t_ns, bytes, ..Sample::default() };
        let samples = [at(0, 0), at(10, 7), at(100, 50), at(200, 150), at(300, 260), at(320, 275)];
        let found = intervals(&samples, &cuts, |s| Some(s.bytes));
        assert_eq!(found.iter().map(|i| i.bytes).sum::<u64>(), 275);
        let phases: Vec<_> = found.iter().map(|i| i.phase).collect();
        assert_eq!(phases, [Startup, Omitted, Steady, Steady, Drain]);
        assert!(found.windows(2).all(|w| w[0].end_ns == w[1].start_ns));
    }
}
