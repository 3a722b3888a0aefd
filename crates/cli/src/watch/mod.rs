//! `landspeed watch`.

mod advise;
mod screen;
pub mod text;

use std::io::IsTerminal as _;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::atomic::Ordering;

use anyhow::Context as _;
use ipnet::IpNet;
use landspeed_diagnose::diagnose_watched;
use landspeed_model::WatchDocument;
use landspeed_netlink::sock_diag::SocketFilter;
use landspeed_units::Nanos;
use landspeed_watch::{Limits, Options, Scope, Watch, WatchError};

use crate::output::Sink;
use crate::terminal::{self, Stream};
use crate::{CommandOutcome, keep, metrics, options};

const EXAMPLES: &str = "\
Examples:
  landspeed watch                        until q or Ctrl-C
  landspeed watch --for 30s              and stop with a verdict for each flow
  landspeed watch --port 443 --for 1m    HTTPS, as client or server
  landspeed watch --peer 198.51.100.0/24 --json flows.json
  landspeed watch --for 1m --report flows.html --advise
  landspeed watch --pid 4711             one process
  landspeed watch --cgroup /system.slice/nginx.service
  landspeed watch --plain --metrics 127.0.0.1:9211
  landspeed watch --jsonl - | jq -r '.flows[] | [.remote, .cause] | @tsv'

In a terminal, the flows fill the screen: Enter opens the page of one (its last minute and the evidence), ← and → sort by
another column, r reverses, / filters by address, process or cause, p pauses, ? lists the keys, q quits.

Exit status: 0 it ran, 2 failure.";

/// Flows printed per interval; the document has all.
const MAX_PRINTED_FLOWS: usize = 20;

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
    #[arg(long)]
    tracepoints: bool,
    /// Time between two reports, or two verdicts of a flow on the screen
    #[arg(short, long, value_parser = options::time, default_value = "5s", value_name = "TIME")]
    interval: Nanos,
    /// Write the JSON document at the end (- for standard output)
    #[arg(short = 'J', long, value_name = "FILE")]
    json: Option<Sink>,
    /// Write the document of running flows as one line at each interval (- for standard output)
    #[arg(long, value_name = "FILE")]
    jsonl: Option<Sink>,
    /// Write the report at the end: rates over time, what limited each flow when, evidence
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Print at the end what to change, as input for `landspeed tune plan`; changes nothing
    #[arg(long)]
    advise: bool,
    /// Serve metrics for Prometheus at http://ADDRESS/metrics, such as 127.0.0.1:9211 (docs/metrics.md)
    #[arg(long, value_name = "ADDRESS", value_parser = metrics::address)]
    metrics: Option<SocketAddr>,
    /// Print lines, also in a terminal
    #[arg(long)]
    plain: bool,
}

/// Parses an address or network: `192.0.2.1` or `192.0.2.0/24`.
fn network(text: &str) -> Result<IpNet, String> {
    let bare = || text.parse::<IpAddr>().map(IpNet::from);
    text.parse().or_else(|_| bare()).map_err(|_| format!("`{text}` is not an address or network; write 192.0.2.0/24"))
}

fn at_least_one(text: &str) -> Result<usize, String> {
    /// A sample takes about 1 µs, and a flow about 200 KiB of memory.
    const MAX_FLOWS: usize = 1000;
    match text.parse() {
        Ok(n @ 1..=MAX_FLOWS) => Ok(n),
        _ => Err(format!("`{text}` is not a number of flows; write 1 to {MAX_FLOWS}")),
    }
}

/// Watches connections and prints what limits each flow.
pub fn main(args: &Args) -> anyhow::Result<CommandOutcome> {
    let report = args.report.clone().map(Sink::File);
    let sinks: Vec<&Sink> = [&args.json, &args.jsonl, &report].into_iter().flatten().collect();
    for (i, sink) in sinks.iter().enumerate() {
        sink.check()?;
        anyhow::ensure!(!sinks[..i].contains(sink), "two outputs go to {sink}: give each its own");
    }
    let prints = !sinks.contains(&&Sink::Stdout);
    anyhow::ensure!(prints || !args.advise, "--advise prints to standard output: give the document a file");
    let mut lines = args.jsonl.as_ref().map(Lines::open).transpose()?;
    let endpoint = args.metrics.map(|addr| metrics::open(addr, "watch")).transpose()?;
    let stop = landspeed_sys::process::catch_interrupts();
    landspeed_sys::process::catch_hangup();
    let fills_screen = prints && !args.plain && has_screen();
    let mut watch = Watch::open(chosen(args, fills_screen)).map_err(|error| advised(&error))?;
    let mut exporter = endpoint.is_some().then(metrics::watch::Exporter::default);
    if let Some(exporter) = &mut exporter {
        exporter.update(&watch.document(&diagnose_watched, Scope::Running(args.top)), watch.totals(), (0, 0));
    }
    let exported = endpoint.zip(exporter.as_ref());
    let _endpoint = exported.map(|(endpoint, exporter)| exporter.latest().serve(endpoint)).transpose()?;
    let mut live = fills_screen.then(|| screen::Live::open(args.interval.get())).transpose().context(NO_SCREEN)?;
    let mut failed = None;
    let mut table = text::Table::default();
    let mut next_ns = args.interval.get();
    let watched = watch.run(stop, &mut |watch| {
        let mut step = || -> anyhow::Result<bool> {
            let goes_on = live.as_mut().map_or(Ok(true), |live| live.tick(watch)).context(NO_SCREEN)?;
            let now_ns = watch.elapsed_ns();
            // The screen handles keys much more often than once per interval.
            let wanted = lines.is_some() || exporter.is_some();
            if live.is_some() && (!wanted || now_ns < next_ns) {
                return Ok(goes_on);
            }
            next_ns = now_ns.max(next_ns + args.interval.get());
            let shown = if wanted { args.top } else { MAX_PRINTED_FLOWS };
            let mut document = watch.document(&diagnose_watched, Scope::Running(shown));
            if let Some(lines) = &mut lines {
                lines.write(&document)?;
            }
            if let Some(exporter) = &mut exporter {
                exporter.update(&document, watch.totals(), (now_ns, watch.last_dump_ns()));
            }
            if live.is_none() && prints {
                document.flows.truncate(MAX_PRINTED_FLOWS);
                out!("{}", table.interval(&document, watch.busy()));
            }
            Ok(goes_on)
        };
        if failed.is_none() {
            match step() {
                Ok(true) => {}
                Ok(false) => stop.store(true, Ordering::Relaxed),
                Err(why) => {
                    failed = Some(why);
                    stop.store(true, Ordering::Relaxed);
                }
            }
        }
    });
    drop(live);
    // The results so far are written even if the kernel stopped answering.
    let document = watch.document(&diagnose_watched, Scope::All);
    if prints {
        out!("{}", text::summary(&document));
    }
    if args.advise {
        out!("{}", advise::advice(&document)?);
    }
    let written = deliver(args, &document, report.as_ref(), prints);
    keep::keep(&document);
    written?;
    if let Some(why) = failed {
        return Err(why);
    }
    watched.map_err(|error| advised(&error))?;
    Ok(CommandOutcome::Clean)
}

fn deliver(args: &Args, document: &WatchDocument, report: Option<&Sink>, prints: bool) -> anyhow::Result<()> {
    if let Some(sink) = &args.json {
        sink.write(&serde_json::to_vec_pretty(document)?)?;
    }
    if let Some(sink) = report {
        sink.write(landspeed_report::render_watch(document)?.as_bytes())?;
        if prints {
            outln!("  report   {sink}");
        }
    }
    Ok(())
}

/// Error context for terminal failures.
const NO_SCREEN: &str = "cannot use the terminal (`--plain` prints lines)";

/// Whether standard input and output are a terminal that supports cursor positioning.
fn has_screen() -> bool {
    let dumb = std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
    !dumb && std::io::stdin().is_terminal() && Stream::Out.is_terminal()
}

/// Writes documents as JSON lines.
struct Lines {
    out: Box<dyn std::io::Write>,
    name: String,
}

impl Lines {
    fn open(sink: &Sink) -> anyhow::Result<Self> {
        let out: Box<dyn std::io::Write> = match sink {
            Sink::Stdout => Box::new(terminal::stdout()),
            Sink::File(path) => Box::new(
                landspeed_sys::file::create(path).with_context(|| format!("cannot write {}", path.display()))?,
            ),
        };
        Ok(Self { out, name: sink.to_string() })
    }

    fn write(&mut self, document: &WatchDocument) -> anyhow::Result<()> {
        let mut line = serde_json::to_vec(document)?;
        line.push(b'\n');
        let written = self.out.write_all(&line).and_then(|()| self.out.flush());
        written.with_context(|| format!("cannot write {}", self.name))
    }
}

fn chosen(args: &Args, fills_screen: bool) -> Options {
    Options {
        limits: Limits { top: args.top, ..Limits::default() },
        filter: SocketFilter {
            port: args.port,
            peer: args.peer.map(|network| (network.addr(), network.prefix_len())),
        },
        pid: args.pid,
        cgroup: args.cgroup.clone(),
        tracepoints: args.tracepoints,
        interval_ns: if fills_screen { screen::TICK_NS } else { args.interval.get() },
        duration_ns: args.duration.map(Nanos::get),
    }
}

/// Adds advice to an error.
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
