//! `landspeed trace`.

mod input;
mod text;

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use landspeed_model::{BuildInfo, TraceDocument};
use landspeed_trace::{Analysis, Limits};
use landspeed_units::{BitRate, Nanos};

use crate::output::Sink;
use crate::{Outcome, options};
use input::Item;

const EXAMPLES: &str = "\
Examples:
  landspeed trace transfer.pcap
  landspeed trace transfer.pcapng.zst --json trace.json
  tcpdump -i eth0 -s 128 -w - tcp | landspeed trace -
  landspeed trace transfer.pcap --burst 8G --bin 10ms";

/// Options of `trace`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Captures: pcap or pcapng, plain, gzip or zstd; - for standard input
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
    /// Write the document as JSON (- for standard output); with several files a list
    #[arg(short = 'J', long, value_name = "FILE")]
    json: Option<Sink>,
}

/// Analyses captures.
pub fn main(args: &Args) -> anyhow::Result<Outcome> {
    if let Some(sink) = &args.json {
        sink.check()?;
    }
    let mut documents = Vec::new();
    for file in &args.files {
        documents.push(analyse(args, file)?);
    }
    let quiet = args.json == Some(Sink::Stdout);
    if !quiet {
        for document in &documents {
            print!("{}", text::summary(document));
        }
    }
    if let Some(sink) = &args.json {
        let json = match documents.as_slice() {
            [one] => serde_json::to_vec_pretty(one)?,
            several => serde_json::to_vec_pretty(several)?,
        };
        sink.write(&json)?;
    }
    let whole = documents.iter().all(|document| document.capture.ended_early.is_none());
    Ok(if whole { Outcome::Clean } else { Outcome::Findings })
}

fn analyse(args: &Args, file: &Path) -> anyhow::Result<TraceDocument> {
    let limits = Limits {
        flows: args.flows,
        listed: args.top,
        bin_ns: args.bin.get().max(1),
        train_gap_ns: args.train_gap.get(),
        burst_bps: args.burst.map(BitRate::bps),
    };
    let mut analysis = Analysis::new(limits);
    let ended = input::read(input::open(file)?, |item| match item {
        Item::Frame(frame) => analysis.frame(&frame),
        Item::Statistics(statistics) => analysis.statistics(statistics),
    })
    .with_context(|| format!("cannot analyse {}", file.display()))?;
    let format = ended.reader.format().unwrap_or_default();
    let landspeed = BuildInfo { version: env!("CARGO_PKG_VERSION").to_owned(), server_version: None };
    let name = |interface| ended.reader.interface_name(interface).map(ToOwned::to_owned);
    let command = std::env::args().collect();
    Ok(analysis.finish(landspeed, command, file.display().to_string(), format, ended.early, name))
}
