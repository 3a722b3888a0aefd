//! The directory of a sweep: the plan, its runs, a lock. It is all that drivers and workers share.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow, bail};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use landspeed_results::Document;
use landspeed_sweep::document::RunFacts;
use landspeed_sweep::{PlannedRun, RunKind, id};
use serde::{Deserialize, Serialize};

use super::hosts::add_cross;
use crate::output::Sink;

/// Documents from this size on are compressed, bytes.
const LARGE: usize = 256 << 10;

/// A sweep's directory.
#[derive(Debug, Clone)]
pub struct Directory {
    root: PathBuf,
}

/// One entry of `runs.json`: a run that a worker can make.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Id of the run: its document is `runs/ID.json`.
    pub id: String,
    /// Id of its cell, which the worker computes again: it must have the same build and kernel.
    pub cell: String,
    /// Number of the cell in the design.
    pub number: usize,
    /// Position of the level of each factor.
    pub levels: Vec<usize>,
    /// Block.
    pub block: u32,
    /// Place in the block.
    pub place: u32,
    /// Why it is made.
    pub kind: RunKind,
    /// Seed.
    pub seed: u64,
    /// Lab: id of its kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
}

impl Entry {
    /// The run.
    pub fn planned(&self) -> PlannedRun {
        PlannedRun { block: self.block, place: self.place, cell: self.number, kind: self.kind, seed: self.seed }
    }
}

/// Who made a run: `runs/ID.worker`, written before the document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MadeBy {
    /// Name of the worker.
    pub worker: String,
    /// Real time of the run with everything around it, seconds.
    pub wall_s: f64,
}

/// A file beside a run's document.
#[derive(Debug, Clone, Copy)]
pub struct Side<'a> {
    /// What its name ends in.
    pub extension: &'static str,
    /// What is in it.
    pub content: &'a [u8],
}

/// A run as it is kept.
#[derive(Debug, Clone)]
pub struct Kept {
    /// SHA-256 of its document, hex.
    pub document: String,
    /// What the document says.
    pub facts: RunFacts,
    /// Who made it.
    pub made_by: MadeBy,
}

/// Holds a directory for one driver, as long as it lives.
#[derive(Debug)]
pub struct Lock(#[expect(dead_code, reason = "the lock goes with the file")] File);

impl Directory {
    /// The directory `root`, which may not exist yet.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// Creates it and takes it for this process.
    pub fn take(&self) -> anyhow::Result<Lock> {
        let shown = self.root.display();
        fs::create_dir_all(self.root.join("runs"))
            .map_err(|why| anyhow!("cannot create {shown}: {why}\nChoose another directory with --out."))?;
        let path = self.root.join("lock");
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .with_context(|| format!("cannot open {}", path.display()))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut holder = String::new();
                let _ = file.read_to_string(&mut holder);
                let holder = holder.trim();
                bail!(
                    "cannot sweep into {shown}: another landspeed is at work there{}\nWait for it, or choose another directory with --out.",
                    if holder.is_empty() { String::new() } else { format!(" (process {holder})") }
                );
            }
            Err(TryLockError::Error(why)) => bail!("cannot lock {}: {why}", path.display()),
        }
        let _ = file.set_len(0).and_then(|()| write!(file, "{}", std::process::id()));
        self.clear_unfinished();
        Ok(Lock(file))
    }

    /// Its path.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// A file of it, by name.
    pub fn file(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// Writes a file of it, whole or not at all.
    pub fn write(&self, name: &str, content: &[u8]) -> anyhow::Result<()> {
        Sink::File(self.file(name)).write(content)
    }

    /// The text of a file of it.
    pub fn text(&self, name: &str) -> anyhow::Result<String> {
        let path = self.file(name);
        fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
    }

    /// Ids of the runs whose documents are there.
    pub fn ids(&self) -> Vec<String> {
        let names = fs::read_dir(self.root.join("runs")).into_iter().flatten().flatten();
        names
            .filter_map(|entry| {
                let name = entry.file_name().into_string().ok()?;
                let id = name.strip_suffix(".json").or_else(|| name.strip_suffix(".json.gz"))?;
                is_id(id).then(|| id.to_owned())
            })
            .collect()
    }

    /// The run `id`, if it is there and whole. A damaged document is no document: the run is made again.
    pub fn run(&self, id: &str) -> Option<Kept> {
        let bytes = self.bytes(id)?;
        let document = Document::read(&bytes).ok()?;
        let made_by = fs::read(self.of_run(id, "worker")).ok().and_then(|text| serde_json::from_slice(&text).ok());
        let mut facts = RunFacts::of(&document);
        if let Ok(cross) = fs::read(self.of_run(id, "cross")) {
            add_cross(&mut facts, serde_json::from_slice(&cross).ok()?);
        }
        facts.usable.then(|| Kept {
            document: id::sha256(&bytes),
            facts,
            made_by: made_by.unwrap_or_else(|| MadeBy { worker: "unknown".to_owned(), wall_s: 0.0 }),
        })
    }

    /// The bytes of a run's document, uncompressed.
    pub fn bytes(&self, id: &str) -> Option<Vec<u8>> {
        if let Ok(bytes) = fs::read(self.of_run(id, "json")) {
            return Some(bytes);
        }
        let packed = File::open(self.of_run(id, "json.gz")).ok()?;
        let mut bytes = Vec::new();
        GzDecoder::new(packed).read_to_end(&mut bytes).ok()?;
        Some(bytes)
    }

    /// Keeps a run's document, whole or not at all; one that is not usable gets a name under which it is not taken for a result.
    pub fn keep(
        &self,
        id: &str,
        document: &[u8],
        side: Option<Side<'_>>,
        facts: RunFacts,
        made_by: MadeBy,
    ) -> anyhow::Result<Kept> {
        let file = |extension: &str| Sink::File(self.of_run(id, extension));
        if facts.usable {
            if let Some(side) = side {
                file(side.extension).write(side.content)?;
            }
            let by = serde_json::to_vec(&made_by).context("cannot encode a worker's name")?;
            // Not synced: without it, only the worker's name is unknown.
            let path = self.of_run(id, "worker");
            fs::write(&path, by).with_context(|| format!("cannot write {}", path.display()))?;
            let (own, other) = if document.len() >= LARGE { ("json.gz", "json") } else { ("json", "json.gz") };
            if own == "json" {
                file(own).write(document)?;
            } else {
                file(own).write(&packed(document)?)?;
            }
            // A damaged one may have had the other form.
            for stale in [other, "failed"] {
                let _ = fs::remove_file(self.of_run(id, stale));
            }
        } else {
            file("failed").write(document)?;
        }
        Ok(Kept { document: id::sha256(document), facts, made_by })
    }

    /// What is left of a run that failed on a worker.
    pub fn failure(&self, id: &str) -> Option<RunFacts> {
        let bytes = fs::read(self.of_run(id, "failed")).ok()?;
        Document::read(&bytes).ok().map(|document| RunFacts::of(&document))
    }

    fn of_run(&self, id: &str, extension: &str) -> PathBuf {
        self.root.join("runs").join(format!("{id}.{extension}"))
    }

    /// Removes what writers that were killed left behind.
    fn clear_unfinished(&self) {
        for directory in [self.root.clone(), self.root.join("runs")] {
            let names = fs::read_dir(directory).into_iter().flatten().flatten();
            for entry in names.filter(|entry| entry.path().extension().is_some_and(|ends| ends == "part")) {
                let _ = fs::remove_file(entry.path());
            }
        }
    }
}

fn packed(document: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(document.len() / 8), Compression::fast());
    encoder.write_all(document)?;
    encoder.finish()
}

fn is_id(text: &str) -> bool {
    text.len() == 64 && text.chars().all(|c| c.is_ascii_hexdigit())
}
