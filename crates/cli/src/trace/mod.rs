//! `landspeed trace`.

mod against;
mod cores;
mod input;
mod noise;
mod packets;
mod pictures;
mod source;
mod text;
mod turns;

use std::ffi::OsStr;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::thread;

use anyhow::Context as _;
use landspeed_model::{BuildInfo, TraceDocument};
use landspeed_trace::{Analysis, Graphs, Limits, Observer as _, Pairing, Row};
use landspeed_units::{BitRate, Nanos};
use landspeed_wire::capture::{self, Frame};

use crate::output::Sink;
use crate::{Outcome, options};
use input::Capture;
pub use packets::{Written, header_trace};

const EXAMPLES: &str = "\
Examples:
  landspeed trace transfer.pcap
  landspeed trace transfer.pcapng.zst --json trace.json
  landspeed trace sender.pcap receiver.pcap     where each packet was lost
  landspeed trace inside.pcap outside.pcap --nat           the same across a NAT
  landspeed trace middle.pcap --window-scale 7             a capture without the handshake
  landspeed trace transfer.pcap --report trace.html        time-sequence graphs, rates, gaps
  landspeed trace transfer.pcap --xplot graphs             the same for xplot, as tcptrace -G
  landspeed trace before.pcap --against after.pcap --report both.html
  tcpdump -i eth0 -s 128 -w - tcp | landspeed trace -
  landspeed trace transfer.pcap --packets packets.parquet  every packet, for DuckDB
  landspeed trace transfer.pcap --burst 8G --bin 10ms";

/// Options of `trace`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Captures: pcap or pcapng, plain, gzip or zstd, or a header trace (Parquet); - for standard input. Several are taps of one path, the sender's
    /// first
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Flows told of, those with the most payload
    #[arg(long, default_value_t = Limits::default().listed, value_name = "N")]
    top: usize,
    /// Flows kept in memory at once, about 1 KiB each
    #[arg(long, default_value_t = Limits::default().flows, value_name = "N")]
    flows: usize,
    /// Least width of the bins of rate over time
    #[arg(long, value_parser = options::time, default_value = "1ms", value_name = "TIME")]
    bin: Nanos,
    /// Count 1 ms and 10 ms bins above this rate (microbursts)
    #[arg(long, value_parser = options::rate, value_name = "RATE")]
    burst: Option<BitRate>,
    /// The gap that ends a train of frames
    #[arg(long, value_parser = options::time, default_value = "20us", value_name = "TIME")]
    train_gap: Nanos,
    /// Addresses or ports change between the taps: packets are matched without them
    #[arg(long)]
    nat: bool,
    /// Window scale of connections whose handshake the capture lacks, 0 to 14; ss -ti prints it as wscale
    #[arg(long, value_parser = clap::value_parser!(u8).range(0..=14), value_name = "SHIFT")]
    window_scale: Option<u8>,
    /// Cores used: another decompresses, they take turns at a plain file, and share the flows where there are many [default: 2
    /// if there are two]
    #[arg(long, value_name = "N")]
    cores: Option<NonZero<usize>>,
    /// Write the document as JSON (- for standard output)
    #[arg(short = 'J', long, value_name = "FILE")]
    json: Option<Sink>,
    #[command(flatten)]
    packets: packets::Packets,
    #[command(flatten)]
    pictures: pictures::Pictures,
}

/// Analyses captures.
pub fn main(args: &Args) -> anyhow::Result<Outcome> {
    for sink in [&args.json, &args.pictures.report].into_iter().flatten() {
        sink.check()?;
    }
    if args.pictures.xplot.is_some() && args.files.first().is_some_and(|file| file == Path::new("-")) {
        anyhow::bail!("--xplot reads the capture twice: save it to a file first");
    }
    if args.packets.wanted() && (args.files.len() > 1 || args.pictures.against.is_some()) {
        anyhow::bail!("--packets and --headers take one capture: write those of each by itself");
    }
    if let Some(other) = &args.pictures.against {
        return against::main(args, other);
    }
    let document = match args.files.as_slice() {
        [one] => alone(args, one)?,
        several => chain(args, several)?,
    };
    if args.json != Some(Sink::Stdout) {
        print!("{}", text::summary(&document));
    }
    if let Some(sink) = &args.json {
        sink.write(&serde_json::to_vec_pretty(&document)?)?;
    }
    if let Some(sink) = &args.pictures.report {
        sink.write(landspeed_report::render_trace(&document)?.as_bytes())?;
    }
    if let (Some(directory), Some(file)) = (&args.pictures.xplot, args.files.first()) {
        pictures::xplot(args, &document, file, directory)?;
    }
    Ok(if document.capture.ended_early.is_none() { Outcome::Clean } else { Outcome::Findings })
}

/// What captures show, with the usual options, in words.
pub fn summary_of(files: &[PathBuf]) -> anyhow::Result<String> {
    #[derive(clap::Parser)]
    struct Alone {
        #[command(flatten)]
        args: Args,
    }
    let words = std::iter::once(OsStr::new("trace")).chain(files.iter().map(|file| file.as_os_str()));
    let args = <Alone as clap::Parser>::try_parse_from(words)?.args;
    let document = match files {
        [one] => alone(&args, one)?,
        several => chain(&args, several)?,
    };
    Ok(text::summary(&document))
}

fn limits(args: &Args) -> Limits {
    Limits {
        flows: args.flows,
        listed: args.top,
        bin_ns: args.bin.get().max(1),
        train_gap_ns: args.train_gap.get(),
        burst_bps: args.burst.map(BitRate::bps),
        window_scale: args.window_scale,
        ..Limits::default()
    }
}

/// One capture and what is made of it.
struct Reading {
    file: PathBuf,
    capture: Capture,
    analysis: Analysis,
    graphs: Option<Graphs>,
    columns: Option<packets::Columns>,
}

impl Reading {
    fn open(args: &Args, file: &Path) -> anyhow::Result<Self> {
        let (capture, analysis) = (Capture::open(file, cores(args) > 1)?, Analysis::new(limits(args)));
        Ok(Self {
            file: file.to_owned(),
            capture,
            analysis,
            graphs: args.pictures.graphs(),
            columns: args.packets.open()?,
        })
    }

    /// Takes what fits the buffer; `false` at the end.
    fn drain(&mut self) -> anyhow::Result<bool> {
        let more = self.capture.drain(&mut self.analysis);
        more.with_context(|| format!("cannot analyse {}", self.file.display()))
    }

    /// Takes the next frame; `false` at the end. It is shown to `also`.
    fn step(&mut self, also: impl FnMut(&Frame<'_>)) -> anyhow::Result<bool> {
        let Self { capture, analysis, graphs, columns, file } = self;
        let mut shown = Shown { analysis, graphs: graphs.as_mut(), columns: columns.as_mut(), also, failure: None };
        let more = capture.step(&mut shown).with_context(|| format!("cannot analyse {}", file.display()))?;
        shown.failure.map_or(Ok(more), Err)
    }

    /// Takes all of it on one core.
    fn whole(mut self) -> anyhow::Result<TraceDocument> {
        if self.shows_frames() {
            while self.step(|_| ())? {}
        } else {
            while self.drain()? {}
        }
        self.finish()
    }

    /// Whether somebody looks at every frame in order, which is one core's work.
    fn shows_frames(&self) -> bool {
        self.graphs.is_some() || self.columns.is_some()
    }

    fn finish(self) -> anyhow::Result<TraceDocument> {
        let reader = self.capture.reader();
        let landspeed = BuildInfo { version: env!("CARGO_PKG_VERSION").to_owned(), server_version: None };
        let name = |interface| reader.interface_name(interface).map(ToOwned::to_owned);
        let (format, early) = (reader.format().unwrap_or_default(), self.capture.early());
        let (command, file) = (std::env::args().collect(), self.file.display().to_string());
        let mut document = self.analysis.finish(landspeed, command, file, format, early, name);
        document.capture.sorted = self.capture.sorted();
        if let Some(graphs) = self.graphs {
            graphs.finish(&mut document);
        }
        if let Some(columns) = self.columns {
            eprintln!("{}", columns.finish()?);
        }
        Ok(document)
    }
}

/// A capture's frames, shown to whoever wants each of them.
struct Shown<'a, F> {
    analysis: &'a mut Analysis,
    graphs: Option<&'a mut Graphs>,
    columns: Option<&'a mut packets::Columns>,
    also: F,
    failure: Option<anyhow::Error>,
}

impl<F: FnMut(&Frame<'_>)> capture::Sink for Shown<'_, F> {
    fn frame(&mut self, frame: &Frame<'_>) {
        if self.graphs.is_some() || self.columns.is_some() {
            let Self { analysis, graphs, columns, failure, .. } = self;
            analysis.frame_to(frame, &mut |row: &Row| {
                if let Some(graphs) = graphs {
                    graphs.row(row);
                }
                if let Some(columns) = columns {
                    *failure = columns.packet(frame, row).err();
                }
            });
        } else {
            self.analysis.frame(frame);
        }
        (self.also)(frame);
    }

    fn statistics(&mut self, statistics: capture::InterfaceStatistics) {
        self.analysis.statistics(statistics);
    }
}

fn alone(args: &Args, file: &Path) -> anyhow::Result<TraceDocument> {
    let mut reading = Reading::open(args, file)?;
    let cores = cores(args);
    if cores == 1 || reading.shows_frames() {
        return reading.whole();
    }
    while reading.drain()? {
        if reading.analysis.live_flows() > cores::ENOUGH_FLOWS {
            let (limits, file) = (limits(args), file.display());
            let begun = std::mem::replace(&mut reading.analysis, Analysis::new(limits));
            let whole = cores::rest(&mut reading.capture, begun, limits, cores);
            reading.analysis = whole.with_context(|| format!("cannot analyse {file}"))?;
            break;
        }
        let taken = turns::some(&mut reading.capture, &mut reading.analysis, cores);
        taken.with_context(|| format!("cannot read {}", file.display()))?;
    }
    reading.finish()
}

/// Two if there are two: more only helps where many flows are followed.
fn cores(args: &Args) -> usize {
    let usual = || thread::available_parallelism().map_or(1, NonZero::get).min(2);
    args.cores.map_or_else(usual, NonZero::get)
}

/// Analyses two taps and finds the packets of each at the other, in one pass.
fn together(mut readings: [Reading; 2], pairing: &mut Pairing) -> anyhow::Result<[TraceDocument; 2]> {
    while let Some(tap) = pairing.wants() {
        if !readings[tap as usize].step(|frame| pairing.frame(tap, frame))? {
            pairing.end(tap);
        }
    }
    let [first, second] = readings;
    Ok([first.finish()?, second.finish()?])
}

/// The same on two cores, each with a pass of its own: what reading twice costs is less than handing packets over.
fn apart(readings: [Reading; 2], pairing: &mut Pairing) -> anyhow::Result<[TraceDocument; 2]> {
    let open = |reading: &Reading| Capture::open(&reading.file, false);
    let mut captures = [open(&readings[0])?, open(&readings[1])?];
    thread::scope(|scope| {
        let analysed = scope.spawn(|| {
            let [first, second] = readings;
            anyhow::Ok([first.whole()?, second.whole()?])
        });
        while let Some(tap) = pairing.wants() {
            // What is wrong with a file is said by its analysis.
            let more = captures[tap as usize].step(&mut input::Frames(|frame: &Frame<'_>| pairing.frame(tap, frame)));
            if !more.unwrap_or(false) {
                pairing.end(tap);
            }
        }
        analysed.join().unwrap_or_else(|why| std::panic::resume_unwind(why))
    })
}

/// Taps of one path, from the sender's to the receiver's.
fn chain(args: &Args, files: &[PathBuf]) -> anyhow::Result<TraceDocument> {
    let mut whole: Option<TraceDocument> = None;
    for pair in files.windows(2) {
        let [from, to] = pair else { continue };
        if from == to {
            anyhow::bail!("{} is named twice: each file is another tap of the path", from.display());
        }
        let readings = [Reading::open(args, from)?, Reading::open(args, to)?];
        let mut pairing = Pairing::new(args.nat);
        let again = cores(args) > 1 && [from, to].into_iter().all(|file| file.is_file());
        let [first, second] = if again { apart(readings, &mut pairing)? } else { together(readings, &mut pairing)? };
        let document = whole.get_or_insert(first);
        let (from, to) = (from.display().to_string(), to.display().to_string());
        pairing.finish(from, to).tell(document, &second);
    }
    whole.context("there is nothing to read")
}
