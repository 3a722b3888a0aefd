//! Graphs of a capture: the HTML report and files for xplot.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::ops::Range;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use landspeed_capture::{Capture, Frames};
use landspeed_model::TraceDocument;
use landspeed_sys::file;
use landspeed_trace::{Analysis, GraphLimits, Graphs, Xplot};
use landspeed_units::Nanos;
use landspeed_wire::capture::Frame;

use super::{Args, limits};
use crate::options;
use crate::output::Sink;

/// Options for graphs.
#[derive(Debug, clap::Args)]
pub struct GraphArgs {
    /// Write one HTML file: time-sequence graphs, rates, gaps
    #[arg(long, value_name = "FILE", help_heading = "Graphs")]
    pub report: Option<Sink>,
    /// Include the series of the graphs in the JSON document
    #[arg(long, help_heading = "Graphs")]
    pub series: bool,
    /// Flows that get graphs: those with the most payload
    #[arg(long, value_name = "N", default_value_t = GraphLimits::default().flows, help_heading = "Graphs")]
    pub graphs: usize,
    /// Packets kept individually for each flow's graphs, around losses first; others are aggregated over time
    #[arg(long, value_name = "N", default_value_t = GraphLimits::default().packets, help_heading = "Graphs")]
    pub singly: u64,
    /// Keep every packet of this span of the capture for the graphs, such as 2s..2.1s
    #[arg(long, value_name = "START..END", value_parser = span, help_heading = "Graphs")]
    pub detail: Option<Range<u64>>,
    /// Compare with a capture of another run, side by side
    #[arg(long, value_name = "FILE", help_heading = "Graphs")]
    pub against: Option<PathBuf>,
    /// Write graphs for xplot into this directory, as tcptrace -G does; reads the capture twice
    #[arg(long, value_name = "DIR", help_heading = "Graphs")]
    pub xplot: Option<PathBuf>,
}

impl GraphArgs {
    /// Returns the collector of the series; `None` if no graph was requested.
    pub fn graphs(&self) -> Option<Graphs> {
        let wanted = self.report.is_some() || self.series;
        let defaults = GraphLimits::default();
        let limits = GraphLimits {
            flows: self.graphs,
            packets: self.singly,
            all_packets: defaults.all_packets.max(self.singly),
            span_ns: self.detail.clone(),
        };
        wanted.then(|| Graphs::new(limits))
    }
}

/// Reads a capture a second time and writes graphs for xplot.
pub fn xplot(args: &Args, document: &TraceDocument, capture: &Path, directory: &Path) -> anyhow::Result<()> {
    file::create_directory(directory).with_context(|| format!("cannot create {}", directory.display()))?;
    let mut started = BTreeSet::new();
    let mut failure = None;
    let write = |name: &str, text: &str| {
        let path = directory.join(name);
        // The first write truncates files of an earlier run.
        let first = started.insert(name.to_owned());
        let opened = if first { file::create(&path) } else { file::append(&path) };
        if let Err(why) = opened.and_then(|mut file| file.write_all(text.as_bytes())) {
            failure
                .get_or_insert_with(|| anyhow::Error::new(why).context(format!("cannot write {}", path.display())));
        }
    };
    let mut graphs = Xplot::new(document, args.pictures.graphs, write);
    let mut analysis = Analysis::new(limits(args));
    let mut capture = Capture::open(capture, false)?.inspected(args.inspection(false));
    while capture.drain(&mut Frames(|frame: &Frame<'_>| analysis.frame_with_row(frame, &mut graphs)))? {}
    graphs.finish();
    failure.map_or(Ok(()), Err)
}

fn span(text: &str) -> Result<Range<u64>, String> {
    let (from, to) = text.split_once("..").ok_or("expected START..END, such as 2s..2.1s")?;
    let time = |text: &str| if text.trim() == "0" { Ok(Nanos::new(0)) } else { options::time(text.trim()) };
    let (from, to) = (time(from)?.get(), time(to)?.get());
    if from >= to {
        return Err("the end is not after the start".to_owned());
    }
    Ok(from..to)
}
