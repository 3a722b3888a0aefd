//! From the guest's readings to the document: named queues and links, checks, the digest.

mod capacity;
mod checks;
mod counters;
mod cpus;
mod digest;
mod precision;

use landspeed_model::{
    BuildInfo, ErrorEntry, KernelInfo, LAB_SCHEMA, LabCapture, LabDocument, LabEvent, LabFlow, LabHostCounters,
    LabHostDrops, LabLink, LabProgram, LabProgramEnd, LabQueue, LabStatus, QueueRole, RunDocument, ScenarioInfo,
    Status, Topology, Warning,
};

use self::counters::counter_increase;
use crate::boot::BootOutcome;
use crate::guest::{Drain, FlowReport, GuestReport, QueueReport};
use crate::plan::{Egress, EgressKind, Plan, PlannedCarrier, PlannedLoss, Role};

/// Contents of a document other than the readings.
#[derive(Debug, Clone)]
pub struct DocumentHeader {
    /// Start time, RFC 3339 UTC.
    pub started: String,
    /// Command line of the run.
    pub command: Vec<String>,
    /// The scenario of the run.
    pub scenario: ScenarioInfo,
    /// Seed of the run.
    pub seed: u64,
    /// The kernel of the run.
    pub kernel: KernelInfo,
    /// Memory of the guest, bytes.
    pub memory_bytes: u64,
    /// Warnings from before the boot.
    pub warnings: Vec<Warning>,
}

/// Returns the document of a run that failed.
pub fn failed(frame: DocumentHeader, errors: Vec<ErrorEntry>) -> LabDocument {
    LabDocument {
        schema: LAB_SCHEMA.to_owned(),
        landspeed: BuildInfo { version: env!("CARGO_PKG_VERSION").to_owned(), server_version: None },
        started: frame.started,
        command: frame.command,
        status: LabStatus::Failed,
        errors,
        warnings: frame.warnings,
        scenario: frame.scenario,
        seed: frame.seed,
        kernel: frame.kernel,
        digest: None,
        wall_s: 0.0,
        boot_s: 0.0,
        virtual_s: 0.0,
        memory_bytes: frame.memory_bytes,
        memory_peak_bytes: None,
        topology: Topology::default(),
        flows: Vec::new(),
        programs: Vec::new(),
        events: Vec::new(),
        queues: Vec::new(),
        links: Vec::new(),
        host_drops: Vec::new(),
        cpus: Vec::new(),
        host_counters: Vec::new(),
        captures: Vec::new(),
        checks: Vec::new(),
        reference_figures: Vec::new(),
        criteria: Vec::new(),
    }
}

/// Returns the document of a run.
pub fn document(frame: DocumentHeader, plan: &Plan, booted: BootOutcome) -> LabDocument {
    let BootOutcome { report, wall_ns, boot_ns, memory_peak_bytes } = booted;
    let mut document = failed(frame, Vec::new());
    document.wall_s = seconds(wall_ns);
    document.boot_s = seconds(boot_ns);
    document.virtual_s = seconds(report.span_ns);
    document.memory_peak_bytes = memory_peak_bytes;
    document.topology = plan.topology.clone();
    document.kernel.release.clone_from(&report.release);
    document.programs = programs(plan, &report);
    document.events = events(plan, &report);
    document.checks = checks::all(plan, &report);
    document.checks.extend(checks::carriers(plan, &report));
    document.checks.extend(cpus::check_receive_paths(plan, &report));
    document.cpus = cpus::document(plan, &report);
    document.checks.extend(checks::programs(&document.programs));
    document.queues = report.queues.iter().map(|queue| self::queue(plan, &report, queue)).collect();
    document.links = links(plan, &report);
    document.host_drops = host_drops(plan, &report);
    document.host_counters = host_counters(plan, &report);
    document.captures = captures(plan, &report);
    document.warnings.extend(precision::warnings(plan, &report, &document.kernel));
    let drops_by_design = checks::drops_by_design(plan, &report);
    document.flows = flows(plan, report);
    document.status = status(&document, drops_by_design);
    document.warnings.extend(unfinished(&document));
    for capture in document.captures.iter().filter(|capture| capture.missed > 0) {
        document.warnings.push(Warning {
            code: "capture-incomplete".to_owned(),
            message: format!("the capture {} missed {} packets", capture.name, capture.missed),
        });
    }
    document.digest = Some(digest::of(&document));
    document
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// Returns warnings about connections that had not delivered all of their data at the end of the flow's drain
/// phase.
fn unfinished(document: &LabDocument) -> Vec<Warning> {
    let of = |flow: &LabFlow| {
        let run = flow.run.as_ref()?;
        let count = run.errors.iter().filter(|error| checks::is_unfinished(error)).count();
        let bytes = |bytes: Option<u64>| bytes.map_or_else(|| "unknown".to_owned(), |bytes| bytes.to_string());
        (count > 0).then(|| Warning {
            code: "stream-unfinished".to_owned(),
            message: format!(
                "flow {}: {count} streams did not finish: {} of {} bytes delivered",
                flow.name,
                bytes(run.conservation.delivered),
                bytes(run.conservation.offered)
            ),
        })
    };
    document.flows.iter().filter_map(of).collect()
}

/// Returns the status of a run. If links lose frames on purpose, a connection that does not finish is a result,
/// and its run is complete.
fn status(document: &LabDocument, drops_by_design: bool) -> LabStatus {
    let runs = || document.flows.iter().filter_map(|flow| flow.run.as_ref());
    let cut_short = |run: &&RunDocument| {
        run.status == Status::Partial && !(drops_by_design && run.errors.iter().all(checks::is_unfinished))
    };
    let sections = || document.flows.iter().filter_map(|flow| flow.qualify.as_ref());
    let has_failed =
        runs().any(|run| run.status == Status::Failed) || sections().any(|section| section.status == Status::Failed);
    if has_failed || document.checks.iter().any(|check| !check.passed) {
        LabStatus::Invalid
    } else if runs().any(|run| cut_short(&run)) || sections().any(|section| section.status == Status::Partial) {
        LabStatus::Partial
    } else {
        LabStatus::Complete
    }
}

fn flows(plan: &Plan, report: GuestReport) -> Vec<LabFlow> {
    let cpus = report.cpus;
    let of = |(flow, found): (&crate::plan::PlannedFlow, FlowReport)| {
        let (run, qualify) = match found {
            FlowReport::Run(mut run) => {
                cpus::show_load(plan, &cpus, flow, &mut run);
                (Some(*run), None)
            }
            FlowReport::Qualify(section) => (None, Some(section)),
        };
        LabFlow {
            name: flow.name.clone(),
            from: plan.nodes[flow.from].name.clone(),
            to: plan.nodes[flow.to].name.clone(),
            start_ns: flow.start_ns,
            goodput_bps: run.as_ref().and_then(|run| run.summary.goodput_bps),
            retransmits: run.as_ref().and_then(|run| run.summary.retransmits),
            run,
            qualify,
            epochs: Vec::new(),
        }
    };
    plan.flows.iter().zip(report.flows).map(of).collect()
}

fn programs(plan: &Plan, report: &GuestReport) -> Vec<LabProgram> {
    let of = |(program, found): (&crate::plan::PlannedProgram, &crate::guest::ProgramReport)| LabProgram {
        name: program.name.clone(),
        host: plan.nodes[program.node].name.clone(),
        command: program.command.clone(),
        start_ns: program.start_ns,
        end_ns: found.end_ns,
        end: found.end,
        exit_status: found.exit_status,
        signal: found.signal,
        error: found.error.clone(),
        expected: is_expected(program.expect, found),
        stdout: found.stdout.clone(),
        stderr: found.stderr.clone(),
        files: found.files.clone(),
    };
    plan.programs.iter().zip(&report.programs).map(of).collect()
}

/// Returns the events with the times at which they were made.
fn events(plan: &Plan, report: &GuestReport) -> Vec<LabEvent> {
    let mut events = plan.events.clone();
    for event in &mut events {
        // The model of a link makes its changes at their times; a check counts them.
        if event.object.starts_with("link ") && event.at_ns <= report.span_ns {
            event.applied_ns = Some(event.at_ns);
        }
    }
    for (setting, result) in plan.settings.iter().zip(&report.settings) {
        let Some(event) = events.get_mut(setting.event) else { continue };
        match result {
            Ok(at_ns) => event.applied_ns = Some(*at_ns),
            Err(why) => event.error = Some(why.clone()),
        }
    }
    events
}

/// Returns whether a program ended as its scenario expects.
fn is_expected(expect: Option<u8>, found: &crate::guest::ProgramReport) -> bool {
    match found.end {
        LabProgramEnd::Exited => found.exit_status == Some(expect.unwrap_or(0).into()),
        LabProgramEnd::Stopped => expect.is_none_or(|status| found.exit_status == Some(status.into())),
        LabProgramEnd::TimeLimit | LabProgramEnd::OutputLimit | LabProgramEnd::NotStarted => false,
    }
}

fn queue(plan: &Plan, report: &GuestReport, found: &QueueReport) -> LabQueue {
    let egress = &plan.nodes[found.node].ports[found.port].egress;
    let counter_increase = counter_increase(report, found.node, found.port);
    let samples = found.samples.max(1) as f64;
    let sojourn = |link_bytes: u64| (link_bytes as f64 * 8e9 / egress.rate_bps as f64) as u64;
    let Drain { busy_ns, bytes: drained_bytes, .. } = found.drain;
    let wire = egress.role == QueueRole::Wire;
    // The queue before a link that changes is in the link's model.
    let carried = plan.carrier_after((found.node, found.port)).and_then(|(carrier, forward)| {
        let path = carrier.load().ok()?;
        Some(if forward { path.forward } else { path.reverse })
    });
    let (kind, limit_bytes, limit_packets) = match &carried {
        Some(direction) => {
            let (limit_bytes, limit_packets) = direction.hops()[0].queue.limits();
            (direction.queues().next().unwrap_or("bfifo"), limit_bytes, limit_packets)
        }
        None => limits(egress),
    };
    let lost = counter_increase.drops + if wire { counter_increase.filtered } else { 0 };
    let (bytes, packets, drops) = found.carried.filter(|_| carried.is_some() || wire).unwrap_or((
        counter_increase.tx_bytes,
        counter_increase.tx_packets,
        // A host's filter drops received frames, which were never in its egress queue.
        lost,
    ));
    let marks = carried.as_ref().and_then(|_| {
        let index = plan.carriers.iter().position(|carrier| carrier.senders.contains(&(found.node, found.port)))?;
        let side = plan.carriers[index].senders.iter().position(|sender| *sender == (found.node, found.port))?;
        Some(report.carriers.get(index)?[side].marked)
    });
    LabQueue {
        name: egress.name.clone(),
        role: egress.role,
        kind: kind.to_owned(),
        limit_bytes,
        limit_packets,
        rate_bps: carried.as_ref().map_or(egress.rate_bps, |direction| direction.at(0, 0).0),
        bytes,
        packets,
        drops,
        marks: marks.unwrap_or_else(|| found.detail.get("marked").copied().unwrap_or(0)),
        peak_bytes: found.peak_bytes,
        mean_bytes: found.backlog_sum as f64 / samples,
        busy_ratio: found.busy as f64 / samples,
        // A wire holds frames for its delay, which is not queueing.
        sojourn_ns_p50: if wire { 0 } else { sojourn(found.link_quantiles.0) },
        sojourn_ns_p99: if wire { 0 } else { sojourn(found.link_quantiles.1) },
        backlogged_ns: busy_ns,
        drained_bps: (busy_ns > 0).then(|| drained_bytes as f64 * 8e9 / busy_ns as f64),
        series: found.series.clone(),
        detail: found.detail.clone(),
    }
}

fn limits(egress: &Egress) -> (&'static str, Option<u64>, Option<u64>) {
    match &egress.kind {
        EgressKind::Wire(_) => ("netem", None, None),
        EgressKind::Carried => ("model", None, None),
        EgressKind::Shaped { discipline, .. } => {
            (discipline.kind.name(), discipline.limit_bytes.map(u64::from), discipline.limit_packets.map(u64::from))
        }
    }
}

fn links(plan: &Plan, report: &GuestReport) -> Vec<LabLink> {
    let mut links = Vec::new();
    for (node, it) in plan.nodes.iter().enumerate() {
        for (port, at) in it.ports.iter().enumerate() {
            if it.role != Role::Wire {
                continue;
            }
            let counter_increase = counter_increase(report, node, port);
            let bytes = counter_increase.tx_bytes
                + counter_increase.tx_packets * u64::try_from(at.egress.overhead).unwrap_or(0);
            let mut rate_over_time = false;
            let (rate_bps, delay_ns, room, lost) = match (&at.egress.kind, plan.carried(node)) {
                (EgressKind::Wire(impairments), _) => {
                    let room = at.egress.rate_bps as f64 / 8.0 * seconds(report.span_ns);
                    let lost = counter_increase.drops + counter_increase.filtered;
                    (at.egress.rate_bps, impairments.delay_ns, room, lost)
                }
                (EgressKind::Carried, Some(path)) => {
                    let direction = PlannedCarrier::direction(&path, port);
                    let (rate_bps, delay_ns) = direction.at(0, 0);
                    rate_over_time = direction.rate_varies();
                    let room = direction.capacity_bits(0, 0, report.span_ns) as f64 / 8.0;
                    let index = plan.carriers.iter().position(|carrier| carrier.node == node);
                    let carrier = index.and_then(|index| report.carriers.get(index));
                    (rate_bps, delay_ns, room, carrier.map_or(0, |directions| directions[1 - port].lost))
                }
                _ => continue,
            };
            links.push(LabLink {
                name: at.egress.name.clone(),
                rate_bps,
                rate_over_time,
                delay_ns,
                packets: counter_increase.tx_packets,
                bytes,
                lost,
                utilisation: if room > 0.0 { bytes as f64 / room } else { 0.0 },
            });
        }
    }
    links
}

fn host_drops(plan: &Plan, report: &GuestReport) -> Vec<LabHostDrops> {
    let hosts = plan.nodes.iter().enumerate().filter(|(_, node)| node.role == Role::Host);
    let drops = hosts.filter_map(|(node, it)| {
        let dropping = it.ports.iter().enumerate().filter(|(_, at)| at.drops != PlannedLoss::None);
        let ring = cpus::ring_drops(plan, report, node);
        let by_scenario: u64 = dropping.map(|(port, _)| counter_increase(report, node, port).filtered).sum();
        let drops = LabHostDrops { host: it.name.clone(), dropped: by_scenario + ring.unwrap_or(0), ring };
        let may_drop = ring.is_some() || it.ports.iter().any(|at| at.drops != PlannedLoss::None);
        may_drop.then_some(drops)
    });
    drops.collect()
}

/// Increases of the hosts' protocol counters.
fn host_counters(plan: &Plan, report: &GuestReport) -> Vec<LabHostCounters> {
    let hosts = plan.nodes.iter().enumerate().filter(|(_, node)| node.role == Role::Host);
    let of = |(index, node): (usize, &crate::plan::Node)| {
        let counters = report.after.counters.get(index)?;
        let increases = counters.keys().map(|name| (name.clone(), checks::counter(report, index, name)));
        let counters = increases.filter(|(_, increase)| *increase > 0).collect();
        Some(LabHostCounters { host: node.name.clone(), counters })
    };
    hosts.filter_map(of).collect()
}

fn captures(plan: &Plan, report: &GuestReport) -> Vec<LabCapture> {
    let of = |(point, found): (&crate::plan::CapturePoint, &crate::guest::CaptureReport)| {
        let node = &plan.nodes[point.node];
        LabCapture {
            name: format!("{}:{}", node.name, node.ports[point.port].name),
            file: found.file.clone(),
            packets: found.packets,
            missed: found.missed,
        }
    };
    plan.captures.iter().zip(&report.captures).map(of).collect()
}
