//! Every figure a decision hangs on, with where it comes from.
//!
//! "Measured" is the table in `docs/verdicts.md`: kernel 6.18, 20 ms path, cubic and bbr.

/// Samples below which a verdict is never sure. Procedure in `docs/verdicts.md`: sample at least 20 times over 2 s,
/// because the kernel's chronos tick in jiffies and a congestion epoch lasts many round trips.
pub(crate) const MIN_SAMPLES: usize = 20;

/// Steady phase below which a verdict is never sure, nanoseconds. Same source.
pub(crate) const MIN_STEADY_NS: u64 = 2_000_000_000;

/// Share of a host's core time stolen by the hypervisor worth a warning.
pub(crate) const STEAL_SHARE: f64 = 0.03;

/// Cores kept busy by something other than the test worth a warning: a quarter of one core.
pub(crate) const OTHER_LOAD_CORES: f64 = 0.25;

/// Ticks a host reading must span for its shares to mean something: one tick in ten is 10 %.
pub(crate) const TICKS_PER_READING: f64 = 10.0;

/// Goodput from which offloads that are off cost a processor, bits/s. One core handles about 1 Gb/s of 1500-byte
/// frames without them; decks: 8.9 → 23.9 Gb/s by larger frames alone.
pub(crate) const FAST_PATH_BPS: f64 = 1e9;

/// Congestion window in the last quarter over the first quarter from which it counts as growing.
pub(crate) const RAMP_RATIO: f64 = 1.1;

/// Spread of the goodput between intervals (coefficient of variation) worth a warning.
pub(crate) const GOODPUT_CV: f64 = 0.25;

/// TCP memory in use over `tcp_mem`'s pressure threshold worth a warning. At 1 the kernel shrinks windows
/// (`tcp_under_memory_pressure`); facts: a stall of 66 s was seen.
pub(crate) const TCP_MEMORY: f64 = 0.9;

/// Flight over congestion window from which the window is what holds data back. Procedure step 5; measured 1.03 at
/// 0.1 % loss against ≤ 0.43 for every other cause.
pub(crate) const CWND_FULL: f64 = 0.9;
