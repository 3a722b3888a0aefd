//! Real iperf3 programs of several releases, for interoperability tests.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Environment variable with a directory that has one subdirectory per release, `iperf3` inside. The default is
/// `target/iperf3`, which `cargo xtask iperf3` fills.
pub const VARIABLE: &str = "LANDSPEED_IPERF3";

/// An installed iperf3 that runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Iperf3 {
    /// Major and minor version, such as (3, 12).
    pub version: (u32, u32),
    /// Path of the program, or of a wrapper that replaces itself by exec, so that the process id stays that of the
    /// started process.
    pub path: PathBuf,
}

impl Iperf3 {
    /// Whether its `--help` lists this flag; this depends on release and build options.
    pub fn supports_flag(&self, flag: &str) -> bool {
        let out = Command::new(&self.path).arg("--help").stdin(Stdio::null()).output();
        out.is_ok_and(|out| [out.stdout, out.stderr].iter().any(|text| String::from_utf8_lossy(text).contains(flag)))
    }
}

impl fmt::Display for Iperf3 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "iperf3 {}.{}", self.version.0, self.version.1)
    }
}

/// Returns all iperf3 programs, oldest first, one per version: those downloaded by `cargo xtask iperf3`, and the
/// system's. If there are none, the test should be skipped.
pub fn programs() -> Vec<Iperf3> {
    let named = std::env::var_os(VARIABLE).map(PathBuf::from);
    let place = named.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/iperf3"));
    let kept = std::fs::read_dir(place).into_iter().flatten().flatten().map(|entry| entry.path().join("iperf3"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let own = std::env::split_paths(&path).map(|directory| directory.join("iperf3")).find(|path| path.is_file());
    let mut found: Vec<Iperf3> = kept.chain(own).filter_map(|path| look(&path)).collect();
    found.sort_by(|a, b| (a.version, &a.path).cmp(&(b.version, &b.path)));
    found.dedup_by_key(|program| program.version);
    found
}

fn look(path: &Path) -> Option<Iperf3> {
    let out = Command::new(path).arg("--version").stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    let version = version(&String::from_utf8_lossy(&out.stdout))?;
    Some(Iperf3 { version, path: path.to_owned() })
}

/// Parses the version in `iperf 3.12 (cJSON 1.7.15)` or `iperf 3.19.1+ …`.
fn version(said: &str) -> Option<(u32, u32)> {
    let number = said.lines().next()?.strip_prefix("iperf ")?.split_whitespace().next()?;
    let mut parts = number.split(['.', '+', '-']);
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_parsed_and_sort_numerically() {
        assert_eq!(version("iperf 3.12 (cJSON 1.7.15)\nLinux"), Some((3, 12)));
        assert_eq!(version("iperf 3.19.1+ (cJSON 1.7.15)"), Some((3, 19)));
        assert!(version("iperf 3.9 (cJSON)") < version("iperf 3.12 (cJSON)"));
        assert_eq!(version("iperf version 2.1.8"), None);
    }

    #[test]
    fn found_programs_run() {
        for program in programs() {
            assert!(program.supports_flag("--omit"), "{program}");
            assert!(!program.supports_flag("--no-such-flag"), "{program}");
        }
    }
}
