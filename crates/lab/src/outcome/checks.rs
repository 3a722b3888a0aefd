//! Checks of every run. A run that fails one of them must not be used.

use landspeed_model::{ErrorEntry, LabCheck, LabProgram, LabProgramEnd, QueueRole};

use super::counters::counter_increase;
use crate::guest::GuestReport;
use crate::plan::{EgressKind, Impairments, Plan, Role};

/// Maximum time by which a frame may leave a link that changes after the time of its model, nanoseconds: clock reads of
/// other processes take 256 ns each.
const MAX_LATE_NS: u64 = 20_000;

/// Returns the results of all checks, in a fixed order.
pub fn all(plan: &Plan, report: &GuestReport) -> Vec<LabCheck> {
    vec![
        cables(plan, report),
        switches_and_wires(plan, report),
        devices(plan, report),
        backlog(report),
        memory(report),
        sockets(plan, report),
        offloads(report),
        frames(plan, report),
        accounting(plan, report),
        super::capacity::check(plan, report),
    ]
}

/// Returns a check that passes if there are no problems.
pub(super) fn check(name: &str, problems: &[String], fine: String) -> LabCheck {
    LabCheck {
        name: name.to_owned(),
        passed: problems.is_empty(),
        detail: if problems.is_empty() { fine } else { problems.join("; ") },
    }
}

/// Returns whether an error only means that a stream's data did not all arrive in time.
pub(super) fn is_unfinished(error: &ErrorEntry) -> bool {
    error.code == "stream"
}

/// Returns whether a link or a host dropped frames as the scenario specifies.
pub(super) fn drops_by_design(plan: &Plan, report: &GuestReport) -> bool {
    plan.nodes.iter().enumerate().any(|(index, node)| {
        node.ports.iter().enumerate().any(|(port, at)| {
            let counter_increase = counter_increase(report, index, port);
            counter_increase.filtered > 0
                || (node.role == Role::Wire && at.egress.role == QueueRole::Wire && counter_increase.drops > 0)
        })
    })
}

/// Checks that both ends of every cable count the same frames.
fn cables(plan: &Plan, report: &GuestReport) -> LabCheck {
    let mut problems = Vec::new();
    let mut frames = 0;
    for cable in &plan.cables {
        for (from, to) in [(cable.a, cable.b), (cable.b, cable.a)] {
            let (out, into) = (
                counter_increase(report, from.0, from.1).tx_packets,
                counter_increase(report, to.0, to.1).rx_packets,
            );
            frames += out;
            if out != into {
                let name = |(node, port): (usize, usize)| {
                    format!("{}:{}", plan.nodes[node].name, plan.nodes[node].ports[port].name)
                };
                problems.push(format!("{out} frames left {} and {into} came in at {}", name(from), name(to)));
            }
        }
    }
    check("cables-lossless", &problems, format!("{frames} frames over {} cables, none lost", plan.cables.len()))
}

/// Checks that in every switch and wire the frames received were sent, dropped by a queue, or are still queued.
fn switches_and_wires(plan: &Plan, report: &GuestReport) -> LabCheck {
    let mut problems = Vec::new();
    let (mut dropped, mut lost, mut in_rings) = (0, 0, 0);
    for (index, node) in plan.nodes.iter().enumerate() {
        if node.role == Role::Host {
            continue;
        }
        let mut duplicates = false;
        let (mut came, mut went) = (0_i64, 0_i64);
        for (port, at) in node.ports.iter().enumerate() {
            let counter_increase = counter_increase(report, index, port);
            came += counter_increase.rx_packets as i64 + counter_increase.copies as i64;
            went += counter_increase.tx_packets as i64
                + counter_increase.drops as i64
                + counter_increase.queued
                + counter_increase.filtered as i64;
            match &at.egress.kind {
                EgressKind::Wire(Impairments { duplicate, .. }) => {
                    lost += counter_increase.drops + counter_increase.filtered;
                    duplicates |= *duplicate > 0.0;
                }
                EgressKind::Shaped { .. } => dropped += counter_increase.drops,
                EgressKind::Carried => {}
            }
        }
        if let Some((host, drops)) = super::cpus::of_node(plan, report, index) {
            in_rings += drops;
            if came != went {
                problems.push(format!("receive path of {host}: {came} frames in, {went} out, dropped or queued"));
            }
            continue;
        }
        if let Some(index) = plan.carriers.iter().position(|carrier| carrier.node == index) {
            for direction in report.carriers.get(index).into_iter().flatten() {
                dropped += direction.queue_drops;
                lost += direction.lost;
            }
        }
        // netem does not count the duplicates it creates.
        if if duplicates { went < came } else { went != came } {
            problems.push(format!("{}: {came} frames in, {went} out, dropped or queued", node.name));
        }
    }
    let of_hosts = if plan.cpus.iter().any(|cpu| cpu.receive.is_some()) {
        format!(", {in_rings} dropped by full receive rings")
    } else {
        String::new()
    };
    let fine = format!("{dropped} dropped by switch queues, {lost} lost by links{of_hosts}, none elsewhere");
    check("drops-placed", &problems, fine)
}

/// Checks that no interface dropped frames by itself.
fn devices(plan: &Plan, report: &GuestReport) -> LabCheck {
    let mut problems = Vec::new();
    for (index, node) in plan.nodes.iter().enumerate() {
        for (port, at) in node.ports.iter().enumerate() {
            let drops = counter_increase(report, index, port).device_drops;
            if drops > 0 {
                problems.push(format!("{}:{} dropped {drops}", node.name, at.name));
            }
        }
    }
    check("no-device-drops", &problems, "no interface dropped a frame".to_owned())
}

/// Checks that the kernel's backlog dropped nothing.
fn backlog(report: &GuestReport) -> LabCheck {
    let drops = report.after.softnet_drops - report.before.softnet_drops;
    let problems: Vec<_> = (drops > 0).then(|| format!("softnet dropped {drops}")).into_iter().collect();
    check("no-backlog-overflow", &problems, "softnet dropped nothing".to_owned())
}

/// Returns the increase of a node's protocol counter.
pub fn counter(report: &GuestReport, node: usize, name: &str) -> u64 {
    let of = |counters: &crate::guest::HostCounters| {
        counters.counters.get(node).and_then(|found| found.get(name)).copied().unwrap_or(0)
    };
    of(&report.after).saturating_sub(of(&report.before))
}

/// Checks that TCP was never short of memory.
fn memory(report: &GuestReport) -> LabCheck {
    let nodes = report.after.counters.len();
    let total = |name: &str| (0..nodes).map(|node| counter(report, node, name)).sum::<u64>();
    let mut problems = Vec::new();
    for name in ["TcpExt.TCPMemoryPressures", "TcpExt.TCPAbortOnMemory"] {
        if total(name) > 0 {
            problems.push(format!("{name} {}", total(name)));
        }
    }
    let held = report.after.tcp_pages.max(report.before.tcp_pages);
    check("no-memory-pressure", &problems, format!("no TCP memory pressure; {held} pages in use at the end"))
}

/// Checks that the sockets dropped no packet that arrived.
fn sockets(plan: &Plan, report: &GuestReport) -> LabCheck {
    const NAMES: &[&str] = &[
        "TcpExt.TCPBacklogDrop",
        "TcpExt.TCPRcvQDrop",
        "TcpExt.TCPZeroWindowDrop",
        "TcpExt.TCPOFODrop",
        "TcpExt.TCPMinTTLDrop",
        "TcpExt.PFMemallocDrop",
        "Udp.RcvbufErrors",
        "Udp.SndbufErrors",
        "Tcp.InErrs",
        "Udp.InCsumErrors",
    ];
    // A program may leave its datagrams unread, and a reader whose calls cost time may be late.
    const OF_PROGRAMS: &[&str] = &["Udp.RcvbufErrors", "Udp.SndbufErrors"];
    let may_be_late = |host: usize| plan.runs_programs(host) || plan.cpu(host).is_some();
    let mut problems = Vec::new();
    for (index, node) in plan.nodes.iter().enumerate().filter(|(_, node)| node.role == Role::Host) {
        for name in NAMES.iter().filter(|name| !(may_be_late(index) && OF_PROGRAMS.contains(name))) {
            let count = counter(report, index, name);
            if count > 0 {
                problems.push(format!("{}: {name} {count}", node.name));
            }
        }
    }
    check("no-socket-drops", &problems, "every packet that reached its host was delivered to its socket".to_owned())
}

/// Checks that no offload merges or segments frames where a queue would be affected.
fn offloads(report: &GuestReport) -> LabCheck {
    check(
        "frames-stay-frames",
        &report.offloads,
        "segmentation and receive offloads are off on every intermediate node".to_owned(),
    )
}

/// Checks that no frame on a wire was larger than its MTU.
fn frames(plan: &Plan, report: &GuestReport) -> LabCheck {
    let mut problems = Vec::new();
    for (index, node) in plan.nodes.iter().enumerate() {
        for (port, at) in node.ports.iter().enumerate() {
            let counter_increase = counter_increase(report, index, port);
            let largest = u64::from(at.mtu + crate::scenario::ETHERNET_HEADER);
            if counter_increase.tx_bytes > counter_increase.tx_packets * largest {
                problems
                    .push(format!("{}:{} sent frames larger than {largest} bytes on average", node.name, at.name));
            }
        }
    }
    check("frames-fit", &problems, "every interface sent one frame at a time".to_owned())
}

/// Checks that the links that change were carried as their models say; no check without such links.
pub fn carriers(plan: &Plan, report: &GuestReport) -> Option<LabCheck> {
    let mut problems = Vec::new();
    let (mut late_ns_max, mut changes) = (0, 0);
    for (carrier, reports) in plan.carriers.iter().zip(&report.carriers) {
        let Ok(path) = carrier.load() else { continue };
        for (direction, found) in [&path.forward, &path.reverse].into_iter().zip(reports) {
            let due = direction.changes().iter().filter(|change| change.at_ns <= report.span_ns).count() as u64;
            if found.changes < due {
                problems.push(format!("{}: {} of {due} changes made", carrier.path.name, found.changes));
            }
            if found.unhandled > 0 {
                problems.push(format!("{}: {} frames not handled", carrier.path.name, found.unhandled));
            }
            if found.late_ns_max > MAX_LATE_NS {
                problems.push(format!("{}: a frame left {} ns late", carrier.path.name, found.late_ns_max));
            }
            changes += found.changes;
            late_ns_max = late_ns_max.max(found.late_ns_max);
        }
    }
    let fine = format!("{changes} changes made; no frame left more than {late_ns_max} ns late");
    (!plan.carriers.is_empty()).then(|| check("changing-links", &problems, fine))
}

/// Checks that every program ended as expected; no check without programs.
pub fn programs(programs: &[LabProgram]) -> Option<LabCheck> {
    let problems: Vec<String> = programs.iter().filter(|program| !program.expected).map(unexpected).collect();
    let fine = format!("{} programs ended as expected", programs.len());
    (!programs.is_empty()).then(|| check("programs", &problems, fine))
}

fn unexpected(program: &LabProgram) -> String {
    let how = match (program.end, program.exit_status, program.signal) {
        (LabProgramEnd::NotStarted, ..) => {
            format!("did not start: {}", program.error.as_deref().unwrap_or("unknown error"))
        }
        (LabProgramEnd::TimeLimit, ..) => "ran longer than its `time`, and was ended".to_owned(),
        (LabProgramEnd::OutputLimit, ..) => "wrote more than 64 MiB of output, and was ended".to_owned(),
        (_, Some(status), _) => format!("unexpected exit status {status}"),
        (_, None, Some(signal)) => format!("ended by signal {signal}"),
        (_, None, None) => "ended without an exit status".to_owned(),
    };
    format!("{} on {}: {how}", program.name, program.host)
}

/// Checks that the accounting of each flow balances. A connection that could not finish because of its path is a
/// valid result.
fn accounting(plan: &Plan, report: &GuestReport) -> LabCheck {
    let mut problems = Vec::new();
    for (index, flow) in report.flows.iter().enumerate() {
        let Some(run) = flow.run() else { continue };
        for error in run.errors.iter().filter(|error| !(is_unfinished(error) && drops_by_design(plan, report))) {
            problems.push(format!("flow {}: {}", index + 1, error.message));
        }
        if !run.conservation.holds {
            problems.push(format!("flow {}: bytes sent and received do not balance", index + 1));
        }
    }
    check("accounting", &problems, format!("the accounting of {} flows balances", report.flows.len()))
}
