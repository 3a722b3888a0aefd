//! Conversion of a flow's samples to the document of a run without a report of the remote host.

use landspeed_model::{
    BuildInfo, Cause, Confidence, Conservation, Cost, Direction, Ends, HostSeries, HostSnapshot, Interval,
    Parameters, PathInfo, Phase, PhaseName, RUN_SCHEMA, RunDocument, Sample, Status, Stream, StreamEnd, Summary,
    TcpInfo, Verdict, WatchRole,
};

use crate::flows::SampledFlow;

/// Recent samples of a flow in the form that the verdict needs.
#[derive(Debug)]
pub struct Observation {
    /// Run document: this host is the client; the remote host is the server, which reported nothing. Counters start
    /// at the first sample.
    pub document: RunDocument,
    /// Direction of most bytes: `Upload` from this host, `Download` to it.
    pub direction: Direction,
    /// Role of this host: sender or receiver, according to `direction`.
    pub role: WatchRole,
    /// Time of the first and the last sample, nanoseconds after the start of the watch.
    pub span_ns: (u64, u64),
    /// Payload bytes transferred in that direction during the span.
    pub bytes: u64,
}

/// Converts a flow's samples. `host` is this host, with the interface that leads to the remote host if known;
/// `series` are its counters over the span. `None` with fewer than two samples.
pub fn observe(flow: &SampledFlow, host: &HostSnapshot, series: HostSeries) -> Option<Observation> {
    let first = flow.samples.iter().find_map(|sample| sample.tcp.as_deref())?;
    let samples: Vec<Sample> = flow.samples.iter().filter_map(|sample| since(sample, first)).collect();
    let last = samples.last()?;
    let span_ns = (samples.first()?.t_ns, last.t_ns);
    if span_ns.1 <= span_ns.0 {
        return None;
    }
    let of = |count: &dyn Fn(&TcpInfo) -> Option<u64>| last.tcp.as_deref().and_then(count).unwrap_or(0);
    let (acked, received) = (of(&|tcp| tcp.bytes_acked), of(&|tcp| tcp.bytes_received));
    let sends = acked > received || (acked == received && last.send_queue_bytes >= last.receive_queue_bytes);
    let (direction, role, bytes) = if sends {
        (Direction::Upload, WatchRole::Sender, acked)
    } else {
        (Direction::Download, WatchRole::Receiver, received)
    };
    let end = StreamEnd {
        bytes,
        bytes_acked: sends.then_some(acked),
        retransmits: sends.then(|| of(&|tcp| Some(u64::from(tcp.total_retrans)))),
        congestion: (!flow.congestion.is_empty()).then(|| flow.congestion.clone()),
        mss_bytes: last.tcp.as_deref().map(|tcp| tcp.snd_mss_bytes),
        sndbuf_bytes: last.sndbuf_bytes.map(u64::from),
        rcvbuf_bytes: last.rcvbuf_bytes.map(u64::from),
        samples,
        ..StreamEnd::default()
    };
    let (local, remote) = (flow.id.local(), flow.id.remote());
    let (sender, receiver) = if sends { (Some(end), None) } else { (None, Some(end)) };
    let stream = Stream {
        id: 0,
        direction,
        client_addr: local.to_string(),
        server_addr: remote.to_string(),
        intervals: vec![Interval {
            start_ns: span_ns.0,
            end_ns: span_ns.1,
            phase: PhaseName::Steady,
            bytes,
            packets: None,
        }],
        intervals_from: if sends { "sender" } else { "receiver" }.to_owned(),
        sender,
        receiver,
    };
    let path = PathInfo {
        loopback: local.ip() == remote.ip() || local.ip().is_loopback(),
        client_addr: local.to_string(),
        server_addr: remote.to_string(),
        ..PathInfo::default()
    };
    let parameters = Parameters { direction, time_ns: None, ..Parameters::default() };
    let document = RunDocument {
        schema: RUN_SCHEMA.to_owned(),
        landspeed: BuildInfo::default(),
        id: String::new(),
        started: String::new(),
        command: Vec::new(),
        status: Status::Complete,
        errors: Vec::new(),
        warnings: Vec::new(),
        summary: Summary::default(),
        requested: parameters,
        effective: None,
        path: Some(path),
        hosts: Ends { client: Some(host.clone()), server: None },
        phases: vec![Phase {
            direction,
            name: PhaseName::Steady,
            start_ns: span_ns.0,
            end_ns: span_ns.1,
            bytes: Some(bytes),
        }],
        streams: vec![stream],
        totals: Ends::default(),
        udp: None,
        latency: Vec::new(),
        latency_under_load: None,
        conservation: unknown_conservation(),
        cost: Cost::default(),
        host_series: Ends { client: Some(series), server: None },
        other_tests: Ends::default(),
        iperf3: None,
        third_party: None,
        emulation: None,
        unknown: std::collections::BTreeMap::new(),
        verdict: no_verdict(),
        reverse_verdict: None,
    };
    Some(Observation { document, direction, role, span_ns, bytes })
}

/// A sample with counters relative to `first`. 32-bit counters may have wrapped in between. `None` without
/// `tcp_info`.
fn since(sample: &Sample, first: &TcpInfo) -> Option<Sample> {
    let mut tcp = sample.tcp.clone()?;
    let wide = |counter: &mut Option<u64>, then: Option<u64>| {
        *counter = counter.zip(then).map(|(now, then)| now.saturating_sub(then));
    };
    let narrow = |counter: &mut Option<u32>, then: Option<u32>| {
        *counter = counter.zip(then).map(|(now, then)| now.wrapping_sub(then));
    };
    let short = |counter: &mut Option<u16>, then: Option<u16>| {
        *counter = counter.zip(then).map(|(now, then)| now.wrapping_sub(then));
    };
    tcp.total_retrans = tcp.total_retrans.wrapping_sub(first.total_retrans);
    wide(&mut tcp.bytes_acked, first.bytes_acked);
    wide(&mut tcp.bytes_received, first.bytes_received);
    wide(&mut tcp.bytes_sent, first.bytes_sent);
    wide(&mut tcp.bytes_retrans, first.bytes_retrans);
    wide(&mut tcp.busy_time_us, first.busy_time_us);
    wide(&mut tcp.rwnd_limited_us, first.rwnd_limited_us);
    wide(&mut tcp.sndbuf_limited_us, first.sndbuf_limited_us);
    narrow(&mut tcp.segs_out, first.segs_out);
    narrow(&mut tcp.segs_in, first.segs_in);
    narrow(&mut tcp.data_segs_in, first.data_segs_in);
    narrow(&mut tcp.data_segs_out, first.data_segs_out);
    narrow(&mut tcp.delivered, first.delivered);
    narrow(&mut tcp.delivered_ce, first.delivered_ce);
    narrow(&mut tcp.dsack_dups, first.dsack_dups);
    narrow(&mut tcp.reord_seen, first.reord_seen);
    narrow(&mut tcp.rcv_ooopack, first.rcv_ooopack);
    narrow(&mut tcp.rehash, first.rehash);
    narrow(&mut tcp.total_rto_time_ms, first.total_rto_time_ms);
    short(&mut tcp.total_rto, first.total_rto);
    short(&mut tcp.total_rto_recoveries, first.total_rto_recoveries);
    Some(Sample { tcp: Some(tcp), ..sample.clone() })
}

/// Accounting is unknown without the remote host's counters.
fn unknown_conservation() -> Conservation {
    Conservation { unit: "bytes".to_owned(), ..Conservation::default() }
}

/// Placeholder before the flow is judged.
fn no_verdict() -> Verdict {
    Verdict {
        cause: Cause::Undetermined,
        confidence: Confidence::Low,
        summary: String::new(),
        place: None,
        evidence: Vec::new(),
        ruled_out: Vec::new(),
        missing: Vec::new(),
        next_step: String::new(),
        epochs: Vec::new(),
    }
}
