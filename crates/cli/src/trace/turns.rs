//! One capture on several cores that take turns: each reads a piece of the file by itself, and the analysis goes from core to
//! core, piece by piece. What is handed over is the analysis, a few KiB, and not the packets: reading a byte that another core
//! has read costs as much as reading it from the file.

use std::fs::File;
use std::hint;
use std::io::{Seek as _, SeekFrom};
use std::os::unix::fs::FileExt as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use landspeed_trace::Analysis;

use super::cores::ENOUGH_FLOWS;
use super::input::{Capture, ROOM};

/// Bytes read at once: they stay in the core's cache until its turn comes.
const PIECE: usize = 512 << 10;
/// With less than this many pieces left nothing is gained.
const ENOUGH_PIECES: u64 = 4;
/// Looks at whose turn it is before a core goes to sleep.
const PATIENCE: u32 = 2_000;
/// The number of the turn when there are no more.
const OVER: u64 = u64::MAX;

/// What goes from core to core.
struct Turn<'a> {
    capture: &'a mut Capture,
    analysis: &'a mut Analysis,
    /// Pieces done.
    done: u64,
}

/// The turns at a part of a file.
struct Turns<'a> {
    file: File,
    /// Where the first piece begins.
    begin: u64,
    turn: Mutex<Turn<'a>>,
    next: Condvar,
    /// The piece whose turn it is, or [`OVER`]. It changes under the lock only.
    now: AtomicU64,
}

/// Analyses on so many cores what a capture in a file still has, as long as it has few flows. What is left then, the end of the
/// file at least, is for the usual way.
pub fn some(capture: &mut Capture, analysis: &mut Analysis, cores: usize) -> anyhow::Result<()> {
    let Some((mut file, begin, end)) = capture.rest_of_file()? else { return Ok(()) };
    if end.saturating_sub(begin) < ENOUGH_PIECES * PIECE as u64 || analysis.live_flows() > ENOUGH_FLOWS {
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
    // The usual way reads on where the last piece ended.
    file.seek(SeekFrom::Start(begin + done * PIECE as u64))?;
    Ok(())
}

impl<'a> Turns<'a> {
    /// What one core does: one of so many pieces, from a first one on, until it is over.
    fn take(&self, first: usize, cores: usize) {
        // It is over for all when it is for one, whatever the reason.
        let _over = Over(self);
        let mut piece = vec![0; ROOM + PIECE];
        for number in (first as u64..).step_by(cores) {
            // The end of the file is for the usual way, and so is what cannot be read.
            let whole = self.file.read_exact_at(&mut piece[ROOM..], self.begin + number * PIECE as u64).is_ok();
            let Some(mut turn) = self.wait(number).filter(|_| whole) else { return };
            let Turn { capture, analysis, done } = &mut *turn;
            *done += 1;
            if !capture.feed(&mut piece, *analysis) || analysis.live_flows() > ENOUGH_FLOWS {
                return;
            }
            self.now.store(number + 1, Ordering::Release);
            self.next.notify_all();
        }
    }

    /// Waits for the turn of a piece; `None` when it is over.
    fn wait(&self, number: u64) -> Option<MutexGuard<'_, Turn<'a>>> {
        let waiting = || self.now.load(Ordering::Acquire) < number;
        for _ in 0..PATIENCE {
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

/// Ends the turns when it goes.
struct Over<'a, 'b>(&'a Turns<'b>);

impl Drop for Over<'_, '_> {
    fn drop(&mut self) {
        let _turn = self.0.turn.lock().unwrap_or_else(PoisonError::into_inner);
        self.0.now.store(OVER, Ordering::Release);
        self.0.next.notify_all();
    }
}
