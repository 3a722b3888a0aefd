//! Request/response, and latency beside bulk streams.

use landspeed_model::{
    Bucket, Cause, Confidence, Conservation, Evidence, LatencyResult, LatencyUnderLoad, Parameters, Protocol, RrMode,
    RrParameters, RrSize, RunDocument, Summary, Verdict,
};

use super::random::Random;
use super::{SECOND, bulk, skeleton};

/// A result whose values are drawn from `draw`, kept in a log-linear histogram of 32 buckets a doubling.
fn result(bytes: u32, mode: RrMode, count: usize, mut draw: impl FnMut() -> f64) -> LatencyResult {
    let mut values: Vec<u64> = (0..count).map(|_| draw() as u64).collect();
    values.sort_unstable();
    let mut histogram: Vec<Bucket> = Vec::new();
    for &v in &values {
        let shift = v.max(1).ilog2().saturating_sub(5);
        let low_ns = v >> shift << shift;
        let high_ns = low_ns + (1 << shift) - 1;
        match histogram.last_mut() {
            Some(b) if b.low_ns == low_ns => b.count += 1,
            _ => histogram.push(Bucket { low_ns, high_ns, count: 1 }),
        }
    }
    let at = |q: f64| values[((values.len() as f64 * q).ceil() as usize).clamp(1, values.len()) - 1];
    let n = values.len() as u64;
    LatencyResult {
        request_bytes: bytes,
        response_bytes: bytes,
        mode,
        offered_per_s: (mode == RrMode::OpenLoop).then_some(n as f64 / 10.0),
        achieved_per_s: n as f64 / 10.0,
        scheduled: n,
        sent: n,
        completed: n,
        unanswered: 0,
        send_late_p99_ns: None,
        stray_responses: 0,
        duration_ns: 10 * SECOND,
        min_ns: values[0],
        mean_ns: values.iter().sum::<u64>() as f64 / n as f64,
        p50_ns: at(0.5),
        p90_ns: at(0.9),
        p99_ns: at(0.99),
        p999_ns: at(0.999),
        p9999_ns: at(0.9999),
        max_ns: values[values.len() - 1],
        histogram,
    }
}

/// A right-skewed latency with a rare slow path.
fn skewed(random: &mut Random, base: f64, spread: f64, slow: f64) -> f64 {
    let tail = if random.unit() < 0.002 { slow * -random.unit().max(1e-9).ln() } else { 0.0 };
    base + spread * (random.normal() * 0.6).exp() + tail
}

/// TCP request/response over five sizes.
pub fn sizes() -> RunDocument {
    let sizes = [1u32, 64, 1024, 16_384, 262_144, 1_048_576];
    let mut document = skeleton(Parameters {
        protocol: Protocol::TcpRr,
        nodelay: true,
        rr: Some(RrParameters {
            mode: RrMode::ClosedLoop,
            rate_per_s: None,
            sizes: sizes.iter().map(|&b| RrSize { request_bytes: b, response_bytes: b }).collect(),
        }),
        ..Parameters::default()
    });
    document.command =
        ["landspeed", "run", "dtn2.example.net", "--rr", "--sizes", "1..1M"].map(str::to_owned).to_vec();
    let mut random = Random::new(77);
    for bytes in sizes {
        let base = 18_000.0 + f64::from(bytes) * 0.35;
        let count = (4e9 / base) as usize;
        document.latency.push(result(bytes, RrMode::ClosedLoop, count.min(120_000), || {
            skewed(&mut random, base, 6_000.0 + f64::from(bytes) * 0.02, 250_000.0)
        }));
    }
    let first = &document.latency[0];
    document.summary = Summary {
        steady_ns: 10 * SECOND,
        transactions_per_s: Some(first.achieved_per_s),
        latency_p50_ns: Some(first.p50_ns),
        latency_p99_ns: Some(first.p99_ns),
        min_rtt_us: Some(17),
        ..Summary::default()
    };
    document.conservation = Conservation { unit: "packets".to_owned(), ..document.conservation.clone() };
    document.verdict = Verdict {
        cause: Cause::RoundTrip,
        confidence: Confidence::High,
        summary: "Each request waits for the answer before it: the round trip sets the rate, not the processors."
            .to_owned(),
        place: None,
        evidence: vec![Evidence {
            about: Cause::RoundTrip,
            metric: "median latency over minimum round trip".to_owned(),
            value: 1.41,
            unit: "ratio".to_owned(),
            threshold: "≤ 3".to_owned(),
            met: true,
            host: Some("client".to_owned()),
            stream: None,
            span_ns: None,
            source: "latency[0].p50_ns".to_owned(),
        }],
        ruled_out: Vec::new(),
        missing: Vec::new(),
        next_step:
            "For more transactions per second use more connections at once; for less delay try `--cpus` near the NIC."
                .to_owned(),
        epochs: Vec::new(),
    };
    document
}

/// Bulk streams with probes beside them: bufferbloat.
pub fn under_load() -> RunDocument {
    let mut document = bulk::congested();
    document.requested.probe_rate_per_s = Some(1000.0);
    document.effective = Some(document.requested.clone());
    let mut random = Random::new(78);
    let idle = result(64, RrMode::OpenLoop, 3_000, || skewed(&mut random, 20_000_000.0, 40_000.0, 300_000.0));
    let loaded = result(64, RrMode::OpenLoop, 9_000, || {
        let queue = random.unit();
        skewed(&mut random, 20_300_000.0 + queue * 4_800_000.0, 200_000.0, 9_000_000.0)
    });
    document.summary.latency_p50_ns = Some(loaded.p50_ns);
    document.summary.latency_p99_ns = Some(loaded.p99_ns);
    document.latency_under_load = Some(LatencyUnderLoad { idle: Some(idle), loaded });
    document
}
