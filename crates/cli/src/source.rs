//! Loads results by operand: files, a directory, a part of a sweep, an archive query.

use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow, bail};
use landspeed_archive::{Query, Reading, StoredPart, documents};
use landspeed_results::{Document, Record};
use landspeed_sys::file;

/// Prefix of operands that query the archive.
pub const ARCHIVE: &str = "archive:";
/// Extensions of results in a directory, each also with `.gz`.
const RESULT_EXTENSIONS: [&str; 6] = ["json", "jsonl", "ndjson", "flent", "txt", "log"];
/// Maximum number of levels listed in an error.
const MAX_LISTED: usize = 12;

/// Data that [`load`] keeps of each result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoadedData {
    /// The document and its records.
    Documents,
    /// Only the records, to save memory with thousands of documents.
    Records,
}

/// The results that an operand names.
#[derive(Debug, Clone, PartialEq)]
pub struct Source {
    /// The name given as `NAME=OPERAND`.
    pub name: Option<String>,
    /// The operand without the name.
    pub operand: String,
    /// The results, in the operand's order.
    pub items: Vec<Item>,
    /// Results that could not be read, with reasons.
    pub unreadable: Vec<Unreadable>,
    /// The factors that the operand fixes: `SWEEP.json:FACTOR=LEVEL`.
    pub fixed: Vec<String>,
}

/// A result with its records.
#[derive(Debug, Clone, PartialEq)]
pub struct Item {
    /// The file, or the id in the archive.
    pub origin: String,
    /// The document, if it is landspeed's and [`LoadedData::Documents`] was requested.
    pub document: Option<Document>,
    /// One record per measured flow.
    pub records: Vec<Record>,
}

/// A result that could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreadable {
    /// The file, or the id in the archive.
    pub origin: String,
    /// Reason, as text.
    pub why: String,
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.origin, self.why)
    }
}

/// Loads the results that an operand names: `FILE`, `FILE,FILE…`, `'runs/*.json'`, `DIRECTORY`,
/// `SWEEP.json:FACTOR=LEVEL[,FACTOR=LEVEL]` or `archive:QUERY`, each also as `NAME=OPERAND`. Results that
/// cannot be read are in [`Source::unreadable`].
///
/// # Errors
/// The operand names nothing: no such file, an empty directory, or a factor or level that is not in the sweep.
pub fn load(operand: &str, keep: LoadedData) -> anyhow::Result<Source> {
    let (name, operand) = named(operand);
    let mut source = Source {
        name: name.map(str::to_owned),
        operand: operand.to_owned(),
        items: Vec::new(),
        unreadable: Vec::new(),
        fixed: Vec::new(),
    };
    if let Some(query) = operand.strip_prefix(ARCHIVE) {
        return from_archive(source, query, keep);
    }
    if !Path::new(operand).exists()
        && let Some((file, levels)) = part_of_sweep(operand)
    {
        read_part(&mut source, file, levels, keep)?;
        return Ok(source);
    }
    for path in paths(operand)? {
        source.file(&path, keep);
    }
    Ok(source)
}

impl Source {
    /// Adds the documents of a file. Text in a directory that is no result is left out.
    fn file(&mut self, path: &Path, keep: LoadedData) {
        let origin = path.display().to_string();
        let is_text = path.extension().is_some_and(|extension| extension == "txt" || extension == "log");
        let optional = is_text && Path::new(&self.operand).is_dir();
        let mut unreadable = |origin: String, why: String| {
            if !optional {
                self.unreadable.push(Unreadable { origin, why });
            }
        };
        let parts = match parts(path) {
            Ok(parts) => parts,
            Err(why) => return unreadable(origin, why),
        };
        for StoredPart { line, bytes } in parts {
            let origin = line.map_or_else(|| origin.clone(), |line| format!("{origin}:{line}"));
            match read(&bytes) {
                Ok((document, records)) => {
                    let document = document.filter(|_| keep == LoadedData::Documents);
                    self.items.push(Item { origin, document, records });
                }
                Err(why) => unreadable(origin, why),
            }
        }
    }
}

/// Loads the archived documents with a matching record, oldest first. Records come from the index, so that
/// documents are only read for [`LoadedData::Documents`].
fn from_archive(mut source: Source, query: &str, keep: LoadedData) -> anyhow::Result<Source> {
    let query: Query = query.parse()?;
    let archive = crate::archive::open()?;
    let mut rows = archive.rows(&query).map_err(crate::archive::advised)?;
    rows.reverse();
    if rows.is_empty() {
        bail!("no record of the archive matches {query}\nSee what there is: `landspeed archive find`.");
    }
    let mut rows = rows.into_iter().peekable();
    while let Some(row) = rows.next() {
        let id = row.id;
        let mut records = vec![row.record];
        while let Some(next) = rows.next_if(|next| next.id == id) {
            records.push(next.record);
        }
        let origin = id.short().to_owned();
        let document = match keep {
            LoadedData::Records => None,
            LoadedData::Documents => {
                let bytes = archive.document(&id).map_err(|why| why.to_string());
                match bytes.and_then(|bytes| read(&bytes)) {
                    Ok((document, _)) => document,
                    Err(why) => {
                        source.unreadable.push(Unreadable { origin, why });
                        continue;
                    }
                }
            }
        };
        source.items.push(Item { origin, document, records });
    }
    Ok(source)
}

/// Splits `NAME=OPERAND`, unless the whole text is an existing file or the name contains path or glob characters.
fn named(text: &str) -> (Option<&str>, &str) {
    let word = |name: &str| {
        !name.is_empty() && !name.chars().any(|c| matches!(c, '/' | ':' | ',' | '*' | '?' | '[') || c.is_control())
    };
    match text.split_once('=') {
        Some((name, operand)) if word(name) && !operand.is_empty() && !Path::new(text).exists() => {
            (Some(name), operand)
        }
        _ => (None, text),
    }
}

/// Splits `SWEEP.json:FACTOR=LEVEL,FACTOR=LEVEL` into file and levels.
fn part_of_sweep(operand: &str) -> Option<(&str, &str)> {
    let cut = operand.match_indices(':').map(|(at, _)| (&operand[..at], &operand[at + 1..]));
    cut.into_iter().find(|(file, levels)| levels.contains('=') && Path::new(file).exists())
}

fn read_part(source: &mut Source, file: &str, levels: &str, keep: LoadedData) -> anyhow::Result<()> {
    let path = paths(file)?;
    let [path] = path.as_slice() else { bail!("cannot read a part of {file}: it is not one sweep.json") };
    let origin = format!("{}:{levels}", path.display());
    let parts = parts(path).map_err(|why| anyhow!("cannot read {}: {why}", path.display()))?;
    let [StoredPart { bytes, .. }] = parts.as_slice() else {
        bail!("cannot read a part of {}: it has {} documents", path.display(), parts.len());
    };
    let document = Document::read(bytes).with_context(|| format!("cannot read {}", path.display()))?;
    let Document::Sweep(mut sweep) = document else {
        bail!("cannot select {levels} in {}: it is a {} document, not a sweep", path.display(), document.kind());
    };
    for pair in levels.split(',') {
        let (factor, level) = pair.split_once('=').unwrap_or((pair, ""));
        let Some(known) = sweep.factors.iter().find(|known| known.name == factor || known.key == factor) else {
            let names: Vec<&str> = sweep.factors.iter().map(|known| known.name.as_str()).collect();
            bail!(
                "cannot select {pair} in {}: the sweep does not vary `{factor}`\nUse one of: {}.",
                path.display(),
                names.join(", ")
            );
        };
        let name = known.name.clone();
        let all: Vec<String> = known.levels.iter().map(plain).collect();
        let Some(wanted) = known.levels.iter().find(|known| plain(known) == level).cloned() else {
            let some = &all[..all.len().min(MAX_LISTED)];
            let more = if all.len() > some.len() { ", …" } else { "" };
            bail!(
                "cannot select {pair} in {}: `{name}` has no level `{level}`\nUse one of: {}{more}.",
                path.display(),
                some.join(", ")
            );
        };
        sweep.cells.retain(|cell| cell.levels.get(&name) == Some(&wanted));
        source.fixed.push(name);
    }
    let document = Document::Sweep(sweep);
    let records = document.records();
    source.items.push(Item { origin, document: Some(document).filter(|_| keep == LoadedData::Documents), records });
    Ok(())
}

/// Returns a value as text; strings without quotes.
fn plain(value: &serde_json::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Returns the files that an operand names, in order.
fn paths(operand: &str) -> anyhow::Result<Vec<PathBuf>> {
    let whole = Path::new(operand);
    if whole.exists() {
        return if whole.is_dir() { directory(whole) } else { Ok(vec![whole.to_owned()]) };
    }
    let mut all = Vec::new();
    for part in operand.split(',').filter(|part| !part.is_empty()) {
        let path = Path::new(part);
        if path.is_dir() {
            all.extend(directory(path)?);
        } else if path.exists() {
            all.push(path.to_owned());
        } else if part.contains(['*', '?', '[']) {
            let found = glob::glob(part).with_context(|| format!("cannot read {part}"))?;
            let before = all.len();
            all.extend(found.filter_map(Result::ok).filter(|path| path.is_file()));
            anyhow::ensure!(all.len() > before, "cannot read {part}: no file matches");
        } else {
            bail!("cannot read {part}: no such file or directory");
        }
    }
    anyhow::ensure!(!all.is_empty(), "cannot read `{operand}`: it names no file");
    Ok(all)
}

/// Returns the results in a directory, sorted by name: its sweep.json, else the runs of an unfinished sweep
/// (`PLAN.sweep/runs`), else the files with an extension of results.
fn directory(path: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let whole = path.join("sweep.json");
    if whole.is_file() {
        return Ok(vec![whole]);
    }
    let runs = path.join("runs");
    let within = if runs.is_dir() { &runs } else { path };
    let entries = std::fs::read_dir(within).with_context(|| format!("cannot read {}", within.display()))?;
    let mut files: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.is_file() && has_result_extension(path))
        .collect();
    files.sort();
    anyhow::ensure!(
        !files.is_empty(),
        "cannot read {}: it has no results (*.json, *.flent, *.txt …)",
        within.display()
    );
    Ok(files)
}

/// Whether a file name is one of results; others in a directory, such as plans, are not read.
fn has_result_extension(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy().to_ascii_lowercase()).unwrap_or_default();
    let name = name.strip_suffix(".gz").unwrap_or(&name);
    Path::new(name).extension().is_some_and(|extension| RESULT_EXTENSIONS.iter().any(|known| extension == *known))
}

/// Reads a document and its records, as `archive import` does.
fn read(bytes: &[u8]) -> Result<(Option<Document>, Vec<Record>), String> {
    let reading = Reading::of(bytes).map_err(|why| why.to_string())?;
    match reading.document {
        Some(document) => {
            let records = document.records();
            Ok((Some(document), records))
        }
        None if reading.understood => Ok((None, reading.records)),
        // The archive keeps documents of later versions; they cannot be compared.
        None => Err(Document::read(bytes).map_or_else(|why| why.to_string(), |_| "unknown".to_owned())),
    }
}

/// The documents in a file.
fn parts(path: &Path) -> Result<Vec<StoredPart>, String> {
    let bytes = file::read(path, file::MAX_DOCUMENT_BYTES).map_err(|error| error.to_string())?;
    documents(&bytes).map_err(|why| why.to_string())
}
