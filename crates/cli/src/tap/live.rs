//! Live display of a capture: one updated line on standard error.

use landspeed_model::Warning;
use landspeed_tap::{Options, Output, Progress};
use landspeed_units::{BitRate, Bytes, Nanos};

use crate::terminal::Stream;

/// The status line.
pub struct Line {
    quiet: bool,
    terminal: bool,
    begun: bool,
    what: String,
    last: Progress,
}

impl Line {
    /// Creates the line; it prints nothing if `quiet`.
    pub fn new(quiet: bool) -> Self {
        let terminal = Stream::Err.is_terminal();
        Self { quiet, terminal, begun: false, what: String::new(), last: Progress::default() }
    }

    /// Prints warnings and measurements that precede the capture.
    pub fn opened(&mut self, options: &Options, warnings: &[Warning]) {
        let to = match &options.output {
            Output::None => "counting only".to_owned(),
            Output::Stdout => "to standard output".to_owned(),
            Output::File(path) => format!("to {}", path.display()),
            Output::Pipe(pipe) => format!("to {} (header trace)", pipe.name.display()),
        };
        self.what = format!("{}, {to}", options.interfaces.join(", "));
        if self.quiet {
            return;
        }
        for warning in warnings {
            errln!("landspeed: {}", warning.message);
        }
        if options.baseline_ns > 0 {
            errln!("landspeed: looking at the host for {} first", Nanos::new(options.baseline_ns));
        }
        if options.slices_ns > 0 {
            errln!("landspeed: hooking and unhooking the tap in turns for {} first", Nanos::new(options.slices_ns));
        }
    }

    /// Updates the line.
    pub fn show(&mut self, now: &Progress) {
        if self.quiet {
            return;
        }
        if !self.begun {
            self.begun = true;
            errln!("landspeed: capturing on {}", self.what);
        }
        if !self.terminal {
            return;
        }
        let span_ns = now.elapsed_ns.saturating_sub(self.last.elapsed_ns);
        if span_ns == 0 {
            return;
        }
        let span_s = span_ns as f64 / 1e9;
        let pps = (now.packets - self.last.packets) as f64 / span_s;
        let bytes = Bytes::new(now.wire_bytes.saturating_sub(self.last.wire_bytes));
        let rate = BitRate::mean(bytes, Nanos::new(span_ns)).unwrap_or(BitRate::ZERO);
        let core = now.reader_cpu_ns.saturating_sub(self.last.reader_cpu_ns) as f64 * 100.0 / span_ns as f64;
        Stream::Err.redraw_line(&format!(
            "{}  {} packets  {pps:.0}/s  {rate}  dropped {}  ring {:.0} %  reader {core:.1} % of a core",
            Nanos::new(now.elapsed_ns / 100_000_000 * 100_000_000),
            now.packets,
            now.dropped,
            now.fill * 100.0,
        ));
        self.last = *now;
    }

    /// Ends the line with a newline.
    pub fn done(&self) {
        if !self.quiet && self.terminal && self.begun {
            errln!("");
        }
    }
}
