//! `emulate -- COMMAND`: runs a command over an emulated path, with a server on the remote side.

use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use landspeed_emulate::{LOCAL, Live, Namespaces, Program, REMOTE, certificate, wait_for_listener};
use landspeed_emulation::LoadedPath;
use landspeed_model::{EmulateDocument, EmulateEnd, EmulatePlacement};
use landspeed_sys::clock::monotonic_ns;

use crate::terminal;

use super::{Args, POLL_INTERVAL, about, emulate_while, live, text};

/// Time an interrupted command gets to end, nanoseconds.
const GRACE_NS: u64 = 3_000_000_000;
/// Timeout for the remote command to start listening.
const LISTEN_TIMEOUT: Duration = Duration::from_secs(3);

/// Runs the command on the local side of the path.
pub(super) fn run(args: &Args, path: &LoadedPath, stop: &AtomicBool) -> anyhow::Result<EmulateDocument> {
    // Must come before any thread is created: unshare(CLONE_NEWUSER) fails in a multithreaded process.
    let namespaces = Namespaces::make(path.path.mtu.unwrap_or(1500))?;
    let addresses = |list: [&str; 2]| list.map(str::to_owned).to_vec();
    let placement = EmulatePlacement::Command { local: addresses(LOCAL), remote: addresses(REMOTE) };
    let (carried, (ended, status)) = emulate_while(
        (args.datapath, path),
        (namespaces.listen()?, &placement),
        || namespaces.enter_path(),
        |live, is_over| run_programs(args, path, &namespaces, stop, live, is_over),
    )?;
    Ok(certificate(path, carried, about(placement, ended, status)))
}

/// Starts the remote command and the command; waits until the command ends, the time is over or an interrupt.
fn run_programs(
    args: &Args,
    path: &LoadedPath,
    namespaces: &Namespaces,
    stop: &AtomicBool,
    live: &Live,
    is_over: impl Fn() -> bool,
) -> anyhow::Result<(EmulateEnd, Option<i32>)> {
    let (remote, name) = remote_command(args)?;
    let server = Program::start(remote, namespaces.remote()?).context("the remote command")?;
    // `landspeed serve` listens on its own port and on iperf3's.
    let ports: &[u16] = if args.remote.is_some() {
        &[]
    } else {
        &[landspeed_flow::client::DEFAULT_PORT, landspeed_iperf3::DEFAULT_PORT]
    };
    wait_for_listener(namespaces.remote()?, ports, &server, LISTEN_TIMEOUT, stop);
    if let Some(end) = server.wait(Duration::ZERO) {
        errln!("landspeed: the remote command ended with status {}: {name}", end.status);
    }
    if !args.quiet {
        err!("{}", text::opening(path, &format!("local {}, remote {} ({name})", LOCAL[0], REMOTE[0])));
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
        if let Some(end) = running.wait(POLL_INTERVAL) {
            let ended = if interrupted_ns.is_some() { EmulateEnd::Stopped } else { EmulateEnd::Command };
            return Ok((ended, Some(end.status)));
        }
        let now_ns = monotonic_ns();
        if stop.load(Ordering::Relaxed) {
            // On a terminal, the command received the interrupt, too.
            let since_ns = *interrupted_ns.get_or_insert(now_ns);
            if now_ns >= since_ns + GRACE_NS {
                return Ok((EmulateEnd::Stopped, None));
            }
        }
        if deadline_ns.is_some_and(|at_ns| now_ns >= at_ns) {
            return Ok((EmulateEnd::Time, None));
        }
        if is_over() {
            return Ok((EmulateEnd::InterfaceGone, None));
        }
    }
}

/// Returns the command for the remote side and its name.
fn remote_command(args: &Args) -> anyhow::Result<(Command, String)> {
    let (mut command, name) = if let Some(words) = &args.remote {
        let mut command = Command::new("sh");
        command.args(["-c", words]);
        // Standard output is reserved for the command.
        command.stdout(terminal::stderr_descriptor().context("cannot duplicate standard error")?);
        (command, words.clone())
    } else {
        let mut command = Command::new(std::env::current_exe().context("cannot find this program")?);
        command.args(["serve", "--quiet"]).stdout(Stdio::null());
        (command, "landspeed serve".to_owned())
    };
    command.stdin(Stdio::null());
    Ok((command, name))
}
