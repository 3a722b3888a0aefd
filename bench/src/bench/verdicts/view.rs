//! Reduces a run to what each view shows.

use landspeed_model::{
    Cost, Direction, Ends, Parameters, Phase, PhaseName, RunDocument, Sample, Status, Stream, StreamEnd, ThreadUse,
    WatchHost,
};

use super::truth::View;

/// Returns the run as seen in `view`. ([`View::Lab`] also shows data of the lab document.)
pub fn seen(run: &RunDocument, view: View) -> RunDocument {
    let mut run = run.clone();
    if view == View::SenderOnly {
        remove_server_data(&mut run);
    }
    run
}

/// Returns what `watch` knows of the first connection of an upload: one socket's samples in the steady phase
/// without options or schedule, and of the host the counters and the busiest thread. `Upload`: at the sender;
/// `Download`: at the receiver, which is the client there.
pub fn watched(run: &RunDocument, direction: Direction) -> (RunDocument, WatchHost) {
    let mut run = run.clone();
    let steady =
        run.phases.iter().find(|phase| phase.direction == Direction::Upload && phase.name == PhaseName::Steady);
    let span_ns = steady.map_or((0, u64::MAX), |phase| (phase.start_ns, phase.end_ns));
    let sends = direction == Direction::Upload;
    if !sends {
        run.hosts.client = run.hosts.server.take();
        run.host_series.client = run.host_series.server.take();
    }
    (run.hosts.server, run.host_series.server) = (None, None);
    // `watch` reads the host's counters, but not the utilization of each core.
    if let Some(series) = &mut run.host_series.client {
        series.samples.clear();
    }
    run.status = Status::Complete;
    run.requested = Parameters { direction, time_ns: None, ..Parameters::default() };
    (run.effective, run.udp, run.latency_under_load) = (None, None, None);
    run.latency.clear();
    (run.totals, run.cost) = (Ends::default(), Cost::default());
    run.streams.retain(|stream| stream.direction == Direction::Upload);
    run.streams.truncate(1);
    let mut beside = WatchHost { threads: Some(2), ..WatchHost::default() };
    for stream in &mut run.streams {
        stream.direction = direction;
        let own = if sends { stream.sender.take() } else { stream.receiver.take() };
        let own = own.map(|mut end| {
            end.samples.retain(|sample| (span_ns.0..=span_ns.1).contains(&sample.t_ns));
            beside.busiest = busiest(&end.samples);
            for sample in &mut end.samples {
                (sample.thread_cpu_ns, sample.thread_wait_ns) = (None, None);
            }
            StreamEnd {
                bytes: end.bytes,
                congestion: end.congestion,
                sndbuf_bytes: end.sndbuf_bytes,
                rcvbuf_bytes: end.rcvbuf_bytes,
                samples: end.samples,
                ..StreamEnd::default()
            }
        });
        (stream.sender, stream.receiver) = if sends { (own, None) } else { (None, own) };
        if sends {
            from_acknowledgements(stream);
        }
    }
    let bytes: u64 =
        run.streams.iter().flat_map(|s| &s.intervals).filter(|i| i.phase == PhaseName::Steady).map(|i| i.bytes).sum();
    run.phases.retain(|phase| phase.direction == Direction::Upload && phase.name == PhaseName::Steady);
    for phase in &mut run.phases {
        (phase.direction, phase.bytes) = (direction, Some(bytes));
    }
    (run, beside)
}

/// Returns the CPU use of the stream's thread, from its samples.
fn busiest(samples: &[Sample]) -> Option<ThreadUse> {
    let mut timed = samples.iter().filter(|sample| sample.thread_cpu_ns.is_some());
    let (first, last) = (timed.next()?, timed.next_back()?);
    let elapsed = (last.t_ns - first.t_ns) as f64;
    let share = |of: fn(&Sample) -> Option<u64>| Some(of(last)?.saturating_sub(of(first)?) as f64 / elapsed);
    Some(ThreadUse {
        tid: 0,
        name: "landspeed".to_owned(),
        cpu_share: share(|sample| sample.thread_cpu_ns)?,
        wait_share: share(|sample| sample.thread_wait_ns).unwrap_or(0.0),
        cpu: None,
    })
}

/// Removes everything that the server reported in an upload; what remains is the client's view when the server's
/// report is lost.
fn remove_server_data(run: &mut RunDocument) {
    run.status = if run.status == Status::Complete { Status::Partial } else { run.status };
    run.hosts.server = None;
    run.totals.server = None;
    run.cost.server = None;
    run.host_series = Ends { client: run.host_series.client.take(), server: None };
    for stream in &mut run.streams {
        stream.receiver = None;
        from_acknowledgements(stream);
    }
    let of_phase = |streams: &[Stream], phase: &Phase| {
        let own = streams.iter().filter(|stream| stream.direction == phase.direction);
        own.flat_map(|stream| &stream.intervals)
            .filter(|interval| interval.phase == phase.name)
            .map(|interval| interval.bytes)
            .sum::<u64>()
    };
    for phase in &mut run.phases {
        phase.bytes = Some(of_phase(&run.streams, phase));
    }
    let steady = run.phases.iter().find(|phase| phase.name == PhaseName::Steady && phase.end_ns > phase.start_ns);
    if let Some(steady) = steady.filter(|phase| phase.direction == Direction::Upload) {
        run.summary.goodput_bps =
            steady.bytes.map(|bytes| bytes as f64 * 8e9 / (steady.end_ns - steady.start_ns) as f64);
    }
    run.summary.bytes_delivered = run.phases.iter().map(|phase| phase.bytes).sum();
    run.conservation.delivered = run.summary.bytes_delivered;
    run.conservation.losses.clear();
    run.conservation.terms.clear();
    run.conservation.holds = false;
}

/// Recomputes the intervals from acknowledged bytes, as `intervals_from` then states.
fn from_acknowledgements(stream: &mut Stream) {
    let Some(sender) = &stream.sender else { return };
    let acknowledged: Vec<(u64, u64)> =
        sender.samples.iter().filter_map(|sample| Some((sample.t_ns, sample.tcp.as_ref()?.bytes_acked?))).collect();
    if acknowledged.is_empty() {
        return;
    }
    let at = |t_ns: u64| {
        let after = acknowledged.partition_point(|&(t, _)| t < t_ns);
        let (Some(&(t0, a0)), Some(&(t1, a1))) = (acknowledged.get(after.saturating_sub(1)), acknowledged.get(after))
        else {
            return acknowledged.last().map_or(0, |&(_, bytes)| bytes);
        };
        if t1 <= t0 { a1 } else { a0 + ((a1 - a0) as f64 * (t_ns - t0) as f64 / (t1 - t0) as f64) as u64 }
    };
    for interval in &mut stream.intervals {
        interval.bytes = at(interval.end_ns).saturating_sub(at(interval.start_ns));
        interval.packets = None;
    }
    "sender".clone_into(&mut stream.intervals_from);
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: &str = include_str!("../../../../crates/diagnose/fixtures/real/loss-cubic.json");

    #[test]
    fn watch_view_has_one_socket_and_no_options() {
        let run: RunDocument = serde_json::from_str(RUN).unwrap();
        for (direction, sends) in [(Direction::Upload, true), (Direction::Download, false)] {
            let (seen, _) = watched(&run, direction);
            let [stream] = &seen.streams[..] else { panic!("one stream") };
            assert_eq!((stream.sender.is_some(), stream.receiver.is_some()), (sends, !sends));
            assert!(seen.hosts.server.is_none() && seen.requested.rate_bps.is_none());
            let end = stream.sender.as_ref().or(stream.receiver.as_ref()).unwrap();
            assert!(
                end.samples.iter().all(|sample| sample.thread_cpu_ns.is_none())
                    && end.app_wait_ns.is_none_or(|ns| ns == 0)
            );
        }
    }

    #[test]
    fn sender_view_has_nothing_reported_by_the_server() {
        let run: RunDocument = serde_json::from_str(RUN).unwrap();
        assert!(run.streams.iter().all(|stream| stream.receiver.is_some()));
        assert_eq!(seen(&run, View::BothHosts), run);
        let one = seen(&run, View::SenderOnly);
        assert!(one.streams.iter().all(|stream| stream.receiver.is_none() && stream.intervals_from == "sender"));
        assert!(one.hosts.server.is_none() && one.host_series.server.is_none());
        assert!(one.totals.server.is_none() && one.cost.server.is_none());
        assert_eq!(one.hosts.client, run.hosts.client);
        // Acknowledged bytes approximate delivered bytes.
        let bytes = |run: &RunDocument| -> u64 {
            run.streams.iter().flat_map(|stream| &stream.intervals).map(|interval| interval.bytes).sum()
        };
        let (delivered, acknowledged) = (bytes(&run) as f64, bytes(&one) as f64);
        assert!((acknowledged - delivered).abs() < 0.1 * delivered, "{acknowledged} of {delivered}");
    }
}
