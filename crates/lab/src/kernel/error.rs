//! What can go wrong around kernels.

use std::io;
use std::path::{Path, PathBuf};

use landspeed_units::Bytes;

use super::edits::EditError;
use super::tools::{Missing, describe_missing};
use super::version::{NotAVersion, OLDEST};

/// Why a kernel could not be built, found or removed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file operation failed.
    #[error("cannot {operation} {path}: {cause}{}", hint(.cause))]
    Io {
        /// What was tried.
        operation: &'static str,
        /// On what.
        path: PathBuf,
        /// Why it failed.
        cause: io::Error,
    },
    /// There is no home to keep kernels in.
    #[error("no place to keep kernels: neither LANDSPEED_KERNELS, XDG_CACHE_HOME nor HOME is set; say --cache DIR")]
    NoHome,
    /// The kernel's build cannot handle such a path.
    #[error(
        "kernels cannot be built under {0}: the kernel's makefiles refuse paths with spaces or colons; say --cache DIR or set LANDSPEED_KERNELS"
    )]
    BadPath(PathBuf),
    /// Only x86-64 has a 64-bit User-Mode Linux.
    #[error("the lab needs User-Mode Linux, which exists for x86-64 only; this is {0}")]
    Architecture(&'static str),
    /// Programs the build needs are not there.
    #[error("{}", describe_missing(.0))]
    MissingTools(Vec<Missing>),
    /// A text that should be a version is none.
    #[error(transparent)]
    NotAVersion(#[from] NotAVersion),
    /// No packaged source of that version.
    #[error(
        "Debian has no kernel source {wanted} to build from; it has {available}. For another: --source TARBALL|DIR"
    )]
    NoSuchVersion {
        /// What was asked for.
        wanted: String,
        /// What there is, in words.
        available: String,
    },
    /// The package index could not be had.
    #[error("cannot read Debian's package index from {mirror}: {why}. Without a network: --source TARBALL|DIR")]
    Index {
        /// The mirror asked.
        mirror: String,
        /// What apt said.
        why: String,
    },
    /// What came over the network is not what the index promised.
    #[error(
        "{path} does not have the checksum the signed index gives (is {found}, should be {expected}); it was removed: try again"
    )]
    Checksum {
        /// The file.
        path: PathBuf,
        /// Its SHA-256.
        found: String,
        /// What it should be.
        expected: String,
    },
    /// A kernel too old for the lab.
    #[error(
        "kernel {0} is too old for the lab: User-Mode Linux runs guests under seccomp only since {OLDEST}; before, each system call costs two ptrace stops"
    )]
    TooOld(String),
    /// Not a kernel source.
    #[error("{path} is no kernel source: {why}")]
    NotAKernel {
        /// What was given.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The source moved away from an edit.
    #[error(transparent)]
    Edit(#[from] EditError),
    /// The configuration lacks what no scenario can do without.
    #[error("the kernel's configuration did not take {}: the lab cannot use such a kernel", .0.join(", "))]
    Config(Vec<String>),
    /// A program failed.
    #[error("{what} failed ({status}){}{}", indented(.tail), in_log(.log.as_deref()))]
    Command {
        /// What it was to do.
        what: String,
        /// How it ended.
        status: String,
        /// The end of what it said.
        tail: String,
        /// Where all of it is.
        log: Option<PathBuf>,
    },
    /// A program could not be started.
    #[error("cannot run {program}: {cause}")]
    Spawn {
        /// The program.
        program: String,
        /// Why.
        cause: io::Error,
    },
    /// Not enough room, known before anything was done.
    #[error(
        "building needs about {needed} under {path}, and {available} are free; free some, or say --cache DIR on another file system"
    )]
    NoSpace {
        /// Where.
        path: PathBuf,
        /// What the build takes at its peak.
        needed: Bytes,
        /// What there is.
        available: Bytes,
    },
    /// The disk filled up on the way.
    #[error("the disk is full: {0} was being built; free some space and build again, it goes on from there")]
    DiskFull(PathBuf),
    /// Somebody pressed Ctrl-C.
    #[error(
        "interrupted; what is done so far is kept in {0}: the same command goes on from there, `lab kernel remove --all` clears it"
    )]
    Interrupted(PathBuf),
    /// What was built does not run.
    #[error("the built kernel does not run: {0}")]
    DoesNotRun(String),
    /// No such kernel.
    #[error("{}", not_found(.wanted.as_deref(), .have))]
    NotFound {
        /// What was asked for; nothing: any.
        wanted: Option<String>,
        /// What there is: id and release.
        have: Vec<(String, String)>,
    },
    /// Several kernels answer to that.
    #[error("`{wanted}` could be any of {}; give more digits", .have.join(", "))]
    Ambiguous {
        /// What was asked for.
        wanted: String,
        /// The ids that begin so.
        have: Vec<String>,
    },
    /// A kernel that is being built cannot be removed.
    #[error("{0} is being built by another process")]
    InUse(String),
}

impl Error {
    /// For `map_err` on file operations.
    pub(super) fn io(operation: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |cause| Self::Io { operation, path, cause }
    }
}

fn hint(error: &io::Error) -> &'static str {
    use io::ErrorKind::{PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull};
    match error.kind() {
        PermissionDenied | ReadOnlyFilesystem => "; choose another place with --cache DIR or LANDSPEED_KERNELS",
        StorageFull | QuotaExceeded => {
            "; free some space, or choose another place with --cache DIR or LANDSPEED_KERNELS"
        }
        _ => "",
    }
}

fn indented(text: &str) -> String {
    text.lines().fold(String::new(), |all, line| all + "\n    " + line)
}

fn in_log(log: Option<&Path>) -> String {
    log.map(|path| format!("\neverything it said is in {}", path.display())).unwrap_or_default()
}

fn not_found(wanted: Option<&str>, have: &[(String, String)]) -> String {
    let list: Vec<String> = have.iter().map(|(id, release)| format!("{release} ({id})")).collect();
    match wanted {
        None => "no kernel is built; `landspeed lab kernel build` gets one, in a few minutes".to_owned(),
        Some(wanted) if list.is_empty() => {
            format!("no kernel is built, so there is no `{wanted}`; `landspeed lab kernel build` gets one")
        }
        Some(wanted) => format!(
            "there is no kernel `{wanted}`; there is {}. `landspeed lab kernel build --version {wanted}` may get it",
            list.join(", ")
        ),
    }
}
