//! The machine that the tasks run on.

use std::path::PathBuf;
use std::time::Instant;

/// Finds `program` in `PATH`, /usr/sbin and /sbin, in this order.
pub fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/sbin", "/sbin"].map(PathBuf::from))
        .map(|directory| directory.join(program))
        .find(|candidate| candidate.is_file())
}

/// Current time. The tasks time processes, not packets.
#[expect(clippy::disallowed_methods, reason = "tasks time processes, and have no clock of the product's")]
pub fn now() -> Instant {
    Instant::now()
}

/// Number of cores this process may use.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
