//! Phases and accounting of tests in virtual time: whenever the two sides sample, every byte is counted in
//! exactly one phase, the one in which it was moved.

use landspeed_flow::assemble::{self, CollectedRun};
use landspeed_flow::client::Request;
use landspeed_flow::end::phases::{Grid, Phase, Phases, StreamsState};
use landspeed_flow::end::{EndReport, PhaseEnds, StreamReport};
use landspeed_model::{Direction, Parameters, RunDocument, Sample, StreamEnd};
use proptest::prelude::*;

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
    let (mut phases, mut grid) = (Phases::new(parameters, u64::MAX / 2), Grid::new(parameters.interval_ns));
    let mut samples = vec![Sample::default()];
    let (mut t_ns, mut before) = (0, Phase::Startup);
    for late_ns in late_ns.iter().cycle() {
        let over = flow.last_ns.is_some_and(|last_ns| t_ns >= last_ns);
        let seen = StreamsState {
            all_started: flow.bytes(t_ns) > 0,
            senders_stopped: over,
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

fn document(parameters: Parameters, client: EndReport, server: EndReport) -> RunDocument {
    let request = Request {
        target: "192.0.2.1".parse().expect("a target"),
        parameters,
        key: None,
        command: Vec::new(),
        data: None,
        start_ns: None,
    };
    let (client, server) = (Some(client), Some(server));
    assemble::document(CollectedRun { client, server, ..CollectedRun::new(&request) })
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
        let run = document(parameters, report(&sender, true), report(&receiver, false));

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
}
