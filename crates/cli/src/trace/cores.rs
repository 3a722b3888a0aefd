//! One capture on several cores: one reads, dissects and keeps what the stations sent, the others follow the flows.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use landspeed_trace::{Analysis, Flows, Intake, Limits, Seen};
use landspeed_wire::capture::{Frame, InterfaceStatistics, Sink};

use super::input::Capture;

/// Frames handed over at once: a few hundred KiB, which the next core fetches from the cache and not from memory.
const BATCH: usize = 512;
/// Batches on their way to a core at most.
const AHEAD: usize = 4;
/// Frames of the reader's own share handled at once.
const OWN: usize = 64;
/// Shares that flows are dealt out in, and how many of them the reader keeps when there are two cores: following many
/// flows costs more than reading.
const SHARES: usize = 16;
const KEPT_OF_TWO: usize = 6;

/// A batch and how much of it counts.
struct Batch(Vec<Seen>, usize);

impl Batch {
    fn new(size: usize) -> Self {
        Self(vec![Seen::default(); size], 0)
    }

    fn frames(&self) -> &[Seen] {
        &self.0[..self.1]
    }
}

/// A core that follows flows.
struct Worker {
    filling: Batch,
    there: SyncSender<Batch>,
    back: Receiver<Batch>,
}

/// The core that reads.
struct Reader {
    intake: Intake,
    workers: Vec<Worker>,
    /// Its own share of the flows.
    own: Flows,
    waiting: Batch,
    /// Who followed the flow of the last frame; `None` is the reader itself.
    latest: Option<usize>,
    /// Which share the capture's first flow is in: another core's in any case, since it may be the only one.
    first: Option<usize>,
}

impl Reader {
    /// Who follows the flow of this frame.
    fn whose(&mut self, share: usize) -> Option<usize> {
        let first = *self.first.get_or_insert(share);
        let share = (share + SHARES - first) % SHARES;
        match self.workers.len() {
            1 => (share < SHARES - KEPT_OF_TWO).then_some(0),
            workers => Some(share * workers / SHARES),
        }
    }

    fn batch(&mut self, whose: Option<usize>) -> &mut Batch {
        match whose {
            Some(worker) => &mut self.workers[worker].filling,
            None => &mut self.waiting,
        }
    }

    fn hand_over(&mut self, to: usize) {
        let worker = &mut self.workers[to];
        let empty = worker.back.try_recv().unwrap_or_else(|_| Batch::new(BATCH));
        let full = std::mem::replace(&mut worker.filling, empty);
        // A worker that is gone panicked, which the end will say.
        let _ = worker.there.send(full);
    }

    fn follow(&mut self) {
        self.own.batch(self.waiting.frames());
        self.waiting.1 = 0;
    }
}

impl Sink for Reader {
    fn frame(&mut self, frame: &Frame<'_>) {
        // Into the place where the last one went: copying costs as much as dissecting.
        let latest = match self.latest {
            Some(worker) => &mut self.workers[worker].filling,
            None => &mut self.waiting,
        };
        let seen = &mut latest.0[latest.1];
        self.intake.frame(frame, seen);
        let share = seen.share(SHARES);
        let whose = self.whose(share);
        if whose != self.latest {
            let batch = self.batch(self.latest);
            let seen = batch.0[batch.1];
            let batch = self.batch(whose);
            batch.0[batch.1] = seen;
            self.latest = whose;
        }
        let batch = self.batch(whose);
        batch.1 += 1;
        if batch.1 == batch.0.len() {
            match whose {
                Some(worker) => self.hand_over(worker),
                None => self.follow(),
            }
        }
    }

    fn statistics(&mut self, statistics: InterfaceStatistics) {
        self.intake.statistics(statistics);
    }
}

/// Analyses a whole capture on so many cores, two at the least.
pub fn analyse(capture: &mut Capture, limits: Limits, cores: usize) -> anyhow::Result<Analysis> {
    let (intake, mut shares) = Analysis::parts(limits, cores);
    let own = shares.pop().unwrap_or_else(|| unreachable!("there is a share for every core"));
    thread::scope(|scope| {
        let (workers, handles): (Vec<_>, Vec<_>) = shares
            .into_iter()
            .map(|mut flows| {
                let (there, batches) = sync_channel::<Batch>(AHEAD);
                let (done, back) = sync_channel(AHEAD + 2);
                let handle = scope.spawn(move || {
                    for mut batch in batches {
                        flows.batch(batch.frames());
                        batch.1 = 0;
                        // The reader may have ended and not want it any more.
                        let _ = done.try_send(batch);
                    }
                    flows
                });
                (Worker { filling: Batch::new(BATCH), there, back }, handle)
            })
            .unzip();
        let waiting = Batch::new(OWN);
        let mut reader = Reader { intake, workers, own, waiting, latest: Some(0), first: None };
        let read = (|| {
            while capture.drain(&mut reader)? {}
            anyhow::Ok(())
        })();
        (0..reader.workers.len()).for_each(|worker| reader.hand_over(worker));
        reader.follow();
        let Reader { intake, workers, own, .. } = reader;
        drop(workers);
        let mut shares: Vec<Flows> = handles
            .into_iter()
            .map(|handle| handle.join().unwrap_or_else(|why| std::panic::resume_unwind(why)))
            .collect();
        shares.push(own);
        read?;
        Ok(Analysis::joined(limits, intake, shares))
    })
}
