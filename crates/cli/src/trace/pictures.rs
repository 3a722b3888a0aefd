//! What is drawn of a capture.

use std::ops::Range;
use std::path::PathBuf;

use landspeed_trace::{GraphLimits, Graphs};
use landspeed_units::Nanos;

use crate::options;
use crate::output::Sink;

/// Options of pictures.
#[derive(Debug, clap::Args)]
pub struct Pictures {
    /// Write a report as one HTML file: time-sequence graphs, rates, gaps
    #[arg(long, value_name = "FILE", help_heading = "Pictures")]
    pub report: Option<Sink>,
    /// Put what graphs are drawn from into the JSON document too
    #[arg(long, help_heading = "Pictures")]
    pub series: bool,
    /// Flows that get graphs, those with the most payload
    #[arg(long, value_name = "N", default_value_t = GraphLimits::default().flows, help_heading = "Pictures")]
    pub graphs: usize,
    /// Keep every packet of this span for the graphs, from the start of the capture, such as 2s..2.1s
    #[arg(long, value_name = "START..END", value_parser = span, help_heading = "Pictures")]
    pub detail: Option<Range<u64>>,
    /// Another capture, of another run: both are told of side by side
    #[arg(long, value_name = "FILE", help_heading = "Pictures")]
    pub against: Option<PathBuf>,
}

impl Pictures {
    /// What to draw from; `None` where nothing is drawn.
    pub fn graphs(&self) -> Option<Graphs> {
        let wanted = self.report.is_some() || self.series;
        let limits = GraphLimits { flows: self.graphs, span_ns: self.detail.clone(), ..GraphLimits::default() };
        wanted.then(|| Graphs::new(limits))
    }
}

fn span(text: &str) -> Result<Range<u64>, String> {
    let (from, to) = text.split_once("..").ok_or("not START..END, such as 2s..2.1s")?;
    let time = |text: &str| if text.trim() == "0" { Ok(Nanos::new(0)) } else { options::time(text.trim()) };
    let (from, to) = (time(from)?.get(), time(to)?.get());
    if from >= to {
        return Err("it ends before it starts".to_owned());
    }
    Ok(from..to)
}
