//! Verdicts on a document: landspeed's, and a baseline from the `ss -ti` chronographs alone.

use clap::ValueEnum;
use landspeed_model::{Confidence, Direction, LabDocument, RunDocument, TcpInfo, Verdict};

use super::truth::View;
use super::view::{seen, watched};

/// Source of the verdicts to be scored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Judge {
    /// `landspeed-diagnose` of this source tree.
    Tree,
    /// The verdict in the document (two hosts only).
    Document,
}

/// A cause with its confidence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prediction {
    /// JSON name of the cause.
    pub cause: String,
    /// Confidence of the verdict.
    pub confidence: Confidence,
}

impl From<&Verdict> for Prediction {
    fn from(verdict: &Verdict) -> Self {
        Self { cause: verdict.cause.name().to_owned(), confidence: verdict.confidence }
    }
}

impl Judge {
    /// Returns the verdict on a document's first flow in a view; `None` if the judge has none.
    pub fn verdict(self, document: &LabDocument, view: View) -> Option<Prediction> {
        let run = document.flows.first()?.run.as_ref()?;
        match (self, view) {
            (Self::Document, View::Lab) => Some(Prediction::from(&run.verdict)),
            (Self::Document, _) => None,
            (Self::Tree, View::Lab) => {
                landspeed_diagnose::diagnose_lab(document, document.flows.first()?, Direction::Upload)
                    .as_ref()
                    .map(Prediction::from)
            }
            (Self::Tree, View::WatchSender | View::WatchReceiver) => Some(run_verdict(run, view)),
            (Self::Tree, _) => {
                let mut run = seen(run, view);
                // The lab's hosts share a hostname; two real hosts do not.
                if let Some(server) = &mut run.hosts.server {
                    server.hostname.push_str("-server");
                }
                Some(Prediction::from(&landspeed_diagnose::diagnose(&run, Direction::Upload)))
            }
        }
    }
}

/// Returns this tree's verdict on a run, in a view without the lab's counters.
pub fn run_verdict(run: &RunDocument, view: View) -> Prediction {
    let direction = match view {
        View::WatchSender => Direction::Upload,
        View::WatchReceiver => Direction::Download,
        _ => return Prediction::from(&landspeed_diagnose::diagnose(&seen(run, view), Direction::Upload)),
    };
    let (run, beside) = watched(run, direction);
    Prediction::from(&landspeed_diagnose::diagnose_watched(&run, direction, &beside))
}

/// Minimum share of the busy time at which a limit is the cause.
const MIN_BUSY_SHARE: f64 = 0.5;

/// Returns the verdict of the `ss -ti` chronographs alone: the limit with most of the busy time, `application` if
/// the flow is idle most of the time, else `network`. `None` without samples.
pub fn chronographs(run: &RunDocument) -> Option<&'static str> {
    let (mut busy, mut window, mut buffer, mut elapsed) = (0.0, 0.0, 0.0, 0.0);
    for stream in &run.streams {
        let samples = &stream.sender.as_ref()?.samples;
        let steady = run.phases.iter().find(|phase| phase.name == landspeed_model::PhaseName::Steady);
        let (start, end) = steady.map_or((0, u64::MAX), |phase| (phase.start_ns, phase.end_ns));
        let mut inside = samples.iter().filter(|sample| sample.t_ns >= start && sample.t_ns <= end);
        let (Some(first), Some(last)) = (inside.next(), inside.next_back()) else { continue };
        let (Some(before), Some(after)) = (&first.tcp, &last.tcp) else { continue };
        let moved = |of: fn(&TcpInfo) -> Option<u64>| match (of(before), of(after)) {
            (Some(before), Some(after)) => after.saturating_sub(before) as f64,
            _ => 0.0,
        };
        busy += moved(|tcp| tcp.busy_time_us);
        window += moved(|tcp| tcp.rwnd_limited_us);
        buffer += moved(|tcp| tcp.sndbuf_limited_us);
        elapsed += (last.t_ns - first.t_ns) as f64 / 1e3;
    }
    if elapsed == 0.0 {
        return None;
    }
    Some(match () {
        () if window > busy * MIN_BUSY_SHARE => "receiver-window",
        () if buffer > busy * MIN_BUSY_SHARE => "send-buffer",
        () if busy < elapsed * MIN_BUSY_SHARE => "application",
        () => "network",
    })
}

/// Returns the class that the chronographs would report for a cause.
pub fn chronograph_class(cause: &str) -> &'static str {
    match cause {
        "receiver-window" | "slow-reader" | "receiver-cpu" => "receiver-window",
        "send-buffer" => "send-buffer",
        "application" | "sender-cpu" | "round-trip" => "application",
        _ => "network",
    }
}
