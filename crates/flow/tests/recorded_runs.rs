//! Recorded runs, as they are and with the times of the server shifted: a document that contradicts itself is not complete.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use landspeed_flow::assemble::{self, CollectedRun};
use landspeed_flow::client::Request;
use landspeed_flow::end::{EndReport, PhaseEnds, StreamReport};
use landspeed_model::{CONTRADICTION, Direction, Phase, PhaseName, Protocol, RunDocument, Status, Stream, StreamEnd};
use proptest::prelude::*;
use serde::Deserialize as _;
use serde_json::Value;

/// Smallest shift that every recorded run shows, nanoseconds.
const ALWAYS_FOUND_NS: i64 = 1_000_000_000;

/// Recorded runs with bulk data, each with its file.
static RUNS: LazyLock<Vec<(PathBuf, RunDocument)>> = LazyLock::new(|| {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../diagnose/fixtures");
    let mut runs = Vec::new();
    for file in files(&fixtures.join("real")) {
        runs.push((file.clone(), parse(&file)));
    }
    for file in files(&fixtures.join("lab")) {
        let lab: Value = parse(&file);
        for flow in lab["flows"].as_array().expect("flows") {
            if let Some(run) = flow.get("run").filter(|run| !run.is_null()) {
                runs.push((file.clone(), RunDocument::deserialize(run).expect("a run")));
            }
        }
    }
    runs.retain(|(_, run)| matches!(run.requested.protocol, Protocol::Tcp | Protocol::Udp));
    assert!(runs.len() > 20, "{}", runs.len());
    runs
});

fn files(directory: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> =
        std::fs::read_dir(directory).expect("fixtures").map(|entry| entry.expect("an entry").path()).collect();
    found.sort();
    found
}

fn parse<T: serde::de::DeserializeOwned>(file: &Path) -> T {
    let text = std::fs::read(file).expect("a fixture");
    serde_json::from_slice(&text).unwrap_or_else(|why| panic!("{}: {why}", file.display()))
}

/// Rebuilds what the ends reported, from their document.
fn reports(run: &RunDocument) -> (EndReport, EndReport) {
    let side = |is_client: bool| {
        let report = |stream: &Stream| {
            let sends = (stream.direction == Direction::Upload) == is_client;
            let end: &Option<StreamEnd> = if sends { &stream.sender } else { &stream.receiver };
            Some(StreamReport {
                id: stream.id,
                direction: stream.direction,
                sends,
                local_addr: String::new(),
                peer_addr: String::new(),
                end: end.clone()?,
            })
        };
        // The document has the phases of the receivers.
        let receives = if is_client { Direction::Download } else { Direction::Upload };
        let direction = if run.phases.iter().any(|phase| phase.direction == receives) {
            receives
        } else {
            run.phases[0].direction
        };
        EndReport {
            streams: run.streams.iter().filter_map(report).collect(),
            cuts: cuts(run.phases.iter().filter(|phase| phase.direction == direction)),
            ..EndReport::default()
        }
    };
    (side(true), side(false))
}

fn cuts<'a>(phases: impl Iterator<Item = &'a Phase>) -> PhaseEnds {
    let mut cuts = PhaseEnds::default();
    for phase in phases {
        let end = match phase.name {
            PhaseName::Startup => &mut cuts.startup_end_ns,
            PhaseName::Omitted => &mut cuts.omit_end_ns,
            PhaseName::Steady => &mut cuts.steady_end_ns,
            PhaseName::Drain => &mut cuts.end_ns,
        };
        *end = Some(phase.end_ns);
    }
    cuts
}

/// The same report on a clock on which the test began `shift_ns` earlier, or later if negative.
pub fn shift(mut report: EndReport, shift_ns: i64) -> EndReport {
    let at = |t_ns: u64| t_ns.saturating_add_signed(shift_ns);
    let PhaseEnds { startup_end_ns, omit_end_ns, steady_end_ns, end_ns } = &mut report.cuts;
    for end in [startup_end_ns, omit_end_ns, steady_end_ns, end_ns].into_iter().flatten() {
        *end = at(*end);
    }
    for stream in &mut report.streams {
        let samples = &mut stream.end.samples;
        samples.iter_mut().for_each(|sample| sample.t_ns = at(sample.t_ns));
        // Of the samples before the start the last one is left: the sampler begins with it.
        let before = samples.iter().filter(|sample| sample.t_ns == 0).count();
        samples.drain(..before.saturating_sub(1));
    }
    report
}

/// Whether a document says that it contradicts itself.
pub fn contradicts_itself(run: &RunDocument) -> bool {
    run.status == Status::Partial && run.warnings.iter().any(|warning| warning.code == CONTRADICTION)
}

/// The document of a recorded run whose server's times are shifted.
fn shifted(run: &RunDocument, shift_ns: i64) -> RunDocument {
    let (client, server) = reports(run);
    let last_ns = |stream: &StreamReport| stream.end.samples.last().map(|sample| sample.t_ns);
    let report_ns = server.streams.iter().filter_map(last_ns).max();
    let request = Request {
        target: "192.0.2.1".parse().expect("a target"),
        parameters: run.requested.clone(),
        key: None,
        command: Vec::new(),
        data: None,
        local_port: None,
        start_ns: None,
    };
    assemble::document(CollectedRun {
        effective: run.effective.clone(),
        path: run.path.clone(),
        client: Some(client),
        server: Some(shift(server, shift_ns)),
        report_ns,
        ..CollectedRun::new(&request)
    })
}

#[test]
fn recorded_runs_do_not_contradict_themselves() {
    for (file, run) in RUNS.iter() {
        let document = shifted(run, 0);
        assert_eq!(document.status, Status::Complete, "{}: {:?}", file.display(), document.warnings);
    }
}

proptest! {
    #[test]
    fn shifted_times_of_a_server_are_reported(
        number in any::<prop::sample::Index>(),
        shift_ms in prop_oneof![100i64..1_000, 1_000i64..100_000],
        earlier in any::<bool>(),
    ) {
        let (file, run) = number.get(&RUNS);
        let shift_ns = if earlier { shift_ms } else { -shift_ms } * 1_000_000;
        let document = shifted(run, shift_ns);
        if !contradicts_itself(&document) {
            prop_assert!(shift_ns.abs() < ALWAYS_FOUND_NS, "{}: {shift_ns} ns", file.display());
            // The figures do not depend on the difference of the clocks.
            for phase in document.phases.iter().filter(|phase| phase.name == PhaseName::Steady) {
                prop_assert!(phase.bytes > Some(0) && phase.end_ns > phase.start_ns, "{}: {phase:?}", file.display());
            }
        }
    }
}
