//! flent, which tests with the netperf front: a release that Debian's is older than.

use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};

use super::setup::pip;

/// Names the directory of the Python package `flent`.
pub const VARIABLE: &str = "LANDSPEED_FLENT";
/// Version and digest of its wheel.
const FLENT: &str = "flent==2.3.0 --hash=sha256:068b7a52ccb34a540fdfc3f0df76e59a43c47ce2f23af2ea114d7e8ae7b52dc7\n";

/// Where the package is; downloads it if it is not there yet.
pub fn fetch(root: &Path, no_install: bool) -> Result<PathBuf> {
    let place = root.join("target").join("flent");
    if place.join("flent").is_dir() {
        return Ok(place);
    }
    ensure!(!no_install, "it is not downloaded yet");
    pip(FLENT, &place)?;
    Ok(place)
}
