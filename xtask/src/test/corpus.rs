//! The test captures of tcpdump and Wireshark, from Debian's source packages: hundreds of protocols, and many files made
//! to break readers. They stay under `target/`; nothing of them is part of this repository.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::apt::{Apt, Index};
use super::setup::quiet;

/// Names the directory for the tests.
pub const VARIABLE: &str = "LANDSPEED_CAPTURES";
/// One of them is there.
const SUITES: [&str; 3] = ["bookworm", "stable", "oldstable"];
/// A source package and where its captures are.
const PACKAGES: [(&str, &str); 2] = [("tcpdump", "*/tests/*"), ("wireshark", "*/test/captures/*")];

/// Where the captures are; downloads them (50 MB, once) if they are not there yet.
pub fn captures(root: &Path, no_install: bool) -> Result<PathBuf> {
    let place = root.join("target").join("captures");
    if PACKAGES.iter().all(|(name, _)| place.join(name).is_dir()) {
        return Ok(place);
    }
    ensure!(!no_install, "they are not downloaded yet");
    let scratch = tempfile::tempdir().context("cannot make a directory")?;
    let apt = Apt::new(scratch.path())?;
    // A mirror may hold the index of a suite and not its sources.
    let mut last = Ok(());
    for suite in SUITES {
        last = apt
            .read(suite, Index::Sources)
            .and_then(|()| PACKAGES.iter().try_for_each(|(name, _)| apt.run(&["source", "--download-only", name])));
        if last.is_ok() {
            break;
        }
    }
    last?;
    for (name, inside) in PACKAGES {
        let original = apt.original(name)?;
        // In place only when it is whole.
        let unpacked = scratch.path().join(name);
        std::fs::create_dir_all(&unpacked).context("cannot make a directory")?;
        let mut tar = Command::new("tar");
        tar.arg("-xf").arg(&original).arg("-C").arg(&unpacked);
        quiet(tar.args(["--strip-components=1", "--wildcards", inside]))?;
        std::fs::create_dir_all(&place).context("cannot make a directory")?;
        // Two file systems, perhaps: a rename would not do.
        let new = place.join(format!("{name}.new"));
        quiet(Command::new("cp").arg("-rT").arg(&unpacked).arg(&new))?;
        std::fs::rename(new, place.join(name)).context("cannot put it in place")?;
    }
    Ok(place)
}
