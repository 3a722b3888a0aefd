//! Mis-tuned pairs of hosts that played no part in the order of the candidates: how near the best by hand a search comes.

use landspeed_model::{Cause, Confidence, Parameters, SendMode, TuneupEnd, TuneupPlan, Verdict};
use landspeed_stats::SplitMix64;
use landspeed_tuneup::{
    Diagnosis, EndFacts, Facts, Ladder, LadderOptions, Measurement, Settings, TestKind, TestOutcome,
};

const SECOND: u64 = 1_000_000_000;
const CORES: u32 = 4;

/// A pair of hosts whose rate is that of its narrowest limit.
#[derive(Debug, Clone, Copy)]
struct Pair {
    name: &'static str,
    rtt_us: u32,
    /// Rate of one core with 1 MiB writes and full segments, Gb/s.
    core_gbps: f64,
    /// Rate of the path, Gb/s.
    path_gbps: f64,
    /// Share of the path that one stream gets with bbr, cubic and reno.
    shares: [f64; 3],
    /// Factor of the core's rate with cubic against bbr, which paces each packet.
    unpaced: f64,
    /// Factor of the core's rate with sendfile.
    sendfile: f64,
}

/// Rate in Gb/s, and the limit that decides it.
fn limits(pair: &Pair, p: &Parameters) -> (f64, Cause) {
    let streams = f64::from(p.streams.max(1));
    let control = p.congestion.as_deref().unwrap_or("cubic");
    let share = match control {
        "bbr" => pair.shares[0],
        "reno" => pair.shares[2],
        _ => pair.shares[1],
    };
    let window =
        p.window_bytes.map_or(f64::INFINITY, |bytes| bytes as f64 * 8e-3 / f64::from(pair.rtt_us) * 4.0 / 3.0);
    let pace = p.pace_bps.map_or(f64::INFINITY, |bps| bps as f64 * 1e-9);
    let writes = p.write_bytes as f64 / (p.write_bytes as f64 + 4096.0);
    let segments = p.mss_bytes.map_or(1.0, |mss| (f64::from(mss) / 1448.0).min(1.0).powf(0.8));
    let pinned = !p.client_cpus.is_empty() && p.client_cpus == p.server_cpus;
    let threads = if pinned { 0.5 } else { streams.min(f64::from(CORES / 2)) };
    let send = match p.send {
        SendMode::Copy => 1.0,
        SendMode::Sendfile => pair.sendfile,
        SendMode::Splice | SendMode::Zerocopy => 0.8,
    };
    let paced = if control == "bbr" { 1.0 } else { pair.unpaced };
    let cpu = pair.core_gbps * writes * segments * threads * send * paced;
    let path = pair.path_gbps * (share * streams).min(1.0);
    let all = [
        (window * streams, Cause::ReceiverWindow),
        (pace * streams, Cause::Pacing),
        (cpu, Cause::SenderCpu),
        (path, Cause::NetworkLoss),
    ];
    all.into_iter().min_by(|a, b| a.0.total_cmp(&b.0)).expect("four limits")
}

/// The best of all combinations, Gb/s.
fn by_hand(pair: &Pair) -> f64 {
    let mut best = 0.0_f64;
    for streams in [1, 2, 4, 8] {
        for control in ["bbr", "cubic", "reno"] {
            for send in [SendMode::Copy, SendMode::Sendfile] {
                let congestion = Some(control.to_owned());
                let p = Parameters { streams, congestion, send, write_bytes: 1 << 20, ..Parameters::default() };
                best = best.max(limits(pair, &p).0);
            }
        }
    }
    best
}

fn facts(pair: &Pair) -> Facts {
    let end = EndFacts {
        cores: (0..CORES).collect(),
        congestion_available: ["reno", "cubic", "bbr"].map(str::to_owned).to_vec(),
        ..EndFacts::default()
    };
    Facts {
        client_sends: true,
        same_host: true,
        client: end.clone(),
        server: end,
        min_rtt_us: Some(pair.rtt_us),
        ..Facts::default()
    }
}

fn verdict(cause: Cause) -> Verdict {
    Verdict {
        cause,
        confidence: Confidence::High,
        summary: "a cause".to_owned(),
        place: None,
        evidence: Vec::new(),
        ruled_out: Vec::new(),
        missing: Vec::new(),
        next_step: String::new(),
        epochs: Vec::new(),
    }
}

/// Noise of a test: standard deviation, and one in this many tests without a result (0 for none).
type Noise = (f64, u64);

fn search(pair: &Pair, given: &Parameters, budget_s: u64, (sigma, empty): Noise, seed: u64) -> Ladder {
    let options = LadderOptions {
        budget_ns: budget_s * SECOND,
        seed,
        host_changes: false,
        test_ns: None,
        omit_ns: None,
        memory_bps: None,
        map: None,
    };
    let original = Settings { parameters: given.clone(), plan: TuneupPlan::default() };
    let mut ladder = Ladder::new(original, options).expect("time enough");
    let mut random = SplitMix64::new(seed ^ 0x9a12);
    let mut now_ns = 0;
    while let Some(test) = ladder.next_test(now_ns) {
        let p = &test.settings.parameters;
        assert!(landspeed_settings::problems(p).is_empty(), "{:?}", landspeed_settings::problems(p));
        now_ns += p.time_ns.expect("a time") + p.omit_ns + 150_000_000;
        let (gbps, cause) = limits(pair, p);
        let noise = (0..12).map(|_| random.unit()).sum::<f64>() - 6.0;
        let measured = Measurement {
            goodput_bps: gbps * 1e9 * (1.0 + sigma * noise).max(0.1),
            rtt_p50_us: Some(f64::from(pair.rtt_us)),
            rtt_p99_us: Some(f64::from(pair.rtt_us) * 1.5),
            retransmits_per_gb: Some(if cause == Cause::NetworkLoss { 500.0 } else { 0.0 }),
            cpu_s_per_gb: Some(0.05),
            receive_queue_cpu: None,
        };
        let outcome = match test.kind {
            TestKind::Compared if empty > 0 && random.below(empty) == 0 => {
                TestOutcome::Refused("nothing arrived".to_owned())
            }
            TestKind::Compared => TestOutcome::Measured(measured),
            TestKind::Diagnosis => {
                let congestion = p.congestion.clone().or(Some("cubic".to_owned()));
                let facts = Facts {
                    goodput_bps: Some(measured.goodput_bps),
                    congestion,
                    retransmits: Some(u64::from(cause == Cause::NetworkLoss)),
                    ..facts(pair)
                };
                TestOutcome::Diagnosed(measured, Box::new(Diagnosis { verdict: verdict(cause), facts }))
            }
        };
        ladder.take(now_ns, outcome);
    }
    ladder
}

const PAIRS: [Pair; 5] = [
    Pair { name: "veth", rtt_us: 50, core_gbps: 60.0, path_gbps: 1e4, shares: [1.0; 3], unpaced: 1.4, sendfile: 0.9 },
    Pair {
        name: "LAN",
        rtt_us: 200,
        core_gbps: 25.0,
        path_gbps: 40.0,
        shares: [0.9, 1.0, 0.9],
        unpaced: 1.0,
        sendfile: 1.1,
    },
    Pair {
        name: "loss",
        rtt_us: 10_000,
        core_gbps: 30.0,
        path_gbps: 10.0,
        shares: [0.95, 0.1, 0.05],
        unpaced: 1.0,
        sendfile: 1.0,
    },
    Pair {
        name: "WAN",
        rtt_us: 40_000,
        core_gbps: 20.0,
        path_gbps: 10.0,
        shares: [0.9, 0.5, 0.3],
        unpaced: 1.0,
        sendfile: 1.0,
    },
    Pair {
        name: "slow core",
        rtt_us: 1000,
        core_gbps: 8.0,
        path_gbps: 25.0,
        shares: [0.8, 0.9, 0.9],
        unpaced: 1.2,
        sendfile: 1.3,
    },
];

/// Settings of programs and of users before.
fn mistunings() -> Vec<Parameters> {
    let d = Parameters::default;
    let named = |name: &str| Some(name.to_owned());
    vec![
        Parameters { mss_bytes: Some(500), congestion: named("reno"), window_bytes: Some(256 << 10), ..d() },
        Parameters {
            window_bytes: Some(64 << 10),
            write_bytes: 4 << 10,
            client_cpus: vec![0],
            server_cpus: vec![0],
            ..d()
        },
        Parameters { pace_bps: Some(1_000_000_000), congestion: named("bbr"), ..d() },
        Parameters { mss_bytes: Some(500), congestion: named("bbr"), write_bytes: 1 << 10, ..d() },
        Parameters {
            streams: 8,
            pace_bps: Some(200_000_000),
            mss_bytes: Some(1000),
            congestion: named("reno"),
            ..d()
        },
    ]
}

fn ratios(budget_s: u64, noise: Noise) -> Vec<(f64, String)> {
    let mut found = Vec::new();
    for pair in &PAIRS {
        for (number, given) in mistunings().iter().enumerate() {
            let seed = found.len() as u64;
            let ladder = search(pair, given, budget_s, noise, seed);
            let ratio = limits(pair, &ladder.best().parameters).0 / by_hand(pair);
            let (end, why) = ladder.ended().expect("an end");
            let kept = ladder.rungs().iter().filter(|rung| rung.kept).map(|rung| rung.change.as_str());
            let kept = kept.collect::<Vec<_>>().join(" | ");
            let what = format!("{} {number}: {end:?} {why}: {kept}", pair.name);
            assert_ne!(end, TuneupEnd::Failed, "{what}");
            found.push((ratio, what));
        }
    }
    found.sort_by(|a, b| a.0.total_cmp(&b.0));
    found
}

#[test]
fn unseen_pairs_reach_the_best_by_hand() {
    for (budget_s, noise, at_least, median) in
        [(300, (0.02, 0), 0.9, 0.97), (150, (0.02, 0), 0.6, 0.95), (300, (0.08, 20), 0.6, 0.9)]
    {
        let found = ratios(budget_s, noise);
        let middle = found[found.len() / 2].0;
        let listed: Vec<String> = found.iter().take(12).map(|(ratio, what)| format!("{ratio:.2} {what}")).collect();
        assert!(found[0].0 >= at_least && middle >= median, "budget {budget_s} s, noise {noise:?}: {listed:#?}");
    }
}
