//! CPUs that serve the streams' receive queues, and the threads that run on them.

use std::collections::BTreeMap;

use crate::finding::{Bound, FindingBuilder};
use crate::flow::Flow;
use crate::host::End;
use crate::thresholds::SHARED_QUEUE;

/// Streams whose receive queues are served by one CPU of the receiver.
pub(crate) struct SharedQueue {
    /// Number of the serving CPU.
    pub cpu: u32,
    /// Stream numbers, two or more.
    pub streams: Vec<u32>,
}

impl SharedQueue {
    /// Formats the streams, such as `streams 0, 2 and 3`.
    pub fn streams_text(&self) -> String {
        let numbers: Vec<String> = self.streams.iter().map(ToString::to_string).collect();
        match numbers.split_last() {
            Some((last, rest)) if !rest.is_empty() => format!("streams {} and {last}", rest.join(", ")),
            _ => format!("stream {}", numbers.concat()),
        }
    }

    /// Records it among the readings of a cause.
    pub fn record_readings(&self, builder: &mut FindingBuilder, flow: &Flow) {
        builder.value(
            &format!("streams whose receive queue core {} serves", self.cpu),
            Some(self.streams.len() as f64),
            "streams",
            Bound::AtLeast(SHARED_QUEUE),
            Some(flow.receiver.end),
            "streams[].receiver.incoming_cpu",
        );
    }
}

/// The CPU that serves most streams, if several streams share it although the receiver has other CPUs.
/// `None` if both sides run on one host: there it is the sender's CPU.
pub(crate) fn shared_queue(flow: &Flow) -> Option<SharedQueue> {
    let cores = flow.receiver.snapshot.map_or(0, |snapshot| snapshot.cores_online);
    if flow.same_host() || cores < 2 {
        return None;
    }
    let mut served: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for stream in &flow.streams {
        if let Some(cpu) = stream.receiver().and_then(|end| end.incoming_cpu) {
            served.entry(cpu).or_default().push(stream.stream.id);
        }
    }
    let (cpu, streams) = served.into_iter().max_by_key(|(_, streams)| streams.len())?;
    (streams.len() as f64 >= SHARED_QUEUE).then_some(SharedQueue { cpu, streams })
}

/// Advice for a stream's thread that is pinned to the CPU that serves its receive queue.
pub(crate) fn queue_core_advice(flow: &Flow) -> Option<String> {
    let cores = flow.receiver.snapshot.map_or(0, |snapshot| snapshot.cores_online);
    if flow.same_host() || cores < 2 || flow.document.iperf3.is_some() {
        return None;
    }
    let shared = |stream: &crate::stream::StreamView| {
        let end = stream.receiver()?;
        end.cpu.filter(|cpu| end.incoming_cpu == Some(*cpu)).map(|cpu| (stream.stream.id, cpu))
    };
    let (id, cpu) = flow.streams.iter().find_map(shared)?;
    let option = match flow.receiver.end {
        End::Client => "--cpus auto",
        End::Server => "--peer-cpus auto",
    };
    Some(format!("The thread of stream {id} is pinned to core {cpu}, which serves its receive queue: use {option}."))
}

/// One sentence about streams that share a CPU.
pub(crate) fn spread(flow: &Flow, shared: &SharedQueue) -> String {
    let streams_text = shared.streams_text();
    format!(
        "{}{} meet on core {} of the {}, which has {} cores.",
        streams_text[..1].to_uppercase(),
        &streams_text[1..],
        shared.cpu,
        flow.receiver.name(),
        flow.receiver.snapshot.map_or(0, |snapshot| snapshot.cores_online)
    )
}
