//! Cost of watching: CPU time of `landspeed watch`, of `ss -tinm` at the same rates, and of bcc's tcptop, as a
//! share of one core.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::Signal;

use crate::bench::Bench;
use crate::bench::case::{Case, Measure, Role};
use crate::bench::child::{Running, children_cpu_s, run_checked};
use crate::bench::row::{Better, Unit};
use crate::machine::{self, now};

/// Interval between the writes of a busy connection.
const WRITE_EVERY: Duration = Duration::from_millis(10);
/// Bytes per write.
const WRITE_BYTES: usize = 2000;
/// Minimum duration, seconds, for a steady state.
const MIN_DURATION_S: u32 = 10;

/// Loopback connections with both ends in this process: some always busy, the rest idle. Closed when dropped.
struct Sockets {
    stop: Arc<AtomicBool>,
    traffic_thread: Option<JoinHandle<()>>,
    idle: Vec<TcpStream>,
}

impl Sockets {
    fn open(idle: usize, busy: usize) -> Result<Self> {
        let (_, most) = getrlimit(Resource::RLIMIT_NOFILE)?;
        setrlimit(Resource::RLIMIT_NOFILE, most, most)?;
        let listener = TcpListener::bind("127.0.0.1:0").context("a port")?;
        let address = listener.local_addr()?;
        let pair = || -> Result<[TcpStream; 2]> { Ok([TcpStream::connect(address)?, listener.accept()?.0]) };
        let resting = (0..idle / 2)
            .map(|_| pair())
            .collect::<Result<Vec<_>>>()
            .context("too few open files: raise ulimit -Hn")?;
        let mut moving = (0..busy / 2).map(|_| pair()).collect::<Result<Vec<_>>>()?;
        let stop = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&stop);
        let traffic_thread = std::thread::spawn(move || {
            let mut buffer = vec![7; WRITE_BYTES];
            while !ends.load(Ordering::Relaxed) {
                for [near, far] in &mut moving {
                    // The bytes fit into the socket buffers, so neither call blocks.
                    if near.write_all(&buffer).and_then(|()| far.read_exact(&mut buffer)).is_err() {
                        return;
                    }
                }
                pause(WRITE_EVERY);
            }
        });
        Ok(Self { stop, traffic_thread: Some(traffic_thread), idle: resting.into_iter().flatten().collect() })
    }
}

impl Drop for Sockets {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(traffic_thread) = self.traffic_thread.take() {
            let _ = traffic_thread.join();
        }
        self.idle.clear();
    }
}

/// 10,000 idle sockets and 2 busy ones; every tool samples once a second.
pub fn idle(bench: &Bench, name: &str) -> Case {
    case(bench, name, 10_000, 2, Duration::from_secs(1))
}

/// 100 busy sockets; `ss` samples ten times a second, as `watch` does for busy flows.
pub fn busy(bench: &Bench, name: &str) -> Case {
    case(bench, name, 0, 100, Duration::from_millis(100))
}

fn case(bench: &Bench, name: &str, idle: usize, busy: usize, every: Duration) -> Case {
    let case = Case::new(name).metric("share of one core", Unit::Ratio, Better::Lower, None);
    let sockets = match Sockets::open(idle, busy) {
        Ok(sockets) => Rc::new(sockets),
        Err(why) => return case.without("all tools", &format!("{why:#}")),
    };
    let seconds = bench.seconds.max(MIN_DURATION_S);
    let held = |measure: fn(&Path, u32, Duration) -> Result<f64>| {
        let sockets = Rc::clone(&sockets);
        move |program: Rc<std::path::PathBuf>| -> Result<Measure> {
            Ok(Box::new(move || {
                let _open = &sockets;
                Ok(vec![measure(&program, seconds, every)?])
            }))
        }
    };
    let found = |names: &[&str]| {
        let program = names.iter().find_map(|name| machine::find(name)).map(Rc::new);
        program.ok_or_else(|| format!("{} is not installed", names[0]))
    };
    let ours = bench.tools.landspeed.clone().map(|ours| Rc::new(ours.0.clone()));
    case.with(Role::Ours, "landspeed watch", &ours, held(watch))
        .with(Role::Rival, "ss -tinm in a loop", &found(&["ss"]), held(ss))
        .with(Role::RivalVariant, "tcptop (bcc)", &found(&["tcptop-bpfcc", "tcptop"]), held(tcptop))
}

fn watch(program: &Path, seconds: u32, _every: Duration) -> Result<f64> {
    let mut command = Command::new(program);
    command.args(["watch", "--for", &format!("{seconds}s"), "--json", "-"]);
    share(|| run_checked(&mut command, Duration::from_secs(u64::from(seconds) + 20)).map(|_| ()))
}

fn ss(program: &Path, seconds: u32, every: Duration) -> Result<f64> {
    let end = now() + Duration::from_secs(u64::from(seconds));
    share(|| {
        let mut next = now();
        while next < end {
            run_checked(Command::new(program).arg("-tinm"), Duration::from_secs(10))?;
            next += every;
            pause(next.saturating_duration_since(now()));
        }
        Ok(())
    })
}

fn tcptop(program: &Path, seconds: u32, _every: Duration) -> Result<f64> {
    let end = Duration::from_secs(u64::from(seconds));
    share(|| {
        let running = Running::start(Command::new(program).args(["-C", "1"]))?;
        pause(end);
        let finished = running.stop(Signal::SIGINT)?;
        ensure!(finished.stdout.contains("PID"), "it printed nothing: {}", finished.last_line());
        Ok(())
    })
}

/// CPU time of the children that `work` starts and waits for, divided by the elapsed time.
fn share(work: impl FnOnce() -> Result<()>) -> Result<f64> {
    let (started, before) = (now(), children_cpu_s()?);
    work()?;
    Ok((children_cpu_s()? - before) / (now() - started).as_secs_f64())
}

#[expect(clippy::disallowed_methods, reason = "the load and the pace of programs that are not ours")]
fn pause(time: Duration) {
    std::thread::sleep(time);
}
