//! Where and when a run was made.

use std::time::{Duration, UNIX_EPOCH};

use landspeed_sys::clock;
use landspeed_sys::file;
use serde::{Deserialize, Serialize};

/// Worker that made a run: `runs/ID.worker`, written before the document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunOrigin {
    /// Name of the worker.
    pub worker: String,
    /// Real time of the run including setup, seconds.
    pub wall_s: f64,
}

/// Returns the host name, for documents.
pub fn worker_name() -> String {
    let name = file::read_text("/proc/sys/kernel/hostname".as_ref(), 4096).unwrap_or_default();
    let name = name.trim();
    if name.is_empty() { "localhost".to_owned() } else { name.to_owned() }
}

/// Returns the current time as RFC 3339, UTC.
pub fn now() -> String {
    humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_nanos(clock::realtime_ns())).to_string()
}
