//! Many flows on several cores: one dissects and keeps what the stations sent, and all follow a share of the flows.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use landspeed_trace::{Analysis, Flows, Intake, Limits, Seen};
use landspeed_wire::capture::{Frame, InterfaceStatistics, Sink};

use super::input::Capture;

/// From so many flows on it is worth it: with fewer, handing packets over costs more than following them.
pub const ENOUGH_FLOWS: usize = 512;
/// Packets handed over at once.
const BATCH: usize = 512;
/// Batches on their way to a core at most.
const AHEAD: usize = 4;
/// Packets of the first core's own share handled at once.
const OWN: usize = 64;

/// A batch and how much of it counts.
struct Batch(Vec<Seen>, usize);

impl Batch {
    fn new(size: usize) -> Self {
        Self(vec![Seen::default(); size], 0)
    }

    fn seen(&self) -> &[Seen] {
        &self.0[..self.1]
    }
}

/// Another core, which follows a share of the flows.
struct Worker {
    filling: Batch,
    there: SyncSender<Batch>,
    back: Receiver<Batch>,
}

/// The core that takes the frames. Share 0 of the flows is its own.
struct Dealer {
    intake: Intake,
    workers: Vec<Worker>,
    own: Flows,
    waiting: Batch,
    /// Whose the latest packet was.
    latest: usize,
}

impl Dealer {
    fn batch(&mut self, share: usize) -> &mut Batch {
        match share.checked_sub(1) {
            Some(worker) => &mut self.workers[worker].filling,
            None => &mut self.waiting,
        }
    }

    fn hand_over(&mut self, share: usize) {
        let Some(worker) = share.checked_sub(1) else {
            self.own.batch(self.waiting.seen());
            self.waiting.1 = 0;
            return;
        };
        let worker = &mut self.workers[worker];
        let empty = worker.back.try_recv().unwrap_or_else(|_| Batch::new(BATCH));
        let full = std::mem::replace(&mut worker.filling, empty);
        // A worker that is gone panicked, which the end will say.
        let _ = worker.there.send(full);
    }
}

impl Sink for Dealer {
    fn frame(&mut self, frame: &Frame<'_>) {
        let shares = self.workers.len() + 1;
        // Into the place where the last one went: copying costs as much as dissecting.
        let batch = match self.latest.checked_sub(1) {
            Some(worker) => &mut self.workers[worker].filling,
            None => &mut self.waiting,
        };
        let seen = &mut batch.0[batch.1];
        self.intake.frame(frame, seen);
        let share = seen.share(shares);
        if share != self.latest {
            let seen = *seen;
            let batch = self.batch(share);
            batch.0[batch.1] = seen;
            self.latest = share;
        }
        let batch = self.batch(share);
        batch.1 += 1;
        if batch.1 == batch.0.len() {
            self.hand_over(share);
        }
    }

    fn statistics(&mut self, statistics: InterfaceStatistics) {
        self.intake.statistics(statistics);
    }
}

/// Analyses the rest of a capture on so many cores.
pub fn rest(capture: &mut Capture, analysis: Analysis, limits: Limits, cores: usize) -> anyhow::Result<Analysis> {
    let (intake, mut shares) = analysis.parts(cores);
    let own = shares.remove(0);
    thread::scope(|scope| {
        let (workers, handles): (Vec<_>, Vec<_>) = shares
            .into_iter()
            .map(|mut flows| {
                let (there, batches) = sync_channel::<Batch>(AHEAD);
                let (done, back) = sync_channel(AHEAD + 2);
                let handle = scope.spawn(move || {
                    for mut batch in batches {
                        flows.batch(batch.seen());
                        batch.1 = 0;
                        let _ = done.try_send(batch);
                    }
                    flows
                });
                (Worker { filling: Batch::new(BATCH), there, back }, handle)
            })
            .unzip();
        let mut dealer = Dealer { intake, workers, own, waiting: Batch::new(OWN), latest: 0 };
        let read = (|| {
            while capture.drain(&mut dealer)? {}
            anyhow::Ok(())
        })();
        (0..=dealer.workers.len()).for_each(|share| dealer.hand_over(share));
        let Dealer { intake, workers, own, .. } = dealer;
        drop(workers);
        let mut shares = vec![own];
        for handle in handles {
            shares.push(handle.join().unwrap_or_else(|why| std::panic::resume_unwind(why)));
        }
        read?;
        Ok(Analysis::joined(limits, intake, shares))
    })
}
