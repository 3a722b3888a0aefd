//! One cell from scenario to document.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use landspeed_model::{ErrorEntry, KernelInfo, LabDocument, ScenarioInfo, Warning};

use crate::boot::{self, Boot, BootError};
use crate::guest::Progress;
use crate::kernel::{Features, Kernel};
use crate::outcome::{self, DocumentHeader};
use crate::plan::{self, Plan};
use crate::program;
use crate::scenario::{Cell, DEFAULT_REAL_TIME_NS, Scenario, estimate};

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
    real_time_limit_ns: Option<u64>,
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
    check_features(&plan, kernel, &kernel.features().map_err(|error| error.to_string())?)?;
    program::resolve(&mut plan)?;
    let memory_bytes = estimate(&cell.scenario).memory_bytes;
    let limit_ns = cell.scenario.real_time_limit.map_or(DEFAULT_REAL_TIME_NS, |limit| limit.0.get());
    let real_time_limit_ns = (!plan.programs.is_empty()).then_some(limit_ns);
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
    Ok(PreparedCell { plan, memory_bytes, frame, kernel: kernel.clone(), real_time_limit_ns })
}

/// Checks that a kernel with these features has what a scenario needs: its queueing disciplines and congestion controls.
///
/// # Errors
/// Returns why the scenario cannot run, and what to do.
pub fn check_kernel(scenario: &Scenario, kernel: &Kernel, features: &Features) -> Result<(), String> {
    let plan = plan::plan(scenario, &[]).map_err(|error| error.to_string())?;
    check_features(&plan, kernel, features)
}

fn check_features(plan: &Plan, kernel: &Kernel, features: &Features) -> Result<(), String> {
    let wanted = plan.features();
    let missing = features.missing(&wanted);
    if missing.is_empty() {
        return Ok(());
    }
    Err(format!(
        "cannot run on kernel {} ({}): it lacks {}, which the scenario needs\nBuild another one: landspeed lab kernel build",
        kernel.release,
        kernel.id,
        missing.join(", ")
    ))
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
    let PreparedCell { plan, memory_bytes, frame, kernel, real_time_limit_ns } = ready;
    let boot = Boot {
        kernel: &kernel.executable,
        program: setting.program,
        arguments: setting.arguments,
        plan: &plan,
        memory_bytes,
        keep: setting.keep,
        real_time_limit_ns,
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
        BootError::RealTimeLimit { .. } => (
            "real-time-limit",
            Some(
                "A program that computes or waits in a loop without sleeping takes no virtual time, nor does data between programs of \
                 one host; raise `real-time-limit` if it only needs longer.",
            ),
        ),
        BootError::Interrupted => ("interrupted", None),
    };
    ErrorEntry { code: code.to_owned(), message: error.to_string(), advice: advice.map(str::to_owned) }
}

#[cfg(test)]
mod tests {
    use crate::kernel::Features;
    use crate::{plan, scenario};

    #[test]
    fn kernels_need_the_congestion_controls_of_hosts_and_flows() {
        let text = "name = \"n\"\n[hosts]\ncongestion = \"highspeed\"\n[host.a]\n[host.b]\ncongestion = \"reno\"\n[[link]]\n\
                    between = [\"a\", \"b\"]\nrate = \"1G\"\n[[flow]]\nfrom = \"a\"\nto = \"b\"\ncongestion = \"htpc\"\n";
        let cells = scenario::read(text).unwrap_or_else(|problems| panic!("{problems}"));
        let wanted = plan::plan(&cells[0].scenario, &[]).expect("a plan").features();
        let missing = Features::parse("CONFIG_TCP_CONG_HSTCP=y\nCONFIG_NET_SCH_FQ=y\n");
        assert_eq!(missing.missing(&wanted), ["CONFIG_TCP_CONG_HTPC"], "{wanted:?}");
        assert!(wanted.contains(&"CONFIG_TCP_CONG_HSTCP".to_owned()), "{wanted:?}");
    }
}
