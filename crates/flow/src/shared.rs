//! State that a stream's thread shares with the sampler and the control thread.

use std::os::fd::BorrowedFd;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use landspeed_sys::socket::{self, RawTcpInfo};

/// Counters of one stream on one side. The stream's thread is the only writer; the sampler reads them.
///
/// Aligned to two cache lines so that adjacent counters never share one.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Counters {
    /// Payload bytes written or read by the application.
    bytes: AtomicU64,
    /// UDP datagrams sent or delivered (without duplicates), or transactions completed.
    packets: AtomicU64,
    /// UDP receiver: highest sequence number seen plus one.
    highest: AtomicU64,
    /// Bytes received that `bytes` does not include: foreign, corrupt and duplicate datagrams.
    discarded: AtomicU64,
    /// UDP receiver: RFC 3550 jitter, 0 if unknown; requester: sum of the latencies of all completed transactions.
    /// Nanoseconds.
    delay_ns: AtomicU64,
    /// Time of the first byte, monotonic nanoseconds; 0 before.
    first_ns: AtomicU64,
    /// Time of the last byte, monotonic nanoseconds; not updated for every byte.
    last_ns: AtomicU64,
    /// Kernel thread id of the stream's thread; 0 before it runs.
    thread: AtomicU32,
    info: InfoRequest,
}

/// Request from the sampler to the stream's thread to read the socket. That thread holds the socket lock most
/// of the time and takes it again before a sampler that waits for it has woken: a reading then costs some fifty context
/// switches, and wake-ups by the sender.
#[derive(Default)]
struct InfoRequest {
    asked: AtomicBool,
    answer: Mutex<Option<SocketState>>,
}

/// Reading of a socket that takes its lock.
pub struct SocketState {
    /// `tcp_info` of the connection, as the kernel wrote it.
    pub info: RawTcpInfo,
    /// Bytes not yet acknowledged (`SIOCOUTQ`).
    pub send_queue: Option<u32>,
}

impl std::fmt::Debug for InfoRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("InfoRequest").field("asked", &self.asked).finish_non_exhaustive()
    }
}

impl Counters {
    /// Sets the calling thread as the stream's thread.
    pub fn adopt_thread(&self) {
        self.thread.store(landspeed_sys::thread::id(), Ordering::Relaxed);
    }

    /// Returns the kernel thread id of the stream's thread.
    pub fn thread(&self) -> Option<u32> {
        Some(self.thread.load(Ordering::Relaxed)).filter(|&id| id != 0)
    }

    /// Requests a [`SocketState`] from the stream's thread.
    pub fn ask_info(&self) {
        self.info.asked.store(true, Ordering::Relaxed);
    }

    /// Returns the thread's answer; `None` if it has not returned from the kernel since the request. Cancels the
    /// request in any case.
    pub fn take_info(&self) -> Option<SocketState> {
        let mut answer = self.info.answer.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        self.info.asked.store(false, Ordering::Relaxed);
        answer.take()
    }

    /// Reads the socket if the sampler requested it. Called by the stream's thread.
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
            let state = |info| SocketState { info, send_queue: socket::send_queue(fd).ok() };
            *answer = socket::tcp_info(fd).ok().map(state);
        }
    }

    /// Publishes the running totals. There is one writer, so plain stores suffice.
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

    /// Publishes the number of bytes received that [`bytes`](Self::bytes) does not include: unknown and duplicate
    /// datagrams.
    #[inline]
    pub fn publish_discarded(&self, bytes: u64) {
        self.discarded.store(bytes, Ordering::Relaxed);
    }

    /// Returns the bytes received that [`bytes`](Self::bytes) does not include.
    pub fn discarded(&self) -> u64 {
        self.discarded.load(Ordering::Relaxed)
    }

    /// Publishes the jitter (UDP receiver) or the sum of latencies (requester), nanoseconds.
    #[inline]
    pub fn publish_delay(&self, delay_ns: u64) {
        self.delay_ns.store(delay_ns, Ordering::Relaxed);
    }

    /// Returns the jitter (UDP receiver) or the sum of latencies (requester), nanoseconds.
    pub fn delay_ns(&self) -> u64 {
        self.delay_ns.load(Ordering::Relaxed)
    }

    /// Returns the highest sequence number seen plus one.
    pub fn highest(&self) -> u64 {
        self.highest.load(Ordering::Relaxed)
    }

    /// Sets the time of the first byte.
    pub fn stamp_first(&self, now_ns: u64) {
        self.first_ns.store(now_ns, Ordering::Relaxed);
    }

    /// Sets the time of the last byte.
    pub fn stamp_last(&self, now_ns: u64) {
        self.last_ns.store(now_ns, Ordering::Relaxed);
    }

    /// Returns the payload bytes so far.
    #[inline]
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Acquire)
    }

    /// Returns the packets or transactions so far.
    pub fn packets(&self) -> u64 {
        self.packets.load(Ordering::Relaxed)
    }

    /// Returns the time of the first byte, monotonic nanoseconds.
    pub fn first_ns(&self) -> Option<u64> {
        Some(self.first_ns.load(Ordering::Relaxed)).filter(|&t| t != 0)
    }

    /// Returns the time of the last byte, monotonic nanoseconds.
    pub fn last_ns(&self) -> Option<u64> {
        Some(self.last_ns.load(Ordering::Relaxed)).filter(|&t| t != 0)
    }
}

/// Stop flags of a test. Senders check [`Stop::sending`], receivers [`Stop::receiving`].
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Stop {
    sending: AtomicBool,
    receiving: AtomicBool,
}

impl Stop {
    /// Stops senders: they send no more data.
    pub fn stop_sending(&self) {
        self.sending.store(true, Ordering::Release);
    }

    /// Stops receivers (the drain deadline passed, or the test was aborted).
    pub fn stop_receiving(&self) {
        self.receiving.store(true, Ordering::Release);
    }

    /// Returns the flag behind [`Stop::sending`], for waits that take a flag.
    pub fn sending_flag(&self) -> &AtomicBool {
        &self.sending
    }

    /// Whether senders must stop.
    #[inline]
    pub fn sending(&self) -> bool {
        self.sending.load(Ordering::Relaxed)
    }

    /// Whether senders must stop; what the thread that stopped them did before is visible.
    pub fn sending_since(&self) -> bool {
        self.sending.load(Ordering::Acquire)
    }

    /// Whether receivers must stop.
    #[inline]
    pub fn receiving(&self) -> bool {
        self.receiving.load(Ordering::Relaxed)
    }
}

/// Bytes that the streams of a direction may still claim (`--bytes`); unlimited if the test is limited by time.
#[derive(Debug)]
pub struct Budget {
    left: Option<AtomicU64>,
}

impl Budget {
    /// Creates a budget of `bytes` over all streams; unlimited if `None`.
    pub fn new(bytes: Option<u64>) -> Self {
        Self { left: bytes.map(AtomicU64::new) }
    }

    /// Claims up to `want` bytes and returns how many the caller must send; 0 if the budget is used up.
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

    /// Returns claimed bytes that could not be sent.
    pub fn release(&self, bytes: u64) {
        if let Some(left) = &self.left {
            left.fetch_add(bytes, Ordering::Relaxed);
        }
    }

    /// Whether the budget is used up.
    pub fn spent(&self) -> bool {
        self.left.as_ref().is_some_and(|left| left.load(Ordering::Relaxed) == 0)
    }
}
