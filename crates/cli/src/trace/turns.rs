//! One capture on several cores that take turns: each reads pieces of the file into its cache, and the analysis moves from
//! core to core with the pieces. The analysis is a few KiB; packets stay where they were read, because reading a byte from
//! another core's cache costs as much as reading it from the file.

use std::fs::File;
use std::hint;
use std::io::{Seek as _, SeekFrom};
use std::os::unix::fs::FileExt as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use landspeed_trace::Analysis;

use super::cores::MIN_FLOWS;
use super::input::{Capture, ROOM};

/// Bytes of a piece: it stays in the core's cache until its turn.
const PIECE: usize = 512 << 10;
/// Minimum number of pieces left for taking turns.
const MIN_PIECES: u64 = 4;
/// Spins before a waiting core sleeps.
const SPINS: u32 = 2_000;
/// The turn's number when there are no more turns.
const OVER: u64 = u64::MAX;

/// The state that moves from core to core.
struct Turn<'a> {
    capture: &'a mut Capture,
    analysis: &'a mut Analysis,
    /// Number of pieces done.
    done: u64,
}

/// The turns over a part of a file.
struct Turns<'a> {
    file: File,
    /// Offset of the first piece, bytes.
    begin: u64,
    turn: Mutex<Turn<'a>>,
    next: Condvar,
    /// The piece whose turn it is, or [`OVER`]. Written under the lock only.
    now: AtomicU64,
}

/// Analyses the remainder of a capture file on `cores` cores while it has few flows. The caller reads what is left then: at
/// least the end of the file.
pub fn analyse(capture: &mut Capture, analysis: &mut Analysis, cores: usize) -> anyhow::Result<()> {
    let Some((mut file, begin, end)) = capture.rest_of_file()? else { return Ok(()) };
    if end.saturating_sub(begin) < MIN_PIECES * PIECE as u64 || analysis.live_flows() > MIN_FLOWS {
        return Ok(());
    }
    let turn = Mutex::new(Turn { capture, analysis, done: 0 });
    let turns = Turns { file: file.try_clone()?, begin, turn, next: Condvar::new(), now: AtomicU64::new(0) };
    thread::scope(|scope| {
        let turns = &turns;
        for first in 1..cores {
            scope.spawn(move || turns.take(first, cores));
        }
        turns.take(0, cores);
    });
    let Turn { done, .. } = turns.turn.into_inner().unwrap_or_else(PoisonError::into_inner);
    // The caller continues where the last piece ended.
    file.seek(SeekFrom::Start(begin + done * PIECE as u64))?;
    Ok(())
}

impl<'a> Turns<'a> {
    /// Runs one core: takes every `cores`th piece from `first` on, until the turns end.
    fn take(&self, first: usize, cores: usize) {
        // The turns end for all cores when they end for one, for any reason.
        let _over = Over(self);
        let mut piece = vec![0; ROOM + PIECE];
        for number in (first as u64..).step_by(cores) {
            // The caller reads the end of the file, and reports what cannot be read.
            let complete = self.file.read_exact_at(&mut piece[ROOM..], self.begin + number * PIECE as u64).is_ok();
            let Some(mut turn) = self.wait(number).filter(|_| complete) else { return };
            let Turn { capture, analysis, done } = &mut *turn;
            *done += 1;
            if !capture.feed(&mut piece, *analysis) || analysis.live_flows() > MIN_FLOWS {
                return;
            }
            self.now.store(number + 1, Ordering::Release);
            self.next.notify_all();
        }
    }

    /// Waits for the turn of a piece; `None` when the turns have ended.
    fn wait(&self, number: u64) -> Option<MutexGuard<'_, Turn<'a>>> {
        let waiting = || self.now.load(Ordering::Acquire) < number;
        for _ in 0..SPINS {
            if !waiting() {
                break;
            }
            hint::spin_loop();
        }
        let mut turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        while waiting() {
            turn = self.next.wait(turn).unwrap_or_else(PoisonError::into_inner);
        }
        (self.now.load(Ordering::Acquire) == number).then_some(turn)
    }
}

/// Ends the turns when dropped.
struct Over<'a, 'b>(&'a Turns<'b>);

impl Drop for Over<'_, '_> {
    fn drop(&mut self) {
        let _turn = self.0.turn.lock().unwrap_or_else(PoisonError::into_inner);
        self.0.now.store(OVER, Ordering::Release);
        self.0.next.notify_all();
    }
}
