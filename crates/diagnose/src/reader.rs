//! Whether the receiving application reads as fast as data arrives, from its queue.

use crate::flow::Flow;
use crate::stream::StreamView;
use crate::thresholds::{BACKLOG, READER_BEHIND, READER_KEEPS_UP, RWND_LIMITED, WINDOW_FULL};

/// What the receive queue says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reader {
    /// The queue is full: the application is behind.
    Behind,
    /// Neither full nor empty.
    Unclear,
    /// The queue is empty: the application keeps up.
    KeepsUp,
    /// The queue was not seen; by the shrinking of the window it offers the application is behind.
    SeemsBehind,
    /// The queue was not seen; the window it offers is steady.
    SeemsToKeepUp,
    /// Nothing was seen.
    Unseen,
}

/// Reads the queue, or guesses from the window the sender was offered.
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
    // A full buffer closes the window it offers; a small buffer that is kept empty offers the same window always.
    let steadiness = flow.figure(|stream| {
        let largest = stream.tcp().filter_map(|tcp| tcp.snd_wnd_bytes).max().filter(|&bytes| bytes > 0)?;
        stream.gauge(|tcp| tcp.snd_wnd_bytes.map(|bytes| f64::from(bytes) / f64::from(largest)))
    });
    match steadiness {
        Some(figure) if figure.value < 0.5 => Reader::SeemsBehind,
        Some(_) => Reader::SeemsToKeepUp,
        None => Reader::Unseen,
    }
}

/// Whether the sender is limited by the window the receiver offers, and whether both signs agree.
pub(crate) fn window_limited(flow: &Flow) -> Option<Limited> {
    let time = flow.rwnd_limited().map(|figure| figure.value >= RWND_LIMITED);
    let fill = flow.figure(StreamView::flight_over_window).map(|figure| figure.value >= WINDOW_FULL);
    match (time, fill) {
        (None, None) => None,
        (Some(true), Some(true)) => Some(Limited::Plainly),
        (Some(true), _) | (_, Some(true)) => Some(Limited::Partly),
        _ => Some(Limited::No),
    }
}

/// How plainly the receive window limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Limited {
    /// Both signs say so.
    Plainly,
    /// One of two signs says so.
    Partly,
    /// Neither.
    No,
}
