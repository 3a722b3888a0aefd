//! Runs cells in parallel, each in its own guest.

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, PoisonError};

use landspeed_lab::boot::Core;
use landspeed_lab::cell::{self, PreparedCell, SharedSettings};
use landspeed_lab::kernel::{Cache, Error, Kernel};
use landspeed_model::LabDocument;

use crate::progress::Progress;
use crate::verdicts;

/// Source of cells and sink of their documents; shared by all workers.
pub trait Cells: Sync {
    /// Identifies a cell's document.
    type Name: Send;
    /// Returns the next cell; `None` ends the worker.
    fn next(&self, board: &Mutex<dyn Progress>) -> Option<(Self::Name, PreparedCell)>;
    /// Receives the document of a completed cell, with verdicts.
    fn done(&self, name: Self::Name, document: LabDocument);
}

/// Runs cells, `jobs` at a time, until none is left. An interrupt also ends running cells.
pub fn run(
    cells: &impl Cells,
    jobs: usize,
    setting: &SharedSettings<'_>,
    interrupted: &AtomicBool,
    board: &Mutex<dyn Progress>,
) {
    std::thread::scope(|scope| {
        for worker in 0..jobs {
            scope.spawn(move || {
                // Claimed until the worker ends. If no core is free, the scheduler places the guest.
                let core = Core::claim();
                core.iter().for_each(Core::pin_thread);
                while let Some((name, cell)) = cells.next(board) {
                    cells.done(name, run_here(worker, cell, setting, interrupted, board));
                }
            });
        }
    });
}

/// Runs a cell in this thread.
fn run_here(
    worker: usize,
    cell: PreparedCell,
    setting: &SharedSettings<'_>,
    interrupted: &AtomicBool,
    board: &Mutex<dyn Progress>,
) -> LabDocument {
    lock(board).begin(worker, span_ns(&cell));
    let lead_ns = cell.plan.lead_ns;
    let mut document = cell::run(cell, setting, interrupted, &mut |progress, _| {
        let passed_ns = progress.t_ns.saturating_add_unsigned(lead_ns).max(0) as u64;
        lock(board).show(worker, passed_ns, progress.arrived_bytes);
    });
    verdicts::add(&mut document);
    lock(board).end(worker);
    document
}

/// Returns a cell's virtual time, nanoseconds.
pub fn span_ns(cell: &PreparedCell) -> u64 {
    cell.plan.span_ns + cell.plan.lead_ns
}

/// Runs one cell. Returns its document, with verdicts.
pub fn run_one(
    cell: PreparedCell,
    setting: &SharedSettings<'_>,
    interrupted: &AtomicBool,
    board: &Mutex<dyn Progress>,
) -> LabDocument {
    std::thread::scope(|scope| {
        let made = scope.spawn(|| {
            let core = Core::claim();
            core.iter().for_each(Core::pin_thread);
            run_here(0, cell, setting, interrupted, board)
        });
        made.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Locks a mutex even if it is poisoned: that only means that a worker panicked while it drew.
pub fn lock<T: ?Sized>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Kernels by the names used in scenarios and options; caches lookups.
pub struct Kernels {
    cache: Cache,
    found: Vec<(Option<String>, Kernel)>,
}

impl Kernels {
    /// Opens the kernel cache at `cache`, or the default one.
    pub fn open(cache: Option<&Path>) -> Result<Self, Error> {
        Ok(Self { cache: Cache::open(cache)?, found: Vec::new() })
    }

    /// Returns the kernel with this id or release; the newest for `None`.
    pub fn find(&mut self, name: Option<&str>) -> Result<Kernel, Error> {
        if let Some((_, kernel)) = self.found.iter().find(|(known, _)| known.as_deref() == name) {
            return Ok(kernel.clone());
        }
        let kernel = self.cache.find_trusted(name)?;
        self.found.push((name.map(str::to_owned), kernel.clone()));
        Ok(kernel)
    }
}
