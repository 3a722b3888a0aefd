//! Send loops, one for each method of passing data to the kernel.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use landspeed_model::{SendMode, ZeroCopyUse};
use landspeed_stats::SplitMix64;
use landspeed_sys::payload::{Buffer, RepeatedBuffer};
use landspeed_sys::{clock, socket};

use super::is_tick;
use crate::call_cost;
use crate::shared::{Budget, Counters, Stop};

/// Outstanding `MSG_ZEROCOPY` sends at which the loop waits for completions.
const ZEROCOPY_IN_FLIGHT: u64 = 256;
/// Maximum length of a scheduled chunk at the application's rate, nanoseconds.
const CHUNK_NS: u64 = 1_000_000;

/// Plan of a sender.
#[derive(Debug, Clone)]
pub struct SendPlan {
    /// Method of passing data to the kernel.
    pub mode: SendMode,
    /// Bytes per write.
    pub write_bytes: usize,
    /// Start time, monotonic nanoseconds.
    pub start_ns: u64,
    /// Payload rate limit, bytes/s.
    pub rate_bytes_per_s: Option<u64>,
    /// Block length, bytes: a block that was started is completed, even after the end of the time or the budget.
    pub block_bytes: Option<u64>,
}

/// Outcome of a sender.
#[derive(Debug, Default)]
pub struct SendOutcome {
    /// Payload bytes the kernel accepted.
    pub bytes: u64,
    /// Number of data system calls.
    pub syscalls: u64,
    /// Time spent waiting for its own schedule, nanoseconds.
    pub app_wait_ns: u64,
    /// Completions of `MSG_ZEROCOPY` sends.
    pub zerocopy: Option<ZeroCopyUse>,
    /// Error that ended it early.
    pub error: Option<io::Error>,
}

/// Sends until a stop, the end of the budget or an error of the connection. Leaves the socket open, so that
/// unsent data in the kernel can be counted.
pub fn send_stream(
    fd: BorrowedFd<'_>,
    plan: &SendPlan,
    counters: &Counters,
    stop: &Stop,
    budget: &Budget,
) -> SendOutcome {
    let mut outcome = SendOutcome::default();
    let result = Writer::new(fd, plan).and_then(|mut writer| {
        clock::sleep_until(plan.start_ns);
        drive(fd, &mut writer, plan, counters, stop, budget, &mut outcome)?;
        finish_block(&mut writer, plan, counters, stop, &mut outcome)?;
        writer.finish(stop, &mut outcome)
    });
    outcome.error = result.err();
    counters.stamp_last(clock::monotonic_ns());
    outcome
}

fn drive(
    fd: BorrowedFd<'_>,
    writer: &mut Writer<'_>,
    plan: &SendPlan,
    counters: &Counters,
    stop: &Stop,
    budget: &Budget,
    outcome: &mut SendOutcome,
) -> io::Result<()> {
    let mut schedule = plan.rate_bytes_per_s.map(|rate| Schedule::new(rate, plan.start_ns, plan.write_bytes));
    let most = schedule.as_ref().map_or(plan.write_bytes as u64, |s| s.chunk_bytes);
    while !stop.sending() {
        if let Some(schedule) = &mut schedule
            && !schedule.wait(outcome, stop)
        {
            break;
        }
        let mut chunk = budget.claim(most);
        if chunk == 0 {
            break;
        }
        while chunk > 0 && !stop.sending() {
            outcome.syscalls += 1;
            match writer.write(chunk as usize, outcome) {
                Ok(n) => {
                    if outcome.bytes == 0 {
                        counters.stamp_first(clock::monotonic_ns());
                    }
                    outcome.bytes += n as u64;
                    chunk -= n as u64;
                    counters.publish(outcome.bytes, 0);
                    counters.answer_info(fd);
                    call_cost::charge(n as u64, 0);
                }
                Err(error) if is_tick(&error) => {}
                Err(error) => {
                    budget.release(chunk);
                    return Err(error);
                }
            }
        }
        budget.release(chunk);
    }
    Ok(())
}

/// Completes the current block: iperf3 counts whole blocks only.
fn finish_block(
    writer: &mut Writer<'_>,
    plan: &SendPlan,
    counters: &Counters,
    stop: &Stop,
    outcome: &mut SendOutcome,
) -> io::Result<()> {
    let Some(block) = plan.block_bytes else { return Ok(()) };
    while !outcome.bytes.is_multiple_of(block) && !stop.receiving() {
        outcome.syscalls += 1;
        match writer.write((block - outcome.bytes % block) as usize, outcome) {
            Ok(n) => {
                outcome.bytes += n as u64;
                counters.publish(outcome.bytes, 0);
            }
            Err(error) if is_tick(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Returns the bytes of a write at the application's rate: 1 ms of it, at least a segment, at most `write_bytes`.
pub fn chunk_bytes(rate_bytes_per_s: u64, write_bytes: u64) -> u64 {
    let per_chunk = (u128::from(rate_bytes_per_s) * u128::from(CHUNK_NS) / 1_000_000_000) as u64;
    per_chunk.clamp(1448.min(write_bytes), write_bytes)
}

/// Schedule of an application-limited sender: chunk `i` is due at `start + i × chunk / rate`. After a stall it
/// catches up at most 10 ms or ten chunks, whichever is longer; beyond that the schedule slips.
struct Schedule {
    rate: u64,
    chunk_bytes: u64,
    due_ns: u64,
}

impl Schedule {
    fn new(rate_bytes_per_s: u64, start_ns: u64, write_bytes: usize) -> Self {
        let rate = rate_bytes_per_s.max(1);
        Self { rate, chunk_bytes: chunk_bytes(rate, write_bytes as u64), due_ns: start_ns }
    }

    /// Waits until the next chunk is due; false on a stop.
    fn wait(&mut self, outcome: &mut SendOutcome, stop: &Stop) -> bool {
        let step = (u128::from(self.chunk_bytes) * 1_000_000_000 / u128::from(self.rate)) as u64;
        let mut now = clock::monotonic_ns();
        while now < self.due_ns {
            let until = self.due_ns.min(now + super::TICK_MS * 1_000_000);
            clock::sleep_until(until);
            let after = clock::monotonic_ns();
            outcome.app_wait_ns += after - now;
            now = after;
            if stop.sending() {
                return false;
            }
        }
        self.due_ns = (self.due_ns + step).max(now.saturating_sub(10 * step.max(CHUNK_NS)));
        true
    }
}

/// Methods of passing data to the kernel.
enum Writer<'a> {
    Copy { fd: BorrowedFd<'a>, block: RepeatedBuffer },
    Sendfile { fd: BorrowedFd<'a>, file: std::fs::File, len: usize },
    Splice { fd: BorrowedFd<'a>, buffer: Buffer, pipe: Pipe },
    Zerocopy { fd: BorrowedFd<'a>, buffer: Buffer, sends: u64, done: socket::Completions, enobufs: u64 },
}

struct Pipe {
    read: std::os::fd::OwnedFd,
    write: std::os::fd::OwnedFd,
    capacity: usize,
    buffered: usize,
}

impl<'a> Writer<'a> {
    fn new(fd: BorrowedFd<'a>, plan: &SendPlan) -> io::Result<Self> {
        let buffer = || {
            let mut buffer = Buffer::new(plan.write_bytes)?;
            SplitMix64::default().fill(buffer.as_mut_slice());
            Ok::<_, io::Error>(buffer)
        };
        Ok(match plan.mode {
            SendMode::Copy => {
                let mut block = RepeatedBuffer::new(plan.write_bytes)?;
                SplitMix64::default().fill(block.as_mut_slice());
                Self::Copy { fd, block }
            }
            SendMode::Sendfile => {
                let pattern = SplitMix64::padding(64 * 1024);
                Self::Sendfile { fd, file: socket::memory_file(plan.write_bytes, &pattern)?, len: plan.write_bytes }
            }
            SendMode::Splice => {
                let (read, write, capacity) = socket::pipe(plan.write_bytes)?;
                Self::Splice { fd, buffer: buffer()?, pipe: Pipe { read, write, capacity, buffered: 0 } }
            }
            SendMode::Zerocopy => {
                socket::allow_zerocopy(fd)?;
                let done = socket::Completions::default();
                Self::Zerocopy { fd, buffer: buffer()?, sends: 0, done, enobufs: 0 }
            }
        })
    }

    /// Passes at most `want` bytes to the kernel; returns how many it accepted.
    #[inline]
    fn write(&mut self, want: usize, outcome: &mut SendOutcome) -> io::Result<usize> {
        match self {
            Self::Copy { fd, block } => block.send(*fd, want),
            Self::Sendfile { fd, file, len } => socket::send_file(*fd, file.as_fd(), 0, want.min(*len)),
            Self::Splice { fd, buffer, pipe } => {
                if pipe.buffered == 0 {
                    let data = buffer.as_slice();
                    outcome.syscalls += 1;
                    pipe.buffered =
                        socket::vmsplice(pipe.write.as_fd(), &data[..want.min(pipe.capacity).min(data.len())])?;
                }
                let n = socket::splice_to(pipe.read.as_fd(), *fd, pipe.buffered.min(want), false)?;
                pipe.buffered -= n;
                Ok(n)
            }
            Self::Zerocopy { fd, buffer, sends, done, enobufs } => {
                if *sends - done.completed >= ZEROCOPY_IN_FLIGHT {
                    outcome.syscalls += 1;
                    socket::reap_completions(*fd, done)?;
                    if *sends - done.completed >= ZEROCOPY_IN_FLIGHT {
                        socket::wait(*fd, socket::Readiness::Error, super::TICK_MS as u32)?;
                        return Err(io::ErrorKind::WouldBlock.into());
                    }
                }
                let data = &buffer.as_slice()[..want.min(buffer.as_slice().len())];
                match socket::send_zerocopy(*fd, data) {
                    Ok(n) => {
                        *sends += 1;
                        Ok(n)
                    }
                    Err(error) if error.raw_os_error() == Some(ENOBUFS) => {
                        // The socket's option memory is full of completions: reap them and send this one by copying.
                        *enobufs += 1;
                        outcome.syscalls += 2;
                        socket::reap_completions(*fd, done)?;
                        socket::send(*fd, data, 0)
                    }
                    Err(error) => Err(error),
                }
            }
        }
    }

    /// Waits for outstanding completions while the peer still acknowledges.
    fn finish(&mut self, stop: &Stop, outcome: &mut SendOutcome) -> io::Result<()> {
        if let Self::Zerocopy { fd, sends, done, enobufs, .. } = self {
            while *sends > done.completed && !stop.receiving() {
                outcome.syscalls += 1;
                socket::reap_completions(*fd, done)?;
                if *sends > done.completed {
                    socket::wait(*fd, socket::Readiness::Error, super::TICK_MS as u32)?;
                }
            }
            outcome.zerocopy =
                Some(ZeroCopyUse { completions: done.completed, copied: done.copied, enobufs: *enobufs });
        }
        Ok(())
    }
}

const ENOBUFS: i32 = 105;
