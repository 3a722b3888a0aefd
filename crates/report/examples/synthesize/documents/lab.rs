//! Invented runs of a lab, and sets of their cells.

use std::collections::BTreeMap;

use landspeed_model::{
    BuildInfo, CellFlow, CellQueue, ErrorEntry, KernelInfo, LAB_SCHEMA, LAB_SET_SCHEMA, LabCapture, LabCell,
    LabCheck, LabDocument, LabFlow, LabLink, LabQueue, LabSetDocument, LabStatus, QueueRole, QueueSeries, Reference,
    RunDocument, ScenarioInfo, Topology, TopologyLink, TopologyNode, Warning,
};
use serde_json::Value;

use super::random::Random;
use super::{MS, SECOND, bulk, udp};

const GBPS: u64 = 1_000_000_000;
const LIMIT: u64 = 1_000_000;
/// Cells of every queue's series, 10 ms each.
const CELLS: usize = 1_100;

/// Two TCP flows and UDP cross traffic through one small port.
pub fn testbed() -> LabDocument {
    let hosts = ["a", "b", "c"].into_iter().zip(["x", "y", "z"]);
    let mut links = vec![link("west", "east", 25 * MS)];
    for (left, right) in hosts {
        links.push(link(left, "west", 0));
        links.push(link("east", right, 0));
    }
    links[0].impairments = vec!["forward: random loss 0.0001 %".to_owned(), "forward: jitter 0.010 ms".to_owned()];
    let mut queues = Vec::new();
    let mut directions = Vec::new();
    for link in &links {
        let [a, b] = &link.between;
        for (from, to) in [(a, b), (b, a)] {
            let core = from == "west" && to == "east";
            let role = if matches!(from.as_str(), "west" | "east") { QueueRole::Switch } else { QueueRole::Host };
            queues.push(queue(from, to, role, core));
            queues.push(queue(from, to, QueueRole::Wire, false));
            directions.push(LabLink {
                name: format!("{from}->{to}"),
                rate_bps: 10 * GBPS,
                delay_ns: link.delay_ns,
                packets: 1_200_000,
                bytes: 10_848_000_000,
                lost: if core { 3 } else { 0 },
                utilisation: if core { 0.8678 } else { 0.21 },
            });
        }
    }
    LabDocument {
        schema: LAB_SCHEMA.to_owned(),
        landspeed: BuildInfo { version: "0.1.0".to_owned(), server_version: None },
        started: "2026-03-14T09:26:53Z".to_owned(),
        command: ["landspeed", "lab", "run", "testbed.toml", "--report", "testbed.html"].map(str::to_owned).to_vec(),
        status: LabStatus::Complete,
        errors: Vec::new(),
        warnings: Vec::new(),
        scenario: ScenarioInfo {
            name: "Two TCP flows and UDP cross traffic".to_owned(),
            description: Some("Does a port of 1 MB carry two TCP flows beside 2 Gb/s of UDP?".to_owned()),
            hash: "5d41402abc4b2a76b9719d911017c592ae1f3c0f6f1b3e2a0d0f7c1f5b6a7988".to_owned(),
            text: "name = \"Two TCP flows and UDP cross traffic\"\nseed = 7\n\n[switch.west]\nqueue = { kind = \"bfifo\", \
                   limit = \"1MB\" } # the port\n\n[[flow]]\nfrom = \"a\"\nto = \"x\"\n"
                .to_owned(),
            cell: BTreeMap::from([("switch.west.queue.limit".to_owned(), Value::from("1MB"))]),
            reference: Some(reference()),
        },
        seed: 7,
        kernel: kernel(),
        digest: Some("9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08".to_owned()),
        wall_s: 14.2,
        boot_s: 0.16,
        virtual_s: 11.0,
        memory_bytes: 2 << 30,
        memory_peak_bytes: Some(83_632_128),
        topology: Topology {
            nodes: ["a", "b", "c", "x", "y", "z"]
                .map(|n| node(n, "host", &["cubic", "fq"]))
                .into_iter()
                .chain(["west", "east"].map(|n| node(n, "switch", &[])))
                .collect(),
            links,
        },
        flows: vec![
            flow("tcp1", "a", "x", 0, bulk::congested()),
            flow("tcp2", "b", "y", SECOND / 2, bulk::window_limited()),
            flow("cross", "c", "z", 0, udp::lossy()),
        ],
        queues,
        links: directions,
        host_drops: Vec::new(),
        captures: vec![LabCapture {
            name: "west:east".to_owned(),
            file: "west-east.pcapng".to_owned(),
            packets: 812_333,
            missed: 0,
        }],
        checks: vec![
            check("cables-lossless", true, "6074544 frames over 14 cables, none lost"),
            check("drops-placed", true, "360 dropped by switch queues, 3 lost by links, none elsewhere"),
            check("no-memory-pressure", true, "no TCP memory pressure; 223 pages in use at the end"),
        ],
    }
}

/// A check failed, a flow was not measured.
pub fn invalid() -> LabDocument {
    let mut lab = testbed();
    lab.status = LabStatus::Invalid;
    lab.checks.push(check(
        "no-backlog-overflow",
        false,
        "softnet of `east` dropped 17 packets that no queue accounts for",
    ));
    lab.warnings.push(Warning {
        code: "lab-netem-limit".to_owned(),
        message: "the limit of `west->east` is below the BDP".to_owned(),
    });
    lab.flows[1].run = None;
    lab.flows[1].goodput_bps = None;
    lab.scenario.reference = None;
    lab
}

/// The guest never came up; a node is linked to nothing.
pub fn failed() -> LabDocument {
    let mut lab = testbed();
    lab.status = LabStatus::Failed;
    lab.errors.push(ErrorEntry {
        code: "lab-guest-crashed".to_owned(),
        message: "the guest ended before the traffic began".to_owned(),
        advice: Some("`landspeed lab kernel list`".to_owned()),
    });
    lab.digest = None;
    lab.topology.nodes.push(node("alone", "host", &[]));
    for flow in &mut lab.flows {
        (flow.run, flow.goodput_bps, flow.retransmits) = (None, None, None);
    }
    (lab.queues, lab.links, lab.checks, lab.captures) = Default::default();
    lab
}

/// Every string tries to be markup.
pub fn hostile() -> LabDocument {
    let mut lab = testbed();
    lab.status = LabStatus::Invalid;
    lab.command = vec![hostile_text(), "\u{202e}\u{0}".to_owned()];
    lab.started = hostile_text();
    lab.scenario = ScenarioInfo {
        name: hostile_text(),
        description: Some(hostile_text()),
        hash: hostile_text(),
        text: format!("{}\n\u{202e}", hostile_text()),
        cell: BTreeMap::from([
            (hostile_text(), Value::from(hostile_text())),
            ("__proto__".to_owned(), Value::from(1)),
        ]),
        reference: Some(Reference {
            source: hostile_text(),
            reported: hostile_text(),
            why_different: Some(hostile_text()),
        }),
    };
    lab.kernel = KernelInfo { release: hostile_text(), build_id: hostile_text(), source: hostile_text() };
    lab.digest = Some(hostile_text());
    // Names hold together, as in a real document.
    let renamed = |name: &str| if name == "west" { hostile_text() } else { name.to_owned() };
    for node in &mut lab.topology.nodes {
        node.name = renamed(&node.name);
        node.role = if node.role == "host" { hostile_text() } else { node.role.clone() };
        node.settings.push(hostile_text());
    }
    for link in &mut lab.topology.links {
        link.between = [renamed(&link.between[0]), renamed(&link.between[1])];
        link.impairments.push(hostile_text());
    }
    for queue in &mut lab.queues {
        queue.name = queue.name.replace("west", &hostile_text());
        queue.kind = hostile_text();
        queue.detail.insert(hostile_text(), u64::MAX);
    }
    for link in &mut lab.links {
        link.name = link.name.replace("west", &hostile_text());
        link.utilisation = f64::NAN;
    }
    for flow in &mut lab.flows {
        flow.name = hostile_text();
    }
    lab.checks = vec![check(&hostile_text(), false, &hostile_text())];
    lab.captures[0].name = hostile_text();
    lab
}

pub fn hostile_text() -> String {
    "</script><img src=x onerror=\"document.title='owned'\"><!--<script>alert(1)</script>".to_owned()
}

fn reference() -> Reference {
    Reference {
        source: "Evaluating switch buffers, slide 14".to_owned(),
        reported: "1 MB: 3.1 Gb/s together; 64 MB: 7.8 Gb/s.".to_owned(),
        why_different: Some("The deck's hosts ran Linux 2.6.32 with HTCP; these run 7.3 with CUBIC.".to_owned()),
    }
}

fn kernel() -> KernelInfo {
    KernelInfo {
        release: "7.3.4".to_owned(),
        build_id: "b1946ac92492d2347c6235b4d2611184".to_owned(),
        source: "Debian linux-source-7.3 7.3.4-1".to_owned(),
    }
}

fn node(name: &str, role: &str, settings: &[&str]) -> TopologyNode {
    TopologyNode {
        name: name.to_owned(),
        role: role.to_owned(),
        settings: settings.iter().map(|&s| s.to_owned()).collect(),
    }
}

fn link(a: &str, b: &str, delay_ns: u64) -> TopologyLink {
    TopologyLink {
        between: [a.to_owned(), b.to_owned()],
        rate_bps: 10 * GBPS,
        back_rate_bps: 10 * GBPS,
        delay_ns,
        back_delay_ns: delay_ns,
        mtu_bytes: 9000,
        impairments: Vec::new(),
    }
}

fn flow(name: &str, from: &str, to: &str, start_ns: u64, run: RunDocument) -> LabFlow {
    LabFlow {
        name: name.to_owned(),
        from: from.to_owned(),
        to: to.to_owned(),
        start_ns,
        goodput_bps: run.summary.goodput_bps,
        retransmits: run.summary.retransmits,
        run: Some(run),
    }
}

fn check(name: &str, passed: bool, detail: &str) -> LabCheck {
    LabCheck { name: name.to_owned(), passed, detail: detail.to_owned() }
}

/// A queue that fills and drains like a sawtooth if it is the `core`, and hardly holds anything if it is not.
fn queue(from: &str, to: &str, role: QueueRole, core: bool) -> LabQueue {
    let mut series = QueueSeries { interval_ns: 10 * MS, ..QueueSeries::default() };
    for k in 0..CELLS {
        let level = if core { LIMIT * (k as u64 % 140) / 138 } else { u64::from(k % 97 == 3) * 9014 };
        series.backlog_bytes_max.push(level.min(LIMIT - 4000));
        series.drops.push(if core && level > LIMIT { 60 } else { 0 });
        series.bytes.push(if core { 10_800_000 } else { 2_000_000 });
    }
    let peak_bytes = series.backlog_bytes_max.iter().copied().max().unwrap_or_default();
    LabQueue {
        name: format!("{from}->{to}"),
        role,
        kind: match role {
            QueueRole::Switch => "bfifo",
            QueueRole::Host => "fq",
            QueueRole::Wire => "netem",
        }
        .to_owned(),
        limit_bytes: (role == QueueRole::Switch).then_some(LIMIT),
        limit_packets: (role == QueueRole::Host).then_some(100_000),
        rate_bps: 10 * GBPS,
        bytes: series.bytes.iter().sum(),
        packets: 1_200_000,
        drops: series.drops.iter().sum(),
        marks: 0,
        peak_bytes,
        mean_bytes: series.backlog_bytes_max.iter().sum::<u64>() as f64 / CELLS as f64,
        busy_ratio: if core { 0.98 } else { 0.01 },
        sojourn_ns_p50: if core { 390_000 } else { 0 },
        sojourn_ns_p99: peak_bytes * 8 / 10,
        backlogged_ns: 0,
        drained_bps: None,
        series,
        detail: BTreeMap::from([("throttled".to_owned(), 1039)]),
    }
}

/// Goodput over the buffer, by congestion control, over several seeds; some cells cannot be used.
pub fn buffers() -> LabSetDocument {
    let mut cells = Vec::new();
    for (i, limit) in ["250KB", "1MB", "4MB", "16MB", "64MB"].into_iter().enumerate() {
        for (j, congestion) in ["cubic", "htcp", "bbr"].into_iter().enumerate() {
            for seed in 1..=5 {
                let values = BTreeMap::from([
                    ("switch.west.queue.limit".to_owned(), Value::from(limit)),
                    ("host.*.congestion".to_owned(), Value::from(congestion)),
                ]);
                let share =
                    [[0.35, 0.52, 0.75, 0.93, 0.98], [0.3, 0.58, 0.8, 0.95, 0.97], [0.9, 0.91, 0.93, 0.93, 0.92]];
                cells.push(cell(values, seed, share[j][i]));
            }
        }
    }
    cells[7].status = LabStatus::Invalid;
    cells[7].problems = vec!["drops-placed: 3 packets vanished between `west` and `east`".to_owned()];
    cells[40].status = LabStatus::Failed;
    cells[40].problems = vec!["the guest ended before the traffic began".to_owned()];
    (cells[40].flows, cells[40].queues, cells[40].digest) = (Vec::new(), Vec::new(), None);
    set("Goodput over buffer size", &["switch.west.queue.limit", "host.*.congestion"], cells)
}

/// Kinds of queue, which have no order.
pub fn kinds() -> LabSetDocument {
    let table = serde_json::json!({ "kind": "red", "limit": "1MB" });
    let cells = [Value::from("fq_codel"), table, Value::from("pfifo")]
        .into_iter()
        .zip([0.92, 0.85, 0.6])
        .flat_map(|(value, share)| {
            (1..=3).map(move |seed| cell(BTreeMap::from([("queue".to_owned(), value.clone())]), seed, share))
        })
        .collect();
    set("Kinds of queue", &["queue"], cells)
}

/// One scenario, several seeds, nothing varied; every string tries to be markup.
pub fn hostile_set() -> LabSetDocument {
    let mut cells: Vec<LabCell> = (1..=4)
        .map(|seed| cell(BTreeMap::from([(hostile_text(), Value::from(hostile_text()))]), seed, 0.5))
        .collect();
    for cell in &mut cells {
        for flow in &mut cell.flows {
            flow.name = hostile_text();
        }
        cell.digest = Some(hostile_text());
        cell.kernel.release = hostile_text();
    }
    cells[0].status = LabStatus::Invalid;
    cells[0].problems = vec![hostile_text()];
    let mut out = set(&hostile_text(), &[], cells);
    out.varied = vec![hostile_text(), "__proto__".to_owned()];
    out.description = Some(hostile_text());
    out.reference = Some(Reference { source: hostile_text(), reported: hostile_text(), why_different: None });
    out
}

/// One scenario over several seeds.
pub fn repeats() -> LabSetDocument {
    set("Ten seeds", &[], (1..=10).map(|seed| cell(BTreeMap::new(), seed, 0.7)).collect())
}

fn set(name: &str, varied: &[&str], cells: Vec<LabCell>) -> LabSetDocument {
    LabSetDocument {
        schema: LAB_SET_SCHEMA.to_owned(),
        landspeed: BuildInfo { version: "0.1.0".to_owned(), server_version: None },
        started: "2026-03-14T09:26:53Z".to_owned(),
        command: ["landspeed", "lab", "run", "buffers.toml", "--jobs", "2"].map(str::to_owned).to_vec(),
        name: name.to_owned(),
        description: Some("Invented figures, for working on the page.".to_owned()),
        reference: Some(reference()),
        warnings: Vec::new(),
        varied: varied.iter().map(|&v| v.to_owned()).collect(),
        wall_s: 14.0 * cells.len() as f64,
        cells,
    }
}

/// A cell whose TCP flows get about this share of 8 Gb/s.
fn cell(values: BTreeMap<String, Value>, seed: u64, share: f64) -> LabCell {
    let key: u64 = format!("{values:?}").bytes().fold(seed, |sum, b| sum.wrapping_mul(31).wrapping_add(u64::from(b)));
    let mut random = Random::new(key);
    let total = 8e9 * share * (1.0 + 0.08 * (random.unit() - 0.5));
    let split = 0.5 + 0.3 * (random.unit() - 0.5);
    let drops = (4000.0 * (1.02 - share) * (0.6 + random.unit())) as u64;
    let tcp = |name: &str, part: f64, streams: usize| CellFlow {
        name: name.to_owned(),
        goodput_bps: Some(total * part),
        retransmits: Some((drops as f64 * part) as u64),
        loss_ratio: None,
        latency_p50_ns: None,
        latency_p99_ns: None,
        streams_bps: (0..streams)
            .map(|i| total * part / streams as f64 * (0.8 + 0.4 * i as f64 / streams as f64))
            .collect(),
    };
    LabCell {
        values,
        seed,
        status: LabStatus::Complete,
        kernel: kernel(),
        digest: Some(format!("{:016x}{:016x}", key, key.rotate_left(17))),
        problems: Vec::new(),
        wall_s: 14.0,
        flows: vec![
            tcp("tcp1", split, 1),
            tcp("tcp2", 1.0 - split, 4),
            CellFlow {
                name: "cross".to_owned(),
                goodput_bps: Some(1.99e9),
                retransmits: None,
                loss_ratio: Some(0.001 * (1.0 - share)),
                latency_p50_ns: None,
                latency_p99_ns: None,
                streams_bps: vec![1.99e9],
            },
        ],
        queues: vec![CellQueue { name: "west->east".to_owned(), drops, peak_bytes: 996_000 }],
    }
}
