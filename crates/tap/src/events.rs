//! Kernel events of TCP next to the packets: tracepoints, in a separate instance of tracefs.
//!
//! The name of the instance contains the process; instances of processes that no longer exist are removed when
//! the next tap starts, so nothing remains even after a `SIGKILL`. Tracepoints are not limited to a network
//! namespace: they cover the whole host.

use std::fs::{File, OpenOptions};
use std::io::Read as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use landspeed_model::TapEvents;
use landspeed_sys::clock::{monotonic_ns, realtime_ns};
use landspeed_sys::process::start_ticks;

use crate::TapError;

const TRACEFS_PATHS: &[&str] = &["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
const INSTANCE_PREFIX: &str = "landspeed-tap-";
const WANTED: &[&str] = &["tcp/tcp_probe", "tcp/tcp_retransmit_skb", "skb/kfree_skb"];
const O_NONBLOCK: i32 = 0o4000;
/// Size of the trace buffer of each CPU, KiB.
const BUFFER_KIB: u32 = 4096;
/// Maximum stored length of a line, bytes; the kernel's are far shorter.
const MAX_LINE_BYTES: usize = 4096;

/// A kernel event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Time in nanoseconds of `CLOCK_REALTIME`, with microsecond resolution.
    pub time_ns: u64,
    /// Name of the tracepoint, such as `tcp_probe`.
    pub name: String,
    /// Fields of the event, as printed by the kernel.
    pub text: String,
}

/// A trace of kernel events from its opening on.
pub struct Events {
    instance: PathBuf,
    pipe: File,
    rest: Vec<u8>,
    wanted: &'static [&'static str],
    summary: TapEvents,
}

impl Events {
    /// Opens the tracepoints that a capture records.
    pub(crate) fn of_capture() -> Result<Self, TapError> {
        Self::open(WANTED, BUFFER_KIB)
    }

    /// Creates an instance with a buffer of `buffer_kib` per CPU, and enables those wanted tracepoints that the
    /// kernel has.
    pub fn open(wanted: &'static [&'static str], buffer_kib: u32) -> Result<Self, TapError> {
        let fail = |what: &str, why: &std::io::Error| TapError::Events(format!("{what}: {why} (needs root)"));
        let root = TRACEFS_PATHS.iter().map(Path::new).find(|root| root.join("instances").is_dir());
        let root = root.ok_or_else(|| {
            TapError::Events(
                "tracefs is not there, or not for this user; as root: mount -t tracefs tracefs /sys/kernel/tracing"
                    .to_owned(),
            )
        })?;
        remove_stale(&root.join("instances"));
        let process = std::process::id();
        let name = format!("{INSTANCE_PREFIX}{process}-{}", start_ticks(process).unwrap_or(0));
        let instance = root.join("instances").join(name);
        std::fs::create_dir(&instance).map_err(|why| fail("make an instance of tracefs", &why))?;
        let made =
            Self::prepare(&instance, wanted, buffer_kib).map_err(|why| fail("prepare the instance of tracefs", &why));
        if made.is_err() {
            let _ = std::fs::remove_dir(&instance);
        }
        made
    }

    fn prepare(instance: &Path, wanted: &'static [&'static str], buffer_kib: u32) -> std::io::Result<Self> {
        std::fs::write(instance.join("trace_clock"), "mono")?;
        std::fs::write(instance.join("buffer_size_kb"), buffer_kib.to_string())?;
        let mut names = Vec::new();
        for event in wanted {
            if std::fs::write(instance.join("events").join(event).join("enable"), "1").is_ok() {
                names.push((*event).to_owned());
            }
        }
        let pipe = OpenOptions::new().read(true).custom_flags(O_NONBLOCK).open(instance.join("trace_pipe"))?;
        let summary = TapEvents { names, ..TapEvents::default() };
        Ok(Self { instance: instance.to_owned(), pipe, rest: Vec::new(), wanted, summary })
    }

    /// Wanted tracepoints that this kernel lacks.
    pub fn missing(&self) -> Vec<&'static str> {
        self.wanted.iter().copied().filter(|wanted| !self.summary.names.iter().any(|name| name == wanted)).collect()
    }

    /// Stops tracing; events in the buffer can still be read.
    pub fn stop(&self) {
        let _ = std::fs::write(self.instance.join("tracing_on"), "0");
    }

    /// Reads the available events without blocking.
    pub fn take(&mut self, into: &mut Vec<Event>) {
        let ahead_ns = realtime_ns().saturating_sub(monotonic_ns());
        let mut chunk = [0; 8 << 10];
        // Limits one call, in case events arrive faster than they are read.
        for _ in 0..512 {
            let read = match self.pipe.read(&mut chunk) {
                Ok(0) | Err(_) => break,
                Ok(read) => read,
            };
            self.rest.extend_from_slice(chunk.get(..read).unwrap_or_default());
            let mut start = 0;
            while let Some(length) = self.rest[start..].iter().position(|&byte| byte == b'\n') {
                let line = String::from_utf8_lossy(&self.rest[start..start + length]).into_owned();
                start += length + 1;
                match parse(&line) {
                    Some(Line::Event(event)) => {
                        self.summary.taken += 1;
                        into.push(Event { time_ns: event.time_ns + ahead_ns, ..event });
                    }
                    Some(Line::Lost(lost)) => self.summary.lost += lost,
                    None => {}
                }
            }
            self.rest.drain(..start);
            if self.rest.len() > MAX_LINE_BYTES {
                self.rest.clear();
            }
        }
    }

    /// Numbers of events read and lost.
    pub fn summary(&self) -> TapEvents {
        self.summary.clone()
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        for event in self.wanted {
            let _ = std::fs::write(self.instance.join("events").join(event).join("enable"), "0");
        }
        // Closes the trace pipe, because an open pipe keeps the instance busy.
        if let Ok(nothing) = File::open("/dev/null") {
            self.pipe = nothing;
        }
        let _ = std::fs::remove_dir(&self.instance);
    }
}

/// Removes instances of processes that no longer exist.
fn remove_stale(instances: &Path) {
    let Ok(entries) = std::fs::read_dir(instances) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some((process, started)) = name.strip_prefix(INSTANCE_PREFIX).and_then(|rest| rest.split_once('-'))
        else {
            continue;
        };
        let alive = process.parse().ok().and_then(start_ticks).is_some_and(|ticks| ticks.to_string() == started);
        if !alive {
            let _ = std::fs::remove_dir(entry.path());
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Line {
    Event(Event),
    Lost(u64),
}

/// Parses `task-pid [cpu] flags seconds: event: text`, or `CPU:0 [LOST 12 EVENTS]`. The time stays that of the
/// trace clock.
fn parse(line: &str) -> Option<Line> {
    if let Some((_, rest)) = line.split_once("[LOST ") {
        return rest.split_whitespace().next()?.parse().ok().map(Line::Lost);
    }
    // The task name may contain anything, so the time is the first word after the CPU that is one.
    let (_, rest) = line.split_once(" [")?;
    let mut words = rest.split_whitespace();
    let time = words.by_ref().find_map(|word| word.strip_suffix(':').and_then(seconds))?;
    let behind = rest.split_once(": ")?.1;
    let (name, text) = behind.split_once(": ")?;
    Some(Line::Event(Event { time_ns: time, name: name.trim().to_owned(), text: text.trim().to_owned() }))
}

fn seconds(text: &str) -> Option<u64> {
    let (whole, fraction) = text.split_once('.')?;
    let micros: u64 = fraction.parse().ok().filter(|_| fraction.len() == 6)?;
    Some(whole.parse::<u64>().ok()?.checked_mul(1_000_000_000)? + micros * 1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_trace_line_is_parsed() {
        let line =
            "          <idle>-0       [001] ..s2.  1234.000567: tcp_retransmit_skb: family=AF_INET sport=1 dport=2";
        let event = Event {
            time_ns: 1_234_000_567_000,
            name: "tcp_retransmit_skb".to_owned(),
            text: "family=AF_INET sport=1 dport=2".to_owned(),
        };
        assert_eq!(parse(line), Some(Line::Event(event)));
        assert_eq!(parse("CPU:1 [LOST 42 EVENTS]"), Some(Line::Lost(42)));
        for odd in ["", "# tracer: nop", "x [001] nothing", "x [0] 1.2: a: b"] {
            assert_eq!(parse(odd), None, "{odd}");
        }
    }
}
