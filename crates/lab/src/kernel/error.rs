//! Errors of building, finding and removing kernels.

use std::io;
use std::path::{Path, PathBuf};

use landspeed_units::Bytes;

use super::edits::EditError;
use super::tools::{Missing, describe_missing};
use super::version::{MIN_VERSION, NotAVersion, Version};

/// An error of building, finding or removing a kernel.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file operation failed.
    #[error("cannot {operation} {path}: {cause}{}", hint(.cause))]
    Io {
        /// The operation, as a verb.
        operation: &'static str,
        /// Path that the operation failed on.
        path: PathBuf,
        /// Error of the system call.
        cause: io::Error,
    },
    /// No directory to keep kernels in.
    #[error("no directory for kernels: LANDSPEED_KERNELS, XDG_CACHE_HOME and HOME are not set\nSet --cache DIR.")]
    NoHome,
    /// The kernel's makefiles do not allow such a path.
    #[error(
        "cannot build kernels in {0}: the kernel's makefiles do not allow spaces or colons in paths\nSet --cache DIR or LANDSPEED_KERNELS to another directory."
    )]
    BadPath(PathBuf),
    /// Not x86-64, the only architecture with a 64-bit User-Mode Linux.
    #[error("the lab does not run on {0}: it needs User-Mode Linux, which exists for x86-64 only")]
    Architecture(&'static str),
    /// Programs that the build needs are missing.
    #[error("{}", describe_missing(.0))]
    MissingTools(Vec<Missing>),
    /// A text is not a kernel version.
    #[error(transparent)]
    NotAVersion(#[from] NotAVersion),
    /// No packaged source has that version.
    #[error("no kernel source {wanted} in Debian: it has {available}\nUse one of these, or --source TARBALL|DIR.")]
    NoSuchVersion {
        /// Requested version.
        wanted: String,
        /// Available versions, as text.
        available: String,
    },
    /// The package index could not be read.
    #[error(
        "cannot read Debian's package index from {mirror}: {why}\nUse --source TARBALL|DIR to build without a network."
    )]
    Index {
        /// Mirror that was used.
        mirror: String,
        /// Error message of apt.
        why: String,
    },
    /// A download does not match the index.
    #[error(
        "wrong checksum of {path}: {found}, the signed index has {expected}\nRun the command again: the file was removed."
    )]
    Checksum {
        /// The downloaded file.
        path: PathBuf,
        /// SHA-256 of the file.
        found: String,
        /// SHA-256 in the signed index.
        expected: String,
    },
    /// A kernel too old for the lab.
    #[error(
        "kernel {0} is too old for the lab: User-Mode Linux has seccomp mode since {MIN_VERSION}\nUse {MIN_VERSION} or newer."
    )]
    TooOld(String),
    /// Not a kernel source.
    #[error("{path} is not a kernel source: {why}")]
    NotAKernel {
        /// The given path.
        path: PathBuf,
        /// Reason why it is not a kernel source.
        why: String,
    },
    /// An edit does not fit the source.
    #[error(transparent)]
    Edit(#[from] EditError),
    /// A patch of the user does not fit the source.
    #[error(transparent)]
    Patch(#[from] PatchError),
    /// A name that a patched kernel cannot have.
    #[error(
        "cannot name a kernel `{0}`: a name has letters, digits and `._+-`, and must not be a version, an id or `stock`\nUse another name, such as iw20."
    )]
    BadName(String),
    /// A name that another kernel has.
    #[error(
        "cannot name a kernel `{name}`: {id} has this name\nChoose another with --name, or remove that one: landspeed lab kernel remove {name}"
    )]
    NameTaken {
        /// The name.
        name: String,
        /// Id of the other kernel.
        id: String,
    },
    /// The kernel without the patches of another one is not in the cache.
    #[error(
        "no stock kernel of `{patched}`: {stock} is not built\nBuild it: landspeed lab kernel build --version {release}"
    )]
    NoStock {
        /// Name of the patched kernel.
        patched: String,
        /// Id of the missing kernel.
        stock: String,
        /// Its release.
        release: String,
    },
    /// The configuration lacks core symbols.
    #[error("cannot configure the kernel for the lab: it does not accept {}\nBuild another version.", .0.join(", "))]
    Config(Vec<String>),
    /// A program failed.
    #[error("{what} failed ({status}){}{}", indented(.tail), in_log(.log.as_deref()))]
    Command {
        /// Purpose of the program.
        what: String,
        /// Exit status, as text.
        status: String,
        /// Last lines of its output.
        tail: String,
        /// File with all of its output.
        log: Option<PathBuf>,
    },
    /// A program could not be started.
    #[error("cannot run {program}: {cause}")]
    Spawn {
        /// Name of the program.
        program: String,
        /// Error of the system call.
        cause: io::Error,
    },
    /// Not enough space, checked before the build.
    #[error(
        "cannot build in {path}: about {needed} are needed, and {available} are free\nFree some space, or set --cache DIR on another file system."
    )]
    NoSpace {
        /// Directory of the cache.
        path: PathBuf,
        /// Peak space of the build.
        needed: Bytes,
        /// Free space.
        available: Bytes,
    },
    /// The disk filled up during the build.
    #[error(
        "cannot build {0}: the disk is full\nFree some space and run the command again: it continues from there."
    )]
    DiskFull(PathBuf),
    /// Interrupted by Ctrl-C.
    #[error(
        "interrupted; the unfinished build is in {0}\nRun the command again to continue, or `landspeed lab kernel remove --all` to delete it."
    )]
    Interrupted(PathBuf),
    /// The built kernel does not run.
    #[error("the built kernel does not run: {0}")]
    DoesNotRun(String),
    /// No kernel has this name.
    #[error("{}", not_found(.wanted.as_deref(), .have))]
    NotFound {
        /// Requested kernel; `None` for any.
        wanted: Option<String>,
        /// Kernels in the cache: id and release.
        have: Vec<(String, String)>,
    },
    /// Another user could have written the kernel.
    #[error(
        "cannot use kernel {kernel}: {at} {why}\nBuild a kernel in a directory that only you can write to: set --cache DIR or LANDSPEED_KERNELS."
    )]
    Untrusted {
        /// Directory of the kernel.
        kernel: PathBuf,
        /// The file or directory that another user can write to.
        at: PathBuf,
        /// Owner or permissions, as text.
        why: String,
    },
    /// Several kernels match the name.
    #[error("ambiguous kernel `{wanted}`: {}\nGive more digits.", .have.join(", "))]
    Ambiguous {
        /// Requested prefix of an id.
        wanted: String,
        /// Ids with this prefix.
        have: Vec<String>,
    },
}

/// Error: a patch does not fit the source.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot apply patch {patch}: {}\n{advice}", .failures.join("\n"))]
pub struct PatchError {
    /// Name of the patch file.
    pub patch: String,
    /// What does not fit: file, hunk and expected text.
    pub failures: Vec<String>,
    /// What to do.
    pub advice: String,
}

impl Error {
    /// Returns a closure for `map_err` on file operations.
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
    let there_is =
        if list.is_empty() { ": none is built".to_owned() } else { format!("; there is {}", list.join(", ")) };
    match wanted {
        None if !list.is_empty() => {
            format!("no kernel without patches is built{there_is}\nBuild one: landspeed lab kernel build")
        }
        None => "no kernel is built\nBuild one in a few minutes: landspeed lab kernel build".to_owned(),
        // The command contains the name only if it is a version, which needs no quoting.
        Some(wanted) => match wanted.parse::<Version>() {
            Ok(_) => {
                format!("no kernel `{wanted}`{there_is}\nBuild it: landspeed lab kernel build --version {wanted}")
            }
            Err(_) if list.is_empty() => {
                format!("no kernel `{wanted}`{there_is}\nBuild the newest: landspeed lab kernel build")
            }
            Err(_) => format!("no kernel `{wanted}`{there_is}\nName one of these by id or release."),
        },
    }
}
