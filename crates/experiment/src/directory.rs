//! The directory of a sweep: plan, runs and a lock. Drivers and workers share nothing else.

use std::collections::BTreeMap;
use std::fs::{self, File, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use landspeed_results::Document;
use landspeed_sweep::document::RunFacts;
use landspeed_sweep::{PlannedRun, RunKind, id};
use landspeed_sys::file;
use serde::{Deserialize, Serialize};

use crate::cells::lock;
use crate::cross::add_cross;
use crate::error::Error;
use crate::origin::RunOrigin;

/// Minimum size of documents that are compressed, bytes.
const COMPRESS_MIN_BYTES: usize = 256 << 10;

/// Documents by the id of their run.
type Documents = BTreeMap<String, Vec<u8>>;

/// A sweep's directory, or its twin in memory.
#[derive(Debug, Clone)]
pub struct Directory {
    root: PathBuf,
    /// Documents of the usable runs, instead of files.
    memory: Option<Arc<Mutex<Documents>>>,
}

/// An entry of `runs.json`: a run that a worker can make.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Id of the run; its document is `runs/ID.json`.
    pub id: String,
    /// Id of its cell. The worker recomputes it, to check that it has the same build and kernel.
    pub cell: String,
    /// Index of the cell in the design.
    pub number: usize,
    /// Index of the level of each factor.
    pub levels: Vec<usize>,
    /// Index of the block, from 0.
    pub block: u32,
    /// Position in the block.
    pub place: u32,
    /// Regular run, control or repeat.
    pub kind: RunKind,
    /// Random seed of the run.
    pub seed: u64,
    /// Id of the lab's kernel; `None` between hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
}

impl Entry {
    /// Returns the entry as a planned run.
    pub fn planned(&self) -> PlannedRun {
        PlannedRun { block: self.block, place: self.place, cell: self.number, kind: self.kind, seed: self.seed }
    }
}

/// An additional file of a run.
#[derive(Debug, Clone, Copy)]
pub struct ExtraFile<'a> {
    /// File extension, such as `cross`.
    pub extension: &'static str,
    /// Content of the file.
    pub content: &'a [u8],
}

/// A stored run.
#[derive(Debug, Clone)]
pub struct StoredRun {
    /// SHA-256 of its document, hex.
    pub document: String,
    /// Facts from the document.
    pub facts: RunFacts,
    /// Worker that made the run.
    pub made_by: RunOrigin,
}

/// Lock of a sweep's directory for one driver; released on drop.
#[derive(Debug)]
pub struct Lock(#[expect(dead_code, reason = "the lock goes with the file")] File);

impl Directory {
    /// Returns the directory at `root`, which need not exist.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into(), memory: None }
    }

    /// Returns a directory that exists only in this process: files are not written, except the runs' documents.
    pub fn in_memory() -> Self {
        Self { root: PathBuf::new(), memory: Some(Arc::default()) }
    }

    /// Creates the directory if necessary and locks it for this process.
    pub fn take(&self) -> Result<Lock, Error> {
        file::create_directory(&self.root.join("runs"))
            .map_err(|cause| Error::Create { path: self.root.clone(), cause })?;
        let path = self.root.join("lock");
        let mut file = file::open_lock(&path).map_err(Error::file("open", &path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut holder = String::new();
                let _ = file.read_to_string(&mut holder);
                return Err(Error::InUse { path: self.root.clone(), holder: holder.trim().to_owned() });
            }
            Err(TryLockError::Error(cause)) => return Err(Error::file("lock", &path)(cause)),
        }
        let _ = file.set_len(0).and_then(|()| write!(file, "{}", std::process::id()));
        self.clear_unfinished();
        Ok(Lock(file))
    }

    /// Returns the path of the directory.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the absolute path of the directory.
    pub fn absolute(&self) -> Result<PathBuf, Error> {
        std::path::absolute(&self.root).map_err(Error::Directory)
    }

    /// Returns the path of a file in the directory.
    pub fn file(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// Writes a file completely or not at all.
    pub fn write(&self, name: &str, content: &[u8]) -> Result<(), Error> {
        if self.memory.is_some() {
            return Ok(());
        }
        write(self.file(name), content)
    }

    /// Reads a file as text.
    pub fn text(&self, name: &str) -> Result<String, Error> {
        let path = self.file(name);
        file::read_text(&path, file::MAX_DOCUMENT_BYTES).map_err(Error::file("read", &path))
    }

    /// Returns the ids of all runs with a document.
    pub fn ids(&self) -> Vec<String> {
        if let Some(memory) = &self.memory {
            return lock(memory).keys().cloned().collect();
        }
        let names = fs::read_dir(self.root.join("runs")).into_iter().flatten().flatten();
        names
            .filter_map(|entry| {
                let name = entry.file_name().into_string().ok()?;
                let id = name.strip_suffix(".json").or_else(|| name.strip_suffix(".json.gz"))?;
                is_id(id).then(|| id.to_owned())
            })
            .collect()
    }

    /// Returns a run if its document exists and is usable. A damaged document counts as missing, so that the run is
    /// repeated.
    pub fn run(&self, id: &str) -> Option<StoredRun> {
        let bytes = self.bytes(id)?;
        let document = Document::read(&bytes).ok()?;
        let made_by = read(&self.of_run(id, "worker")).ok().and_then(|text| serde_json::from_slice(&text).ok());
        let mut facts = RunFacts::of(&document);
        if let Ok(cross) = read(&self.of_run(id, "cross")) {
            add_cross(&mut facts, serde_json::from_slice(&cross).ok()?);
        }
        facts.usable.then(|| StoredRun {
            document: id::sha256(&bytes),
            facts,
            made_by: made_by.unwrap_or_else(|| RunOrigin { worker: "unknown".to_owned(), wall_s: 0.0 }),
        })
    }

    /// Reads a run's document, decompressed.
    pub fn bytes(&self, id: &str) -> Option<Vec<u8>> {
        if let Some(memory) = &self.memory {
            return lock(memory).get(id).cloned();
        }
        if let Ok(bytes) = read(&self.of_run(id, "json")) {
            return Some(bytes);
        }
        let gzip = file::open(&self.of_run(id, "json.gz")).ok()?;
        file::read_from(GzDecoder::new(gzip), file::MAX_DOCUMENT_BYTES).ok()
    }

    /// Stores a run's document completely or not at all. An unusable one is stored as `ID.failed`, which is not a
    /// result.
    pub fn keep(
        &self,
        id: &str,
        document: &[u8],
        side: Option<ExtraFile<'_>>,
        facts: RunFacts,
        made_by: RunOrigin,
    ) -> Result<StoredRun, Error> {
        if let Some(memory) = &self.memory {
            if facts.usable {
                lock(memory).insert(id.to_owned(), document.to_vec());
            }
        } else if facts.usable {
            if let Some(side) = side {
                write(self.of_run(id, side.extension), side.content)?;
            }
            let by = serde_json::to_vec(&made_by).map_err(Error::encode("a worker's name"))?;
            // Not synced: if the file is lost, only the worker's name is unknown.
            let path = self.of_run(id, "worker");
            file::create(&path).and_then(|mut file| file.write_all(&by)).map_err(Error::file("write", &path))?;
            let (own, other) =
                if document.len() >= COMPRESS_MIN_BYTES { ("json.gz", "json") } else { ("json", "json.gz") };
            let path = self.of_run(id, own);
            if own == "json" {
                write(path, document)?;
            } else {
                let compressed = gzip(document).map_err(Error::file("compress", &path))?;
                write(path, &compressed)?;
            }
            // Remove a damaged document in the other format, and the record of an earlier failure.
            for stale in [other, "failed"] {
                let _ = fs::remove_file(self.of_run(id, stale));
            }
        } else {
            write(self.of_run(id, "failed"), document)?;
        }
        Ok(StoredRun { document: id::sha256(document), facts, made_by })
    }

    /// Returns the facts of a run that failed on a worker.
    pub fn failure(&self, id: &str) -> Option<RunFacts> {
        let bytes = read(&self.of_run(id, "failed")).ok()?;
        Document::read(&bytes).ok().map(|document| RunFacts::of(&document))
    }

    fn of_run(&self, id: &str, extension: &str) -> PathBuf {
        self.root.join("runs").join(format!("{id}.{extension}"))
    }

    /// Removes temporary files of killed writers.
    fn clear_unfinished(&self) {
        for directory in [self.root.clone(), self.root.join("runs")] {
            let names = fs::read_dir(directory).into_iter().flatten().flatten();
            for entry in names.filter(|entry| entry.path().extension().is_some_and(|ends| ends == "part")) {
                let _ = fs::remove_file(entry.path());
            }
        }
    }
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    file::read(path, file::MAX_DOCUMENT_BYTES)
}

fn write(path: PathBuf, content: &[u8]) -> Result<(), Error> {
    file::write_atomically(&path, content).map_err(|cause| Error::Write { path, cause })
}

fn gzip(document: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(document.len() / 8), Compression::fast());
    encoder.write_all(document)?;
    encoder.finish()
}

fn is_id(text: &str) -> bool {
    text.len() == 64 && text.chars().all(|c| c.is_ascii_hexdigit())
}
