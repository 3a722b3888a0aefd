//! One cell from scenario to document.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use landspeed_model::{ErrorEntry, KernelInfo, LabDocument, ScenarioInfo, Warning};

use crate::boot::{self, Boot, BootError};
use crate::guest::Progress;
use crate::kernel::Kernel;
use crate::outcome::{self, DocumentHeader};
use crate::plan::{self, Plan};
use crate::scenario::{Cell, estimate};

/// Code of the warning that there are too few runs for a spread.
pub const ONE_DRAW: &str = "one-draw";
/// Minimum number of repeats for a spread.
pub const MIN_REPEATS: u32 = 3;

/// Settings that all cells of a scenario share.
#[derive(Debug, Clone)]
pub struct SharedSettings<'a> {
    /// Program that becomes the guest's init, as bytes.
    pub program: &'a [u8],
    /// Arguments of the program.
    pub arguments: &'a [&'a str],
    /// Capture points, as `NODE:NEIGHBOUR`.
    pub captures: &'a [String],
    /// Directory for captures.
    pub keep: &'a Path,
    /// The scenario file's text.
    pub text: &'a str,
    /// Warnings about the scenario.
    pub warnings: &'a [Warning],
    /// Start time, RFC 3339 UTC.
    pub started: &'a str,
    /// Command line, for the document.
    pub command: &'a [String],
}

/// A cell that is ready to boot.
#[derive(Debug, Clone)]
pub struct PreparedCell {
    /// The network and the flows.
    pub plan: Plan,
    /// The guest's memory, bytes.
    pub memory_bytes: u64,
    frame: DocumentHeader,
    kernel: Kernel,
}

/// Plans a cell and checks that the kernel can run it.
///
/// # Errors
/// Returns why the cell cannot run, and what to do.
pub fn prepare(cell: &Cell, kernel: &Kernel, setting: &SharedSettings<'_>) -> Result<PreparedCell, String> {
    let mut plan = plan::plan(&cell.scenario, setting.captures).map_err(|error| error.to_string())?;
    if kernel.has_exact_links() {
        plan.use_exact_links();
    }
    let features = kernel.features().map_err(|error| error.to_string())?;
    let missing = features.missing(&plan.features());
    if !missing.is_empty() {
        return Err(format!(
            "cannot run on kernel {} ({}): it lacks {}, which the scenario needs\nBuild another one: landspeed lab kernel build",
            kernel.release,
            kernel.id,
            missing.join(", ")
        ));
    }
    let memory_bytes = estimate(&cell.scenario).memory_bytes;
    let frame = DocumentHeader {
        started: setting.started.to_owned(),
        command: setting.command.to_vec(),
        scenario: ScenarioInfo {
            name: cell.scenario.name.clone(),
            description: cell.scenario.description.clone(),
            hash: cell.hash.clone(),
            text: setting.text.to_owned(),
            cell: cell.values.clone(),
            reference: cell.scenario.reference.clone(),
        },
        seed: cell.seed,
        kernel: KernelInfo {
            release: kernel.release.clone(),
            build_id: kernel.id.clone(),
            source: kernel.source.to_string(),
        },
        memory_bytes,
        warnings: setting.warnings.iter().cloned().chain(one_draw(cell.repeats, cell.seed)).collect(),
    };
    Ok(PreparedCell { plan, memory_bytes, frame, kernel: kernel.clone() })
}

/// Returns the warning that a single run has no spread.
pub fn one_draw(repeats: u32, seed: u64) -> Option<Warning> {
    (repeats < MIN_REPEATS).then(|| Warning {
        code: ONE_DRAW.to_owned(),
        message: format!(
            "one run (seed {seed}): set repeats = {MIN_REPEATS} and start-spread to see the spread between runs"
        ),
    })
}

/// Boots a cell and returns its document. A failed boot is an error in the document.
pub fn run(
    ready: PreparedCell,
    setting: &SharedSettings<'_>,
    interrupted: &AtomicBool,
    observe: &mut dyn FnMut(&Progress, u64),
) -> LabDocument {
    let PreparedCell { plan, memory_bytes, frame, kernel } = ready;
    let boot = Boot {
        kernel: &kernel.executable,
        program: setting.program,
        arguments: setting.arguments,
        plan: &plan,
        memory_bytes,
        keep: setting.keep,
    };
    match boot::run(&boot, interrupted, observe) {
        Ok(booted) => outcome::document(frame, &plan, booted),
        Err(error) => outcome::failed(frame, vec![entry(&error)]),
    }
}

fn entry(error: &BootError) -> ErrorEntry {
    let (code, advice) = match error {
        BootError::MemoryDirectory(_) => ("no-place", None),
        BootError::Io { .. } => ("io", None),
        BootError::Guest(_) => ("guest-gave-up", None),
        BootError::Crashed { .. } => {
            ("guest-crashed", Some("raise `memory` in the scenario if the console says out of memory"))
        }
        BootError::Stuck { .. } => ("guest-stuck", None),
        BootError::Interrupted => ("interrupted", None),
    };
    ErrorEntry { code: code.to_owned(), message: error.to_string(), advice: advice.map(str::to_owned) }
}
