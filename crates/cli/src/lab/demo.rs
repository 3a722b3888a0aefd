//! Runs the lab scene of `landspeed demo`.

use std::sync::atomic::Ordering;

use anyhow::{Context as _, anyhow, ensure};
use landspeed_lab::kernel::{self, Cache, Error};
use landspeed_lab::scenario;
use landspeed_model::LabSetDocument;
use landspeed_sys::process;

use super::kernel::View;
use super::run::{self, CostEstimate, Options};
use super::set;

/// Scenario of the demo: one path with a small and a large buffer.
const SCENARIO: &str = include_str!("demo.toml");

/// Rate of the path's slowest link in [`SCENARIO`], bits/s.
pub const LINK_BPS: f64 = 1e9;

/// Whether the scenario can run.
pub enum Readiness {
    /// A kernel is available.
    Ready,
    /// No kernel is available, with the reason.
    Unavailable(String),
}

/// Looks for a kernel. With `build`, builds one if none exists: several minutes, with progress on standard error.
pub fn kernel(build: bool) -> anyhow::Result<Readiness> {
    let cache = Cache::open(None)?;
    let missing = match cache.find(None) {
        Ok(_) => return Ok(Readiness::Ready),
        Err(error @ Error::NotFound { .. }) => error,
        Err(error) => return Err(error.into()),
    };
    if !build {
        return Ok(Readiness::Unavailable(missing.to_string()));
    }
    let mut view = View::new();
    let request = kernel::Request { mirror: super::kernel::mirror(), ..kernel::Request::default() };
    let result = kernel::build(&cache, &request, process::catch_interrupts(), &mut |event| view.show(&event));
    view.clear();
    Ok(match result {
        Ok(_) => Readiness::Ready,
        Err(error) => Readiness::Unavailable(error.to_string()),
    })
}

/// Results of the demo's cells.
pub struct Cells {
    /// Figures of the cells.
    pub set: LabSetDocument,
    /// Digest of a second run of the first cell.
    pub repeated: Option<String>,
}

/// Runs the scenario. `None` if it was interrupted.
pub fn cells() -> anyhow::Result<Option<Cells>> {
    let mut loaded =
        scenario::load(SCENARIO).map_err(|problems| anyhow!("{}", problems.named("the demo's scenario")))?;
    let different = loaded.cells.len();
    let first = loaded.cells.first().cloned().context("the demo's scenario has no cells")?;
    loaded.cells.push(first);
    let options = Options::default();
    let need = CostEstimate::of(&loaded.cells, &options)?;
    let (mut documents, wall_s) = run::execute(&loaded, SCENARIO, &options, need.jobs, false)?;
    if process::catch_interrupts().load(Ordering::Relaxed) {
        return Ok(None);
    }
    ensure!(documents.len() == different + 1, "{} of {} cells ran", documents.len(), different + 1);
    let repeated = documents.pop().and_then(|document| document.digest);
    let set = set::document(&loaded.cells[..different], &documents, wall_s);
    Ok(Some(Cells { set, repeated }))
}
