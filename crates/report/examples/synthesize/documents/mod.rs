//! The invented documents, one for each face of the report. The same on every run: the random numbers are seeded.

mod audit;
mod bulk;
mod fluid;
mod hosts;
mod lab;
mod latency;
mod odd;
mod random;
mod trace;
mod udp;

use landspeed_model::{
    AuditDocument, BuildInfo, ClockAlignment, Conservation, Cost, Ends, LabDocument, LabSetDocument, MtuProbe,
    Parameters, PathInfo, RUN_SCHEMA, RunDocument, Status, Summary, TraceComparison, TraceDocument, Verdict,
};
use landspeed_model::{Cause, Confidence, Direction};

/// A document's name and how to make it.
pub type Entry<T> = (&'static str, fn() -> T);

/// Every document by name.
pub const ALL: &[Entry<RunDocument>] = &[
    ("bulk", bulk::congested),
    ("window", bulk::window_limited),
    ("fine", bulk::one_millisecond),
    ("many", bulk::sixty_four_streams),
    ("bidir", bulk::both_directions),
    ("udp", udp::lossy),
    ("rr", latency::sizes),
    ("loaded", latency::under_load),
    ("failed", odd::failed),
    ("partial", odd::partial),
    ("hostile", odd::hostile),
];

/// Every run of a lab by name.
pub const LABS: &[Entry<LabDocument>] = &[
    ("lab", lab::testbed),
    ("lab-invalid", lab::invalid),
    ("lab-failed", lab::failed),
    ("lab-hostile", lab::hostile),
];

/// Every set of a lab's cells by name.
pub const LAB_SETS: &[Entry<LabSetDocument>] = &[
    ("labset", lab::buffers),
    ("labset-kinds", lab::kinds),
    ("labset-repeats", lab::repeats),
    ("labset-hostile", lab::hostile_set),
];

/// Every audit by name.
pub const AUDITS: &[Entry<AuditDocument>] = &[
    ("audit", audit::findings),
    ("audit-clean", audit::clean),
    ("audit-peer", audit::both_ends),
    ("audit-hostile", audit::hostile),
];

/// Captures.
pub const TRACES: &[Entry<TraceDocument>] =
    &[("trace", trace::whole), ("trace-thinned", trace::thinned), ("trace-hostile", trace::hostile)];

/// Captures side by side.
pub const TRACE_COMPARISONS: &[Entry<TraceComparison>] = &[("trace-comparison", trace::comparison)];

const SECOND: u64 = 1_000_000_000;
const MS: u64 = 1_000_000;

/// A document with both hosts, the path and nothing measured yet.
fn skeleton(parameters: Parameters) -> RunDocument {
    RunDocument {
        schema: RUN_SCHEMA.to_owned(),
        landspeed: BuildInfo { version: "0.1.0".to_owned(), server_version: Some("0.1.0".to_owned()) },
        id: "5f0c2a9be1d74c3aa6c80f1e2d3b4a59".to_owned(),
        started: "2026-03-14T09:26:53Z".to_owned(),
        command: ["landspeed", "run", "dtn2.example.net", "-P", "4", "-t", "10"].map(str::to_owned).to_vec(),
        status: Status::Complete,
        errors: Vec::new(),
        warnings: Vec::new(),
        summary: Summary::default(),
        effective: Some(parameters.clone()),
        requested: parameters,
        path: Some(PathInfo {
            target: "dtn2.example.net".to_owned(),
            client_addr: "192.0.2.10:41822".to_owned(),
            server_addr: "198.51.100.20:5210".to_owned(),
            loopback: false,
            control_rtt_ns: 20_114_300,
            clock: ClockAlignment { offset_ns: -8_381_220_114_553, uncertainty_ns: 10_057_150 },
            mtu: vec![
                MtuProbe {
                    direction: Direction::Upload,
                    path_mtu_bytes: Some(9000),
                    smallest_failed_bytes: Some(9001),
                    interface_mtu_bytes: Some(9000),
                    probes: 14,
                    silent: 0,
                    note: None,
                },
                MtuProbe {
                    direction: Direction::Download,
                    path_mtu_bytes: Some(1500),
                    smallest_failed_bytes: Some(1501),
                    interface_mtu_bytes: Some(9000),
                    probes: 22,
                    silent: 8,
                    note: Some("packets over 1500 bytes vanish without an ICMP message".to_owned()),
                },
            ],
            authenticated: true,
        }),
        hosts: Ends { client: Some(hosts::client()), server: Some(hosts::server()) },
        phases: Vec::new(),
        streams: Vec::new(),
        totals: Ends::default(),
        udp: None,
        latency: Vec::new(),
        latency_under_load: None,
        conservation: Conservation {
            holds: true,
            unit: "bytes".to_owned(),
            offered: 0,
            delivered: 0,
            lost: 0,
            queued: 0,
            unaccounted_bytes: 0,
            unaccounted_packets: None,
            intervals_minus_totals_bytes: 0,
            terms: Vec::new(),
            losses: Vec::new(),
            notes: Vec::new(),
        },
        cost: Cost::default(),
        iperf3: None,
        host_series: Ends::default(),
        verdict: Verdict {
            cause: Cause::Undetermined,
            confidence: Confidence::Low,
            summary: "Nothing was measured.".to_owned(),
            place: None,
            evidence: Vec::new(),
            ruled_out: Vec::new(),
            missing: Vec::new(),
            next_step: "Repeat the test.".to_owned(),
            epochs: Vec::new(),
        },
        reverse_verdict: None,
    }
}
