//! Thresholds of the decisions, with their sources.
//!
//! "Measured" refers to the table in `docs/verdicts-accuracy.md`: kernel 6.18, 20 ms path, cubic and bbr.

/// Minimum samples for high confidence. Procedure in `docs/verdicts.md`: sample at least 20 times over 2 s,
/// because the kernel's chrono counters tick in jiffies and a congestion epoch lasts many round trips.
pub(crate) const MIN_SAMPLES: usize = 20;

/// Minimum steady phase for high confidence, nanoseconds. Same source.
pub(crate) const MIN_STEADY_NS: u64 = 2_000_000_000;

/// Minimum samples for medium confidence: a quarter of those for high confidence.
pub(crate) const MIN_SAMPLES_MEDIUM: usize = 5;

/// Minimum steady phase for medium confidence, nanoseconds: twice the shortest phase with a verdict.
pub(crate) const MIN_STEADY_MEDIUM_NS: u64 = 400_000_000;

/// Share of a host's core time that is steal time: worth a warning.
pub(crate) const STEAL_SHARE: f64 = 0.03;

/// Load that is not the test's, in cores: worth a warning from a quarter of a core.
pub(crate) const OTHER_LOAD_CORES: f64 = 0.25;

/// Minimum clock ticks per host sample for meaningful shares: one tick in ten is 10 %.
pub(crate) const TICKS_PER_READING: f64 = 10.0;

/// Goodput above which disabled offloads cost relevant CPU time, bits/s; below it one core copes with
/// single frames.
pub(crate) const FAST_PATH_BPS: f64 = 1e9;

/// Ratio of the congestion window in the last quarter to the first: the window is growing.
pub(crate) const RAMP_RATIO: f64 = 1.1;

/// Coefficient of variation of the goodput between intervals: worth a warning.
pub(crate) const GOODPUT_CV: f64 = 0.25;

/// Ratio of TCP memory in use to `tcp_mem`'s pressure threshold: worth a warning. At 1 the kernel shrinks
/// windows (`tcp_under_memory_pressure`); a stall of 66 s was observed.
pub(crate) const TCP_MEMORY: f64 = 0.9;

/// Ratio of flight to congestion window: the congestion window limits. Procedure step 5; measured 1.03 at
/// 0.1 % loss and ≤ 0.43 for every other cause.
pub(crate) const CWND_FULL: f64 = 0.9;

/// Share of a core's time in system and interrupts: the core limits. Procedure step 0.
pub(crate) const CORE_BUSY: f64 = 0.9;

/// Softirq share of a full core: interrupts, not the copy, fill it.
pub(crate) const SOFTIRQ_SHARE: f64 = 0.5;

/// Share of its lifetime that a stream's thread runs on a core: the thread limits. The thread counterpart
/// of step 0: a thread that blocks on a socket is off its core, so any other limit shows here.
pub(crate) const THREAD_BUSY: f64 = 0.9;

/// Thread share on a host whose cores are all busy: the thread lacked CPU time. Used if the kernel does not
/// report its wait time.
pub(crate) const THREAD_STARVED: f64 = 0.5;

/// Share of the phase in which a thread is runnable without a core: relevant. Measured 0.16 to 0.28 with
/// other load, which overflowed an 8 MiB UDP socket; below 0.02 without load.
pub(crate) const KEPT_WAITING: f64 = 0.1;

/// Maximum minimum RTT for two processes on one machine that hand data over directly, microseconds: then
/// only the two threads can delay it. Measured 1 to 3 µs over loopback and veth.
pub(crate) const SHORT_PATH_US: f64 = 1000.0;

/// Growth of the receive buffer within the phase: autotuning was still active.
pub(crate) const BUFFER_GREW: f64 = 2.0;

/// Minimum steady phase for any verdict, nanoseconds: a few scheduler slices and jiffies.
pub(crate) const MIN_JUDGED_NS: u64 = 200_000_000;

/// Share of time with data outstanding: below it, a watched application leaves the connection idle most of
/// the time. The kernel's `busy_time` counts while written data is unacknowledged; the rest is the
/// application's.
pub(crate) const OUTSTANDING_LITTLE: f64 = 0.5;

/// Share of its enforcement periods in which a control group used up its CPU quota (throttled): the quota
/// limits. A group that stays below its quota has none.
pub(crate) const QUOTA_USED_UP: f64 = 0.25;

/// Share of its enforcement periods in which a control group was throttled: enough pauses to disturb what TCP
/// measures of the path.
pub(crate) const QUOTA_SEEN: f64 = 0.05;

/// Time without any ACK up to the end of the phase: the path is down, nanoseconds. Several retransmission timeouts.
pub(crate) const DOWN_NS: f64 = 1e9;

/// Ratio of the bytes acknowledged to the MSS from which on full-sized segments have passed: more than what opens a stream.
pub(crate) const PASSED_SEGMENTS: f64 = 2.0;

/// Share of the samples with a thread in state D (uninterruptible sleep): it waits for storage.
pub(crate) const STATE_BLOCKED: f64 = 0.3;

/// Ratio of bytes read from storage (receiver: written) to bytes of the flow: the storage access belongs to
/// the flow.
pub(crate) const STORAGE_MOVES: f64 = 0.5;

/// Minimum samples with a new request for a flow that answers requests.
pub(crate) const FEW_REQUESTS: f64 = 3.0;

/// Share of the samples between an answer and the next request: the gaps limit.
pub(crate) const IDLE_BETWEEN: f64 = 0.4;

/// Share of the readings in which a thread is in one kind of system call: that is what it waits for.
pub(crate) const WAITS_IN_CALL: f64 = 0.5;

/// Share of the time off its core in which a thread of a watched program is ready to run: it lacks a core, whatever else
/// it waits for.
pub(crate) const LACKS_CORE: f64 = 0.5;

/// Time without new data at a receiver after which its sender pauses, milliseconds: two ticks of 4 ms.
pub(crate) const ARRIVAL_GAP_MS: f64 = 8.0;

/// In a `watch`, at the receiver: delay of a queue over the mean time since the last arrival. The echo of a timestamp
/// waits for a sender that pauses, too, on average twice as long as the last arrival is ago.
pub(crate) const QUEUE_OVER_AGE: f64 = 4.0;
/// As [`ARRIVAL_GAP_MS`], in RTTs of the empty path: a small congestion window arrives in one burst per RTT.
pub(crate) const ARRIVAL_GAP_RTTS: f64 = 2.0;

/// Ratio of the bytes received in an RTT to the window offered from which on the window limits. Autotuning offers
/// twice what arrives in an RTT (`tcp_rcv_space_adjust`), so a window that it may still enlarge stays near 0.5.
pub(crate) const WINDOW_USED: f64 = 0.8;

/// Share of the segments that arrive out of order from which on losses on the path matter.
pub(crate) const DISORDER: f64 = 0.001;

/// Requests × minimum RTT over time: each request waits one round trip for its answer, and little else happens.
pub(crate) const ROUND_TRIPS: f64 = 0.7;

/// Time without new data after which an answer is considered complete, milliseconds.
pub(crate) const QUIET_MS: u32 = 20;

/// Minimum difference between the ages of the last request and the last answer to tell their order,
/// milliseconds: the kernel counts them in ticks of up to 10 ms.
pub(crate) const AGES_DIFFER_MS: u32 = 10;

/// Share of its lifetime that the sender waits for its own schedule: it has idle time.
pub(crate) const WAITS: f64 = 0.1;

/// Share of its lifetime that the sender waits for its own schedule: the schedule is the limit.
pub(crate) const MOSTLY_WAITS: f64 = 0.5;

/// Ratio of measured to requested rate: the rate was reached. One part in twenty allows for start, end and
/// headers; the procedure's figure for a NIC at its rate.
pub(crate) const RATE_REACHED: f64 = 0.95;

/// Ratio of measured to requested rate above which the request was not applied, and of a flow's frames to the rate of a
/// shaper that they cannot have passed: a schedule, a pacing rate or a shaper holds to a few percent.
pub(crate) const RATE_EXCEEDED: f64 = 1.1;

/// Ratio of sent to requested rate below which a UDP sender was behind its schedule.
pub(crate) const ON_SCHEDULE: f64 = 0.99;

/// Ratio of the rate on the wire to the interface's speed above which the reported speed cannot be real.
pub(crate) const RATE_IMPOSSIBLE: f64 = 1.05;

/// Share of the busy time that is rwnd-limited. Procedure step 1; measured 0.45 to 1.0, otherwise 0 (BBR
/// halves it: it probes below the window).
pub(crate) const RWND_LIMITED: f64 = 0.2;

/// Ratio of flight to receive window. Procedure step 1; measured 1.0 to 1.04, otherwise ≤ 0.20.
pub(crate) const WINDOW_FULL: f64 = 0.9;

/// Ratio of unread bytes to `SO_RCVBUF`: the reader is behind. A full buffer has about half to two thirds
/// of `SO_RCVBUF` as payload, the rest is overhead (tcp.h `tcp_win_from_space`, initial scaling 1/2).
pub(crate) const READER_BEHIND: f64 = 0.5;

/// Ratio of unread bytes to `SO_RCVBUF` below which the reader keeps up; between the two, [`BACKLOG`]
/// decides.
pub(crate) const READER_KEEPS_UP: f64 = 0.25;

/// Ratio of unread bytes to unread bytes plus open window: the buffered data is backlog.
pub(crate) const BACKLOG: f64 = 0.8;

/// Ratio of send queue memory to `SO_SNDBUF`: the buffer is full. A blocked writer is woken when a third of
/// the buffer is free (`sk_stream_is_writeable`), so a buffer that limits is at least two thirds full.
/// Measured 1.06 and 1.14.
pub(crate) const SEND_FULL: f64 = 0.65;

/// Ratio of send queue memory to `SO_SNDBUF` below which the application leaves the buffer empty. Procedure
/// step 3; measured 0.06 and 0.20.
pub(crate) const SEND_EMPTY: f64 = 0.3;

/// Median bytes in flight of a BBR stream below which it sends packets one at a time: a GSO packet of 64 KiB. Measured 0 to
/// 46 KB between two namespaces with all of a core, 160 KB and more at bottlenecks of 200 Mb/s to 5 Gb/s.
pub(crate) const FLIGHT_LITTLE: f64 = 65_536.0;

/// Unsent bytes below which no data waits. Procedure step 2: one GSO packet of 64 KiB.
pub(crate) const NOTSENT_LITTLE: f64 = 65_536.0;

/// Ratio of unsent bytes to send queue memory: data waits, whatever its size. Measured 0.12 (9 KB of 73 KB)
/// when the buffer limited with BBR, 0.7 (2.6 of 3.7 MB) when loss did; a slow path has a small buffer and
/// never 64 KiB.
pub(crate) const WAITING_SHARE: f64 = 0.25;

/// Ratio of unsent bytes to `SO_SNDBUF`, for buffers of many megabytes in which one write exceeds 64 KiB.
pub(crate) const NOTSENT_SHARE: f64 = 0.05;

/// Share of the busy time that is sndbuf-limited. Measured 0.42 with BBR and 0.01 with cubic for the same
/// limit: supports a cause, never decides.
pub(crate) const SNDBUF_LIMITED: f64 = 0.2;

/// Share of the busy time that is sndbuf-limited: decides, whatever the other gauges show. Measured 0.82 to
/// 1.0 when the buffer limited.
pub(crate) const SNDBUF_MOSTLY: f64 = 0.5;

/// Ratio of smoothed to minimum RTT: a queue is certain, half an RTT of waiting. Procedure step 5 says
/// "srtt ≫ min_rtt"; with a drop-tail buffer of one BDP the ratio varies between 1 and 2.
pub(crate) const RTT_QUEUE: f64 = 1.5;

/// Ratio of smoothed to minimum RTT below which the RTT is flat.
pub(crate) const RTT_FLAT: f64 = 1.2;

/// Queueing delay below which a higher RTT is host noise, microseconds.
pub(crate) const QUEUE_US: f64 = 200.0;

/// Ratio of the 90th percentile of the smoothed RTT to the minimum below which a rise is noise.
pub(crate) const RTT_SHALLOW: f64 = 1.05;

/// Correlation of RTT and flight: a small rise of the RTT is a shallow queue that fills.
pub(crate) const RTT_FOLLOWS: f64 = 0.6;

/// Factor between measured and predicted rate within which loss explains the rate. The response functions
/// assume one reduction per lost packet, evenly spaced: RFC 9438 §5 and Mathis 1997 agree with practice
/// within a small factor.
pub(crate) const RESPONSE_FIT: f64 = 4.0;

/// Minimum retransmissions for a meaningful loss rate.
pub(crate) const FEW_RETRANSMITS: f64 = 10.0;

/// Loss rate at which a model-based congestion control reduces its rate (`loss_thresh` of BBRv2 and v3; v1
/// tolerates more).
pub(crate) const MODEL_LOSS: f64 = 0.02;

/// Share of the retransmissions explained by another counter: that counter gives the place of the loss.
pub(crate) const EXPLAINS: f64 = 0.5;

/// Share of the packets to be sent that the sender's own packet filter drops: it limits the flow.
pub(crate) const FILTERED_SHARE: f64 = 0.05;

/// UDP loss ratio: loss, not the offered rate, limits the goodput.
pub(crate) const UDP_LOSS: f64 = 0.01;

/// Ratio of concurrency (rate × mean latency) to outstanding requests: round trips account for all the
/// time.
pub(crate) const ROUND_TRIP: f64 = 0.9;

/// Ratio of flight to congestion window: with loss and waiting data the window probably limits. Between the
/// measurements for other causes (≤ 0.43) and [`CWND_FULL`].
pub(crate) const CWND_MOSTLY: f64 = 0.6;

/// Utilisation of a link that is full, with framing. The lab's links reach 0.98 to 1.0 with a backlog;
/// BBR's ProbeRTT takes 2 % of the time.
pub(crate) const FULL_LINK: f64 = 0.94;

/// Maximum queue limit of a policer, full frames: it drops nearly every frame that arrives while another is
/// queued.
pub(crate) const POLICER_FRAMES: f64 = 4.0;

/// Ratio of a queue's limit to BDP ÷ √streams (Appenzeller et al., SIGCOMM 2004) below which it is shallow.
pub(crate) const SHALLOW_BDP: f64 = 0.5;

/// Maximum share of real losses among the retransmissions if reordering is the cause.
pub(crate) const REAL_LOSS: f64 = 0.25;

/// Share of ACKs lost: the reverse path is congested. ACKs are cumulative, so TCP tolerates single losses.
pub(crate) const ACKS_LOST: f64 = 0.02;

/// Share of the queueing delay on the reverse path: the queue is there.
pub(crate) const REVERSE_QUEUE: f64 = 0.7;

/// Share of early retransmissions: slow start caused them.
pub(crate) const EARLY_LOSS: f64 = 0.8;

/// Ratio of the median delivery rate just before losses to the highest (98th percentile): losses occur at a
/// ceiling. Random loss occurs at any rate: measured 0.33 to 0.77, and 0.80 to 0.99 at the ceiling of a
/// buffer or policer.
pub(crate) const CEILING: f64 = 0.79;

/// RTTs without an ACK: the flow is stalled.
pub(crate) const STALL_RTTS: f64 = 4.0;

/// Ratio of overlimit events to packets of a shaping qdisc: the qdisc, not the path, sets the rate.
pub(crate) const SHAPED: f64 = 0.1;

/// As [`SHAPED`], if each overlimit event may be a GSO packet of many segments: half of them had to wait.
pub(crate) const SHAPED_GSO: f64 = 0.5;

/// Ratio of the flow's frames to the rate of the sender's own shaper: the shaper sets the rate.
pub(crate) const SHAPER_REACHED: f64 = 0.9;

/// Share of the packets dropped by the sender's own qdisc from which it limits the flow.
pub(crate) const OWN_DROPS: f64 = 0.001;

/// Queueing delay that never falls below this is a queue of the path, even between two ends of one host, µs: some time
/// slices of the scheduler are shorter.
pub(crate) const LONG_QUEUE_US: f64 = 50_000.0;

/// Minimum streams per core for a shared receive queue.
pub(crate) const SHARED_QUEUE: f64 = 2.0;

/// Ratio of requeues to packets of a qdisc: the driver's ring delayed it; a few requeues are normal.
pub(crate) const REQUEUED: f64 = 0.01;

/// Ratio of the send MSS to its largest value below which PMTUD lowered it: PPPoE takes 8 bytes of 1448.
pub(crate) const MSS_FELL: f64 = 0.999;

/// Coefficient of variation of the congestion windows at losses below which a buffer overflows at the same
/// window each time; measured 0.02 to 0.12 for policers and shallow buffers.
pub(crate) const PEAKS_ALIKE: f64 = 0.15;

/// Minimum reductions of the congestion window for a meaningful spread.
pub(crate) const FEW_PEAKS: usize = 7;

/// Maximum samples with new losses after the first quarter of the phase if slow start is the cause.
pub(crate) const FEW_LATE_LOSSES: usize = 1;

/// Ratio of the 10th percentile of the smoothed RTT to the minimum: the path's queue never empties.
/// Measured up to 1.03 for window-limited flows, 1.075 for a window slightly above the BDP.
pub(crate) const ALWAYS_QUEUED: f64 = 1.05;

/// Share of the segments that reordering makes TCP retransmit: it keeps the congestion window small.
/// Measured 0.002 and more when it did, 0.0002 on a full path.
pub(crate) const REORDERING_HURTS: f64 = 0.001;

/// Share of the data sent with less in flight than before losses: losses occur at a ceiling. Measured 0.65
/// to 0.95 for shallow buffers and policers, 0.41 to 0.57 for random loss.
pub(crate) const AT_CEILING: f64 = 0.65;

/// Minimum samples with new losses for [`AT_CEILING`].
pub(crate) const FEW_CEILINGS: usize = 3;

/// Coefficient of variation of the delivered segments below which a link or a shaper sets the rate.
/// Measured up to 0.021 on full paths, 0.044 and more when reordering limited.
pub(crate) const DELIVERY_EVEN: f64 = 0.025;

/// Coefficient of variation of the delivered segments above which single losses in most intervals are
/// random, if the sender reduces its window for each loss. Measured 0.29 and more for random loss, up to
/// 0.24 for policers.
pub(crate) const DELIVERY_VARIES: f64 = 0.27;

/// Coefficient of variation of the delivered segments above which losses are clearly random. Measured up to
/// 0.45 for policers, unless they drop in bursts.
pub(crate) const DELIVERY_VARIES_MUCH: f64 = 0.45;

/// Coefficient of variation of the delivered segments above which losses are random with BBR, which keeps
/// its rate. Measured 0.08 and more for random loss, up to 0.08 (once 0.19) for policers and shallow
/// buffers.
pub(crate) const DELIVERY_VARIES_BBR: f64 = 0.1;

/// Coefficient of variation of the delivered segments above which a standing queue alone does not prove a
/// full path. Measured up to 0.05 on full paths, with other traffic too.
pub(crate) const DELIVERY_UNEVEN: f64 = 0.06;

/// Ratio of the 90th to the 10th percentile of the smoothed RTT below which BBR's probes meet no queue, so
/// that the rate is set before the path. Measured 1.00 to 1.01 for a shaper on the sender, 1.03 and more
/// for full paths.
pub(crate) const PROBES_UNSEEN: f64 = 1.015;

/// Segments retransmitted per sample with losses, relative to independent losses: a queue overflowed.
/// Measured 6 to 40 for queues and policers of one stream, 1 to 4 for random loss, including bursts of
/// three.
pub(crate) const LOST_IN_BURSTS: f64 = 5.0;

/// Backlog below which the path itself may be empty, bytes: TCP small queues allow two GSO packets of 64
/// KiB in the sender's qdisc.
pub(crate) const OWN_BURSTS: f64 = 131_072.0;

/// [`OWN_BURSTS`] as a time, µs: TCP small queues allow one millisecond at the pacing rate, and fq as much
/// again. Measured 0.8 to 2.4 ms behind `fq maxrate`.
pub(crate) const OWN_BURSTS_US: f64 = 3000.0;

/// Segments retransmitted per sample with losses, relative to independent losses, below which losses are
/// single. Measured 0.87 to 1.3 for random loss, 1.5 to 40 at ceilings, 0.9 to 1.25 at ceilings that most
/// intervals hit.
pub(crate) const SINGLE_LOSSES: f64 = 1.4;

/// Share of the intervals with losses below which losses are infrequent. Measured 0.37 and more at policers
/// that drop singly.
pub(crate) const LOSES_SELDOM: f64 = 0.5;

/// Share of the intervals with losses below which losses are rare.
pub(crate) const LOSES_RARELY: f64 = 0.3;

/// Ratio of data acknowledged by the receiving host to data read there: the receive buffer still fills.
/// Measured 1.2 to 1.7 in the first seconds of slow readers on full paths.
pub(crate) const STILL_FILLS: f64 = 1.1;
