//! A host's facts and its counters during a test, live or from a recorded tree.
//!
//! [`collect`] reads all facts about a [`Host`] that a check may use; [`record`] stores them for another
//! machine. [`snapshot`] describes the host once. [`HostSampler`] reads its counters a few times per second and
//! returns a [`HostSeries`](landspeed_model::HostSeries). Neither needs privilege and neither fails: what
//! cannot be read is listed, with the reason, in `unavailable`. [`cpu_use_between`] and [`cores_between`] sum up a
//! series over a span.
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
mod quota;
mod roots;
mod sampler;
mod snapshot;
mod spans;
mod sysctls;
mod totals;
mod unavailable;
mod usage;

pub use collect::collect;
pub use cores::{CpuLocation, cpu_locations};
pub use files::{FileError, Files};
pub use host::{
    ClockAnswer, DriverAnswer, Host, InterfaceAnswers, KernelAnswers, LinkAnswer, LiveHost, OpenError, QdiscAnswer,
    RecordError, RecordedHost, record,
};
pub use moment::{InterfaceCounters, StackCounters, series_between};
pub use quota::{Quota, QuotaCounters};
pub use roots::roots;
pub use sampler::{HostSampler, MIN_SPAN_NS};
pub use snapshot::{snapshot, snapshot_from};
pub use usage::{HostUse, cores_between, cpu_use_between};

/// Length of one tick of `/proc/stat`: `USER_HZ` is 100 on every architecture this program is built for
/// (asm-generic/param.h), regardless of the kernel's timer frequency. It limits the resolution of CPU shares.
pub const TICK_NS: u64 = 10_000_000;
