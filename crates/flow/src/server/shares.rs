//! What one test takes of this host, and what all together may.

use std::sync::{Arc, Mutex, PoisonError};

use landspeed_model::{Parameters, Protocol};

use crate::end::MAX_SAMPLES;
use crate::layout;

/// Memory that the tests of a server may hold together, bytes.
pub const MEMORY_BYTES: u64 = 4 << 30;
/// Stream threads that may run together.
pub const THREADS: u64 = 4096;

/// A reading while it is kept, decoded, and written into the report.
const SAMPLE_BYTES: u64 = 3 * 1024;
/// A reading of the host: every core, and what else moved.
const HOST_SAMPLE_BYTES: u64 = 16 * 1024;
/// Least buffer of a stream: reading, bitmap, stack.
const STREAM_BYTES: u64 = 1 << 20;
/// Control connection, host snapshot, report parts.
const TEST_BYTES: u64 = 4 << 20;

/// Part of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// Bytes, estimated from above.
    pub memory: u64,
    /// Threads.
    pub threads: u64,
}

impl Share {
    /// What a test with these (validated) parameters takes at its server for at most `longest_ns`.
    pub fn of(parameters: &Parameters, longest_ns: u64) -> Self {
        let threads = layout::streams(parameters).map_or(1, |specs| specs.len() as u64);
        let length = layout::duration_ns(parameters).unwrap_or_else(|| longest_ns.min(layout::UNFORESEEN_NS));
        let bulk = matches!(parameters.protocol, Protocol::Tcp | Protocol::Udp);
        let samples = if bulk {
            (length / parameters.interval_ns.max(1) + 16).saturating_mul(threads).min(MAX_SAMPLES)
        } else {
            0
        };
        let host_samples = length / parameters.host_interval_ns.max(1) + 16;
        let buffer = match parameters.protocol {
            Protocol::Tcp => parameters.write_bytes.max(STREAM_BYTES),
            // Batches of datagrams, in both directions, and the bitmap.
            Protocol::Udp => 8 * STREAM_BYTES,
            Protocol::TcpRr | Protocol::UdpRr => STREAM_BYTES,
        };
        let memory = TEST_BYTES
            .saturating_add(threads.saturating_mul(buffer))
            .saturating_add(samples.saturating_mul(SAMPLE_BYTES))
            .saturating_add(host_samples.saturating_mul(HOST_SAMPLE_BYTES));
        Self { memory, threads }
    }
}

/// What is left for further tests.
#[derive(Debug)]
pub struct Shares {
    left: Mutex<Share>,
}

impl Default for Shares {
    fn default() -> Self {
        Self { left: Mutex::new(Share { memory: MEMORY_BYTES, threads: THREADS }) }
    }
}

impl Shares {
    /// Takes a share until the result is dropped; `None` when too little is left.
    pub fn take(self: &Arc<Self>, share: Share) -> Option<Taken> {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        let memory = left.memory.checked_sub(share.memory)?;
        let threads = left.threads.checked_sub(share.threads)?;
        *left = Share { memory, threads };
        Some(Taken { shares: Arc::clone(self), share })
    }
}

/// A share in use.
#[derive(Debug)]
pub struct Taken {
    shares: Arc<Shares>,
    share: Share,
}

impl Drop for Taken {
    fn drop(&mut self) {
        let mut left = self.shares.left.lock().unwrap_or_else(PoisonError::into_inner);
        left.memory += self.share.memory;
        left.threads += self.share.threads;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR_NS: u64 = 3_600_000_000_000;

    #[test]
    fn ordinary_tests_fit_by_the_hundred() {
        let shares = Arc::new(Shares::default());
        let share = Share::of(&Parameters::default(), HOUR_NS);
        let taken: Vec<_> = (0..128).map(|_| shares.take(share).expect("room")).collect();
        drop(taken);
        assert_eq!(shares.left.lock().unwrap().memory, MEMORY_BYTES);
    }

    #[test]
    fn greedy_tests_are_few() {
        let shares = Arc::new(Shares::default());
        let greedy = Parameters { streams: 128, write_bytes: 8 << 20, ..Parameters::default() };
        let share = Share::of(&greedy, HOUR_NS);
        let taken: Vec<_> = std::iter::from_fn(|| shares.take(share)).collect();
        assert!((1..=4).contains(&taken.len()), "{}", taken.len());
    }
}
