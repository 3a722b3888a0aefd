//! The watchdog process that rolls a transaction back unless it is confirmed. It is landspeed in its own
//! session and, with systemd, in its own control group.

use std::fmt;
use std::io;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::Context as _;
use landspeed_sys::file;
use landspeed_sys::{clock, process};
use landspeed_tune::{BoundedKnobs, Engine, LiveKnobs, Watchdog};

use super::state::{FAULT, StateArgs, context};
use crate::CommandOutcome;

/// Timeout for the watchdog's start, nanoseconds.
const START_TIMEOUT_NS: u64 = 10_000_000_000;
/// Polling interval while waiting, nanoseconds.
const POLL_NS: u64 = 2_000_000;
/// Environment variable with a fault for the watchdog: `after-awake`, or a value of [`FAULT`].
const WATCHDOG_FAULT: &str = "LANDSPEED_TUNE_WATCHDOG_FAULT";
const AFTER_AWAKE: &str = "after-awake";
/// This directory exists if and only if systemd is the init process (`sd_booted(3)`).
const SYSTEMD: &str = "/run/systemd/system";

/// Options of the hidden command.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    state: StateArgs,
    /// Transaction
    #[arg(long)]
    id: u32,
}

/// Starts the watchdog and waits until it runs.
pub fn start(engine: &Engine<'_>, args: &StateArgs, id: u32) -> Result<Watchdog, String> {
    let program = std::env::current_exe().map_err(|why| format!("the file of this program is not known: {why}"))?;
    let arguments = arguments(&program, &engine.context().state, args.trust.insecure_permissions, id);
    let unit = format!("landspeed-tune-{id}-{}.scope", std::process::id());
    let why = if Path::new(SYSTEMD).is_dir() {
        let mut command = Command::new("systemd-run");
        command.args(unit_options(&unit)).args(&arguments);
        match wake(engine, command, id) {
            Ok(process) if moved(process) => return Ok(Watchdog { process, unit: Some(unit), warning: None }),
            // It runs; a second watchdog would be refused.
            Ok(process) => {
                let warning = Some(warning("systemd-run left it there"));
                return Ok(Watchdog { process, unit: None, warning });
            }
            Err(WatchdogError::NotStarted(why)) if why.kind() == io::ErrorKind::NotFound => {
                "systemd-run is not installed".to_owned()
            }
            Err(why) => format!("systemd-run failed: {why}"),
        }
    } else {
        "systemd does not run here".to_owned()
    };
    let mut command = Command::new(&arguments[0]);
    command.args(&arguments[1..]);
    let process = wake(engine, command, id).map_err(|why| why.to_string())?;
    Ok(Watchdog { process, unit: None, warning: Some(warning(&why)) })
}

/// Returns the watchdog's command line.
fn arguments(program: &Path, state: &Path, insecure: bool, id: u32) -> Vec<std::ffi::OsString> {
    let id = id.to_string();
    let mut arguments: Vec<std::ffi::OsString> = vec![program.into()];
    arguments.extend(["tune", "watchdog", "--id", &id, "--state"].map(Into::into));
    arguments.push(state.into());
    if insecure {
        arguments.push("--insecure-permissions".into());
    }
    arguments
}

/// Options of `systemd-run`. Unlike a service, a scope inherits namespaces and environment from its parent
/// process.
fn unit_options(unit: &str) -> [String; 6] {
    [
        "--scope".into(),
        "--quiet".into(),
        "--slice=system.slice".into(),
        format!("--unit={unit}"),
        "--description=landspeed: rolls a tune transaction back unless it is confirmed".into(),
        "--".into(),
    ]
}

fn warning(why: &str) -> String {
    format!(
        "the watchdog runs in the control group of this session, because {why}: what kills that group kills it, too"
    )
}

/// Whether a process is in a different control group than this one.
fn moved(process: u32) -> bool {
    let groups = |process: &str| file::read_text(format!("/proc/{process}/cgroup").as_ref(), 1 << 20).ok();
    groups(&process.to_string()).is_some_and(|theirs| Some(theirs) != groups("self"))
}

/// Failure to start the watchdog.
#[derive(Debug)]
enum WatchdogError {
    NotStarted(io::Error),
    Ended(std::process::ExitStatus),
    TimedOut,
}

impl fmt::Display for WatchdogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotStarted(why) => write!(f, "it cannot be started: {why}"),
            Self::Ended(status) => write!(f, "it ended at once ({status})"),
            Self::TimedOut => write!(f, "it did not wake up within {} s", START_TIMEOUT_NS / 1_000_000_000),
        }
    }
}

/// Starts a watchdog and waits until its lock shows that it runs. Returns its PID.
fn wake(engine: &Engine<'_>, mut command: Command, id: u32) -> Result<u32, WatchdogError> {
    engine.prepare_watch(id);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).current_dir("/");
    command.env_remove(FAULT);
    if let Ok(fault) = std::env::var(WATCHDOG_FAULT)
        && fault != AFTER_AWAKE
    {
        command.env(FAULT, fault);
    }
    let mut child = process::detach(&mut command).spawn().map_err(WatchdogError::NotStarted)?;
    let deadline = clock::monotonic_ns() + START_TIMEOUT_NS;
    loop {
        // Check for its end first: a watchdog that ended after taking its lock counts as started.
        let ended = child.try_wait().ok().flatten();
        if let Some(process) = engine.awake(id) {
            reap(child);
            return Ok(process);
        }
        if let Some(status) = ended {
            return Err(WatchdogError::Ended(status));
        }
        let now = clock::monotonic_ns();
        if now > deadline {
            end(&mut child);
            return Err(WatchdogError::TimedOut);
        }
        clock::sleep_until(now + POLL_NS);
    }
}

/// Waits in the background for the watchdog's end. Otherwise a long-running process, such as a server, would
/// collect zombies.
fn reap(mut child: Child) {
    std::thread::spawn(move || child.wait());
}

fn end(child: &mut Child) {
    let _ = child.kill();
    let _ = child.wait();
}

/// Watches until the transaction is finished.
pub fn main(args: &Args) -> anyhow::Result<CommandOutcome> {
    let knobs = BoundedKnobs::new(LiveKnobs);
    let engine = Engine::new(&knobs, context(&args.state)?);
    engine
        .watch(args.id, || {
            if std::env::var(WATCHDOG_FAULT).is_ok_and(|fault| fault == AFTER_AWAKE) {
                process::kill_self();
            }
        })
        .context("the watchdog gave up")?;
    Ok(CommandOutcome::Clean)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_watchdog_runs_the_same_program_in_a_scope() {
        let watchdog = arguments(Path::new("/usr/bin/landspeed"), Path::new("/state"), true, 7);
        let words: Vec<_> = watchdog.iter().map(|word| word.to_string_lossy()).collect();
        let expected =
            ["/usr/bin/landspeed", "tune", "watchdog", "--id", "7", "--state", "/state", "--insecure-permissions"];
        assert_eq!(words, expected);
        let options = unit_options("landspeed-tune-7-42.scope");
        assert!(options.contains(&"--scope".to_owned()) && options.contains(&"--slice=system.slice".to_owned()));
        assert_eq!(options.last().map(String::as_str), Some("--"), "what follows is not an option");
    }
}
