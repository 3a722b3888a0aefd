//! Columns of the table: heading, width, text and order.

use std::cmp::Ordering;

use landspeed_model::WatchRole;
use landspeed_units::{BitRate, Bytes, Nanos};
use landspeed_watch::FlowStatus;

use crate::watch::text::{confidence_level, micros};

/// Text of unknown values.
const NONE: &str = "-";

/// A column of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Column {
    /// Payload rate of the last second.
    Rate,
    /// Smoothed RTT (`tcpi_rtt`).
    Rtt,
    /// Minimum RTT (`tcpi_min_rtt`).
    MinRtt,
    /// Retransmits per second.
    Retransmits,
    /// Congestion window, segments.
    Cwnd,
    /// Share of the window that is in flight.
    WindowUse,
    /// Bytes in the socket's queue.
    Queue,
    /// CPU use of the process.
    Cpu,
    /// Cause and confidence of the verdict.
    Cause,
    /// Name and PID of the process.
    Process,
    /// Local and remote address.
    Address,
}

impl Column {
    /// All columns, in display order.
    pub const ALL: [Self; 11] = [
        Self::Rate,
        Self::Rtt,
        Self::MinRtt,
        Self::Retransmits,
        Self::Cwnd,
        Self::WindowUse,
        Self::Queue,
        Self::Cpu,
        Self::Cause,
        Self::Process,
        Self::Address,
    ];

    /// Returns the column heading.
    pub fn heading(self) -> &'static str {
        match self {
            Self::Rate => "rate",
            Self::Rtt => "RTT",
            Self::MinRtt => "min RTT",
            Self::Retransmits => "retr/s",
            Self::Cwnd => "cwnd",
            Self::WindowUse => "win use",
            Self::Queue => "queue",
            Self::Cpu => "CPU",
            Self::Cause => "cause (confidence)",
            Self::Process => "process",
            Self::Address => "local, remote",
        }
    }

    /// Returns the width in terminal columns; the addresses take the remaining width.
    pub fn width(self) -> usize {
        match self {
            Self::Rate => 9,
            Self::Rtt | Self::MinRtt | Self::WindowUse => 7,
            Self::Retransmits | Self::Cwnd => 6,
            Self::Queue => 8,
            Self::Cpu => 5,
            Self::Cause => 29,
            Self::Process => 16,
            Self::Address => 20,
        }
    }

    /// Whether the column is numeric, and therefore right-aligned.
    pub fn is_figure(self) -> bool {
        !matches!(self, Self::Cause | Self::Process | Self::Address)
    }

    /// Returns the text of the column for a flow.
    pub fn text(self, flow: &FlowStatus) -> String {
        let sends = flow.role == WatchRole::Sender;
        let known = |text: Option<String>| text.unwrap_or_else(|| NONE.to_owned());
        let recent = flow.recent.as_ref();
        match self {
            Self::Rate => known(recent.map(|recent| BitRate::from_bps(recent.goodput_bps as u64).to_string())),
            Self::Rtt => known(flow.rtt_us.map(|us| micros(us).to_string())),
            Self::MinRtt => known(flow.min_rtt_us.map(|us| micros(us).to_string())),
            // A receiver's own retransmits and cwnd concern only the little it sends.
            Self::Retransmits => {
                known(recent.filter(|_| sends).map(|recent| format!("{:.1}", recent.retransmits_per_s)))
            }
            Self::Cwnd => known(flow.cwnd.filter(|_| sends).map(|cwnd| cwnd.to_string())),
            Self::WindowUse => known(recent.and_then(|recent| recent.window_use).map(percent)),
            Self::Queue => known(recent.map(|recent| Bytes::new(recent.queue_bytes).to_string())),
            Self::Cpu => known(recent.and_then(|recent| recent.process_cpu).map(percent)),
            Self::Cause => match &flow.verdict {
                Some(verdict) => format!("{} ({})", verdict.cause.phrase(), confidence_level(verdict.confidence)),
                None => "not judged yet".to_owned(),
            },
            Self::Process => process(flow),
            Self::Address => addresses(flow, usize::MAX),
        }
    }

    /// Compares two flows: larger numbers first, text alphabetically, unknown values last.
    pub fn order(self, a: &FlowStatus, b: &FlowStatus) -> Ordering {
        match (self.figure(a), self.figure(b)) {
            (Some(a), Some(b)) => b.total_cmp(&a),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) if self.is_figure() => Ordering::Equal,
            (None, None) => self.text(a).cmp(&self.text(b)),
        }
    }

    fn figure(self, flow: &FlowStatus) -> Option<f64> {
        let recent = flow.recent.as_ref();
        let sends = flow.role == WatchRole::Sender;
        match self {
            Self::Rate => recent.map(|recent| recent.goodput_bps),
            Self::Rtt => flow.rtt_us.map(f64::from),
            Self::MinRtt => flow.min_rtt_us.map(f64::from),
            Self::Retransmits => recent.filter(|_| sends).map(|recent| recent.retransmits_per_s),
            Self::Cwnd => flow.cwnd.filter(|_| sends).map(f64::from),
            Self::WindowUse => recent.and_then(|recent| recent.window_use),
            Self::Queue => recent.map(|recent| recent.queue_bytes as f64),
            Self::Cpu => recent.and_then(|recent| recent.process_cpu),
            Self::Cause | Self::Process | Self::Address => None,
        }
    }
}

/// Formats a share: `12 %`.
fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// Formats a process: `nginx[812]`.
pub fn process(flow: &FlowStatus) -> String {
    match (&flow.command, flow.pid) {
        (Some(command), Some(pid)) => format!("{command}[{pid}]"),
        _ => format!("user {}", flow.uid),
    }
}

/// Formats `192.0.2.1:443 > 198.51.100.2:5201` in at most `width` columns. If it is too long, only the port of
/// the local address is shown, then the remote address is cut.
pub fn addresses(flow: &FlowStatus, width: usize) -> String {
    let arrow = match flow.role {
        WatchRole::Sender => '>',
        WatchRole::Receiver => '<',
    };
    let whole = format!("{} {arrow} {}", flow.local, flow.remote);
    if whole.chars().count() <= width {
        return whole;
    }
    let port = flow.local.rsplit_once(':').map_or("", |(_, port)| port);
    let short = format!(":{port} {arrow} {}", flow.remote);
    if short.chars().count() <= width {
        return short;
    }
    short.chars().take(width.saturating_sub(1)).chain(['…']).collect()
}

/// Rounds a time down to 0.1 s.
pub fn since_start(ns: u64) -> Nanos {
    Nanos::new(ns / 100_000_000 * 100_000_000)
}
