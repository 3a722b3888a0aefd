//! What the thread that serves a watched socket waits for.

use landspeed_model::ThreadWaits;

use crate::finding::{Bound, FindingBuilder};
use crate::flow::Flow;
use crate::text;
use crate::thresholds::{MIN_SAMPLES, WAITS_IN_CALL};

/// Returns what the serving thread waits for, from enough readings.
pub(crate) fn waits<'a>(flow: &Flow<'a>) -> Option<&'a ThreadWaits> {
    flow.host_readings?.waits.as_ref().filter(|waits| waits.readings as usize >= MIN_SAMPLES)
}

/// Records the share of the readings with the thread in a call; whether it is what the thread waits for. `None` if the
/// calls were not visible.
pub(crate) fn is_in(
    builder: &mut FindingBuilder,
    flow: &Flow,
    what: &str,
    of: fn(&ThreadWaits) -> f64,
) -> Option<bool> {
    let share = waits(flow).map(of);
    let metric = format!("readings with the thread {what}");
    let source = "/proc/PID/task/TID/syscall";
    builder.optional(&metric, share, "ratio", Bound::AtLeast(WAITS_IN_CALL), Some(flow.local().end), source)
}

/// Says what the thread mostly waits for; `None` if that is not known.
pub(crate) fn describe(flow: &Flow) -> Option<String> {
    let waits = waits(flow)?;
    let does = [
        ("waits for data from this connection", waits.receive),
        ("waits for space in the send buffer", waits.send),
        ("waits for any of several descriptors (poll)", waits.poll),
        ("sleeps (nanosleep)", waits.sleep),
        ("waits in another system call, such as for a file, a pipe or a lock", waits.other),
        ("runs, or is ready to run", waits.runs),
    ];
    let (what, share) = does.into_iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    (share >= WAITS_IN_CALL).then(|| {
        format!("Its thread {} (TID {}) {what} in {} of the readings.", waits.name, waits.tid, text::percent(share))
    })
}
