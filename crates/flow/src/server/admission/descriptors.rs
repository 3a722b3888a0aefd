//! Division of the process's file descriptors: a quarter for connections that are not accepted as a test yet,
//! the rest for accepted tests, so that a flood of connections cannot starve tests.

use landspeed_sys::process;

/// Descriptors the server opens briefly: host facts, user lookups, a spare to refuse connections with.
const RESERVE: u64 = 16;
/// Descriptors of a connection in its handshake: both halves, and the handle that ends it.
const HANDSHAKE_DESCRIPTORS: u64 = 3;
/// Assumed number of open descriptors if they cannot be counted.
const ASSUMED_OPEN: u64 = 32;

/// Maximum number of connections waiting for their preface, over all listening addresses.
const MAX_WAITING: u64 = 2048;
/// Maximum number of connections in their handshake.
const MAX_HANDSHAKES: u64 = 256;
/// Maximum number of refused connections that have not read the answer.
const MAX_LINGERING: u64 = 512;

/// Descriptor budget per stage of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Descriptors {
    /// Descriptors for accepted tests.
    pub tests: u64,
    /// Maximum number of connections waiting for their preface.
    pub waiting: usize,
    /// Maximum number of connections in their handshake.
    pub handshaking: usize,
    /// Maximum number of refused connections that have not read the answer.
    pub lingering: usize,
}

impl Descriptors {
    /// Computes the budget of this process: raises its open files limit as far as permitted, and subtracts open
    /// descriptors.
    pub fn of_process() -> Self {
        let limit = process::raise_open_files_limit();
        let open = std::fs::read_dir("/proc/self/fd").map_or(ASSUMED_OPEN, |entries| entries.count() as u64);
        Self::divide(limit.saturating_sub(open + RESERVE))
    }

    /// Divides this number of free descriptors.
    fn divide(free: u64) -> Self {
        let visitors = free / 4;
        let part = |descriptors: u64, each: u64, most: u64| (descriptors / each).clamp(2, most);
        let handshaking = part(visitors / 2, HANDSHAKE_DESCRIPTORS, MAX_HANDSHAKES);
        let waiting = part(visitors / 4, 1, MAX_WAITING);
        let lingering = part(visitors / 4, 1, MAX_LINGERING);
        let tests = free.saturating_sub(handshaking * HANDSHAKE_DESCRIPTORS + waiting + lingering);
        Self { tests, waiting: waiting as usize, handshaking: handshaking as usize, lingering: lingering as usize }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_get_most_of_the_descriptors() {
        for free in [40, 220, 1000, 4000, 524_000] {
            let Descriptors { tests, waiting, handshaking, lingering } = Descriptors::divide(free);
            let all = tests + waiting as u64 + 3 * handshaking as u64 + lingering as u64;
            assert!(all <= free, "{free}");
            assert!(tests * 4 >= free * 2, "{free}: {tests}");
            assert!(waiting >= 2 && handshaking >= 2 && lingering >= 2, "{free}");
        }
        let plenty = Descriptors::divide(524_000);
        assert_eq!((plenty.waiting, plenty.handshaking, plenty.lingering), (2048, 256, 512));
    }
}
