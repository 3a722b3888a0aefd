//! Phases and accounting of tests in virtual time: whenever the two sides sample, every byte is counted in
//! exactly one phase, the one in which it was moved.

use landspeed_flow::assemble::{self, CollectedRun};
use landspeed_flow::client::Request;
use landspeed_flow::end::phases::{Grid, Phase, Phases, StreamsState};
use landspeed_flow::end::{EndReport, PhaseEnds, StreamReport};
use landspeed_model::{Direction, Parameters, PathInfo, PhaseName, RunDocument, Sample, Status, StreamEnd, TcpInfo};
use proptest::prelude::*;

use crate::recorded_runs::{contradicts_itself, shift};

const MS: u64 = 1_000_000;

/// One side of a stream that moves bytes at a constant rate.
#[derive(Debug, Clone, Copy)]
struct Flow {
    bytes_per_ms: u64,
    first_ns: u64,
    /// Time of the last byte, once it is known.
    last_ns: Option<u64>,
}

impl Flow {
    fn bytes(&self, t_ns: u64) -> u64 {
        t_ns.min(self.last_ns.unwrap_or(u64::MAX)).saturating_sub(self.first_ns) / MS * self.bytes_per_ms
    }
}

struct SampledFlow {
    cuts: PhaseEnds,
    samples: Vec<Sample>,
    flow: Flow,
}

/// Samples one side like the sampler, with each check late by the next value of `late_ns`.
fn watch(parameters: &Parameters, mut flow: Flow, is_sender: bool, late_ns: &[u64]) -> SampledFlow {
    let (mut phases, mut grid) = (Phases::new(parameters, u64::MAX / 2, 0), Grid::new(parameters.interval_ns));
    let mut samples = vec![Sample::default()];
    let (mut t_ns, mut before) = (0, Phase::Startup);
    for late_ns in late_ns.iter().cycle() {
        let over = flow.last_ns.is_some_and(|last_ns| t_ns >= last_ns);
        let seen = StreamsState {
            all_started: flow.bytes(t_ns) > 0,
            senders_done: over,
            stopped: false,
            all_finished: over && phases.cuts().steady_end_ns.is_some_and(|end_ns| t_ns > end_ns),
        };
        let actions = phases.update(t_ns, seen);
        if actions.stop_senders && is_sender {
            flow.last_ns = Some(t_ns);
        }
        if grid.is_due(t_ns) || actions.read_streams {
            samples.push(Sample { t_ns, bytes: flow.bytes(t_ns), ..Sample::default() });
        }
        let order = |phase| {
            [Phase::Startup, Phase::Omitted, Phase::Steady, Phase::Drain, Phase::Finished]
                .iter()
                .position(|known| *known == phase)
        };
        assert!(order(before) <= order(phases.phase()), "a phase came back");
        before = phases.phase();
        if before == Phase::Finished {
            break;
        }
        let next_ns = phases.next_check_ns(t_ns).min(grid.next());
        assert!(next_ns > t_ns, "no progress at {t_ns}");
        t_ns = next_ns + late_ns;
    }
    SampledFlow { cuts: phases.cuts(), samples, flow }
}

fn report(watched: &SampledFlow, sends: bool) -> EndReport {
    let bytes = watched.samples.last().map_or(0, |sample| sample.bytes);
    let end = StreamEnd { bytes, samples: watched.samples.clone(), ..StreamEnd::default() };
    let (local_addr, peer_addr) = (String::new(), String::new());
    let stream = StreamReport { id: 0, direction: Direction::Upload, sends, local_addr, peer_addr, end };
    EndReport { streams: vec![stream], cuts: watched.cuts, ..EndReport::default() }
}

/// The document of a run over a path of this delay, whose server reported until `report_ns`.
fn document(
    parameters: Parameters,
    client: EndReport,
    server: EndReport,
    (delay_ms, report_ns): (u64, u64),
) -> RunDocument {
    let request = Request {
        target: "192.0.2.1".parse().expect("a target"),
        parameters,
        key: None,
        command: Vec::new(),
        data: None,
        local_port: None,
        start_ns: None,
    };
    let (client, server, report_ns) = (Some(client), Some(server), Some(report_ns));
    let path = PathInfo { control_rtt_ns: 2 * delay_ms * MS, ..PathInfo::default() };
    assemble::document(CollectedRun { client, server, report_ns, path: Some(path), ..CollectedRun::new(&request) })
}

/// Returns the end of a side's samples, nanoseconds after the start.
fn end_ns(watched: &SampledFlow) -> u64 {
    watched.samples.last().map_or(0, |sample| sample.t_ns)
}

/// Rate and length of the steady phase, bytes/ns and nanoseconds.
fn steady(run: &RunDocument) -> Option<(f64, f64)> {
    let steady = run.phases.iter().find(|phase| phase.name == PhaseName::Steady)?;
    let length_ns = (steady.end_ns - steady.start_ns) as f64;
    Some((steady.bytes? as f64 / length_ns, length_ns)).filter(|(rate, _)| rate.is_finite() && *rate > 0.0)
}

proptest! {
    #[test]
    fn every_byte_is_in_one_phase_even_with_late_samples(
        bytes_per_ms in 1u64..2_000_000,
        (first_ms, delay_ms) in (0u64..1500, 0u64..300),
        (time_ms, omit_ms) in (1u64..2500, 0u64..500),
        interval_ms in 1u64..200,
        late in prop::collection::vec(prop_oneof![4 => Just(0), 2 => 0u64..5 * MS, 1 => 0u64..400 * MS], 1..40),
    ) {
        let parameters = Parameters {
            time_ns: Some(time_ms * MS),
            omit_ns: omit_ms * MS,
            interval_ns: interval_ms * MS,
            ..Parameters::default()
        };
        let flow = Flow { bytes_per_ms, first_ns: first_ms * MS, last_ns: None };
        let sender = watch(&parameters, flow, true, &late);
        let last_ns = sender.flow.last_ns.expect("it was stopped").max(flow.first_ns);
        let arrives = Flow {
            first_ns: flow.first_ns + delay_ms * MS,
            last_ns: Some(last_ns + delay_ms * MS),
            ..flow
        };
        let later: Vec<u64> = late.iter().rev().copied().collect();
        let receiver = watch(&parameters, arrives, false, &later);
        let run = document(parameters, report(&sender, true), report(&receiver, false), (delay_ms, end_ns(&receiver)));

        prop_assert_eq!(run.status, Status::Complete, "{:?}", &run.warnings);
        prop_assert_eq!(run.conservation.intervals_minus_totals_bytes, 0);
        prop_assert_eq!(run.conservation.unaccounted_bytes, Some(0));
        prop_assert!(run.conservation.holds, "{:?}", run.conservation.notes);
        let mut end_ns = 0;
        for phase in &run.phases {
            prop_assert_eq!(phase.start_ns, end_ns, "a gap before {:?}", phase.name);
            let moved = receiver.flow.bytes(phase.end_ns) - receiver.flow.bytes(phase.start_ns);
            prop_assert_eq!(phase.bytes, Some(moved), "{:?}", phase.name);
            end_ns = phase.end_ns;
        }
        let total: Option<u64> = run.phases.iter().map(|phase| phase.bytes).sum();
        prop_assert_eq!(total, run.streams[0].receiver.as_ref().map(|end| end.bytes));
    }
    /// Whatever the server's clock is, a complete document has the rate of its steady phase.
    #[test]
    fn shifted_times_of_the_server_are_harmless_or_reported(
        bytes_per_ms in 10_000u64..2_000_000,
        delay_ms in 0u64..20,
        (time_ms, omit_ms) in (1_000u64..10_000, prop_oneof![Just(0), 1u64..500]),
        interval_ms in 10u64..200,
        shift_ms in prop_oneof![100i64..1_000, 1_000i64..100_000],
        earlier in any::<bool>(),
    ) {
        let parameters = Parameters {
            time_ns: Some(time_ms * MS),
            omit_ns: omit_ms * MS,
            interval_ns: interval_ms * MS,
            ..Parameters::default()
        };
        let flow = Flow { bytes_per_ms, first_ns: MS, last_ns: None };
        let sender = watch(&parameters, flow, true, &[0]);
        let arrives = Flow {
            first_ns: (1 + delay_ms) * MS,
            last_ns: sender.flow.last_ns.map(|last_ns| last_ns + delay_ms * MS),
            ..flow
        };
        let receiver = watch(&parameters, arrives, false, &[0]);
        // The report arrives when the receiver has ended, on the client's clock.
        let report_ns = end_ns(&receiver);
        let run = |shift_ns| {
            let server = shift(report(&receiver, false), shift_ns);
            document(parameters.clone(), report(&sender, true), server, (delay_ms, report_ns))
        };
        let right = run(0);
        prop_assert_eq!(right.status, Status::Complete, "{:?}", &right.warnings);
        let shift_ns = shift_ms * MS.cast_signed();
        let wrong = run(if earlier { shift_ns } else { -shift_ns });
        let found = contradicts_itself(&wrong);
        // Without a sample at the shifted start, the first interval has up to an interval's bytes too many.
        let same = steady(&wrong).zip(steady(&right)).is_some_and(|((rate, length_ns), (expected, _))| {
            (rate / expected - 1.0).abs() < 0.05 + (interval_ms * MS) as f64 / length_ns
        });
        prop_assert!(found || same, "{:?}", &wrong.phases);
        prop_assert!(found || shift_ms < 1000, "{:?}", &wrong.phases);
    }
}

#[test]
fn late_sender_leaves_no_complete_document() {
    let parameters =
        Parameters { time_ns: Some(1_000 * MS), direction: Direction::Download, ..Parameters::default() };
    let sampled = |cuts: [u64; 3], samples: &[(u64, u64)]| SampledFlow {
        cuts: PhaseEnds {
            startup_end_ns: Some(cuts[0] * MS),
            omit_end_ns: None,
            steady_end_ns: Some(cuts[1] * MS),
            end_ns: Some(cuts[2] * MS),
        },
        samples: samples.iter().map(|&(ms, bytes)| Sample { t_ns: ms * MS, bytes, ..Sample::default() }).collect(),
        flow: Flow { bytes_per_ms: 0, first_ns: 0, last_ns: None },
    };
    // The server begins 8 s after the client, and reports times from its own start.
    let (mut client, mut server) = (vec![(0, 0)], vec![(0, 0)]);
    for ms in (100..=1_000).step_by(100) {
        server.push((ms, ms << 17));
        client.push((ms, 0));
    }
    client.extend((1_100..8_000).step_by(100).map(|ms| (ms, 0)));
    client.extend(server.iter().map(|&(ms, bytes)| (8_010 + ms, bytes)));
    let client = sampled([1_000, 1_000, 9_010], &client);
    let server = sampled([1, 1_000, 1_000], &server);
    let download = |watched, sends| {
        let mut report = report(watched, sends);
        report.streams[0].direction = Direction::Download;
        report
    };
    let run = document(parameters, download(&client, false), download(&server, true), (0, 9_011 * MS));
    assert!(contradicts_itself(&run), "{:?} {:?}", run.phases, run.warnings);
    let warnings = format!("{:?}", run.warnings);
    assert!(warnings.contains("none of it in the steady phase, while the server sent most of it then"), "{warnings}");
}

#[test]
fn a_test_shorter_than_the_rtt_does_not_contradict_itself() {
    let parameters = Parameters { time_ns: Some(1_000 * MS), ..Parameters::default() };
    // The sender fills its buffer in the test, and sends it as ACKs come, 2 s later and 4 s later.
    let written = |ms: u64| ms.min(1_000) * 100;
    let by_kernel = |ms: u64| written(ms).min(10_000 + ms / 2_000 * 45_000);
    let sampled = |end_ms: u64, samples: Vec<Sample>| SampledFlow {
        cuts: PhaseEnds {
            startup_end_ns: Some(1_000 * MS),
            omit_end_ns: None,
            steady_end_ns: Some(1_000 * MS),
            end_ns: Some(end_ms * MS),
        },
        samples,
        flow: Flow { bytes_per_ms: 0, first_ns: 0, last_ns: None },
    };
    let sent = |ms: u64| Sample {
        t_ns: ms * MS,
        bytes: written(ms),
        tcp: Some(Box::new(TcpInfo { bytes_sent: Some(by_kernel(ms)), ..TcpInfo::default() })),
        ..Sample::default()
    };
    let received =
        |ms: u64| Sample { t_ns: ms * MS, bytes: by_kernel(ms.saturating_sub(1_001)), ..Sample::default() };
    let sender = sampled(5_000, (0..=5_000).step_by(100).map(sent).collect());
    let receiver = sampled(6_001, (0..=60).map(|n| received(n * 100)).chain([received(6_001)]).collect());
    let run = document(parameters, report(&sender, true), report(&receiver, false), (1_000, 6_001 * MS));
    assert!(!contradicts_itself(&run), "{:?} {:?}", run.phases, run.warnings);
}

#[test]
fn a_sampler_that_was_interrupted_before_its_counters_is_no_contradiction() {
    let parameters = Parameters { time_ns: Some(2_000 * MS), ..Parameters::default() };
    let cuts = PhaseEnds {
        startup_end_ns: Some(MS),
        omit_end_ns: None,
        steady_end_ns: Some(2_000 * MS),
        end_ns: Some(2_000 * MS),
    };
    let written = |ms: u64| ms.min(2_000) << 20;
    // The counters of one sample are those of 100 ms later, less than the sampler records as a gap.
    let sampled = |late_ms: u64| {
        let sample = |n: u64| {
            let later = if n == 100 { late_ms } else { 0 };
            Sample { t_ns: n * 10 * MS, bytes: written(n * 10 + later), ..Sample::default() }
        };
        let mut samples: Vec<Sample> = (0..=200).map(sample).collect();
        for at in 1..samples.len() {
            samples[at].bytes = samples[at].bytes.max(samples[at - 1].bytes);
        }
        SampledFlow { cuts, samples, flow: Flow { bytes_per_ms: 1 << 20, first_ns: 0, last_ns: None } }
    };
    let run = |late_ms| {
        let (sender, receiver) = (sampled(0), sampled(late_ms));
        document(parameters.clone(), report(&sender, true), report(&receiver, false), (0, 2_200 * MS))
    };
    assert!(!contradicts_itself(&run(100)), "{:?}", run(100).warnings);
    assert!(contradicts_itself(&run(500)), "a clock that is wrong by half a second");
}
