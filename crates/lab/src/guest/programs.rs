//! Programs of the lab's host: starts and stops them on the hosts of the network, and keeps their output.
//!
//! Every program has a control group, by which it is ended with all its descendants. It is bounded in virtual time, output, memory
//! for files, and processes; the host bounds it in real time (`boot`), for which the names of the running programs are in a file.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::FileExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Mutex, PoisonError};
use std::thread::{Scope, ScopedJoinHandle};
use std::time::Duration;

use landspeed_model::{LabFile, LabOutput, LabProgramEnd};
use landspeed_sys::{clock, file, guest, netns, process};

use super::network::Network;
use super::report::ProgramReport;
use super::results::RESULTS;
use super::root;
use crate::plan::{Plan, PlannedProgram, PlannedStop};
use crate::program::PATH;

/// Maximum kept of each output and file, bytes; the model documents it.
const MAX_KEPT: usize = 1 << 20;
/// Output after which a program is ended, bytes.
const MAX_OUTPUT: u64 = 64 << 20;
/// Time from SIGTERM to SIGKILL, virtual time.
const GRACE: Duration = Duration::from_secs(1);
/// Maximum number of processes and threads in the guest (`kernel.threads-max`).
const MAX_THREADS: &str = "1500";
/// Mount point of the control groups.
const GROUPS: &str = "/groups";
/// Name of the file with the names of the running programs in the results directory, one a line.
pub const RUNNING: &str = "running.txt";
/// Size of that file, bytes. It is constant, so that the file is updated in one write.
pub const RUNNING_BYTES: usize = 8192;
/// Environment variable with the name of a program's host.
const HOST_VARIABLE: &str = "LANDSPEED_LAB_HOST";

/// Events of one program.
enum Event {
    /// Its process ended, at this time.
    Ended(io::Result<ExitStatus>, u64),
    /// It wrote too much.
    TooMuchOutput,
    /// Everything else has ended.
    Finish,
}

/// Reports of a host's programs, each with its index.
type HostResult = Result<Vec<(usize, ProgramReport)>, String>;

/// The programs of a run.
pub struct Programs<'scope> {
    /// For each program: the channel to it, and whether its end does not depend on the others.
    senders: Vec<(Sender<Event>, bool)>,
    ended: Receiver<usize>,
    hosts: Vec<ScopedJoinHandle<'scope, HostResult>>,
}

/// The control group of a program.
struct Group {
    processes: File,
    kill: File,
}

impl Group {
    fn make(number: usize) -> io::Result<Self> {
        let place = PathBuf::from(GROUPS).join(number.to_string());
        fs::create_dir_all(&place)?;
        let open = |name: &str| File::options().write(true).open(place.join(name));
        Ok(Self { processes: open("cgroup.procs")?, kill: open("cgroup.kill")? })
    }

    /// Kills every process of the group.
    fn kill(&self) {
        let _ = self.kill.write_at(b"1", 0);
    }
}

/// The names of the running programs, for the host.
struct RunningList {
    file: File,
    names: Mutex<BTreeMap<usize, String>>,
}

impl RunningList {
    fn update(&self, change: impl FnOnce(&mut BTreeMap<usize, String>)) {
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut names);
        let mut text = names.values().fold(String::new(), |text, name| text + name + "\n").into_bytes();
        text.resize(RUNNING_BYTES, b'\n');
        let _ = self.file.write_all_at(&text, 0);
    }
}

/// Prepares the hosts with programs, and starts each program at its time.
pub fn start<'scope>(
    scope: &'scope Scope<'scope, '_>,
    plan: &'scope Plan,
    network: &'scope Network,
    zero_ns: u64,
) -> Result<Programs<'scope>, String> {
    let (ended_tx, ended) = mpsc::channel();
    let mut programs = Programs { senders: Vec::new(), ended, hosts: Vec::new() };
    if plan.programs.is_empty() {
        return Ok(programs);
    }
    // A fork bomb ends at this limit before the guest is out of memory.
    let _ = fs::write("/proc/sys/kernel/threads-max", MAX_THREADS);
    fs::create_dir_all(GROUPS)
        .and_then(|()| guest::mount("cgroup2", Path::new(GROUPS), "cgroup2", ""))
        .map_err(|e| format!("cannot mount the control groups of programs: {e}"))?;
    let file = File::create(Path::new(RESULTS).join(RUNNING)).map_err(|e| format!("cannot write {RUNNING}: {e}"))?;
    let running = std::sync::Arc::new(RunningList { file, names: Mutex::default() });
    let mut by_host: BTreeMap<usize, Vec<HostProgram<'scope>>> = BTreeMap::new();
    for (index, program) in plan.programs.iter().enumerate() {
        let group = Group::make(index).map_err(|e| format!("cannot make a control group: {e}"))?;
        let (sender, events) = mpsc::channel();
        programs.senders.push((sender.clone(), program.stop != PlannedStop::End));
        by_host.entry(program.node).or_default().push(HostProgram { index, program, group, sender, events });
    }
    let (ready_tx, ready_rx) = mpsc::channel();
    for (node, list) in by_host {
        let (ready, ended, running) = (ready_tx.clone(), ended_tx.clone(), running.clone());
        programs.hosts.push(scope.spawn(move || {
            let prepared = netns::enter(network.namespace(node))
                .and_then(|()| guest::limit_program_capabilities())
                .map_err(|e| format!("cannot prepare a host for programs: {e}"))
                .and_then(|()| root::enter(plan, node));
            let _ = ready.send(prepared.clone());
            prepared?;
            let host = Host { plan, node, zero_ns, running: &running };
            std::thread::scope(|scope| {
                let threads: Vec<_> = list
                    .into_iter()
                    .map(|item| {
                        let (host, ended) = (&host, ended.clone());
                        scope.spawn(move || {
                            let index = item.index;
                            let report = host.run(item);
                            let _ = ended.send(index);
                            (index, report)
                        })
                    })
                    .collect();
                threads.into_iter().map(|t| t.join().map_err(|_| "a program's thread panicked".to_owned())).collect()
            })
        }));
    }
    for _ in &programs.hosts {
        ready_rx.recv().unwrap_or_else(|e| Err(e.to_string()))?;
    }
    Ok(programs)
}

impl Programs<'_> {
    /// Waits for the programs that end by themselves or at a time, ends the others, and returns the reports in the
    /// plan's order.
    pub fn finish(self) -> Result<Vec<ProgramReport>, String> {
        let Self { senders, ended, hosts } = self;
        let mut left = senders.iter().filter(|(_, independent)| *independent).count();
        while left > 0 {
            let index = ended.recv().map_err(|_| "a program's thread panicked".to_owned())?;
            left -= usize::from(senders[index].1);
        }
        for (sender, _) in senders.iter().filter(|(_, independent)| !independent) {
            let _ = sender.send(Event::Finish);
        }
        let mut reports = Vec::new();
        for host in hosts {
            reports.extend(host.join().map_err(|_| "a host's thread panicked".to_owned())??);
        }
        reports.sort_by_key(|(index, _)| *index);
        Ok(reports.into_iter().map(|(_, report)| report).collect())
    }
}

/// A program of a host, before its start.
struct HostProgram<'a> {
    index: usize,
    program: &'a PlannedProgram,
    group: Group,
    sender: Sender<Event>,
    events: Receiver<Event>,
}

/// A host with programs, for the threads that are inside its file system.
struct Host<'a> {
    plan: &'a Plan,
    node: usize,
    zero_ns: u64,
    running: &'a RunningList,
}

impl Host<'_> {
    /// Runs one program from its start to its end.
    fn run(&self, item: HostProgram<'_>) -> ProgramReport {
        let HostProgram { index, program, group, sender, events } = item;
        clock::sleep_until(self.zero_ns + program.start_ns);
        let name = format!("{} (host {})", program.name, self.plan.nodes[self.node].name);
        self.running.update(|names| drop(names.insert(index, name)));
        let mut report = ProgramReport {
            end: LabProgramEnd::NotStarted,
            end_ns: program.start_ns,
            exit_status: None,
            signal: None,
            error: None,
            stdout: LabOutput::default(),
            stderr: LabOutput::default(),
            files: Vec::new(),
        };
        if let Err(error) = self.supervise(program, &group, sender, &events, &mut report) {
            report.error = Some(error.to_string());
        }
        report.files = program.keep.iter().map(|path| keep(path)).collect();
        self.running.update(|names| drop(names.remove(&index)));
        report
    }

    fn command(&self, program: &PlannedProgram) -> Command {
        let mut command = Command::new(&program.run[0]);
        let directory = Path::new(&self.plan.directory);
        command
            .args(&program.run[1..])
            .env_clear()
            .env("PATH", PATH)
            .env("HOME", "/tmp")
            .env("LANG", "C.UTF-8")
            // An archive in the home directory would be gone after the run.
            .env("LANDSPEED_ARCHIVE", "off")
            .env(HOST_VARIABLE, &self.plan.nodes[self.node].name)
            .current_dir(if directory.is_dir() { directory } else { Path::new("/") })
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    fn supervise(
        &self,
        program: &PlannedProgram,
        group: &Group,
        sender: Sender<Event>,
        events: &Receiver<Event>,
        report: &mut ProgramReport,
    ) -> io::Result<()> {
        std::thread::scope(|scope| {
            // The threads are there before the program, which may start as many as the guest can have.
            let ((out_pipe, out), (err_pipe, err)) = (mpsc::channel(), mpsc::channel());
            let (to_out, to_err) = (sender.clone(), sender.clone());
            let stdout = spawn(scope, move || out.recv().map(|pipe| read(pipe, &to_out)).unwrap_or_default())?;
            let stderr = spawn(scope, move || err.recv().map(|pipe| read(pipe, &to_err)).unwrap_or_default())?;
            let (started, starts) = mpsc::channel::<Child>();
            spawn(scope, move || {
                if let Ok(mut child) = starts.recv() {
                    let status = child.wait();
                    let _ = sender.send(Event::Ended(status, clock::monotonic_ns()));
                }
            })?;
            let mut child = guest::start_in_group(&mut self.command(program), &group.processes)?;
            let leader = child.id();
            if let (Some(stdout), Some(stderr)) = (child.stdout.take(), child.stderr.take()) {
                let _ = (out_pipe.send(stdout), err_pipe.send(stderr));
            }
            let _ = started.send(child);
            let (end, ended) = self.wait_for_end(program, group, leader, events);
            // Background processes end with it, and close the pipes.
            group.kill();
            report.end = end;
            if let Some((status, at_ns)) = ended {
                report.end_ns = at_ns - self.zero_ns;
                let status = status?;
                (report.exit_status, report.signal) = (status.code(), status.signal());
            }
            report.stdout = stdout.join().unwrap_or_default();
            report.stderr = stderr.join().unwrap_or_default();
            Ok(())
        })
    }

    /// Waits until the program ends, and ends it at its limits.
    fn wait_for_end(
        &self,
        program: &PlannedProgram,
        group: &Group,
        leader: u32,
        events: &Receiver<Event>,
    ) -> (LabProgramEnd, Option<(io::Result<ExitStatus>, u64)>) {
        let deadline_ns = match program.stop {
            PlannedStop::Itself(limit_ns) => Some(self.zero_ns + program.start_ns + limit_ns),
            PlannedStop::At(ns) => Some(self.zero_ns + ns),
            PlannedStop::End => None,
        };
        let next = match deadline_ns {
            Some(ns) => {
                events.recv_timeout(Duration::from_nanos(ns.saturating_sub(clock::monotonic_ns()))).map_err(Some)
            }
            None => events.recv().map_err(|_| None),
        };
        let end = match next {
            Ok(Event::Ended(status, at_ns)) => return (LabProgramEnd::Exited, Some((status, at_ns))),
            Ok(Event::TooMuchOutput) => LabProgramEnd::OutputLimit,
            Err(Some(RecvTimeoutError::Timeout)) if matches!(program.stop, PlannedStop::Itself(_)) => {
                LabProgramEnd::TimeLimit
            }
            Ok(Event::Finish) | Err(_) => LabProgramEnd::Stopped,
        };
        if end == LabProgramEnd::Stopped {
            process::kill_group(leader, false);
            let deadline_ns = clock::monotonic_ns() + GRACE.as_nanos() as u64;
            while let left_ns @ 1.. = deadline_ns.saturating_sub(clock::monotonic_ns()) {
                match events.recv_timeout(Duration::from_nanos(left_ns)) {
                    Ok(Event::Ended(status, at_ns)) => return (end, Some((status, at_ns))),
                    Ok(_) => {}
                    Err(_) => break,
                }
            }
        }
        group.kill();
        loop {
            match events.recv() {
                Ok(Event::Ended(status, at_ns)) => return (end, Some((status, at_ns))),
                Ok(_) => {}
                Err(_) => return (end, None),
            }
        }
    }
}

/// Starts a thread; unlike [`Scope::spawn`], it is an error if the guest has too many.
fn spawn<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    work: impl FnOnce() -> T + Send + 'scope,
) -> io::Result<ScopedJoinHandle<'scope, T>> {
    std::thread::Builder::new().spawn_scoped(scope, work)
}

/// Reads a pipe to its end, and keeps its beginning.
fn read(mut pipe: impl Read, events: &Sender<Event>) -> LabOutput {
    let (mut kept, mut bytes) = (Vec::new(), 0_u64);
    let mut buffer = vec![0; 1 << 16];
    while let Ok(length @ 1..) = pipe.read(&mut buffer) {
        let room = MAX_KEPT - kept.len();
        kept.extend_from_slice(&buffer[..length.min(room)]);
        if bytes <= MAX_OUTPUT && bytes + length as u64 > MAX_OUTPUT {
            let _ = events.send(Event::TooMuchOutput);
        }
        bytes += length as u64;
    }
    output(bytes, &kept)
}

fn output(bytes: u64, kept: &[u8]) -> LabOutput {
    LabOutput { bytes, text: String::from_utf8_lossy(kept).into_owned() }
}

/// Reads a file that a program may have written. Other than regular files could block, also if another program of the host
/// exchanges the file meanwhile.
fn keep(path: &str) -> LabFile {
    let content = || {
        let file = file::open(Path::new(path)).ok()?;
        let bytes = file.metadata().ok()?.len();
        let mut kept = Vec::new();
        file.take(MAX_KEPT as u64).read_to_end(&mut kept).ok()?;
        Some(output(bytes, &kept))
    };
    LabFile { path: path.to_owned(), content: content() }
}
