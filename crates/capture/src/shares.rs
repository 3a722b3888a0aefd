//! Analysis on several cores: one core dissects frames and tracks stations, and each core follows a share of
//! the flows.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use landspeed_trace::{Analysis, Flows, Intake, Limits, ParsedFrame};
use landspeed_wire::capture::{Frame, InterfaceStatistics, Sink};

use crate::{Capture, ReadError};

/// Minimum number of flows for sharing: with fewer, handing packets over costs more than following them.
const MIN_FLOWS: usize = 512;
/// Packets in a batch.
const BATCH: usize = 512;
/// Maximum number of batches queued for a core.
const QUEUED_BATCHES: usize = 4;
/// Packets in a batch of the first core's own share.
const OWN_BATCH: usize = 64;

/// A batch of packets, and the number of valid ones.
struct Batch(Vec<ParsedFrame>, usize);

impl Batch {
    fn new(size: usize) -> Self {
        Self(vec![ParsedFrame::default(); size], 0)
    }

    fn seen(&self) -> &[ParsedFrame] {
        &self.0[..self.1]
    }
}

/// A thread on another core, which follows its share of the flows.
struct Worker {
    filling: Batch,
    full: SyncSender<Batch>,
    empty: Receiver<Batch>,
}

/// The core that dissects the frames. It follows share 0 of the flows itself.
struct FrameDistributor {
    intake: Intake,
    workers: Vec<Worker>,
    own: Flows,
    waiting: Batch,
    /// Share of the latest packet.
    latest: usize,
}

impl FrameDistributor {
    fn batch(&mut self, share: usize) -> &mut Batch {
        match share.checked_sub(1) {
            Some(worker) => &mut self.workers[worker].filling,
            None => &mut self.waiting,
        }
    }

    fn send_batch(&mut self, share: usize) {
        let Some(worker) = share.checked_sub(1) else {
            self.own.batch(self.waiting.seen());
            self.waiting.1 = 0;
            return;
        };
        let worker = &mut self.workers[worker];
        let empty = worker.empty.try_recv().unwrap_or_else(|_| Batch::new(BATCH));
        let full = std::mem::replace(&mut worker.filling, empty);
        // A worker that has exited has panicked; joining it reports that.
        let _ = worker.full.send(full);
    }
}

impl Sink for FrameDistributor {
    fn frame(&mut self, frame: &Frame<'_>) {
        let shares = self.workers.len() + 1;
        // Guess the share of the latest packet: copying a packet costs as much as dissecting it.
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
            self.send_batch(share);
        }
    }

    fn skipped(&mut self) {
        self.intake.skip();
    }

    fn statistics(&mut self, statistics: InterfaceStatistics) {
        self.intake.statistics(statistics);
    }
}

/// Analyses a capture to its end on at most `cores` cores: several share the flows while there are many.
///
/// # Errors
/// If the capture cannot be read; what was analysed is lost.
pub fn analyse(
    capture: &mut Capture,
    mut analysis: Analysis,
    limits: Limits,
    cores: usize,
) -> Result<Analysis, ReadError> {
    while capture.drain(&mut analysis)? {
        if cores > 1 && analysis.live_flows() > MIN_FLOWS {
            return analyse_rest(capture, analysis, limits, cores);
        }
    }
    Ok(analysis)
}

/// Analyses the remainder of a capture on `cores` cores.
fn analyse_rest(
    capture: &mut Capture,
    analysis: Analysis,
    limits: Limits,
    cores: usize,
) -> Result<Analysis, ReadError> {
    let (intake, mut shares) = analysis.parts(cores);
    let own = shares.remove(0);
    thread::scope(|scope| {
        let (workers, handles): (Vec<_>, Vec<_>) = shares
            .into_iter()
            .map(|mut flows| {
                let (full, batches) = sync_channel::<Batch>(QUEUED_BATCHES);
                let (done, empty) = sync_channel(QUEUED_BATCHES + 2);
                let handle = scope.spawn(move || {
                    for mut batch in batches {
                        flows.batch(batch.seen());
                        batch.1 = 0;
                        let _ = done.try_send(batch);
                    }
                    flows
                });
                (Worker { filling: Batch::new(BATCH), full, empty }, handle)
            })
            .unzip();
        let mut distributor = FrameDistributor { intake, workers, own, waiting: Batch::new(OWN_BATCH), latest: 0 };
        let read = (|| -> Result<(), ReadError> {
            while capture.drain(&mut distributor)? {}
            Ok(())
        })();
        (0..=distributor.workers.len()).for_each(|share| distributor.send_batch(share));
        let FrameDistributor { intake, workers, own, .. } = distributor;
        drop(workers);
        let mut shares = vec![own];
        for handle in handles {
            shares.push(handle.join().unwrap_or_else(|why| std::panic::resume_unwind(why)));
        }
        read?;
        Ok(Analysis::joined(limits, intake, shares))
    })
}
