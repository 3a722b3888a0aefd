//! The published schema of Kubernetes' objects, as a Python package carries it.

use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};

use super::setup::pip;

/// Names the directory of the package for the tests.
pub const VARIABLE: &str = "LANDSPEED_KUBERNETES_SCHEMA";
/// Version and digest of its wheel (22 MB).
const SCHEMA: &str = "kubernetes-validate==1.37.0 \
                      --hash=sha256:85136d018a27b50ec7fc049d902bfa5193f5976807e6c0f408e3ab6fe078cad9\n";

/// Where it is; downloads it if it is not there yet.
pub fn fetch(root: &Path, no_install: bool) -> Result<PathBuf> {
    let place = root.join("target").join("kubernetes-schema");
    let package = place.join("kubernetes_validate");
    if package.is_dir() {
        return Ok(package);
    }
    ensure!(!no_install, "it is not downloaded yet");
    pip(SCHEMA, &place)?;
    Ok(package)
}
