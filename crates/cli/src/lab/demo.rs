//! Runs the lab scene of `landspeed demo`.

use anyhow::anyhow;
use landspeed_experiment::directory::Directory;
use landspeed_experiment::inline::Inline;
use landspeed_lab::kernel::{self, Cache, Error};
use landspeed_lab::scenario;
use landspeed_model::SweepDocument;
use landspeed_sys::process;

use super::kernel::View;
use super::vary;

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

/// Runs the scenario as a sweep; its first run is made twice. `None` if it was interrupted.
pub fn cells() -> anyhow::Result<Option<SweepDocument>> {
    let loaded = scenario::load(SCENARIO).map_err(|problems| anyhow!("{}", problems.named("the demo's scenario")))?;
    let (file, text) = ("the demo's scenario", SCENARIO);
    let (kernel, cache, jobs, directory) = (None, None, None, Directory::in_memory());
    let inline = Inline { file, text, loaded: &loaded, kernel, cache, directory, jobs, repeat: true };
    let (lab, setup) = inline.prepare()?;
    let session = vary::measure(&lab, setup, false);
    Ok(if session.is_interrupted() { None } else { Some(session.end()?) })
}
