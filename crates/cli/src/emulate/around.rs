//! A path around a command: the command at one end, a server at the other.

use std::os::fd::{AsFd as _, OwnedFd};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;

use anyhow::Context as _;
use landspeed_emulate::{LOCAL, Live, Namespaces, Program, REMOTE, answer, carry, certificate};
use landspeed_emulation::LoadedPath;
use landspeed_model::{EmulateDocument, EmulateEnd, EmulatePlacement};
use landspeed_sys::clock::{monotonic_ns, sleep_until};
use landspeed_sys::netns;

use super::{Args, LOOK, about, live, text};

/// How long a command may take to end after it was interrupted, nanoseconds.
const GRACE_NS: u64 = 3_000_000_000;
/// How long the remote end may take until it listens, nanoseconds.
const LISTEN_NS: u64 = 3_000_000_000;

/// State of a listening socket in /proc/net/tcp, and of a bound one in /proc/net/udp.
const LISTENING: &str = "0A";
const BOUND: &str = "07";

/// Runs the command at one end.
pub(super) fn run(args: &Args, path: &LoadedPath, stop: &AtomicBool) -> anyhow::Result<EmulateDocument> {
    // Before any thread: an ordinary user needs a user namespace, which a process with several threads cannot get.
    let namespaces = Namespaces::make(path.path.mtu.unwrap_or(1500))?;
    let addresses = |list: [&str; 2]| list.map(str::to_owned).to_vec();
    let placement = EmulatePlacement::Command { local: addresses(LOCAL), remote: addresses(REMOTE) };
    let listeners = namespaces.listen()?;
    let (live, ending) = (Live::default(), AtomicBool::new(false));
    let (tell_ready, ready) = mpsc::channel();
    let (carried, ran) = std::thread::scope(|scope| {
        // The sender moves there: it is gone when nothing will be ready any more.
        let (inside, ending, live) = (&namespaces, &ending, &live);
        let carrying = scope.spawn(move || {
            let (ends, watched) = inside.enter_path()?;
            carry(path, &ends, watched, ending, live, move || {
                let _ = tell_ready.send(());
            })
        });
        scope.spawn(|| answer(&listeners, path, &placement, live, ending));
        let ran = if ready.recv().is_ok() {
            attend(args, path, &namespaces, stop, live, || carrying.is_finished())
        } else {
            Ok((EmulateEnd::Stopped, None))
        };
        ending.store(true, Ordering::Relaxed);
        (carrying.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), ran)
    });
    let (ended, status) = match (&carried, ran) {
        // Why nothing was carried is said by `carried`.
        (Err(_), _) => (EmulateEnd::Stopped, None),
        (Ok(_), ran) => ran?,
    };
    Ok(certificate(path, carried?, about(placement, ended, status)))
}

/// Starts both programs and waits until the command ends or is ended.
fn attend(
    args: &Args,
    path: &LoadedPath,
    namespaces: &Namespaces,
    stop: &AtomicBool,
    live: &Live,
    broken: impl Fn() -> bool,
) -> anyhow::Result<(EmulateEnd, Option<i32>)> {
    let (remote, name) = remote_command(args)?;
    let server = Program::start(remote, namespaces.remote()?).context("the remote command")?;
    // landspeed serve listens for its own clients and for iperf3's.
    let ports: &[u16] = if args.remote.is_some() {
        &[]
    } else {
        &[landspeed_flow::client::DEFAULT_PORT, landspeed_iperf3::DEFAULT_PORT]
    };
    wait_for_listener(namespaces.remote()?, ports, &server, stop);
    if let Some(end) = server.wait(std::time::Duration::ZERO) {
        eprintln!("landspeed: the remote command ended with status {}: {name}", end.status);
    }
    if !args.quiet {
        eprint!("{}", text::opening(path, &format!("local {}, remote {} ({name})", LOCAL[0], REMOTE[0])));
    }
    let (program, words) = args.command.split_first().context("name a command after --")?;
    let mut command = Command::new(program);
    command.args(words).env("LANDSPEED_EMULATE_LOCAL", LOCAL[0]).env("LANDSPEED_EMULATE_REMOTE", REMOTE[0]);
    let running = Program::start(command, namespaces.local()?)?;
    let deadline_ns = args.time.map(|time| monotonic_ns().saturating_add(time.get()));
    let mut interrupted_ns = None;
    let mut view = live::View::new(args.quiet);
    loop {
        view.show(live);
        if let Some(end) = running.wait(LOOK) {
            let ended = if interrupted_ns.is_some() { EmulateEnd::Stopped } else { EmulateEnd::Command };
            return Ok((ended, Some(end.status)));
        }
        let now_ns = monotonic_ns();
        if stop.load(Ordering::Relaxed) {
            // At a terminal the command was interrupted, too.
            let since_ns = *interrupted_ns.get_or_insert(now_ns);
            if now_ns >= since_ns + GRACE_NS {
                return Ok((EmulateEnd::Stopped, None));
            }
        }
        if deadline_ns.is_some_and(|at_ns| now_ns >= at_ns) {
            return Ok((EmulateEnd::Time, None));
        }
        if broken() {
            return Ok((EmulateEnd::InterfaceGone, None));
        }
    }
}

/// What runs at the remote end, and what it is called.
fn remote_command(args: &Args) -> anyhow::Result<(Command, String)> {
    let (mut command, name) = if let Some(words) = &args.remote {
        let mut command = Command::new("sh");
        command.args(["-c", words]);
        // Standard output is the command's.
        command.stdout(std::io::stderr().as_fd().try_clone_to_owned().context("cannot duplicate standard error")?);
        (command, words.clone())
    } else {
        let mut command = Command::new(std::env::current_exe().context("cannot find this program")?);
        command.args(["serve", "--quiet"]).stdout(Stdio::null());
        (command, "landspeed serve".to_owned())
    };
    command.stdin(Stdio::null());
    Ok((command, name))
}

/// Waits until the remote end listens: TCP on these ports, or anything if there are none.
fn wait_for_listener(namespace: OwnedFd, ports: &[u16], server: &Program, stop: &AtomicBool) {
    let identity = server.identity();
    let until_ns = monotonic_ns() + LISTEN_NS;
    std::thread::scope(|scope| {
        let listens = scope.spawn(move || {
            if netns::enter(namespace.as_fd()).is_err() {
                return;
            }
            while monotonic_ns() < until_ns && !stop.load(Ordering::Relaxed) && !listens(ports) {
                if !identity.is_alive() {
                    return;
                }
                sleep_until(monotonic_ns() + 5_000_000);
            }
        });
        let _ = listens.join();
    });
}

/// Whether sockets of the calling thread's network namespace listen.
fn listens(ports: &[u16]) -> bool {
    let table =
        |protocol: &str| std::fs::read_to_string(format!("/proc/thread-self/net/{protocol}")).unwrap_or_default();
    let found = |protocol: &str, state: &str| -> Vec<String> {
        let local = |line: &str| {
            let mut fields = line.split_whitespace().skip(1);
            let (local, _, has) = (fields.next()?, fields.next()?, fields.next()?);
            (has == state).then(|| local.rsplit(':').next().unwrap_or_default().to_owned())
        };
        table(protocol).lines().skip(1).filter_map(local).collect()
    };
    let tcp: Vec<String> = ["tcp", "tcp6"].iter().flat_map(|protocol| found(protocol, LISTENING)).collect();
    if ports.is_empty() {
        return !tcp.is_empty() || ["udp", "udp6"].iter().any(|protocol| !found(protocol, BOUND).is_empty());
    }
    ports.iter().all(|port| tcp.contains(&format!("{port:04X}")))
}
