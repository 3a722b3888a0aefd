use crate::prelude::*;

const NAME: &str = "net.core.rmem_max";

/// Time that the buffer must cover while the receiving program is off its CPU, seconds: nuttcp's 4 MB at the 33
/// Gb/s of the 2016 ESnet deck are 1 ms.
const READER_PAUSE_S: f64 = 0.001;

/// Largest buffer that a program can request, bytes: `setsockopt` doubles it within a signed 32-bit number.
const MAX_BUFFER_BYTES: u64 = (i32::MAX / 2) as u64;

declare_check! {
    /// Whether a UDP receive buffer can hold a millisecond of the goal's rate.
    ///
    /// **Reads** `net.core.rmem_max` and the goal's rate.
    ///
    /// **Matters** because UDP has no window: datagrams that do not fit while the program is off its CPU are
    /// lost. `SO_RCVBUF` is silently limited to this value.
    ///
    /// **Leave it alone** if nothing here receives UDP at such rates: TCP does not need it.
    code: "BUF-013",
    title: "UDP receive buffer for the goal",
    severity: Note,
    sources: [esnet_2016!("Our Current Best Single Flow Results"), "udp(7) and socket(7), SO_RCVBUF"],
    bad: |facts, goal| {
        goal.rtt_ns = None;
        example::sysctl(facts, NAME, "212992");
    },
}

fn evaluate(view: &View<'_>) -> Outcome {
    let value = known!(view.sysctl_last(NAME));
    let rate = known!(view.rate_bps());
    if view.role() == Role::Router {
        return Outcome::not_applicable("a router does not receive what it forwards");
    }
    let needed = ((rate as f64 * READER_PAUSE_S / 8.0) as u64).min(MAX_BUFFER_BYTES);
    if value >= needed {
        return Outcome::pass(format!("{}; a millisecond of the goal is {}", bytes_text(value), bytes_text(needed)));
    }
    if super::window_bytes(view).known().is_some_and(|window| (value as f64) < *window) {
        return Outcome::not_applicable("TCP asks for more than that over this path (BUF-004)");
    }
    Outcome::found(Problem {
        observed: format!("{NAME} = {value}, a millisecond of the goal is {needed}"),
        effect: Effect::arithmetic(format!(
            "At the goal's rate the buffer is full after {:.0} µs.",
            value as f64 * 8e6 / rate.max(1) as f64
        )),
        ..advice::sysctl(NAME, value, needed, "A UDP receiver loses what arrives while its program is off the CPU.")
    })
}
