//! Which CPUs serve the streams' receive queues, and which threads run there.

use std::collections::BTreeMap;

use crate::finding::{Bound, Scales};
use crate::flow::Flow;
use crate::host::End;
use crate::thresholds::SHARED_QUEUE;

/// Streams whose receive queues one CPU of the receiver serves.
pub(crate) struct SharedQueue {
    /// The CPU.
    pub cpu: u32,
    /// Numbers of the streams, two or more.
    pub streams: Vec<u32>,
}

impl SharedQueue {
    /// `streams 0, 2 and 3`.
    pub fn words(&self) -> String {
        let numbers: Vec<String> = self.streams.iter().map(ToString::to_string).collect();
        match numbers.split_last() {
            Some((last, rest)) if !rest.is_empty() => format!("streams {} and {last}", rest.join(", ")),
            _ => format!("stream {}", numbers.concat()),
        }
    }

    /// Records it among the readings of a cause.
    pub fn weigh(&self, scales: &mut Scales, flow: &Flow) {
        scales.value(
            &format!("streams whose receive queue core {} serves", self.cpu),
            Some(self.streams.len() as f64),
            "streams",
            Bound::AtLeast(SHARED_QUEUE),
            Some(flow.receiver.end),
            "streams[].receiver.incoming_cpu",
        );
    }
}

/// The CPU that serves most streams, where several of them meet on it although the receiver has others. On one host the CPU
/// is that of the sender.
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

/// What to do about a stream's thread that is pinned to the CPU that serves its receive queue.
pub(crate) fn beside_its_queue(flow: &Flow) -> Option<String> {
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

/// One sentence about streams that meet on a CPU.
pub(crate) fn spread(flow: &Flow, shared: &SharedQueue) -> String {
    let words = shared.words();
    format!(
        "{}{} meet on core {} of the {}, which has {} cores.",
        words[..1].to_uppercase(),
        &words[1..],
        shared.cpu,
        flow.receiver.name(),
        flow.receiver.snapshot.map_or(0, |snapshot| snapshot.cores_online)
    )
}
