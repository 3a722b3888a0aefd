//! `landspeed tap`.

pub mod attend;
mod live;
pub mod text;

use std::sync::Arc;
use std::thread::{self, JoinHandle};

use landspeed_model::{TapDocument, TapEnd};
use landspeed_tap::{Clock, Limits, Options, Output, Pipe, Rotation, Tap, TapDirection};
use landspeed_units::{Bytes, Nanos};

use crate::output::Sink;
use crate::terminal::Stream;
use crate::trace::{Written, check_columns, header_trace};
use crate::{CommandOutcome, options};

const EXAMPLES: &str = "\
Examples:
  landspeed tap -i eth0 -w transfer.pcapng               headers of everything, until Ctrl-C
  landspeed tap -i eth0 -w test.pcapng tcp port 5201 and host 192.0.2.1
  landspeed tap -i eth0 -i eth1 -t 10s -w both.pcapng    two interfaces in one file, by time
  landspeed tap -i eth0 -w ring.pcapng --file-size 1G --files 10
  landspeed tap -i eth0 -w transfer.parquet              a header trace, some 3 bytes a packet
  landspeed tap -i eth0 -w - tcp | landspeed trace -
  landspeed tap -i eth0 -t 10s --measure-perturbation    the effect of the capture on the traffic

Needs CAP_NET_RAW: root, or once, as root: setcap cap_net_raw+ep /path/to/landspeed";

/// Options of `tap`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Interface; may be given again
    #[arg(short, long = "interface", value_name = "IF", required = true)]
    interface: Vec<String>,
    /// Capture filter in tcpdump's language (pcap-filter(7)) [default: all packets]
    #[arg(value_name = "FILTER")]
    filter: Vec<String>,
    /// Write the packets here: pcapng, or a header trace if it ends in .parquet; - for standard output. Without it they are only counted
    #[arg(short, long, value_name = "FILE")]
    write: Option<Sink>,

    /// Snap length: bytes captured of each packet
    #[arg(short, long, value_name = "BYTES", default_value_t = 128, help_heading = "Capture",
          value_parser = clap::value_parser!(u32).range(14..=262_144))]
    snaplen: u32,
    /// Source of timestamps: the kernel's clock, or the interface's where it has one
    #[arg(long, value_enum, default_value = "software", help_heading = "Capture")]
    clock: ClockArg,
    /// Direction of the packets to capture
    #[arg(long, value_enum, default_value = "both", help_heading = "Capture")]
    direction: DirectionArg,
    /// Capture frames for other hosts, too
    #[arg(long, help_heading = "Capture")]
    promiscuous: bool,
    /// Ring buffer for packets not yet written, per interface
    #[arg(long, value_name = "SIZE", default_value = "32M", help_heading = "Capture")]
    ring: Bytes,
    /// Rings per interface, each for the packets of some CPUs
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Capture",
          value_parser = clap::value_parser!(u32).range(1..=64))]
    rings: u32,
    /// Core of the thread that reads and writes
    #[arg(long, value_name = "N", help_heading = "Capture")]
    core: Option<u32>,
    /// Record the kernel's TCP events, too (tcp_probe, retransmits, drops with their reason); needs root
    #[arg(long, help_heading = "Capture", requires = "write")]
    events: bool,

    /// Stop after N packets
    #[arg(short = 'c', long, value_name = "N", help_heading = "Until", requires = "write",
          value_parser = clap::value_parser!(u64).range(1..))]
    packets: Option<u64>,
    /// Stop after SIZE written
    #[arg(long, value_name = "SIZE", help_heading = "Until", requires = "write")]
    size: Option<Bytes>,
    /// Stop after this time
    #[arg(short, long, value_parser = options::time, help_heading = "Until")]
    time: Option<Nanos>,

    /// Begin a new file after SIZE: FILE.00001, FILE.00002 …
    #[arg(long, value_name = "SIZE", help_heading = "Ring of files", requires = "write")]
    file_size: Option<Bytes>,
    /// Begin a new file after this time
    #[arg(long, value_name = "TIME", value_parser = options::time, help_heading = "Ring of files", requires = "write")]
    file_time: Option<Nanos>,
    /// Keep N files; the oldest is deleted
    #[arg(long, value_name = "N", help_heading = "Ring of files", value_parser = clap::value_parser!(u32).range(1..))]
    files: Option<u32>,

    /// Measure the host's load for this time before the capture, to compare
    #[arg(long, value_name = "TIME", value_parser = options::time, help_heading = "Perturbation")]
    baseline: Option<Nanos>,
    /// Before the capture, attach and detach the tap in short turns for this time, and compare the traffic
    #[arg(long, value_name = "TIME", num_args = 0..=1, require_equals = true, default_missing_value = "10s",
          value_parser = options::time, help_heading = "Perturbation")]
    measure_perturbation: Option<Nanos>,

    /// Write the document as JSON (- for standard output)
    #[arg(short = 'J', long, value_name = "FILE", help_heading = "Output")]
    json: Option<Sink>,
    /// Print nothing
    #[arg(short, long, help_heading = "Output")]
    quiet: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum ClockArg {
    /// The kernel's
    Software,
    /// The interface's
    Hardware,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum DirectionArg {
    /// Both
    Both,
    /// Received
    In,
    /// Sent
    Out,
}

/// Captures packets until interrupted or a limit is reached.
pub fn main(args: &Args) -> anyhow::Result<CommandOutcome> {
    let options = tap_options(args)?;
    if let Some(sink) = &args.json {
        sink.check()?;
    }
    let (options, columns) = columns(options)?;
    let tap = Tap::open(options.clone())?;
    let stop = landspeed_sys::process::catch_interrupts();
    landspeed_sys::process::catch_hangup();
    let mut live = live::Line::new(args.quiet);
    live.opened(&options, tap.warnings());
    let mut document = tap.run(stop, |progress| live.show(progress));
    live.done();
    let is_stdout = options.output == Output::Stdout;
    // Closes the last writer of the pipe, so that the header trace thread reaches the end.
    drop(options);
    if let Some(columns) = columns {
        let written = columns.join().unwrap_or_else(|why| std::panic::resume_unwind(why))?;
        if let Some(file) = document.files.last_mut() {
            file.bytes = written.size.get();
        }
    }
    document.command = landspeed_sys::process::command_line();
    if !args.quiet {
        let summary = text::summary(&document);
        // Standard output may be used by the capture or the document.
        if is_stdout || args.json == Some(Sink::Stdout) {
            err!("{summary}");
        } else {
            out!("{summary}");
        }
    }
    if let Some(sink) = &args.json {
        sink.write(&serde_json::to_vec_pretty(&document)?)?;
    }
    if let Some(failure) = &document.failure {
        anyhow::bail!("{failure}; what was captured before is readable");
    }
    Ok(outcome(&document))
}

/// Starts the thread that writes a header trace during the capture, if the output is a Parquet file.
fn columns(mut options: Options) -> anyhow::Result<(Options, Option<JoinHandle<anyhow::Result<Written>>>)> {
    let Output::File(path) = &options.output else { return Ok((options, None)) };
    if path.extension().is_none_or(|extension| extension != "parquet") {
        return Ok((options, None));
    }
    check_columns()?;
    if options.rotation.is_enabled() {
        anyhow::bail!("a header trace is one file: --file-size and --file-time write pcapng");
    }
    if options.events {
        anyhow::bail!("a header trace has no room for the kernel's events: write pcapng");
    }
    let (name, (from, into)) = (path.clone(), std::io::pipe()?);
    let made = name.clone();
    let handle =
        thread::Builder::new().name("columns".to_owned()).spawn(move || header_trace(Box::new(from), &made))?;
    options.output = Output::Pipe(Pipe { name, into: Arc::new(into) });
    Ok((options, Some(handle)))
}

fn outcome(document: &TapDocument) -> CommandOutcome {
    let gone = document.interfaces.iter().any(|interface| interface.gone);
    if document.dropped > 0 || gone || document.ended == TapEnd::InterfaceGone {
        CommandOutcome::Findings
    } else {
        CommandOutcome::Clean
    }
}

fn tap_options(args: &Args) -> anyhow::Result<Options> {
    if args.files.is_some() && args.file_size.is_none() && args.file_time.is_none() {
        anyhow::bail!(
            "--files keeps the newest of several files: say when one ends, with --file-size or --file-time"
        );
    }
    let output = match &args.write {
        None => Output::None,
        Some(Sink::Stdout) => Output::Stdout,
        Some(Sink::File(path)) => Output::File(path.clone()),
    };
    if output == Output::Stdout && args.json == Some(Sink::Stdout) {
        anyhow::bail!("standard output cannot be both the capture and the document");
    }
    if output == Output::Stdout && Stream::Out.is_terminal() {
        anyhow::bail!(
            "cannot write a capture to a terminal: write it to a file, or pipe it into `landspeed trace -`"
        );
    }
    if output == Output::Stdout && (args.file_size.is_some() || args.file_time.is_some()) {
        anyhow::bail!("standard output is one file: --file-size and --file-time need -w FILE");
    }
    let ring_bytes = args.ring.get();
    if !((128 << 10)..=(1 << 32)).contains(&(ring_bytes / u64::from(args.rings))) {
        anyhow::bail!("--ring {}: 128K for each ring is the least, 4G the most", args.ring);
    }
    let filter = args.filter.join(" ");
    Ok(Options {
        interfaces: args.interface.clone(),
        selection: None,
        filter: (!filter.trim().is_empty()).then_some(filter),
        snap_bytes: args.snaplen,
        direction: match args.direction {
            DirectionArg::Both => TapDirection::Both,
            DirectionArg::In => TapDirection::In,
            DirectionArg::Out => TapDirection::Out,
        },
        clock: match args.clock {
            ClockArg::Software => Clock::Software,
            ClockArg::Hardware => Clock::Hardware,
        },
        promiscuous: args.promiscuous,
        ring_bytes,
        rings: args.rings,
        core: args.core,
        output,
        rotation: Rotation {
            file_bytes: args.file_size.map(Bytes::get),
            file_ns: args.file_time.map(Nanos::get),
            files: args.files,
        },
        limits: Limits {
            packets: args.packets,
            bytes: args.size.map(Bytes::get),
            time_ns: args.time.map(Nanos::get),
        },
        events: args.events,
        baseline_ns: args.baseline.map_or(0, Nanos::get),
        slices_ns: args.measure_perturbation.map_or(0, Nanos::get),
        application: format!("landspeed {}", env!("CARGO_PKG_VERSION")),
    })
}
