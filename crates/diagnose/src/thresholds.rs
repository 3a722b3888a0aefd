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

/// Goodput from which offloads that are off cost CPU time, bits/s: below it one core copes with single frames.
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

/// Share of a core's time in system and interrupts from which the core is the limit. Procedure step 0.
pub(crate) const CORE_BUSY: f64 = 0.9;

/// Soft interrupt share of such a core from which interrupts, and not the copy, are what fills it.
pub(crate) const SOFTIRQ_SHARE: f64 = 0.5;

/// Share of its life a stream's thread is on a core from which the thread is the limit. The thread counterpart
/// of step 0: a thread that blocks on a socket is off its core, so whatever limits it elsewhere shows here.
pub(crate) const THREAD_BUSY: f64 = 0.9;

/// Thread share from which a host whose cores are all busy is taken to have kept the thread waiting, where the kernel
/// does not say how long it did.
pub(crate) const THREAD_STARVED: f64 = 0.5;

/// Share of the phase a thread is ready to run and has no core, from which that is worth naming. Measured beside other
/// load: 0.16 to 0.28 overflowed an 8 MiB UDP socket; without any load it is below 0.02.
pub(crate) const KEPT_WAITING: f64 = 0.1;

/// Minimum RTT up to which two ends on one machine hand data over at once, microseconds: what holds it up is then
/// whichever of the two threads has work. Measured 1 to 3 µs over loopback and veth.
pub(crate) const SHORT_PATH_US: f64 = 1000.0;

/// Growth of the receive buffer within the phase from which autotuning was still at it.
pub(crate) const BUFFER_GREW: f64 = 2.0;

/// Steady phase below which nothing is said at all, nanoseconds: a few scheduler slices and jiffies.
pub(crate) const MIN_JUDGED_NS: u64 = 200_000_000;

/// Share of time with data outstanding below which an application that is only observed leaves the connection idle most of the time.
/// The kernel's clock (`busy_time`) runs whenever anything is written and not acknowledged: what is left is the application's.
pub(crate) const OUTSTANDING_LITTLE: f64 = 0.5;

/// Enforcement periods in which a control group used up its CPU quota, over all in which it ran, from which the quota holds a flow
/// back. A group that stays below its quota has none.
pub(crate) const QUOTA_USED_UP: f64 = 0.25;

/// Share of the readings with a thread in state D (uninterruptible sleep) from which it waits for storage.
pub(crate) const STATE_BLOCKED: f64 = 0.3;

/// Bytes read from storage (at a receiver: written to it) over bytes of the flow from which that storage is the flow's.
pub(crate) const STORAGE_MOVES: f64 = 0.5;

/// Readings with a new request from which a flow answers requests.
pub(crate) const FEW_REQUESTS: f64 = 3.0;

/// Share of the readings between an answer and the next request from which the gaps limit.
pub(crate) const IDLE_BETWEEN: f64 = 0.4;

/// Time without new data after which an answer is over, milliseconds.
pub(crate) const QUIET_MS: u32 = 20;

/// Difference from which the ages of the last request and of the last answer say which came later, milliseconds: the kernel counts
/// them in ticks of up to 10 ms.
pub(crate) const AGES_DIFFER_MS: u32 = 10;

/// Share of its life the sender waits for its own schedule from which it had time to spare.
pub(crate) const WAITS: f64 = 0.1;

/// The same from which the schedule is plainly what limits it.
pub(crate) const MOSTLY_WAITS: f64 = 0.5;

/// Rate measured over rate asked for from which the rate counts as reached. Headroom of one part in twenty for
/// start, end and headers; the procedure's figure for a NIC at its rate.
pub(crate) const RATE_REACHED: f64 = 0.95;

/// Rate on the wire over the interface's speed above which the speed is not a real one.
pub(crate) const RATE_IMPOSSIBLE: f64 = 1.05;

/// Time limited by the receive window over busy time. Procedure step 1; measured 0.45 to 1.0 against 0 otherwise
/// (BBR halves it: it probes below the window).
pub(crate) const RWND_LIMITED: f64 = 0.2;

/// Flight over the peer's window. Procedure step 1; measured 1.0 to 1.04 against ≤ 0.20 otherwise.
pub(crate) const WINDOW_FULL: f64 = 0.9;

/// Unread bytes over `SO_RCVBUF` from which the reader is behind. A full buffer holds about half to two thirds of
/// `SO_RCVBUF` as payload, the rest is bookkeeping (tcp.h `tcp_win_from_space`, initial scaling 1/2).
pub(crate) const READER_BEHIND: f64 = 0.5;

/// Unread bytes over `SO_RCVBUF` below which the reader keeps up; between the two the other ratio decides.
pub(crate) const READER_KEEPS_UP: f64 = 0.25;

/// Unread bytes over unread bytes and open window from which what the buffer holds is backlog.
pub(crate) const BACKLOG: f64 = 0.8;

/// Send queue memory over `SO_SNDBUF` from which the buffer is full. A writer that waits is woken when a third of the buffer is
/// free (`sk_stream_is_writeable`), so a buffer that limits is two thirds to wholly full. Measured 1.06 and 1.14.
pub(crate) const SEND_FULL: f64 = 0.65;

/// The same below which the application leaves the buffer empty. Procedure step 3; measured 0.06 and 0.20.
pub(crate) const SEND_EMPTY: f64 = 0.3;

/// Unsent bytes below which nothing waits to be sent, bytes. Procedure step 2: one GSO frame of 64 KiB.
pub(crate) const NOTSENT_LITTLE: f64 = 65_536.0;

/// Unsent bytes over send queue memory from which data waits, whatever its size. Measured 0.12 (9 KB of 73 KB) when the
/// buffer was the limit under BBR, 0.7 (2.6 of 3.7 MB) when loss was; a slow path has a small buffer and never 64 KiB.
pub(crate) const WAITING_SHARE: f64 = 0.25;

/// The same as a share of `SO_SNDBUF`, for buffers of many megabytes in which one write is more than 64 KiB.
pub(crate) const NOTSENT_SHARE: f64 = 0.05;

/// Time limited by the send buffer over busy time. Measured 0.42 under BBR and 0.01 under cubic for the same limit:
/// supports, never decides.
pub(crate) const SNDBUF_LIMITED: f64 = 0.2;

/// The same from which it decides, whatever the other gauges say. Measured 0.82 to 1.0 where the buffer was the limit.
pub(crate) const SNDBUF_MOSTLY: f64 = 0.5;

/// Smoothed over minimum RTT from which a queue is plainly there: half an RTT of waiting. Procedure step 5 says
/// "srtt ≫ min_rtt"; a drop-tail buffer of one BDP swings between 1 and 2.
pub(crate) const RTT_QUEUE: f64 = 1.5;

/// The same below which the RTT is flat.
pub(crate) const RTT_FLAT: f64 = 1.2;

/// Waiting time below which an inflated RTT is host noise and not a queue, microseconds.
pub(crate) const QUEUE_US: f64 = 200.0;

/// 90th percentile of the smoothed RTT over the minimum below which a rise is noise of a path without a queue.
pub(crate) const RTT_SHALLOW: f64 = 1.05;

/// Correlation of RTT with flight from which a small rise of the RTT is a shallow queue filling.
pub(crate) const RTT_FOLLOWS: f64 = 0.6;

/// Measured over predicted rate within which loss explains the rate. The response functions assume one reduction for
/// each lost packet, evenly spaced: RFC 9438 §5 and Mathis 1997 agree with practice to a small factor.
pub(crate) const RESPONSE_FIT: f64 = 4.0;

/// Retransmissions below which a loss rate is an anecdote.
pub(crate) const FEW_RETRANSMITS: f64 = 10.0;

/// Loss rate to which a model-based congestion control reduces its rate (BBRv2 and v3 `loss_thresh`; v1 tolerates
/// more).
pub(crate) const MODEL_LOSS: f64 = 0.02;

/// Share of the retransmissions that another counter explains for that counter to name the place.
pub(crate) const EXPLAINS: f64 = 0.5;

/// UDP loss from which loss, and not the offered rate, holds the goodput back.
pub(crate) const UDP_LOSS: f64 = 0.01;

/// Concurrency (rate × mean latency ÷ requests outstanding) from which round trips are all that happens.
pub(crate) const ROUND_TRIP: f64 = 0.9;

/// Flight over congestion window from which, with loss and data waiting, the window is probably the limit. In the
/// gap between what was measured for other causes (≤ 0.43) and [`CWND_FULL`].
pub(crate) const CWND_MOSTLY: f64 = 0.6;

/// Share of a link's rate from which it is full, framing included. The lab's links carry 0.98 to 1.0 under backlog; BBR's
/// RTT probes take 2 % of the time.
pub(crate) const FULL_LINK: f64 = 0.94;

/// Full frames that a queue may hold at most to count as a policer: it drops whatever arrives beside another frame.
pub(crate) const POLICER_FRAMES: f64 = 4.0;

/// Limit of a queue over BDP ÷ √streams (Appenzeller et al., SIGCOMM 2004) below which it is shallow.
pub(crate) const SHALLOW_BDP: f64 = 0.5;

/// Share of the retransmissions that may be real losses where reordering is the cause.
pub(crate) const REAL_LOSS: f64 = 0.25;

/// ACKs lost over ACKs sent from which the reverse path is congested. ACKs are cumulative: TCP bears single losses.
pub(crate) const ACKS_LOST: f64 = 0.02;

/// Share of the queueing delay that lies on the reverse path from which that is where the queue is.
pub(crate) const REVERSE_QUEUE: f64 = 0.7;

/// Share of the retransmissions that came early from which slow start caused them.
pub(crate) const EARLY_LOSS: f64 = 0.8;

/// Median delivery rate just before losses over the highest (98th percentile) from which losses happen at a ceiling. Random loss
/// strikes at any rate: 0.33 to 0.77 measured, against 0.80 to 0.99 at a buffer's or policer's ceiling.
pub(crate) const CEILING: f64 = 0.79;

/// RTTs without an ACK from which a flow is stalled.
pub(crate) const STALL_RTTS: f64 = 4.0;

/// Over-limit events over packets of a shaping qdisc from which the qdisc and not the path sets the rate.
pub(crate) const SHAPED: f64 = 0.1;

/// Streams whose receive queues one core serves, from which they share it.
pub(crate) const SHARED_QUEUE: f64 = 2.0;

/// Requeues over packets of a qdisc from which the driver's ring held it up: a few are normal.
pub(crate) const REQUEUED: f64 = 0.01;

/// Send MSS over its largest below which path MTU discovery lowered it: PPPoE takes 8 bytes of 1448.
pub(crate) const MSS_FELL: f64 = 0.999;

/// Coefficient of variation of the congestion windows at losses below which a buffer overflowed at the same window each time;
/// measured 0.02 to 0.12 for policers and shallow buffers.
pub(crate) const PEAKS_ALIKE: f64 = 0.15;

/// Reductions of the congestion window that are needed for their spread to mean something.
pub(crate) const FEW_PEAKS: usize = 7;

/// Samples with new losses after the first quarter of the phase up to which slow start is still what cost the rate.
pub(crate) const FEW_LATE_LOSSES: usize = 1;

/// Tenth percentile of the smoothed RTT over the minimum from which the path's queue never empties. Measured up to 1.03 for flows
/// that a window limits, 1.075 for one whose window was just above what a full path holds.
pub(crate) const ALWAYS_QUEUED: f64 = 1.05;

/// Share of the segments that reordering makes TCP retransmit from which it keeps the congestion window small. Measured 0.002 and
/// more where it did, 0.0002 beside a path that was full.
pub(crate) const REORDERING_HURTS: f64 = 0.001;

/// Share of the data that left with less in flight than before losses, from which losses strike at a ceiling. Measured 0.65 to 0.95
/// for shallow buffers and policers, 0.41 to 0.57 for random loss.
pub(crate) const AT_CEILING: f64 = 0.65;

/// Samples with new losses that are needed for [`AT_CEILING`].
pub(crate) const FEW_CEILINGS: usize = 3;

/// Coefficient of variation of the delivered segments below which a link or a shaper sets the rate. Measured up to 0.021 on paths
/// that were full, 0.044 and more where reordering was the limit.
pub(crate) const DELIVERY_EVEN: f64 = 0.025;

/// The same spread: above it, single losses in most intervals are random, if the sender reduces its window for each loss. Measured
/// 0.29 and more for random loss, up to 0.24 for policers.
pub(crate) const DELIVERY_VARIES: f64 = 0.27;

/// The same from which losses are plainly random. Measured up to 0.45 for policers, unless they drop in bursts.
pub(crate) const DELIVERY_VARIES_MUCH: f64 = 0.45;

/// The same for BBR, which keeps to its rate. Measured 0.08 and more for random loss, up to 0.08 (once 0.19) for policers and shallow
/// buffers.
pub(crate) const DELIVERY_VARIES_BBR: f64 = 0.1;

/// The same from which a standing queue alone does not make a path full. Measured up to 0.05 on full paths, beside other traffic too.
pub(crate) const DELIVERY_UNEVEN: f64 = 0.06;

/// 90th over 10th percentile of the smoothed RTT below which BBR's probes meet no queue: what sets the rate is before the path.
/// Measured 1.00 to 1.01 for a shaper on the sender, 1.03 and more for full paths.
pub(crate) const PROBES_UNSEEN: f64 = 1.015;

/// Segments retransmitted in each sample with losses, over those that independent losses put there, from which a queue overflowed.
/// Measured 6 to 40 for queues and policers of one stream, 1 to 4 for random loss, bursts of three included.
pub(crate) const LOST_IN_BURSTS: f64 = 5.0;

/// Queue below which a path that holds it may be empty: TCP small queues let two GSO packets of 64 KiB wait in the sender's qdisc.
pub(crate) const OWN_BURSTS: f64 = 131_072.0;

/// The same as a time, µs: TCP small queues let a millisecond at the pacing rate wait there, and fq as much again. Measured 0.8 to 2.4
/// ms behind `fq maxrate`.
pub(crate) const OWN_BURSTS_US: f64 = 3000.0;

/// The same below which losses come singly. Measured 0.87 to 1.3 for random loss, 1.5 to 40 at ceilings, 0.9 to 1.25 at ceilings that
/// most intervals hit.
pub(crate) const SINGLE_LOSSES: f64 = 1.4;

/// Share of the intervals with losses below which losses are seldom. Measured 0.37 and more at policers that drop singly.
pub(crate) const LOSES_SELDOM: f64 = 0.5;

/// The same below which they are rare.
pub(crate) const LOSES_RARELY: f64 = 0.3;

/// Data the receiving host has acknowledged over data read there from which the receive buffer still fills. Measured 1.2 to 1.7 in slow
/// readers' first seconds on full paths.
pub(crate) const STILL_FILLS: f64 = 1.1;
