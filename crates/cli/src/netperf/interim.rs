//! netperf's demo mode: interim results while a test runs.

use landspeed_flow::client::Progress;

use super::kind::Test;
use super::units::Unit;

/// Count of one side at one time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reading {
    /// Time, nanoseconds since the start.
    pub t_ns: u64,
    /// Bytes received, or transactions completed, since the start.
    pub amount: u64,
}

impl Reading {
    /// Returns what a test counts: bytes at the receiver, or transactions of the client.
    pub fn of(test: Test, progress: &Progress) -> Self {
        match test {
            Test::TcpStream | Test::UdpStream => Self { t_ns: progress.upload.t_ns, amount: progress.upload.bytes },
            Test::TcpMaerts => Self { t_ns: progress.download.t_ns, amount: progress.download.bytes },
            Test::TcpRr | Test::UdpRr | Test::TcpCrr => {
                Self { t_ns: progress.transactions_t_ns, amount: progress.transactions }
            }
        }
    }
}

/// Interim results of one test.
#[derive(Debug)]
pub struct Interim {
    every_ns: u64,
    unit: Unit,
    /// Whether lines are `KEY[n]=VALUE`.
    keyed: bool,
    last: Reading,
    printed: u64,
}

impl Interim {
    /// Creates interim results every `every_ns` nanoseconds, as keys and values or as sentences.
    pub fn new(every_ns: u64, unit: Unit, keyed: bool) -> Self {
        Self { every_ns, unit, keyed, last: Reading::default(), printed: 0 }
    }

    /// Returns the lines of the interval that this reading completes; empty before its end. `start_unix_ns` is the start of
    /// the test, Unix time in nanoseconds.
    ///
    /// An interval without a transaction has no line: the next one covers it, so that each is a mean of round trips.
    pub fn until(&mut self, now: Reading, start_unix_ns: u64) -> String {
        // Readings are on a grid, and early by less than a tenth of it.
        let due_ns = self.last.t_ns.saturating_add(self.every_ns - self.every_ns / 10);
        if now.t_ns < due_ns || (self.unit == Unit::Transactions && now.amount == self.last.amount) {
            return String::new();
        }
        self.lines(now, start_unix_ns)
    }

    /// Returns the lines of what was counted after the last interval.
    pub fn rest(&mut self, end: Reading, start_unix_ns: u64) -> String {
        if end.amount <= self.last.amount { String::new() } else { self.lines(end, start_unix_ns) }
    }

    fn lines(&mut self, now: Reading, start_unix_ns: u64) -> String {
        let span_ns = now.t_ns.saturating_sub(self.last.t_ns);
        let Some(rate) = self.unit.rate(now.amount.saturating_sub(self.last.amount), span_ns) else {
            return String::new();
        };
        self.last = now;
        let (seconds, unit, n) = (span_ns as f64 / 1e9, self.unit.name(), self.printed);
        let ending_ms = start_unix_ns.saturating_add(now.t_ns) / 1_000_000;
        let ending = format!("{}.{:03}", ending_ms / 1000, ending_ms % 1000);
        self.printed += 1;
        if self.keyed {
            format!(
                "NETPERF_INTERIM_RESULT[{n}]={rate:.2}\nNETPERF_UNITS[{n}]={unit}/s\n\
                 NETPERF_INTERVAL[{n}]={seconds:.3}\nNETPERF_ENDING[{n}]={ending}\n"
            )
        } else {
            format!("Interim result: {rate:7.2} {unit}/s over {seconds:.3} seconds ending at {ending}\n")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64, amount: u64) -> Reading {
        Reading { t_ns: ms * 1_000_000, amount }
    }

    #[test]
    fn interim_results_add_up_to_the_whole() {
        let mut interim = Interim::new(200_000_000, Unit::Bits(2), true);
        let mut text = String::new();
        for ms in (0..=1990).step_by(20) {
            // The server reports each 0.2 s, a little early or late.
            let reading_ms = ms / 200 * 200 + u64::from(ms / 200 % 2 == 0);
            text += &interim.until(at(reading_ms.min(ms), reading_ms * 1000), 1_700_000_000_000_000_000);
        }
        text += &interim.rest(at(2000, 2_000_000), 1_700_000_000_000_000_000);
        let values = |key: &str| -> Vec<f64> {
            let lines = text.lines().filter(|line| line.starts_with(key));
            lines.filter_map(|line| line.split_once('=')?.1.parse().ok()).collect()
        };
        let (rates, spans) = (values("NETPERF_INTERIM_RESULT["), values("NETPERF_INTERVAL["));
        assert_eq!(rates.len(), 10, "{text}");
        let bytes: f64 = rates.iter().zip(&spans).map(|(rate, span)| rate * 1e6 / 8.0 * span).sum();
        assert!((bytes - 2_000_000.0).abs() < 20_000.0, "{bytes}");
        assert!(text.ends_with("NETPERF_ENDING[9]=1700000002.000\n"), "{text}");
    }

    #[test]
    fn an_interval_without_round_trips_is_joined_to_the_next() {
        let mut interim = Interim::new(200_000_000, Unit::Transactions, false);
        assert_eq!(interim.until(at(200, 0), 0), "");
        assert_eq!(
            interim.until(at(400, 4), 0),
            "Interim result:   10.00 Trans/s over 0.400 seconds ending at 0.400\n"
        );
        // A reading that repeats ends nothing.
        assert_eq!(interim.until(at(400, 4), 0), "");
        assert_eq!(interim.rest(at(450, 4), 0), "");
    }
}
