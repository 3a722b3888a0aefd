//! What a stream's thread shares with the sampler and with the code that stops it.

use std::os::fd::BorrowedFd;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use landspeed_sys::socket::{self, RawTcpInfo};

/// Counters of one stream at one end. The stream's own thread is the only writer; the sampler reads them.
///
/// Aligned to two cache lines so that neighbours never share one.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Counters {
    /// Payload bytes the application wrote or read.
    bytes: AtomicU64,
    /// UDP datagrams sent or delivered (first copies), or transactions completed.
    packets: AtomicU64,
    /// UDP receiver: highest sequence number seen plus one.
    highest: AtomicU64,
    /// Bytes that arrived and are not among `bytes`: datagrams of strangers, damaged ones, duplicates.
    discarded: AtomicU64,
    /// UDP receiver: RFC 3550 jitter; requester: sum of the latencies of all completed transactions. Nanoseconds.
    delay_ns: AtomicU64,
    /// When the first byte moved, monotonic nanoseconds; 0 before.
    first_ns: AtomicU64,
    /// When the last byte moved, monotonic nanoseconds, as of the last update the thread bothered to stamp.
    last_ns: AtomicU64,
    /// Kernel number of the stream's thread; 0 before it runs.
    thread: AtomicU32,
    info: InfoRequest,
}

/// A reading of `tcp_info` that the sampler asks of the stream's thread. That thread holds the socket's lock most of the
/// time: a sampler that waits for the lock costs two context switches a reading.
#[derive(Default)]
struct InfoRequest {
    asked: AtomicBool,
    answer: Mutex<Option<RawTcpInfo>>,
}

impl std::fmt::Debug for InfoRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("InfoRequest").field("asked", &self.asked).finish_non_exhaustive()
    }
}

impl Counters {
    /// Says which thread this stream runs on: the calling one.
    pub fn adopt_thread(&self) {
        self.thread.store(landspeed_sys::thread::id(), Ordering::Relaxed);
    }

    /// The thread this stream runs on, as the kernel numbers it.
    pub fn thread(&self) -> Option<u32> {
        Some(self.thread.load(Ordering::Relaxed)).filter(|&id| id != 0)
    }

    /// Asks the stream's thread for `tcp_info`.
    pub fn ask_info(&self) {
        self.info.asked.store(true, Ordering::Relaxed);
    }

    /// The thread's answer; `None` when it has not come back from the kernel since it was asked. Either way nothing is
    /// asked any more.
    pub fn take_info(&self) -> Option<RawTcpInfo> {
        let mut answer = self.info.answer.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        self.info.asked.store(false, Ordering::Relaxed);
        answer.take()
    }

    /// Reads `tcp_info` if the sampler asked for it. Called by the stream's thread.
    #[inline]
    pub fn answer_info(&self, fd: BorrowedFd<'_>) {
        if self.info.asked.load(Ordering::Relaxed) {
            self.read_info(fd);
        }
    }

    #[cold]
    fn read_info(&self, fd: BorrowedFd<'_>) {
        let mut answer = self.info.answer.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if self.info.asked.swap(false, Ordering::Relaxed) {
            *answer = socket::tcp_info(fd).ok();
        }
    }

    /// Publishes the running totals. One writer, so plain stores are enough.
    #[inline]
    pub fn publish(&self, bytes: u64, packets: u64) {
        self.packets.store(packets, Ordering::Relaxed);
        self.bytes.store(bytes, Ordering::Release);
    }

    /// Publishes the highest sequence number seen plus one.
    #[inline]
    pub fn publish_highest(&self, highest: u64) {
        self.highest.store(highest, Ordering::Relaxed);
    }

    /// Publishes how many bytes arrived that [`bytes`](Self::bytes) does not count: junk, duplicates.
    #[inline]
    pub fn publish_discarded(&self, bytes: u64) {
        self.discarded.store(bytes, Ordering::Relaxed);
    }

    /// Bytes that arrived and are not among [`bytes`](Self::bytes).
    pub fn discarded(&self) -> u64 {
        self.discarded.load(Ordering::Relaxed)
    }

    /// Publishes the jitter (UDP receiver) or the sum of latencies (requester), nanoseconds.
    #[inline]
    pub fn publish_delay(&self, delay_ns: u64) {
        self.delay_ns.store(delay_ns, Ordering::Relaxed);
    }

    /// The jitter (UDP receiver) or the sum of latencies (requester), nanoseconds.
    pub fn delay_ns(&self) -> u64 {
        self.delay_ns.load(Ordering::Relaxed)
    }

    /// Highest sequence number seen plus one.
    pub fn highest(&self) -> u64 {
        self.highest.load(Ordering::Relaxed)
    }

    /// Stamps the first byte's time.
    pub fn stamp_first(&self, now_ns: u64) {
        self.first_ns.store(now_ns, Ordering::Relaxed);
    }

    /// Stamps the last byte's time.
    pub fn stamp_last(&self, now_ns: u64) {
        self.last_ns.store(now_ns, Ordering::Relaxed);
    }

    /// Bytes so far.
    #[inline]
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Acquire)
    }

    /// Packets so far.
    pub fn packets(&self) -> u64 {
        self.packets.load(Ordering::Relaxed)
    }

    /// When the first byte moved, monotonic nanoseconds.
    pub fn first_ns(&self) -> Option<u64> {
        Some(self.first_ns.load(Ordering::Relaxed)).filter(|&t| t != 0)
    }

    /// When the last byte moved, monotonic nanoseconds.
    pub fn last_ns(&self) -> Option<u64> {
        Some(self.last_ns.load(Ordering::Relaxed)).filter(|&t| t != 0)
    }
}

/// Says when a direction's threads must stop. Senders look at [`Stop::sending`], receivers at [`Stop::receiving`].
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Stop {
    sending: AtomicBool,
    receiving: AtomicBool,
}

impl Stop {
    /// Stops senders: they offer no more data.
    pub fn stop_sending(&self) {
        self.sending.store(true, Ordering::Release);
    }

    /// Stops receivers (the drain deadline passed, or the test was aborted).
    pub fn stop_receiving(&self) {
        self.receiving.store(true, Ordering::Release);
    }

    /// The flag behind [`Stop::sending`], for waits that take a flag.
    pub fn sending_flag(&self) -> &AtomicBool {
        &self.sending
    }

    /// Whether senders must stop.
    #[inline]
    pub fn sending(&self) -> bool {
        self.sending.load(Ordering::Relaxed)
    }

    /// Whether receivers must stop.
    #[inline]
    pub fn receiving(&self) -> bool {
        self.receiving.load(Ordering::Relaxed)
    }
}

/// Bytes a direction's streams may still claim (`--bytes`); unlimited when the test is bounded by time.
#[derive(Debug)]
pub struct Budget {
    left: Option<AtomicU64>,
}

impl Budget {
    /// A budget of `bytes` over all streams, or no limit.
    pub fn new(bytes: Option<u64>) -> Self {
        Self { left: bytes.map(AtomicU64::new) }
    }

    /// Claims up to `want` bytes; what it returns is the caller's to send. Zero means the budget is spent.
    #[inline]
    pub fn claim(&self, want: u64) -> u64 {
        let Some(left) = &self.left else { return want };
        let mut now = left.load(Ordering::Relaxed);
        loop {
            let take = now.min(want);
            match left.compare_exchange_weak(now, now - take, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return take,
                Err(seen) => now = seen,
            }
        }
    }

    /// Gives back what was claimed and could not be sent.
    pub fn give_back(&self, bytes: u64) {
        if let Some(left) = &self.left {
            left.fetch_add(bytes, Ordering::Relaxed);
        }
    }

    /// Whether anything is left to claim.
    pub fn spent(&self) -> bool {
        self.left.as_ref().is_some_and(|left| left.load(Ordering::Relaxed) == 0)
    }
}
