//! What a host is, and what it does while a test runs: facts and counters, live or from a recorded tree.
//!
//! [`collect`] reads everything about a [`Host`] that a check may use; [`record`] keeps it, so that it can be read again
//! elsewhere. [`snapshot`] describes the host once. [`HostSampler`] reads its counters at a few times a second and ends as a
//! [`HostSeries`](landspeed_model::HostSeries). Neither needs privilege and neither fails: what cannot be read is
//! named, with the reason, in `unavailable`. [`use_between`] and [`cores_between`] sum a series over a span.
#![forbid(unsafe_code)]

mod collect;
mod cores;
mod counters;
mod files;
mod host;
mod machine;
mod moment;
mod nic;
mod parse;
mod sampler;
mod snapshot;
mod spans;
mod sysctls;
mod totals;
mod usage;

pub use cores::{CoreSite, core_sites};
pub use files::{FileError, Files};
pub use host::{
    ClockAnswer, DriverAnswer, Host, InterfaceAnswers, KernelAnswers, LinkAnswer, LiveHost, OpenError, QdiscAnswer,
    RecordError, RecordedHost, collect, record,
};
pub use moment::{InterfaceMoment, StackMoment, moved_between};
pub use sampler::{HostSampler, MIN_SPAN_NS};
pub use snapshot::{snapshot, snapshot_from};
pub use usage::{HostUse, cores_between, use_between};

/// What one unit of `/proc/stat` is worth: `USER_HZ` is 100 on every architecture this program is built for
/// (asm-generic/param.h), whatever the kernel's own timer does. Shares over a span cannot be finer than this over it.
pub const TICK_NS: u64 = 10_000_000;
