//! The guest's init and, unless a scenario has programs, its only program. It builds the network of a [`Plan`], runs the flow engine
//! over it, samples the queues, and writes a report.
//!
//! Time is virtual: it stands still while anything computes, and jumps to the next timer when everything sleeps.
//! This has two consequences. A loop that neither sleeps nor makes a system call never ends. And everything read
//! here is the same in every run with the same seed, to the nanosecond.

mod capture;
mod carry;
mod cpu;
mod egress;
mod frames;
mod network;
pub mod programs;
mod queues;
mod report;
mod results;
mod root;
mod settings;

use std::io::{self, Write};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::Scope;

use landspeed_model::{Parameters, QualifyDocument, RunDocument};
use landspeed_sys::guest;
use landspeed_sys::{clock, netns};

pub use cpu::{CallTime, ChargeCall, ChargeLookup};
pub use report::{
    CaptureReport, CarrierReport, CpuReport, CpuSample, Drain, FlowReport, GuestReport, HostCounters, PortReport,
    ProgramReport, Progress, QueueReport, SERIES_POINTS, Sample,
};

pub use results::RESULTS;

use crate::plan::{Plan, PlannedFlow, PlannedSection, Role};

/// Port of the flow engine's servers.
const SERVER_PORT: u16 = 5202;
/// Name of the plan in the results directory.
pub const PLAN: &str = "plan.json";
/// Name of the progress file in the results directory.
pub const PROGRESS: &str = "progress.json";
/// Name of the report in the results directory.
pub const REPORT: &str = "report.json";
/// Name of the file with the guest's error in the results directory.
pub const FAILURE: &str = "error.txt";
/// Environment variable with the path of the results directory on the host.
pub const DIRECTORY_VARIABLE: &str = "LANDSPEED_LAB_DIR";
/// Update interval of the progress file, virtual nanoseconds.
const PROGRESS_NS: u64 = 20_000_000;
/// Size of the progress file, bytes. It is constant, so that the file is updated in one write.
pub const PROGRESS_BYTES: usize = 512;
/// Time after the last flow for packets in flight to arrive, in addition to the longest delay, nanoseconds.
const SETTLE_NS: u64 = 50_000_000;

/// Time from the first reading of the counters to the scenario's zero, nanoseconds.
const ZERO_DELAY_NS: u64 = 1_000_000;

/// The flow engine, which generates the traffic; this is all that the lab knows of it.
pub trait Engine: Sync {
    /// Serves tests at these addresses, in the calling thread's network namespace, and calls `ready` once it listens.
    /// Returns only on failure.
    fn serve(&self, listen: &[SocketAddr], ready: &dyn Fn()) -> Result<(), String>;

    /// From now on, charges the data calls of bulk streams on the sockets that `lookup` finds by their local address.
    fn charge_calls(&self, lookup: ChargeLookup);

    /// Runs one test from the calling thread's network namespace; calls `arrived` with the number of bytes received
    /// so far.
    fn run(&self, order: &TestRequest<'_>, arrived: &dyn Fn(u64)) -> RunDocument;

    /// Tests a section from the calling thread's network namespace: the tests of `qualify` one after the other, the first at
    /// `order.start_ns`.
    fn qualify(&self, order: &TestRequest<'_>, section: &PlannedSection, arrived: &dyn Fn(u64)) -> QualifyDocument;
}

/// A test for the engine to run.
#[derive(Debug, Clone, Copy)]
pub struct TestRequest<'a> {
    /// Control address of the server.
    pub control: SocketAddr,
    /// Data address of the server, with the same port.
    pub data: IpAddr,
    /// Start time, monotonic nanoseconds.
    pub start_ns: u64,
    /// Parameters of the test.
    pub parameters: &'a Parameters,
}

/// Runs as the guest's init. Does not return: the guest is powered off.
pub fn main(engine: &'static dyn Engine) {
    let result = prepare().and_then(|plan| run_plan(engine, &plan));
    if let Err(error) = result {
        give_up(&error);
    }
    let _ = guest::power_off();
}

/// Leaves an error for the host, and powers the guest off, whatever the other threads do.
fn give_up(error: &str) -> ! {
    // The host shows the console's last lines.
    let _ = writeln!(io::stderr(), "landspeed guest: {error}");
    let _ = std::fs::write(Path::new(RESULTS).join(FAILURE), error);
    let _ = guest::power_off();
    // The kernel ends with its init.
    std::process::abort()
}

/// Mounts file systems, raises limits, and reads the plan.
fn prepare() -> Result<Plan, String> {
    let mount = |source: &str, at: &str, data: &str| {
        guest::mount(source, Path::new(at), source, data).map_err(|e| format!("cannot mount {at}: {e}"))
    };
    mount("devtmpfs", "/dev", "")?;
    mount("proc", "/proc", "")?;
    mount("sysfs", "/sys", "")?;
    mount("tmpfs", "/tmp", "")?;
    let directory = std::env::var(DIRECTORY_VARIABLE).map_err(|_| "no results directory was named".to_owned())?;
    mount("hostfs", RESULTS, &directory)?;
    let _ = guest::raise_limit(guest::Limit::OpenFiles, 65_536);
    let _ = guest::raise_limit(guest::Limit::LockedBytes, u64::MAX);
    let _ = guest::set_host_name("lab");
    let text = std::fs::read(Path::new(RESULTS).join(PLAN)).map_err(|e| format!("cannot read the plan: {e}"))?;
    serde_json::from_slice(&text).map_err(|e| format!("cannot understand the plan: {e}"))
}

/// Runs the plan and writes the report.
fn run_plan(engine: &'static dyn Engine, plan: &Plan) -> Result<(), String> {
    let network = network::build(plan)?;
    let cpus = cpu::Cpus::new(plan);
    if !plan.cpus.is_empty() {
        engine.charge_calls(cpus.lookup());
    }
    serve(engine, plan, &network)?;
    // A round number, so that samples are at the same nanoseconds however long building the network took.
    let zero_ns = (clock::monotonic_ns() + plan.lead_ns + 100_000_000).next_multiple_of(100_000_000);
    let running = RunState::new(plan, zero_ns);
    let carriers = carry::Carriers::new(plan, cpus, zero_ns)?;
    let report = std::thread::scope(|scope| {
        let measured = measure(engine, plan, (&network, &carriers), &running, scope);
        // Other threads of the scope would wait forever.
        measured.unwrap_or_else(|error| give_up(&error))
    });
    let text = serde_json::to_vec(&report).map_err(|e| format!("cannot encode the report: {e}"))?;
    let path = Path::new(RESULTS).join(REPORT);
    std::fs::write(&path, text).map_err(|e| format!("cannot write the report: {e}"))
}

/// Runs flows, programs, captures and samples, and reads the counters before and after.
fn measure<'scope>(
    engine: &'static dyn Engine,
    plan: &'scope Plan,
    (network, carriers): (&'scope network::Network, &'scope carry::Carriers),
    running: &'scope RunState,
    scope: &'scope Scope<'scope, '_>,
) -> Result<GuestReport, String> {
    let zero_ns = running.zero_ns;
    let carrying = carriers.start(scope, plan, network, &running.over)?;
    let setting = scope.spawn(move || settings::apply(plan, network, zero_ns, &running.over));
    let captures = capture::start(scope, plan, network, &running.over);
    let watching = scope.spawn(move || queues::watch(plan, network, carriers, zero_ns, &running.over));
    let showing = scope.spawn(|| running.write_progress(plan));
    let flows: Vec<_> = plan
        .flows
        .iter()
        .enumerate()
        .map(|(index, flow)| scope.spawn(move || run_flow(engine, flow, index, network, running)))
        .collect();
    let programs = programs::start(scope, plan, network, zero_ns)?;
    // Connections are open by now and idle: the accounting of every node begins without packets in flight.
    clock::sleep_until(zero_ns - ZERO_DELAY_NS);
    network.start_counting_frames()?;
    let before = network.counters(plan, carriers)?;
    let flows: Vec<_> = flows
        .into_iter()
        .map(|flow| flow.join().unwrap_or_else(|_| Err("the flow's thread panicked".to_owned())))
        .collect();
    let programs = programs.finish()?;
    let ended_ns = clock::monotonic_ns();
    clock::sleep_until(ended_ns + SETTLE_NS + plan.longest_delay_ns());
    let after = network.counters(plan, carriers)?;
    running.over.store(true, Ordering::Relaxed);
    let queues = watching.join().map_err(|_| "the queue watcher panicked".to_owned())??;
    let _ = showing.join();
    let settings = setting.join().map_err(|_| "the thread that changes sysctls panicked".to_owned())?;
    for thread in carrying {
        thread.join().map_err(|_| "a thread that carries frames panicked".to_owned())??;
    }
    let span_ns = clock::monotonic_ns() - zero_ns;
    let captures = capture::finish(captures);
    let flows = flows.into_iter().collect::<Result<Vec<_>, _>>()?;
    Ok(GuestReport {
        zero_ns,
        ended_ns: ended_ns - zero_ns,
        span_ns,
        flows,
        programs,
        carriers: carriers.reports(),
        cpus: carriers.cpus.reports(),
        settings,
        queues,
        before,
        after,
        captures,
        release: release(),
        offloads: network.offloads(plan),
    })
}

/// Makes the calling thread an observer: with this scheduling policy the lab's kernel lets it read the clock at
/// no cost, and it does not change the order of the other threads. An observer must not poll the clock to wait.
fn set_observer_policy() {
    // Fails only on a kernel whose init lacks the privilege; the run is valid all the same.
    let _ = landspeed_sys::thread::use_fifo_policy();
}

/// Returns the kernel's release.
fn release() -> String {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    release.trim().to_owned()
}

/// Starts a server on every host that is the destination of a flow. Servers run until the guest is powered off.
fn serve(engine: &'static dyn Engine, plan: &Plan, network: &network::Network) -> Result<(), String> {
    let (ready_tx, ready_rx) = std::sync::mpsc::channel::<Result<(), String>>();
    let mut servers = 0;
    for (index, node) in plan.nodes.iter().enumerate() {
        if node.role != Role::Host || !plan.flows.iter().any(|flow| flow.to == index) {
            continue;
        }
        servers += 1;
        let control = node.control.map(IpAddr::V4);
        let data = node.ports.iter().flat_map(|port| port.addresses.iter().map(|(ip, _)| *ip));
        let v6 = plan.uses_ipv6();
        let listen: Vec<_> = control
            .into_iter()
            .chain(data.filter(|ip| v6 || ip.is_ipv4()))
            .map(|ip| SocketAddr::new(ip, SERVER_PORT))
            .collect();
        let namespace = network.namespace(index).try_clone_to_owned().map_err(|e| format!("a namespace: {e}"))?;
        let ready = ready_tx.clone();
        std::thread::Builder::new()
            .name(format!("serve-{}", node.name))
            .spawn(move || {
                let said = AtomicBool::new(false);
                let result =
                    netns::enter(namespace.as_fd()).map_err(|e| format!("cannot enter: {e}")).and_then(|()| {
                        engine.serve(&listen, &|| {
                            if !said.swap(true, Ordering::Relaxed) {
                                let _ = ready.send(Ok(()));
                            }
                        })
                    });
                let _ = ready.send(result);
            })
            .map_err(|e| format!("cannot start a server: {e}"))?;
    }
    for _ in 0..servers {
        ready_rx.recv().unwrap_or_else(|e| Err(e.to_string()))?;
    }
    Ok(())
}

/// Runs one flow, in its client's namespace.
fn run_flow(
    engine: &dyn Engine,
    flow: &PlannedFlow,
    index: usize,
    network: &network::Network,
    running: &RunState,
) -> Result<FlowReport, String> {
    netns::enter(network.namespace(flow.from)).map_err(|e| format!("cannot enter a namespace: {e}"))?;
    let start_ns = running.zero_ns + flow.start_ns;
    clock::sleep_until(start_ns.saturating_sub(flow.lead_ns));
    let order = TestRequest {
        control: SocketAddr::new(flow.control.into(), SERVER_PORT),
        data: flow.data.1,
        start_ns,
        parameters: &flow.parameters,
    };
    let arrived = |bytes: u64| running.arrived[index].store(bytes, Ordering::Relaxed);
    let report = match &flow.section {
        Some(section) => FlowReport::Qualify(Box::new(engine.qualify(&order, section, &arrived))),
        None => FlowReport::Run(Box::new(engine.run(&order, &arrived))),
    };
    running.ended.fetch_add(1, Ordering::Relaxed);
    Ok(report)
}

/// State that the threads share while the flows run.
struct RunState {
    zero_ns: u64,
    over: AtomicBool,
    ended: AtomicU64,
    arrived: Vec<AtomicU64>,
}

impl RunState {
    fn new(plan: &Plan, zero_ns: u64) -> Self {
        Self {
            zero_ns,
            over: AtomicBool::new(false),
            ended: AtomicU64::new(0),
            arrived: plan.flows.iter().map(|_| AtomicU64::new(0)).collect(),
        }
    }

    /// Updates the progress file. The host's file system responds at once, so this does not affect virtual time; a
    /// pipe could be full.
    fn write_progress(&self, plan: &Plan) {
        let Ok(file) = std::fs::File::create(Path::new(RESULTS).join(PROGRESS)) else { return };
        set_observer_policy();
        let mut next_ns = self.zero_ns.saturating_sub(plan.lead_ns);
        while !self.over.load(Ordering::Relaxed) {
            let now_ns = clock::monotonic_ns();
            let progress = Progress {
                t_ns: now_ns as i64 - self.zero_ns as i64,
                arrived_bytes: self.arrived.iter().map(|bytes| bytes.load(Ordering::Relaxed)).sum(),
                flows_ended: self.ended.load(Ordering::Relaxed),
            };
            let mut text = serde_json::to_vec(&progress).unwrap_or_default();
            text.resize(PROGRESS_BYTES, b' ');
            let _ = file.write_all_at(&text, 0);
            next_ns = (next_ns + PROGRESS_NS).max(now_ns);
            clock::sleep_until(next_ns);
        }
    }
}
