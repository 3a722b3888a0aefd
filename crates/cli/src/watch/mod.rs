//! `landspeed watch`.

pub mod text;

use std::net::IpAddr;
use std::sync::atomic::Ordering;

use anyhow::Context as _;
use ipnet::IpNet;
use landspeed_diagnose::diagnose_watched;
use landspeed_model::WatchDocument;
use landspeed_netlink::sock_diag::SocketFilter;
use landspeed_units::Nanos;
use landspeed_watch::{Limits, Options, Scope, Watch, WatchError};

use crate::output::Sink;
use crate::{CommandOutcome, options};

const EXAMPLES: &str = "\
Examples:
  landspeed watch                        until Ctrl-C
  landspeed watch --for 30s              and stop with a verdict for each flow
  landspeed watch --port 443 --for 1m    HTTPS, as client or server
  landspeed watch --peer 198.51.100.0/24 --json flows.json
  landspeed watch --pid 4711             one process
  landspeed watch --cgroup /system.slice/nginx.service
  landspeed watch --jsonl - | jq -r '.flows[] | [.remote, .cause] | @tsv'

Exit status: 0 it ran, 2 failure.";

/// Flows shown at each interval; the document has all.
const SHOWN: usize = 20;

/// Options of `watch`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Stop after this time [default: at Ctrl-C]
    #[arg(long = "for", value_parser = options::time, value_name = "TIME")]
    duration: Option<Nanos>,
    /// Only connections of this process
    #[arg(long, value_name = "PID", value_parser = clap::value_parser!(u32).range(1..))]
    pid: Option<u32>,
    /// Only connections with this port at either end
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    port: Option<u16>,
    /// Only connections to this address or network
    #[arg(long, value_name = "CIDR", value_parser = network)]
    peer: Option<IpNet>,
    /// Only processes of this control group and those below it, as in /proc/PID/cgroup
    #[arg(long, value_name = "PATH")]
    cgroup: Option<String>,
    /// Sample this many of the busiest flows ten times a second
    #[arg(long, value_name = "N", default_value_t = Limits::default().top, value_parser = at_least_one)]
    top: usize,
    /// Count retransmits and drops by the kernel's reason (tracefs; root)
    #[arg(long, hide = true)]
    tracepoints: bool,
    /// Time between two reports
    #[arg(short, long, value_parser = options::time, default_value = "5s", value_name = "TIME")]
    interval: Nanos,
    /// Write the JSON document at the end (- for standard output)
    #[arg(short = 'J', long, value_name = "FILE")]
    json: Option<Sink>,
    /// Write the document of running flows as one line at each interval (- for standard output)
    #[arg(long, value_name = "FILE")]
    jsonl: Option<Sink>,
}

/// `192.0.2.1` or `192.0.2.0/24`.
fn network(text: &str) -> Result<IpNet, String> {
    let bare = || text.parse::<IpAddr>().map(IpNet::from);
    text.parse().or_else(|_| bare()).map_err(|_| format!("`{text}` is not an address or network; write 192.0.2.0/24"))
}

fn at_least_one(text: &str) -> Result<usize, String> {
    /// Readings take about a microsecond each, and memory about 200 KiB for each flow.
    const MOST: usize = 1000;
    match text.parse() {
        Ok(n @ 1..=MOST) => Ok(n),
        _ => Err(format!("`{text}` is not a number of flows; write 1 to {MOST}")),
    }
}

/// Watches, and prints what limits each flow.
pub fn main(args: &Args) -> anyhow::Result<CommandOutcome> {
    let sinks: Vec<&Sink> = [&args.json, &args.jsonl].into_iter().flatten().collect();
    for (i, sink) in sinks.iter().enumerate() {
        sink.check()?;
        anyhow::ensure!(!sinks[..i].contains(sink), "two outputs go to {sink}: give each its own");
    }
    let prints = !sinks.contains(&&Sink::Stdout);
    let mut lines: Option<Box<dyn std::io::Write>> = match &args.jsonl {
        None => None,
        Some(Sink::Stdout) => Some(Box::new(std::io::stdout())),
        Some(Sink::File(path)) => {
            let file = std::fs::File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
            Some(Box::new(file))
        }
    };
    let stop = landspeed_sys::process::catch_interrupts();
    let mut watch = Watch::open(chosen(args)).map_err(|error| advised(&error))?;
    let mut failed = None;
    let mut table = text::Table::default();
    let watched = watch.run(stop, &mut |watch| {
        let shown = if lines.is_some() { args.top } else { SHOWN };
        let mut document = watch.document(&diagnose_watched, Scope::Running(shown));
        if let Some(out) = &mut lines
            && failed.is_none()
        {
            failed = write_line(out, &document).err();
            stop.fetch_or(failed.is_some(), Ordering::Relaxed);
        }
        document.flows.truncate(SHOWN);
        if prints {
            print!("{}", table.interval(&document, watch.busy()));
        }
    });
    // What was seen until then is written also when the kernel stopped answering.
    let document = watch.document(&diagnose_watched, Scope::All);
    if prints {
        print!("{}", text::summary(&document));
    }
    if let Some(sink) = &args.json {
        sink.write(&serde_json::to_vec_pretty(&document)?)?;
    }
    if let Some(why) = failed {
        anyhow::bail!("cannot write {}: {why}", args.jsonl.as_ref().map_or(String::new(), ToString::to_string));
    }
    watched.map_err(|error| advised(&error))?;
    Ok(CommandOutcome::Clean)
}

fn chosen(args: &Args) -> Options {
    Options {
        limits: Limits { top: args.top, ..Limits::default() },
        filter: SocketFilter {
            port: args.port,
            peer: args.peer.map(|network| (network.addr(), network.prefix_len())),
        },
        pid: args.pid,
        cgroup: args.cgroup.clone(),
        tracepoints: args.tracepoints,
        interval_ns: args.interval.get(),
        duration_ns: args.duration.map(Nanos::get),
    }
}

fn write_line(out: &mut dyn std::io::Write, document: &WatchDocument) -> anyhow::Result<()> {
    let mut line = serde_json::to_vec(document)?;
    line.push(b'\n');
    out.write_all(&line)?;
    out.flush()?;
    Ok(())
}

/// The error with what to do.
fn advised(error: &WatchError) -> anyhow::Error {
    let advice = match error {
        WatchError::Sockets(_) => "Load the kernel module tcp_diag (`modprobe tcp_diag`), and try `ss -t`.",
        WatchError::Process { why, .. } if why.kind() == std::io::ErrorKind::PermissionDenied => {
            "Run with sudo: files of other users' processes are not readable."
        }
        WatchError::Process { .. } => "Find the process with `ss -tp`.",
        WatchError::Cgroup { .. } => "Give the path as in /proc/PID/cgroup, such as /system.slice/nginx.service.",
    };
    anyhow::anyhow!("{error}\n{advice}")
}
