//! `landspeed trace`.

mod against;
mod packets;
mod pictures;
mod selection;
pub mod text;

use std::ffi::OsStr;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::thread;

use anyhow::Context as _;
use landspeed_capture::{self as files, Capture, Inspection};
use landspeed_model::{BuildInfo, TraceChecksums, TraceDocument, Warning};
use landspeed_trace::{Analysis, Graphs, Limits, Observer as _, Pairing, Row};
use landspeed_units::{BitRate, Nanos};
use landspeed_wire::capture::{self, Frame};

use crate::output::Sink;
use crate::{CommandOutcome, options};
pub use packets::{Written, check_columns, header_trace};

const EXAMPLES: &str = "\
Examples:
  landspeed trace transfer.pcap                            losses, RTT, limits of each flow
  landspeed trace sender.pcap receiver.pcap                where each packet was lost
  landspeed trace inside.pcap outside.pcap --nat           the same across a NAT
  landspeed trace before.pcap --against after.pcap         two runs side by side
  landspeed trace transfer.pcap --report trace.html        time-sequence graphs, rates, gaps
  landspeed trace transfer.pcap --xplot graphs             graphs for xplot, as tcptrace -G
  landspeed trace transfer.pcap --packets packets.parquet  every packet, for DuckDB
  landspeed trace transfer.pcapng.zst --json trace.json
  landspeed trace mixed.pcap --flow 10.0.0.1:40000         one connection of many
  landspeed trace mixed.pcap --filter 'tcp port 443'       in tcpdump's language
  landspeed trace middle.pcap --window-scale 7             a capture without the handshake
  landspeed trace transfer.pcap --burst 8G --bin 10ms      microbursts above 8 Gb/s
  tcpdump -i eth0 -s 128 -w - tcp | landspeed trace -

Exit status: 0 the whole capture was read, 1 it is cut or damaged or has no TCP and UDP, 2 failure.";

/// Options of `trace`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Captures: pcap or pcapng (plain, gzip, zstd) or header traces (Parquet); - for standard input. Several captures are
    /// taps of one path, from sender to receiver
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Flows in the document: those with the most payload
    #[arg(long, default_value_t = Limits::default().listed, value_name = "N")]
    top: usize,
    /// Maximum number of live flows in memory, about 1 KiB each
    #[arg(long, default_value_t = Limits::default().flows, value_name = "N")]
    flows: usize,
    /// Minimum bin width of the rate over time
    #[arg(long, value_parser = options::time, default_value = "1ms", value_name = "TIME")]
    bin: Nanos,
    /// Count 1 ms and 10 ms bins above this rate, and list microbursts
    #[arg(long, value_parser = options::rate, value_name = "RATE")]
    burst: Option<BitRate>,
    /// Gap that ends a packet train
    #[arg(long, value_parser = options::time, default_value = "20us", value_name = "TIME")]
    train_gap: Nanos,
    /// Match packets without addresses and ports: they change between the taps
    #[arg(long)]
    nat: bool,
    /// Window scale of connections without a handshake in the capture, 0 to 14 (wscale in ss -ti)
    #[arg(long, value_parser = clap::value_parser!(u8).range(0..=14), value_name = "SHIFT")]
    window_scale: Option<u8>,
    /// Analyse only the flows of an endpoint, or between two: ADDRESS[:PORT][,ADDRESS[:PORT]]; [ADDRESS]:PORT for IPv6
    #[arg(long, value_parser = selection::flow, value_name = "ENDPOINTS")]
    flow: Option<selection::Endpoints>,
    /// Analyse only packets that match an expression in tcpdump's language (pcap-filter(7)), also inside encapsulations
    #[arg(long, value_parser = selection::expression, value_name = "EXPRESSION")]
    filter: Option<selection::Expression>,
    /// Verify the checksums of IPv4, TCP and UDP
    #[arg(long)]
    checksums: bool,
    /// Cores to use [default: 2 if there are two]
    #[arg(long, value_name = "N")]
    cores: Option<NonZero<usize>>,
    /// Write the JSON document (- for standard output)
    #[arg(short = 'J', long, value_name = "FILE")]
    json: Option<Sink>,
    /// Print errors only
    #[arg(short, long)]
    quiet: bool,
    #[command(flatten)]
    packets: packets::Packets,
    #[command(flatten)]
    pictures: pictures::GraphArgs,
}

impl Args {
    /// Returns what inspects each frame of a capture, if anything does.
    fn inspection(&self, verify: bool) -> Option<Inspection> {
        let filter = selection::filter(self.flow.as_ref(), self.filter.as_ref());
        (filter.is_some() || verify).then(|| Inspection::new(filter, verify))
    }

    /// Returns whether the summary is printed on standard output.
    fn prints(&self) -> bool {
        let sinks = [&self.json, &self.pictures.report];
        !self.quiet && !sinks.into_iter().flatten().any(|sink| *sink == Sink::Stdout)
    }
}

/// Returns the status for analysed captures: a finding if one was not read to its end, or if nothing in it was analysed.
fn outcome(documents: &[&TraceDocument]) -> CommandOutcome {
    let is_complete = |document: &TraceDocument| {
        let nothing = document.warnings.iter().any(|warning| warning.code == "nothing-analysed");
        document.capture.ended_early.is_none() && !nothing
    };
    if documents.iter().all(|document| is_complete(document)) {
        CommandOutcome::Clean
    } else {
        CommandOutcome::Findings
    }
}

pub fn main(args: &Args) -> anyhow::Result<CommandOutcome> {
    for sink in [&args.json, &args.pictures.report].into_iter().flatten() {
        sink.check()?;
    }
    if args.pictures.xplot.is_some() && args.files.first().is_some_and(|file| file == Path::new("-")) {
        anyhow::bail!(
            "cannot write graphs for xplot: standard input cannot be read twice\nSave the capture to a file, and name the file."
        );
    }
    if args.packets.wanted() && (args.files.len() > 1 || args.pictures.against.is_some()) {
        anyhow::bail!(
            "cannot write packets of several captures to one file\nRun --packets or --headers with one capture at a time."
        );
    }
    if let Some(other) = &args.pictures.against {
        return against::main(args, other);
    }
    let document = match args.files.as_slice() {
        [one] => analyse_one(args, one)?,
        several => analyse_chain(args, several)?,
    };
    if args.prints() {
        out!("{}", text::summary(&document));
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
    Ok(outcome(&[&document]))
}

/// Returns the terminal summary of captures, with default options.
pub fn summary_of(files: &[PathBuf]) -> anyhow::Result<String> {
    #[derive(clap::Parser)]
    struct Defaults {
        #[command(flatten)]
        args: Args,
    }
    let words = std::iter::once(OsStr::new("trace")).chain(files.iter().map(|file| file.as_os_str()));
    let args = <Defaults as clap::Parser>::try_parse_from(words)?.args;
    let document = match files {
        [one] => analyse_one(&args, one)?,
        several => analyse_chain(&args, several)?,
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

/// A capture and its analysis.
struct CaptureAnalysis {
    file: PathBuf,
    filter: Option<String>,
    capture: Capture,
    analysis: Analysis,
    graphs: Option<Graphs>,
    columns: Option<packets::Columns>,
}

impl CaptureAnalysis {
    fn open(args: &Args, file: &Path) -> anyhow::Result<Self> {
        let capture = Capture::open(file, cores(args) > 1)?.inspected(args.inspection(args.checksums));
        let analysis = Analysis::new(limits(args));
        Ok(Self {
            file: file.to_owned(),
            filter: selection::given(args.flow.as_ref(), args.filter.as_ref()),
            capture,
            analysis,
            graphs: args.pictures.graphs(),
            columns: args.packets.open()?,
        })
    }

    /// Reads one buffer of frames; `false` at the end.
    fn drain(&mut self) -> anyhow::Result<bool> {
        let more = self.capture.drain(&mut self.analysis);
        more.with_context(|| format!("cannot analyse {}", self.file.display()))
    }

    /// Reads the next frame, and calls `also` with it; `false` at the end.
    fn step(&mut self, also: impl FnMut(&Frame<'_>)) -> anyhow::Result<bool> {
        let Self { capture, analysis, graphs, columns, file, .. } = self;
        let mut sink =
            FrameSink { analysis, graphs: graphs.as_mut(), columns: columns.as_mut(), also, failure: None };
        let more = capture.step(&mut sink).with_context(|| format!("cannot analyse {}", file.display()))?;
        sink.failure.map_or(Ok(more), Err)
    }

    /// Reads everything on one core.
    fn read_all(mut self) -> anyhow::Result<TraceDocument> {
        if self.observes_frames() {
            while self.step(|_| ())? {}
        } else {
            while self.drain()? {}
        }
        self.finish()
    }

    /// Returns whether graphs or columns need every frame in order, which takes a single core.
    fn observes_frames(&self) -> bool {
        self.graphs.is_some() || self.columns.is_some()
    }

    fn finish(self) -> anyhow::Result<TraceDocument> {
        let reader = self.capture.reader();
        let landspeed = BuildInfo { version: env!("CARGO_PKG_VERSION").to_owned(), server_version: None };
        let name = |interface| reader.interface_name(interface).map(ToOwned::to_owned);
        let (format, early_end) = (reader.format().unwrap_or_default(), self.capture.early_end());
        let (command, file) = (landspeed_sys::process::command_line(), self.file.display().to_string());
        let mut document = self.analysis.finish(landspeed, command, file, format, early_end, name);
        document.capture.sorted = self.capture.sorted();
        document.capture.filter = self.filter;
        if let Some(checksums) = self.capture.inspection().and_then(Inspection::checksums) {
            document.warnings.extend(wrong_checksums(checksums));
            document.capture.checksums = Some(checksums.clone());
        }
        if let Some(graphs) = self.graphs {
            graphs.finish(&mut document);
        }
        if let Some(columns) = self.columns {
            errln!("{}", columns.finish()?);
        }
        Ok(document)
    }
}

/// Passes each frame to the analysis, and its row to graphs and columns.
struct FrameSink<'a, F> {
    analysis: &'a mut Analysis,
    graphs: Option<&'a mut Graphs>,
    columns: Option<&'a mut packets::Columns>,
    also: F,
    failure: Option<anyhow::Error>,
}

impl<F: FnMut(&Frame<'_>)> capture::Sink for FrameSink<'_, F> {
    fn frame(&mut self, frame: &Frame<'_>) {
        if self.graphs.is_some() || self.columns.is_some() {
            let Self { analysis, graphs, columns, failure, .. } = self;
            analysis.frame_with_row(frame, &mut |row: &Row| {
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

    fn skipped(&mut self) {
        self.analysis.skip();
    }

    fn statistics(&mut self, statistics: capture::InterfaceStatistics) {
        self.analysis.statistics(statistics);
    }
}

/// Returns the warning about packets with wrong checksums, if there are any.
fn wrong_checksums(checksums: &TraceChecksums) -> Option<Warning> {
    let TraceChecksums { wrong_ip, wrong_tcp, wrong_udp, first_wrong, .. } = checksums;
    let wrong = wrong_ip + wrong_tcp + wrong_udp;
    let frames: Vec<_> = first_wrong.iter().map(ToString::to_string).collect();
    (wrong > 0).then(|| Warning {
        code: "wrong-checksums".to_owned(),
        message: format!(
            "{wrong} packets have a wrong checksum ({wrong_ip} IPv4, {wrong_tcp} TCP, {wrong_udp} UDP), first in frame {}: \
             receivers drop such packets, and the analysis counts them as received",
            frames.join(", ")
        ),
    })
}

fn analyse_one(args: &Args, file: &Path) -> anyhow::Result<TraceDocument> {
    let mut reading = CaptureAnalysis::open(args, file)?;
    let cores = cores(args);
    if cores == 1 || reading.observes_frames() {
        return reading.read_all();
    }
    let CaptureAnalysis { capture, analysis, file, .. } = &mut reading;
    let limits = limits(args);
    let finished = files::analyse(capture, std::mem::replace(analysis, Analysis::new(limits)), limits, cores);
    *analysis = finished.with_context(|| format!("cannot analyse {}", file.display()))?;
    reading.finish()
}

/// Returns the number of cores to use: by default at most two, because more only help with many flows.
fn cores(args: &Args) -> usize {
    let default = || thread::available_parallelism().map_or(1, NonZero::get).min(2);
    args.cores.map_or_else(default, NonZero::get)
}

/// Analyses two taps and matches their packets, in one pass.
fn analyse_pair(mut readings: [CaptureAnalysis; 2], pairing: &mut Pairing) -> anyhow::Result<[TraceDocument; 2]> {
    while let Some(tap) = pairing.next_tap() {
        if !readings[tap as usize].step(|frame| pairing.frame(tap, frame))? {
            pairing.end(tap);
        }
    }
    let [first, second] = readings;
    Ok([first.finish()?, second.finish()?])
}

/// Like [`analyse_pair`], on two cores: one analyses, one matches packets. Each reads the captures itself,
/// which costs less than passing packets between threads.
fn analyse_pair_on_two_cores(
    readings: [CaptureAnalysis; 2],
    pairing: &mut Pairing,
    filter: impl Fn() -> Option<Inspection>,
) -> anyhow::Result<[TraceDocument; 2]> {
    let open = |reading: &CaptureAnalysis| Capture::open(&reading.file, false);
    let mut captures = [open(&readings[0])?, open(&readings[1])?].map(|capture| capture.inspected(filter()));
    thread::scope(|scope| {
        let analysed = scope.spawn(|| {
            let [first, second] = readings;
            anyhow::Ok([first.read_all()?, second.read_all()?])
        });
        while let Some(tap) = pairing.next_tap() {
            // Read errors are reported by the analysis.
            let more = captures[tap as usize].step(&mut files::Frames(|frame: &Frame<'_>| pairing.frame(tap, frame)));
            if !more.unwrap_or(false) {
                pairing.end(tap);
            }
        }
        analysed.join().unwrap_or_else(|why| std::panic::resume_unwind(why))
    })
}

/// Analyses the taps of one path, in order from the sender to the receiver.
fn analyse_chain(args: &Args, files: &[PathBuf]) -> anyhow::Result<TraceDocument> {
    let mut chain: Option<TraceDocument> = None;
    for pair in files.windows(2) {
        let [from, to] = pair else { continue };
        if from == to {
            anyhow::bail!(
                "cannot compare {} with itself: each file is another tap of the path\nName each capture once.",
                from.display()
            );
        }
        let readings = [CaptureAnalysis::open(args, from)?, CaptureAnalysis::open(args, to)?];
        let mut pairing = Pairing::new(args.nat);
        let two_cores = cores(args) > 1 && [from, to].into_iter().all(|file| file.is_file());
        let [first, second] = if two_cores {
            analyse_pair_on_two_cores(readings, &mut pairing, || args.inspection(false))?
        } else {
            analyse_pair(readings, &mut pairing)?
        };
        let document = chain.get_or_insert(first);
        let (from, to) = (from.display().to_string(), to.display().to_string());
        pairing.finish(from, to).add_to(document, &second);
    }
    chain.context("no captures were named")
}
