//! What all packages have in common: the program's machine and date, and the programs that pack it.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// Version of the workspace.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// One line for the descriptions of packages.
pub const SUMMARY: &str = "Network path measurement that names what limits a transfer";

/// What every package of a run has in common.
pub struct Build<'a> {
    /// Root directory of the workspace.
    pub root: &'a Path,
    /// Revision of the deb and the rpm.
    pub revision: u32,
    /// Whether to compress little.
    pub fast: bool,
    /// Seconds since 1970 of every file and date: `SOURCE_DATE_EPOCH`, or the last commit.
    pub epoch: u64,
    /// The machine of the program.
    pub machine: Machine,
    /// Directory for work; its path has no spaces and is relative to the workspace.
    pub scratch: PathBuf,
}

/// Names of one machine.
#[derive(Debug, Clone, Copy)]
pub struct Machine {
    /// As `uname -m` and rpm have it.
    pub kernel: &'static str,
    /// As Debian and OCI have it.
    pub debian: &'static str,
}

/// SHA-256 in hexadecimal.
pub fn sha256(bytes: &[u8]) -> String {
    use sha2::Digest as _;
    sha2::Sha256::digest(bytes).iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

/// The date of everything in a package.
pub fn epoch(root: &Path) -> Result<u64> {
    if let Some(set) = std::env::var_os("SOURCE_DATE_EPOCH") {
        let set = set.to_string_lossy();
        return set.parse().with_context(|| format!("SOURCE_DATE_EPOCH is not a number of seconds: {set:?}"));
    }
    let mut git = Command::new("git");
    git.arg("-C").arg(root).args(["log", "-1", "--format=%ct"]);
    let date =
        output(&mut git).context("cannot date the packages\nSet SOURCE_DATE_EPOCH where there is no git history")?;
    date.trim().parse().context("git printed no date")
}

/// A date of [`epoch`], formatted by date(1) in UTC.
pub fn format_date(epoch: u64, format: &str) -> Result<String> {
    let mut date = Command::new("date");
    date.env("LC_ALL", "C").args(["-u", "-d", &format!("@{epoch}"), &format!("+{format}")]);
    Ok(output(&mut date)?.trim().to_owned())
}

/// The machine that an ELF file is for (`e_machine`).
pub fn machine_of(elf: &[u8]) -> Result<Machine> {
    match elf.get(0x12..0x14) {
        Some([62, 0]) => Ok(Machine { kernel: "x86_64", debian: "amd64" }),
        Some([183, 0]) => Ok(Machine { kernel: "aarch64", debian: "arm64" }),
        _ => bail!("the program is for neither x86-64 nor aarch64"),
    }
}

/// Who is responsible for the packages, as Debian's tools read it.
pub fn maintainer() -> String {
    let variable = |name: &str, default: &str| std::env::var(name).unwrap_or_else(|_| default.to_owned());
    format!(
        "{} <{}>",
        variable("DEBFULLNAME", "landspeed maintainers"),
        variable("DEBEMAIL", "maintainers@landspeed.example")
    )
}

/// Runs a command without input and returns its output.
pub fn output(command: &mut Command) -> Result<String> {
    let name = command.get_program().display().to_string();
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("cannot run {name}"))?;
    if !output.status.success() {
        let (said, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        bail!("{name} failed ({})\n{}{}", output.status, said, errors.trim_end());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Sets the permission bits of a file.
pub fn set_mode(path: &Path, mode: u32) -> Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))
        .with_context(|| format!("cannot change the mode of {}", path.display()))
}
