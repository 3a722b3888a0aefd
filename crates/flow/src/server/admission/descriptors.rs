//! How the open files that a process may have are divided: a quarter for visitors, the rest for accepted tests.
//!
//! Visitors are connections that have not been accepted as a test yet. They cannot take what tests need, however many come.

use landspeed_sys::process;

/// Files that the server opens for moments: facts of the host, a list of users, a spare to turn a visitor away with.
const RESERVE: u64 = 16;
/// Descriptors of a connection in its greeting: both halves, and the handle that ends it.
const GREETING: u64 = 3;
/// What is assumed to be open where it cannot be counted.
const UNCOUNTED: u64 = 32;

/// Connections at the doors, all doors together.
const MOST_WAITING: u64 = 2048;
/// Connections in their greeting.
const MOST_GREETING: u64 = 256;
/// Connections that are refused and have not read why.
const MOST_LEAVING: u64 = 512;

/// The division.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Descriptors {
    /// Descriptors for accepted tests.
    pub tests: u64,
    /// Connections that may wait at the doors.
    pub waiting: usize,
    /// Connections that may be in their greeting.
    pub greeting: usize,
    /// Connections that may be on their way out.
    pub leaving: usize,
}

impl Descriptors {
    /// For this process as it is now: raises its limit as far as it may, and counts what is open.
    pub fn of_process() -> Self {
        let limit = process::raise_open_files_limit();
        let open = std::fs::read_dir("/proc/self/fd").map_or(UNCOUNTED, |entries| entries.count() as u64);
        Self::divide(limit.saturating_sub(open + RESERVE))
    }

    /// Of so many that are free.
    fn divide(free: u64) -> Self {
        let visitors = free / 4;
        let part = |descriptors: u64, each: u64, most: u64| (descriptors / each).clamp(2, most);
        let greeting = part(visitors / 2, GREETING, MOST_GREETING);
        let waiting = part(visitors / 4, 1, MOST_WAITING);
        let leaving = part(visitors / 4, 1, MOST_LEAVING);
        let tests = free.saturating_sub(greeting * GREETING + waiting + leaving);
        Self { tests, waiting: waiting as usize, greeting: greeting as usize, leaving: leaving as usize }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_get_most_of_the_descriptors() {
        for free in [40, 220, 1000, 4000, 524_000] {
            let Descriptors { tests, waiting, greeting, leaving } = Descriptors::divide(free);
            let all = tests + waiting as u64 + 3 * greeting as u64 + leaving as u64;
            assert!(all <= free, "{free}");
            assert!(tests * 4 >= free * 2, "{free}: {tests}");
            assert!(waiting >= 2 && greeting >= 2 && leaving >= 2, "{free}");
        }
        let plenty = Descriptors::divide(524_000);
        assert_eq!((plenty.waiting, plenty.greeting, plenty.leaving), (2048, 256, 512));
    }
}
