//! Whether the receiving application keeps up, from its receive queue.

use crate::flow::Flow;
use crate::stream::StreamView;
use crate::thresholds::{BACKLOG, READER_BEHIND, READER_KEEPS_UP, RWND_LIMITED, WINDOW_FULL};

/// State of the receiving application by its receive queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reader {
    /// The queue is full: the application is behind.
    Behind,
    /// Neither full nor empty.
    Unclear,
    /// The queue is empty: the application keeps up.
    KeepsUp,
    /// Queue not visible; the offered window shrinks, so the application seems to be behind.
    SeemsBehind,
    /// Queue not visible; the offered window is steady.
    SeemsToKeepUp,
    /// Neither the queue nor the window was visible.
    NotVisible,
}

/// Classifies the receive queue, or estimates from the window offered to the sender.
pub(crate) fn reader(flow: &Flow) -> Reader {
    if let Some(fill) = flow.figure(StreamView::receive_fill) {
        let backlog = flow.figure(StreamView::receive_backlog).is_some_and(|figure| figure.value >= BACKLOG);
        return match fill.value {
            fill if fill >= READER_BEHIND => Reader::Behind,
            fill if fill < READER_KEEPS_UP => Reader::KeepsUp,
            _ if backlog => Reader::Behind,
            _ => Reader::Unclear,
        };
    }
    // A full buffer closes the offered window; a small buffer that is kept empty offers a constant window.
    let steadiness = flow.figure(|stream| {
        let largest = stream.tcp().filter_map(|tcp| tcp.snd_wnd_bytes).max().filter(|&bytes| bytes > 0)?;
        stream.gauge(|tcp| tcp.snd_wnd_bytes.map(|bytes| f64::from(bytes) / f64::from(largest)))
    });
    match steadiness {
        Some(figure) if figure.value < 0.5 => Reader::SeemsBehind,
        Some(_) => Reader::SeemsToKeepUp,
        None => Reader::NotVisible,
    }
}

/// Whether the receive window limits the sender, by two indicators.
pub(crate) fn window_limited(flow: &Flow) -> Option<Limited> {
    let time = flow.rwnd_limited().map(|figure| figure.value >= RWND_LIMITED);
    let fill = flow.figure(StreamView::flight_over_window).map(|figure| figure.value >= WINDOW_FULL);
    match (time, fill) {
        (None, None) => None,
        (Some(true), Some(true)) => Some(Limited::Certain),
        (Some(true), _) | (_, Some(true)) => Some(Limited::Possible),
        _ => Some(Limited::No),
    }
}

/// Strength of the evidence that the receive window is the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Limited {
    /// Both indicators show it.
    Certain,
    /// One of two indicators shows it.
    Possible,
    /// No indicator shows it.
    No,
}
