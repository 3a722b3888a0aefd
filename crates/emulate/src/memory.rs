//! Memory check: the frames of a path must fit into free memory.

use landspeed_emulation::{DirectionPlan, LoadedPath, predict_store};
use landspeed_sys::process::available_memory;

use crate::error::EmulateError;

/// Memory needed by one direction.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Need {
    /// Number of bytes.
    bytes: u64,
    /// Calculation for messages: "1.00 Gb/s x 25.0 ms = 3.13 MB in flight + 1.00 MB of queues".
    arithmetic: String,
}

/// Memory needed by both directions of a path, with the calculation.
fn needed_memory(path: &LoadedPath) -> [Need; 2] {
    let need = |plan: &DirectionPlan| {
        let prediction = predict_store(plan);
        let arithmetic = format!(
            "{:.4} Gb/s x {} ms: {} in flight + {} of queues",
            plan.rate_bps() as f64 / 1e9,
            plan.delay_ns() as f64 / 1e6,
            megabytes(prediction.flight_bytes),
            megabytes(prediction.queue_bytes),
        );
        Need { bytes: prediction.total_bytes, arithmetic }
    };
    [need(&path.forward), need(&path.reverse)]
}

/// Refuses a path whose frames do not fit into free memory.
pub fn check_memory(path: &LoadedPath) -> Result<(), EmulateError> {
    check_against(path, free_memory())
}

fn check_against(path: &LoadedPath, free: Option<u64>) -> Result<(), EmulateError> {
    let [forward, reverse] = needed_memory(path);
    let needed = forward.bytes.saturating_add(reverse.bytes);
    match free {
        Some(free) if needed > free => Err(EmulateError::Memory {
            arithmetic: format!(
                "forward {}; reverse {}; with headers {}, {} are free",
                forward.arithmetic,
                reverse.arithmetic,
                megabytes(needed),
                megabytes(free)
            ),
            advice:
                "Lower the rate or the delay of a link, or give the direction that carries only ACKs a lower rate."
                    .to_owned(),
        }),
        _ => Ok(()),
    }
}

fn megabytes(bytes: u64) -> String {
    if bytes >= 1_000_000_000 {
        format!("{:.2} GB", bytes as f64 / 1e9)
    } else {
        format!("{:.2} MB", bytes as f64 / 1e6)
    }
}

/// Free memory, bytes: that of the host, or of the cgroup if less.
fn free_memory() -> Option<u64> {
    let read = |path: &str| std::fs::read_to_string(path).ok();
    let group = read("/proc/self/cgroup").and_then(|text| {
        let name = text.lines().find_map(|line| line.strip_prefix("0::"))?;
        let number = |file: &str| read(&format!("/sys/fs/cgroup{name}/{file}"))?.trim().parse::<u64>().ok();
        Some(number("memory.max")?.saturating_sub(number("memory.current")?))
    });
    available_memory().into_iter().chain(group).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_exceed_memory_are_refused_with_the_calculation() {
        let text = "name = \"long\"\n[[link]]\nrate = \"10G\"\ndelay = \"1600ms\"\n[link.reverse]\nrate = \"100M\"\n";
        let path = landspeed_emulation::load(text, &mut |_| Err(String::new())).unwrap_or_else(|e| panic!("{e}"));
        assert!(check_against(&path, Some(3_000_000_000)).is_ok());
        let error = check_against(&path, Some(1_000_000_000)).expect_err("too little").to_string();
        assert_eq!(
            error,
            "not enough memory for the path: forward 10.0000 Gb/s x 1600 ms: 2.00 GB in flight + 1.00 MB of queues; reverse \
             0.1000 Gb/s x 1600 ms: 20.00 MB in flight + 1.00 MB of queues; with headers 2.02 GB, 1.00 GB are free\n\
             Lower the rate or the delay of a link, or give the direction that carries only ACKs a lower rate."
        );
    }

    #[test]
    fn free_memory_is_readable() {
        assert!(free_memory().is_some_and(|bytes| bytes > 1 << 20));
    }
}
