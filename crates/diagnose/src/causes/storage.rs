//! Cause: the process waits for storage.

use landspeed_model::Cause;

use crate::finding::{Bound, Finding, FindingBuilder, Strength};
use crate::flow::Flow;
use crate::reader::{Reader, reader};
use crate::stream::StreamView;
use crate::text;
use crate::thresholds::{MIN_SAMPLES, SEND_EMPTY, STATE_BLOCKED, STORAGE_MOVES};

/// The cause is named if a thread was blocked in the kernel (state D) for much of the time and the local
/// side is the slow one.
pub(crate) fn evaluate(flow: &Flow) -> Finding {
    let Some(host_readings) = flow.host_readings else { return Finding::not_applicable(Cause::Storage) };
    let mut builder = FindingBuilder::new(flow, Cause::Storage);
    let end = Some(flow.local().end);
    let blocked = host_readings.blocked.as_ref().filter(|thread| thread.readings as usize >= MIN_SAMPLES);
    let share = blocked.map(|thread| thread.share);
    let held = Bound::AtLeast(STATE_BLOCKED);
    let metric = "readings with the thread in state D over readings";
    if builder.value(metric, share, "ratio", held, end, "/proc/PID/task/TID/stat") != Some(true) {
        return builder.refuted();
    }
    let (late, moved, file) = if flow.sends() {
        let fill = flow.figure(StreamView::send_fill);
        let metric = "send queue memory over SO_SNDBUF";
        let empty = Bound::Below(SEND_EMPTY);
        let late = builder.figure(metric, fill, "ratio", empty, "sender.samples[].wmem_queued_bytes") == Some(true);
        (late, host_readings.storage_read_bps, "read_bytes")
    } else {
        (matches!(reader(flow), Reader::Behind | Reader::Unclear), host_readings.storage_write_bps, "write_bytes")
    };
    if !late {
        return builder.refuted();
    }
    let source = format!("/proc/PID/io {file}");
    let over = moved.map(|bps| bps / flow.goodput_bps);
    let metric = if flow.sends() { "read from storage over goodput" } else { "written to storage over goodput" };
    let moves = builder.value(metric, over, "ratio", Bound::AtLeast(STORAGE_MOVES), end, &source);
    let strength = if moves == Some(true) { Strength::Strong } else { Strength::Moderate };
    let thread = blocked.map_or_else(String::new, |thread| format!("{} (TID {})", thread.name, thread.tid));
    let why = format!(
        "thread {thread} was blocked in file I/O {} of the time{}",
        text::percent(share.unwrap_or(0.0)),
        match moved.filter(|_| moves == Some(true)) {
            Some(bps) if flow.sends() => format!(" and read {} from storage", text::rate(bps)),
            Some(bps) => format!(" and wrote {} to storage", text::rate(bps)),
            None => String::new(),
        }
    );
    let tid = blocked.map_or(0, |thread| thread.tid);
    let next = format!(
        "See what the storage does: `iostat -x 1`, `cat /proc/{tid}/stack` (root), `pidstat -d -t 1`. Faster storage, larger \
         reads or read-ahead, or more files at a time."
    );
    let mut finding = builder.holds(strength, why, next);
    finding.place = Some(format!("{}, storage", flow.local().name()));
    finding
}
