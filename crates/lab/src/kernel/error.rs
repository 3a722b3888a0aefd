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
    #[error("no directory for kernels: LANDSPEED_KERNELS, XDG_CACHE_HOME and HOME are not set\nSet --cache DIR.")]
    NoHome,
    /// The kernel's build cannot handle such a path.
    #[error(
        "cannot build kernels in {0}: the kernel's makefiles do not allow spaces or colons in paths\nSet --cache DIR or LANDSPEED_KERNELS to another directory."
    )]
    BadPath(PathBuf),
    /// Only x86-64 has a 64-bit User-Mode Linux.
    #[error("the lab does not run on {0}: it needs User-Mode Linux, which exists for x86-64 only")]
    Architecture(&'static str),
    /// Programs the build needs are not there.
    #[error("{}", describe_missing(.0))]
    MissingTools(Vec<Missing>),
    /// A text that should be a version is none.
    #[error(transparent)]
    NotAVersion(#[from] NotAVersion),
    /// No packaged source of that version.
    #[error("no kernel source {wanted} in Debian: it has {available}\nUse one of these, or --source TARBALL|DIR.")]
    NoSuchVersion {
        /// What was asked for.
        wanted: String,
        /// What there is, in words.
        available: String,
    },
    /// The package index could not be had.
    #[error(
        "cannot read Debian's package index from {mirror}: {why}\nUse --source TARBALL|DIR to build without a network."
    )]
    Index {
        /// The mirror asked.
        mirror: String,
        /// What apt said.
        why: String,
    },
    /// A download does not match the index.
    #[error(
        "wrong checksum of {path}: {found}, the signed index has {expected}\nRun the command again: the file was removed."
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
        "kernel {0} is too old for the lab: User-Mode Linux has seccomp mode since {OLDEST}\nUse {OLDEST} or newer."
    )]
    TooOld(String),
    /// Not a kernel source.
    #[error("{path} is not a kernel source: {why}")]
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
    #[error("cannot configure the kernel for the lab: it does not accept {}\nBuild another version.", .0.join(", "))]
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
        "cannot build in {path}: about {needed} are needed, and {available} are free\nFree some space, or set --cache DIR on another file system."
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
    #[error(
        "cannot build {0}: the disk is full\nFree some space and run the command again: it continues from there."
    )]
    DiskFull(PathBuf),
    /// Interrupted by Ctrl-C.
    #[error(
        "interrupted; the unfinished build is in {0}\nRun the command again to continue, or `landspeed lab kernel remove --all` to delete it."
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
    #[error("ambiguous kernel `{wanted}`: {}\nGive more digits.", .have.join(", "))]
    Ambiguous {
        /// What was asked for.
        wanted: String,
        /// The ids that begin so.
        have: Vec<String>,
    },
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
        PermissionDenied | ReadOnlyFilesystem => "\nSet --cache DIR or LANDSPEED_KERNELS to another directory.",
        StorageFull | QuotaExceeded => {
            "\nFree some space, or set --cache DIR or LANDSPEED_KERNELS to another directory."
        }
        _ => "",
    }
}

fn indented(text: &str) -> String {
    text.lines().fold(String::new(), |all, line| all + "\n    " + line)
}

fn in_log(log: Option<&Path>) -> String {
    log.map(|path| format!("\nSee {} for the whole output.", path.display())).unwrap_or_default()
}

fn not_found(wanted: Option<&str>, have: &[(String, String)]) -> String {
    let list: Vec<String> = have.iter().map(|(id, release)| format!("{release} ({id})")).collect();
    match wanted {
        None => "no kernel is built\nBuild one in a few minutes: landspeed lab kernel build".to_owned(),
        Some(wanted) if list.is_empty() => {
            format!("no kernel `{wanted}`: none is built\nBuild it: landspeed lab kernel build --version {wanted}")
        }
        Some(wanted) => format!(
            "no kernel `{wanted}`; there is {}\nBuild it: landspeed lab kernel build --version {wanted}",
            list.join(", ")
        ),
    }
}
