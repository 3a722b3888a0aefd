//! Errors of a sweep. The messages are complete: causes are in the text, advice is on a second line.

use std::io;
use std::path::{Path, PathBuf};

use landspeed_lab::kernel;
use landspeed_problems::Problems;
use landspeed_units::Bytes;

use crate::slurm::tools::SlurmError;

/// An error that ends a sweep, or keeps it from starting.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file operation failed.
    #[error("cannot {operation} {}: {cause}", .path.display())]
    File {
        /// The operation, as a verb.
        operation: &'static str,
        /// Path that the operation failed on.
        path: PathBuf,
        /// Error of the system call.
        cause: io::Error,
    },
    /// A result cannot be written.
    #[error("cannot write {}: {cause}\nFree some space, or write somewhere else.", .path.display())]
    Write {
        /// Path of the file.
        path: PathBuf,
        /// Error of the system call.
        cause: io::Error,
    },
    /// The sweep's directory cannot be created.
    #[error("cannot create {}: {cause}\nChoose another directory with --out.", .path.display())]
    Create {
        /// Path of the directory.
        path: PathBuf,
        /// Error of the system call.
        cause: io::Error,
    },
    /// Another process sweeps into the directory.
    #[error(
        "cannot sweep into {}: another landspeed is at work there{}\nWait for it, or choose another directory with --out.",
        .path.display(), process(.holder)
    )]
    InUse {
        /// Path of the directory.
        path: PathBuf,
        /// Id of the other process; empty if unknown.
        holder: String,
    },
    /// The absolute path of the sweep's directory is unknown.
    #[error("cannot find the sweep's directory: {0}")]
    Directory(io::Error),
    /// A document cannot be encoded.
    #[error("cannot encode {what}: {cause}")]
    Encode {
        /// The document.
        what: &'static str,
        /// Reason.
        cause: serde_json::Error,
    },
    /// Mistakes in the plan or in its scenario.
    #[error(transparent)]
    Problems(#[from] Problems),
    /// landspeed's own executable, which the guest runs, cannot be read.
    #[error("cannot read landspeed's own executable for the guest: /proc/self/exe: {0}")]
    Program(io::Error),
    /// No kernel for the lab.
    #[error(transparent)]
    Kernel(#[from] kernel::Error),
    /// A cell of the lab cannot be prepared.
    #[error("{0}")]
    Cell(String),
    /// Two cells have the same settings.
    #[error("two cells are the same: {0} and {1}\nRemove one of the levels.")]
    SameCells(String, String),
    /// The scenario refuses combinations of levels.
    #[error("the scenario refuses {refused} of {cells} cells:\n{list}\nChange the levels, or split the plan.")]
    Refused {
        /// Number of refused cells.
        refused: usize,
        /// Number of cells of the plan.
        cells: usize,
        /// The first refused cells, one per line, with reasons.
        list: String,
    },
    /// A cell needs more memory than the host has.
    #[error(
        "cannot run: a cell needs {needed} of memory, and {available} are available\nShorten its paths or buffers."
    )]
    Memory {
        /// Memory of the largest cell.
        needed: Bytes,
        /// Available memory.
        available: Bytes,
    },
    /// Concurrent tests between hosts.
    #[error(
        "cannot make several runs at once: they would share hosts and path and disturb each other\nLeave --jobs out."
    )]
    SeveralJobs,
    /// The test of a cell cannot start.
    #[error("{0}")]
    Request(String),
    /// A short test between two hosts failed.
    #[error("cannot test {pair}: {why}")]
    Survey {
        /// Client and server.
        pair: String,
        /// Reason.
        why: String,
    },
    /// Settings of hosts cannot be changed.
    #[error(
        "cannot change settings of {pair}: {why}\nRun landspeed as root, and the servers with --allow-host-changes and a key."
    )]
    HostChanges {
        /// Client and server.
        pair: String,
        /// Reason.
        why: String,
    },
    /// A host refuses a setting.
    #[error("cannot apply settings of {pair}: {why}")]
    Settings {
        /// Addresses of client and server.
        pair: String,
        /// What the host says about the setting.
        why: String,
    },
    /// The user interrupted the sweep.
    #[error("interrupted")]
    Interrupted,
    /// Program and kernels for workers cannot be copied.
    #[error(
        "cannot copy landspeed and its kernels to {}: {cause}\nChoose a directory on a shared file system with --out.",
        .path.display()
    )]
    Bundle {
        /// Directory of the copies.
        path: PathBuf,
        /// Error of the system call.
        cause: io::Error,
    },
    /// Slurm failed.
    #[error(transparent)]
    Slurm(#[from] SlurmError),
    /// The directory for the output of Slurm's tasks cannot be created.
    #[error("cannot create a directory for Slurm's output: {0}")]
    SlurmOutput(io::Error),
    /// No run is missing.
    #[error("nothing to export: every run of the plan is there")]
    NothingToExport,
}

impl Error {
    /// Returns a function that makes the error of a file operation.
    pub fn file(operation: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |cause| Self::File { operation, path: path.to_owned(), cause }
    }

    /// Returns a function that makes the error of an encoder.
    pub fn encode(what: &'static str) -> impl FnOnce(serde_json::Error) -> Self {
        move |cause| Self::Encode { what, cause }
    }
}

fn process(id: &str) -> String {
    if id.is_empty() { String::new() } else { format!(" (process {id})") }
}
