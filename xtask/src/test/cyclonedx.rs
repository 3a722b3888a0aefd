//! The published schemas of CycloneDX documents, as a Python package carries them.

use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};

use super::setup::pip;

/// Names the directory of the schemas for the tests.
pub const VARIABLE: &str = "LANDSPEED_CYCLONEDX_SCHEMA";
/// Version and digest of its wheel (500 KB).
const SCHEMA: &str = "cyclonedx-python-lib==11.12.0 \
                      --hash=sha256:0e807521a921a5c3cb8ce1153f8a61d29eedfe76a46aac2796b7c6b573391a54\n";

/// Where they are; downloads them if they are not there yet.
pub fn fetch(root: &Path, no_install: bool) -> Result<PathBuf> {
    let place = root.join("target").join("cyclonedx-schema");
    let schemas = place.join("cyclonedx/schema/_res");
    if !schemas.is_dir() {
        ensure!(!no_install, "it is not downloaded yet");
        pip(SCHEMA, &place)?;
    }
    Ok(schemas)
}
