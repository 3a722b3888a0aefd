//! One line per second of a running emulation, if standard error is a terminal.

use landspeed_emulate::Live;
use landspeed_model::EmulateSecond;
use landspeed_units::{BitRate, Bytes, Nanos};

use crate::terminal::Stream;

const HEADER: &str = "  second      forward      reverse       queues  dropped         late\n";

/// State of the per-second lines.
#[derive(Debug)]
pub(super) struct View {
    shows: bool,
    heading_printed: bool,
    next: u64,
}

impl View {
    /// Creates the view; it prints nothing if `quiet`.
    pub(super) fn new(quiet: bool) -> Self {
        Self { shows: !quiet && Stream::Err.is_terminal(), heading_printed: false, next: 0 }
    }

    /// Prints the seconds completed since the last call.
    pub(super) fn show(&mut self, live: &Live) {
        if !self.shows {
            return;
        }
        for second in live.seconds_from(self.next) {
            if !std::mem::replace(&mut self.heading_printed, true) {
                err!("{HEADER}");
            }
            self.next = second.second + 1;
            err!("{}", line(&second));
        }
    }
}

fn line(second: &EmulateSecond) -> String {
    let (forward, reverse) = (&second.directions.forward, &second.directions.reverse);
    let dropped = [forward, reverse]
        .iter()
        .map(|direction| direction.dropped_packets + direction.unhandled_packets)
        .sum::<u64>();
    let rate = |bps| BitRate::from_bps(bps).to_string();
    format!(
        "  {:>6} {:>12} {:>12} {:>12} {dropped:>8} {:>12}{}\n",
        second.second,
        rate(forward.rate_bps),
        rate(reverse.rate_bps),
        Bytes::new(forward.queue_bytes + reverse.queue_bytes).to_string(),
        second.late_max_ns.map_or_else(|| "unknown".to_owned(), |late_ns| Nanos::new(late_ns).to_string()),
        if second.valid { "" } else { "  invalid" }
    )
}

#[cfg(test)]
mod tests {
    use landspeed_model::{EmulateDirections, EmulateSecondDirection};

    use super::*;

    #[test]
    fn per_second_lines_align_with_the_header() {
        let direction = |rate_bps, dropped_packets, queue_bytes| EmulateSecondDirection {
            rate_bps,
            dropped_packets,
            unhandled_packets: 0,
            queue_bytes,
        };
        let mut second = EmulateSecond {
            second: 12,
            length_ns: 1_000_000_000,
            directions: EmulateDirections {
                forward: direction(987_654_321, 31, 999_424),
                reverse: direction(9_470_000, 0, 0),
            },
            late_packets: Some(0),
            late_max_ns: Some(17_300),
            work_share: Some(0.2),
            valid: true,
        };
        assert_eq!(line(&second), "      12     988 Mb/s    9.47 Mb/s      976 KiB       31      17.3 µs\n");
        second.valid = false;
        assert!(line(&second).ends_with("  invalid\n"));
        // Widths are in characters, not bytes.
        let width = |text: &str| text.trim_end().trim_end_matches("  invalid").chars().count();
        assert_eq!(width(&line(&second)), width(HEADER));
    }
}
