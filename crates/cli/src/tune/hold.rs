//! Holds changes until interrupted, on this host or a server; `tuneup` does the same for a candidate.

use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::bail;
use landspeed_flow::client::Target;
use landspeed_model::{Change, Family};
use landspeed_sys::{clock, process};
use landspeed_tune::parse_setting;

use crate::host_changes::{ChangeErrorKind, HostChanges};
use crate::{CommandOutcome, options, trust};

/// Polling interval for interrupts, nanoseconds.
const POLL_NS: u64 = 50_000_000;

/// Options of the hidden command.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A setting; repeat for more
    #[arg(long, value_name = "SETTING=VALUE", value_parser = parse_setting)]
    set: Vec<Change>,
    /// At the host of this server
    #[arg(long, value_name = "HOST[:PORT]")]
    server: Option<Target>,
    /// Key of the server
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
    /// Longest time, seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    limit: u64,
    #[command(flatten)]
    trust: trust::TrustArgs,
}

/// Holds the changes.
pub fn main(args: &Args) -> anyhow::Result<CommandOutcome> {
    let interrupted = process::catch_interrupts();
    let limit = Duration::from_secs(args.limit);
    let key = args.key_file.as_deref().map(|path| options::key(path, args.trust.policy())).transpose()?;
    let mut changes = match &args.server {
        Some(server) => HostChanges::remote(server, Family::Any, key.as_ref(), limit, interrupted)?,
        None => HostChanges::local(limit, args.trust)?,
    };
    for planned in changes.plan(&args.set)? {
        if let Some(why) = planned.refused {
            bail!("{} is refused: {why}", planned.change.target);
        }
    }
    for applied in changes.apply(&args.set)? {
        outln!("{}: {} -> {}", applied.change.target, applied.before, applied.after);
    }
    outln!("held: {} at {}", changes.held().len(), changes.place());
    while !interrupted.load(Ordering::Relaxed) {
        clock::sleep_until(clock::monotonic_ns() + POLL_NS);
    }
    match changes.roll_back() {
        Ok(()) => {
            outln!("rolled back");
            Ok(CommandOutcome::Clean)
        }
        Err(error) if error.kind == ChangeErrorKind::NotRestored => {
            errln!("landspeed: {error}");
            Ok(CommandOutcome::Findings)
        }
        Err(error) => Err(error.into()),
    }
}
