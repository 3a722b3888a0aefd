//! The process that takes a transaction back when nobody confirms it: this program once more, in a session of its own.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use anyhow::Context as _;
use landspeed_sys::process;
use landspeed_tune::{Engine, LiveKnobs};

use super::{FAULT, context};
use crate::Outcome;

/// How long it may take to wake up.
const WAKE: Duration = Duration::from_secs(10);
/// What it says when it is awake.
const AWAKE: &str = "awake";
/// A fault for the watchdog itself: `after-awake`, or as in [`FAULT`].
const OWN_FAULT: &str = "LANDSPEED_TUNE_WATCHDOG_FAULT";
const AFTER_AWAKE: &str = "after-awake";

/// Options of the hidden command.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Directory of the journals
    #[arg(long)]
    state: PathBuf,
    /// Transaction
    #[arg(long)]
    id: u32,
}

/// Starts it and waits until it is awake. Returns its process.
pub fn start(state: &Path, id: u32) -> Result<u32, String> {
    let program = std::env::current_exe().map_err(|why| format!("this program's file is not known: {why}"))?;
    let mut command = Command::new(program);
    command.args(["tune", "watchdog", "--id", &id.to_string(), "--state"]).arg(state);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).current_dir("/");
    command.env_remove(FAULT);
    if let Ok(fault) = std::env::var(OWN_FAULT)
        && fault != AFTER_AWAKE
    {
        command.env(FAULT, fault);
    }
    let mut child = process::detach(&mut command).spawn().map_err(|why| format!("it cannot be started: {why}"))?;
    let (say, hear) = mpsc::channel();
    if let Some(out) = child.stdout.take() {
        std::thread::spawn(move || {
            let mut line = String::new();
            let _ = BufReader::new(out).read_line(&mut line);
            let _ = say.send(line);
        });
    }
    match hear.recv_timeout(WAKE) {
        Ok(line) if line.trim() == AWAKE => Ok(child.id()),
        answer => {
            let _ = child.kill();
            let _ = child.wait();
            Err(if answer.is_ok() { "it ended at once".into() } else { format!("it did not answer within {WAKE:?}") })
        }
    }
}

/// Watches until the transaction has come to an end.
pub fn main(args: &Args) -> anyhow::Result<Outcome> {
    let engine = Engine::new(&LiveKnobs, context(&args.state)?);
    engine
        .watch(args.id, || {
            let mut out = std::io::stdout();
            let _ = writeln!(out, "{AWAKE}").and_then(|()| out.flush());
            if std::env::var(OWN_FAULT).is_ok_and(|fault| fault == AFTER_AWAKE) {
                process::kill_self();
            }
        })
        .context("the watchdog gave up")?;
    Ok(Outcome::Clean)
}
