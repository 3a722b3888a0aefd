use std::collections::BTreeMap;

use landspeed_model::{
    Direction, FigureBasis, Interval, LabDocument, LabFigure, LabStatus, Phase, PhaseName, Reference,
    ReferenceFigure, ReferenceUnit, RunDocument, Sample, Stream, StreamEnd, TcpInfo,
};

use super::{compare_reference, flow_series};

const SECOND: u64 = 1_000_000_000;

/// A stream of four seconds, the first of them omitted, with the MB and retransmits of each second.
fn stream(id: u32, megabytes: [u64; 4], retransmits: [u32; 4]) -> Stream {
    sampled(id, megabytes, retransmits, false)
}

/// Like [`stream`], optionally with 1000 segments of 1 kB per second counted as delivered by the sender.
fn sampled(id: u32, megabytes: [u64; 4], retransmits: [u32; 4], delivered: bool) -> Stream {
    let mut total = 0;
    let interval = |(i, megabytes): (u64, u64)| Interval {
        start_ns: i * SECOND,
        end_ns: (i + 1) * SECOND,
        phase: if i == 0 { PhaseName::Omitted } else { PhaseName::Steady },
        bytes: megabytes * 1_000_000,
        packets: None,
    };
    let sample = |(i, count): (u64, u32)| {
        total += count;
        let tcp = TcpInfo {
            total_retrans: total,
            snd_cwnd: 100,
            snd_mss_bytes: 1000,
            delivered: delivered.then(|| 1000 * (i as u32 + 1)),
            ..TcpInfo::default()
        };
        Sample { t_ns: (i + 1) * SECOND, tcp: Some(Box::new(tcp)), ..Sample::default() }
    };
    Stream {
        id,
        direction: Direction::Upload,
        client_addr: String::new(),
        server_addr: String::new(),
        intervals: (0..).zip(megabytes).map(interval).collect(),
        intervals_from: "receiver".to_owned(),
        sender: Some(StreamEnd { samples: (0..).zip(retransmits).map(sample).collect(), ..StreamEnd::default() }),
        receiver: None,
    }
}

/// A lab run with one flow that has these streams.
fn document(buffer: &str, seed: u64, streams: Vec<Stream>) -> LabDocument {
    let bytes: u64 = streams.iter().flat_map(|s| &s.intervals[1..]).map(|interval| interval.bytes).sum();
    let mut document: LabDocument =
        serde_json::from_str(include_str!("../../../../fixtures/reports/lab.json")).expect("a recorded document");
    document.flows.truncate(1);
    let run: RunDocument = {
        let mut run = document.flows[0].run.take().expect("a run");
        run.phases = vec![Phase {
            direction: Direction::Upload,
            name: PhaseName::Steady,
            start_ns: SECOND,
            end_ns: 4 * SECOND,
            bytes: Some(bytes),
        }];
        run.requested.interval_ns = SECOND;
        run.effective = None;
        run.streams = streams;
        run
    };
    document.status = LabStatus::Complete;
    document.seed = seed;
    document.scenario.cell = BTreeMap::from([("buffer".to_owned(), buffer.into())]);
    document.flows[0].name = "tcp".to_owned();
    document.flows[0].goodput_bps = Some(bytes as f64 * 8.0 / 3.0);
    document.flows[0].retransmits = Some(9);
    document.flows[0].run = Some(run);
    document
}

fn figure(value: f64, unit: ReferenceUnit, figure: LabFigure) -> ReferenceFigure {
    ReferenceFigure {
        name: "figure".to_owned(),
        value,
        unit,
        basis: FigureBasis::Reported,
        figure,
        flow: None,
        cell: BTreeMap::new(),
        minus: None,
        over: None,
        from_s: None,
        until_s: None,
        source: None,
        reason: None,
    }
}

/// Median, minimum, maximum and deviation of `figure` over `documents`.
#[track_caller]
fn measured(
    figure: ReferenceFigure,
    documents: &[LabDocument],
) -> (Option<f64>, Option<f64>, Option<f64>, Option<f64>) {
    let figures = vec![figure];
    let reference = Reference {
        source: "deck".to_owned(),
        reported: String::new(),
        why_different: None,
        figures,
        criteria: Vec::new(),
    };
    let compared = compare_reference(&reference, documents).remove(0);
    assert_eq!(compared.source, "deck");
    let round = |value: Option<f64>| value.map(|value| (value * 1e6).round() / 1e6);
    (round(compared.measured), round(compared.min), round(compared.max), round(compared.deviation))
}

fn cell(buffer: &str) -> BTreeMap<String, serde_json::Value> {
    BTreeMap::from([("buffer".to_owned(), buffer.into())])
}

/// Two seeds for each of two buffers; the goodput with the small one is 8 and 16 Mb/s, with the large one 24
/// and 40.
fn four() -> Vec<LabDocument> {
    let of = |buffer: &str, seed, mb| document(buffer, seed, vec![stream(0, [mb; 4], [0, 3, 0, 2])]);
    vec![of("1MB", 1, 1), of("1MB", 2, 2), of("4MB", 1, 3), of("4MB", 2, 5)]
}

#[test]
fn deviation_compares_the_median_with_the_reported_value() {
    let goodput = ReferenceFigure { cell: cell("1MB"), ..figure(10.0, ReferenceUnit::Megabits, LabFigure::Goodput) };
    assert_eq!(measured(goodput, &four()), (Some(12.0), Some(8.0), Some(16.0), Some(0.2)));
}

#[test]
fn deviation_from_zero_is_none_unless_equal() {
    assert_eq!(landspeed_model::deviation(0.0, 0.0), Some(0.0));
    assert_eq!(landspeed_model::deviation(0.0, 1.0), None);
    assert_eq!(landspeed_model::deviation(-2.0, -1.0), Some(-0.5));
}

#[test]
fn differences_and_ratios_pair_runs_by_seed() {
    let mut difference =
        ReferenceFigure { cell: cell("4MB"), ..figure(20.0, ReferenceUnit::Megabits, LabFigure::Goodput) };
    let mut ratio = ReferenceFigure { unit: ReferenceUnit::Ratio, value: 2.75, ..difference.clone() };
    difference.minus = Some(cell("1MB"));
    ratio.over = Some(cell("1MB"));
    assert_eq!(measured(difference, &four()), (Some(20.0), Some(16.0), Some(24.0), Some(0.0)));
    assert_eq!(measured(ratio, &four()), (Some(2.75), Some(2.5), Some(3.0), Some(0.0)));
}

#[test]
fn incomplete_runs_and_absent_cells_are_not_measured() {
    let mut documents = four();
    documents[0].status = LabStatus::Invalid;
    let small = ReferenceFigure { cell: cell("1MB"), ..figure(16.0, ReferenceUnit::Megabits, LabFigure::Goodput) };
    assert_eq!(measured(small.clone(), &documents).0, Some(16.0));
    assert_eq!(
        measured(ReferenceFigure { cell: cell("2MB"), ..small.clone() }, &documents),
        (None, None, None, None)
    );
    let unknown = ReferenceFigure { flow: Some("udp".to_owned()), ..small };
    assert_eq!(measured(unknown, &documents).0, None);
}

#[test]
fn rate_and_retransmits_are_limited_to_the_window() {
    let documents =
        [document("1MB", 1, vec![stream(0, [0, 1, 2, 3], [5, 3, 0, 2]), stream(1, [0, 1, 2, 3], [0; 4])])];
    let window = |figure: ReferenceFigure, from_s, until_s| ReferenceFigure { from_s, until_s, ..figure };
    let rate = figure(48.0, ReferenceUnit::Megabits, LabFigure::Goodput);
    assert_eq!(measured(window(rate.clone(), Some(3.0), None), &documents).0, Some(48.0));
    assert_eq!(measured(window(rate, Some(1.5), Some(2.5)), &documents).0, Some(24.0));
    let retransmits = figure(5.0, ReferenceUnit::Segments, LabFigure::Retransmits);
    assert_eq!(measured(retransmits.clone(), &documents).0, Some(9.0));
    assert_eq!(measured(window(retransmits.clone(), Some(1.0), Some(4.0)), &documents).0, Some(5.0));
    assert_eq!(measured(window(retransmits, None, Some(1.0)), &documents).0, Some(5.0));
}

#[test]
fn cwnd_is_summed_over_all_streams() {
    let documents = [document("1MB", 1, vec![stream(0, [1; 4], [0; 4]), stream(1, [3; 4], [0; 4])])];
    let cwnd = figure(0.2, ReferenceUnit::Megabytes, LabFigure::Cwnd);
    assert_eq!(measured(cwnd, &documents).0, Some(0.2));
    let balance = figure(0.8, ReferenceUnit::Ratio, LabFigure::Balance);
    assert_eq!(measured(balance, &documents).0, Some(0.8));
}

#[test]
fn series_sums_all_streams_per_interval() {
    let documents =
        [document("1MB", 1, vec![stream(0, [0, 1, 2, 3], [5, 3, 0, 2]), stream(1, [4; 4], [1, 0, 0, 0])])];
    let series = documents[0].flows[0].run.as_ref().and_then(flow_series).expect("a steady phase");
    assert_eq!(series.interval_ns, SECOND);
    assert_eq!(series.goodput_bps, [32_000_000, 40_000_000, 48_000_000, 56_000_000]);
    assert_eq!(series.retransmits, [6, 3, 0, 2]);
    assert_eq!(series.cwnd_bytes, [200_000; 4]);
}

#[test]
fn data_waiting_for_a_retransmission_counts_when_delivered() {
    let documents = [document("1MB", 1, vec![sampled(0, [0, 0, 0, 4], [0, 1, 0, 0], true)])];
    let series = documents[0].flows[0].run.as_ref().and_then(flow_series).expect("a steady phase");
    assert_eq!(series.goodput_bps, [8_000_000; 4]);
}

#[test]
fn window_without_an_end_excludes_the_drain_phase() {
    let mut slow = stream(0, [0, 1, 2, 3], [0; 4]);
    let drain =
        Interval { start_ns: 4 * SECOND, end_ns: 9 * SECOND, phase: PhaseName::Drain, bytes: 1, packets: None };
    slow.intervals.push(drain);
    let last = ReferenceFigure { from_s: Some(3.0), ..figure(24.0, ReferenceUnit::Megabits, LabFigure::Goodput) };
    assert_eq!(measured(last, &[document("1MB", 1, vec![slow])]).0, Some(24.0));
}

/// A stream with a sample every 100 ms, each up to 40 ms late, that delivers 1 MB in each.
fn late_samples() -> Stream {
    let mut stream = sampled(1, [10, 10, 10, 10], [0; 4], true);
    let late_ns = [0, 40_000_000, 1, 0, 30_000_000, 0, 1];
    let sample = |(i, late_ns): (u64, &u64)| {
        let t_ns = i * SECOND / 10 + late_ns;
        let delivered = Some((t_ns / 100_000) as u32);
        let tcp = TcpInfo { snd_cwnd: 100, snd_mss_bytes: 1000, delivered, ..TcpInfo::default() };
        Sample { t_ns, tcp: Some(Box::new(tcp)), ..Sample::default() }
    };
    let samples = (1..=41).zip(late_ns.iter().cycle()).map(sample).collect();
    stream.sender = Some(StreamEnd { samples, ..StreamEnd::default() });
    stream
}

#[test]
fn late_samples_neither_double_a_rate_nor_empty_a_window() {
    let mut run = document("a", 1, vec![late_samples()]).flows[0].run.take().expect("a run");
    run.requested.interval_ns = SECOND / 10;
    let series = flow_series(&run).expect("a series");
    assert_eq!(series.goodput_bps.len(), 40);
    for bps in &series.goodput_bps {
        assert!((79_900_000..=80_100_000).contains(bps), "{:?}", series.goodput_bps);
    }
    assert!(series.cwnd_bytes.iter().all(|bytes| *bytes == 100_000), "{:?}", series.cwnd_bytes);
}

#[test]
fn samples_that_are_missing_leave_no_gap() {
    let mut stream = late_samples();
    stream
        .sender
        .as_mut()
        .expect("a sender")
        .samples
        .retain(|sample| !(8..12).contains(&(sample.t_ns / 100_000_000)));
    let mut run = document("a", 1, vec![stream]).flows[0].run.take().expect("a run");
    run.requested.interval_ns = SECOND / 10;
    let series = flow_series(&run).expect("a series");
    assert!(series.goodput_bps.iter().all(|bps| (79_900_000..=80_100_000).contains(bps)), "{:?}", series.goodput_bps);
    assert!(series.cwnd_bytes.iter().all(|bytes| *bytes == 100_000), "{:?}", series.cwnd_bytes);
}

#[test]
fn loss_and_rtt_without_a_flow_cover_all_flows() {
    let mut document = document("a", 1, vec![stream(1, [1; 4], [0; 4])]);
    let mut second = document.flows[0].clone();
    second.name = "cross".to_owned();
    document.flows.push(second);
    for (flow, (lost, sent, rtt_us)) in document.flows.iter_mut().zip([(10, 100, 1000), (0, 300, 3000)]) {
        let run = flow.run.as_mut().expect("a run");
        run.summary.loss_ratio = Some(lost as f64 / sent as f64);
        run.udp = Some(landspeed_model::UdpTotals {
            lost_packets: Some(lost),
            sent_packets: Some(sent),
            ..Default::default()
        });
        for sample in run.streams.iter_mut().flat_map(|s| s.sender.iter_mut()).flat_map(|end| end.samples.iter_mut())
        {
            sample.tcp.as_mut().expect("TCP").rtt_us = rtt_us;
        }
    }
    let documents = [document];
    let of = |figure| measured(figure, &documents).0;
    assert_eq!(of(figure(1.0, ReferenceUnit::Ratio, LabFigure::Loss)), Some(0.025));
    assert_eq!(of(figure(1.0, ReferenceUnit::Milliseconds, LabFigure::Rtt)), Some(2.0));
    let cross =
        ReferenceFigure { flow: Some("cross".to_owned()), ..figure(1.0, ReferenceUnit::Ratio, LabFigure::Loss) };
    assert_eq!(of(cross), Some(0.0));
}

/// A stream of one-second intervals, all of the steady phase after the first, with the MB of each.
fn over_time(megabytes: &[u64]) -> Vec<LabDocument> {
    let mut stream = stream(0, [0; 4], [0; 4]);
    let end = megabytes.len() as u64 * SECOND;
    stream.intervals = (0..)
        .zip(megabytes)
        .map(|(i, mb)| Interval {
            start_ns: i * SECOND,
            end_ns: (i + 1) * SECOND,
            phase: if i == 0 { PhaseName::Omitted } else { PhaseName::Steady },
            bytes: mb * 1_000_000,
            packets: None,
        })
        .collect();
    let mut document = document("1MB", 1, vec![stream]);
    if let Some(run) = &mut document.flows[0].run {
        run.phases[0].end_ns = end;
    }
    vec![document]
}

#[test]
fn a_ramp_ends_at_nine_tenths_of_the_largest_rate() {
    let ramp = || figure(3000.0, ReferenceUnit::Milliseconds, LabFigure::RampTime);
    assert_eq!(measured(ramp(), &over_time(&[10, 89, 91, 100, 60])).0, Some(3000.0));
    assert_eq!(measured(ramp(), &over_time(&[100, 50, 50, 50])).0, Some(1000.0));
    assert_eq!(measured(ramp(), &over_time(&[0, 0, 0, 0])).0, None);
}

#[test]
fn variation_is_of_the_steady_phase_or_the_window() {
    let variation = || figure(0.0, ReferenceUnit::Percent, LabFigure::Variation);
    assert_eq!(measured(variation(), &over_time(&[1, 50, 50, 50])).0, Some(0.0));
    // Mean 50, standard deviation 10.
    assert_eq!(measured(variation(), &over_time(&[1, 40, 50, 60])).0, Some(20.0));
    let late = ReferenceFigure { from_s: Some(3.0), ..variation() };
    assert_eq!(measured(late, &over_time(&[1, 10, 90, 50, 50])).0, Some(0.0));
    assert_eq!(measured(variation(), &over_time(&[1, 0, 0, 0])).0, None);
}

/// Checks one criterion; returns whether it is met, the median, and the runs that meet it.
fn check(criterion: &serde_json::Value, documents: &[LabDocument]) -> (Option<bool>, Option<f64>, u32) {
    let reference = serde_json::json!({ "source": "a deck", "reported": "a chart", "criteria": [criterion] });
    let reference: Reference = serde_json::from_value(reference).expect("a reference");
    let checked = super::check_criteria(&reference, documents).remove(0);
    assert_eq!(checked.reason.as_deref(), Some("a path that is longer"));
    (checked.met, checked.measured, checked.met_runs)
}

#[test]
fn a_claim_of_shape_fails_on_another_path() {
    let claim = |figure: &str, unit: &str, most: f64| {
        let reason = "a path that is longer";
        serde_json::json!({ "name": "shape", "figure": figure, "unit": unit, "flow": "tcp", "at_most": most, "source": "a chart", "reason": reason })
    };
    let (short, long) = (over_time(&[90, 100, 100, 100]), over_time(&[1, 10, 90, 100]));
    assert_eq!(check(&claim("ramp-time", "ms", 1900.0), &short), (Some(true), Some(1000.0), 1));
    assert_eq!(check(&claim("ramp-time", "ms", 1900.0), &long), (Some(false), Some(3000.0), 0));
    assert_eq!(check(&claim("variation", "%", 1.0), &short), (Some(true), Some(0.0), 1));
    assert_eq!(check(&claim("variation", "%", 1.0), &long).0, Some(false));
}

#[test]
fn a_claim_of_order_fails_in_the_other_order() {
    let claim = |cell: &str, other: &str| {
        serde_json::json!({ "name": "order", "unit": "ratio", "flow": "tcp", "at_least": 1.0, "source": "a chart",
            "cell": { "buffer": cell }, "over": { "buffer": other }, "reason": "a path that is longer" })
    };
    let run = |buffer: &str, megabytes: u64| document(buffer, 1, vec![stream(0, [megabytes; 4], [0; 4])]);
    let documents = [run("1MB", 50), run("16MB", 100)];
    assert_eq!(check(&claim("16MB", "1MB"), &documents), (Some(true), Some(2.0), 1));
    assert_eq!(check(&claim("1MB", "16MB"), &documents), (Some(false), Some(0.5), 0));
    assert_eq!(check(&claim("16MB", "4MB"), &documents), (None, None, 0));
}
