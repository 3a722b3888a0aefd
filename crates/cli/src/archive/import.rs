//! `landspeed archive import`.

use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use landspeed_archive::{Archive, ArchiveError, Id, StoredPart, TagChange, documents};
use landspeed_sys::file::{self, MAX_DOCUMENT_BYTES};

use super::{advised, directory};
use crate::{CommandOutcome, keep, text};

/// Options of `archive import`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  landspeed archive import run.json lab.json           documents of landspeed
  landspeed archive import iperf3-*.json --tag before  iperf3 --json, of any release from 3.1
  landspeed archive import rrul-*.flent.gz             flent
  landspeed archive import throughput.json             perfSONAR: pscheduler result, or an answer of its archive
  nuttcp -fparse dtn2 | landspeed archive import -     nuttcp

Files are kept as they are (gzip data decompressed); what is there already is not stored twice. A file to which several JSON
documents were appended is stored as several; text around them is left out. A directory stands for the files in it; those that
are no results are left out.")]
pub struct Args {
    /// Files or directories (- for standard input)
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Tag what is imported
    #[arg(long, value_name = "TAG")]
    tag: Vec<String>,
    /// Print the id of each document when it is stored
    #[arg(long)]
    ids: bool,
    /// Print errors only
    #[arg(short, long)]
    quiet: bool,
}

/// Documents per batch; each batch is one transaction.
const BATCH_DOCUMENTS: usize = 64;
/// Bytes per batch, which are in memory at once.
const BATCH_BYTES: usize = 64 << 20;
/// Maximum number of errors printed; further errors are only counted.
const MAX_PRINTED_ERRORS: u64 = 20;

pub fn main(args: &Args) -> anyhow::Result<CommandOutcome> {
    let mut archive = Archive::open(&directory()?).map_err(advised)?;
    if archive.is_new() {
        keep::print_location(&archive);
    }
    let mut import =
        Import { args, archive: &mut archive, batch: Vec::new(), bytes: 0, new: 0, known: 0, left_out: 0, failed: 0 };
    for path in &args.files {
        if path.as_os_str() == "-" {
            let bytes =
                file::read_from(io::stdin().lock(), MAX_DOCUMENT_BYTES).context("cannot read standard input")?;
            import.content(&bytes, "standard input", true)?;
        } else if path.is_dir() {
            let mut files = Vec::new();
            walk(path, &mut files).with_context(|| format!("cannot read {}", path.display()))?;
            for file in files {
                import.file(&file, false)?;
            }
        } else {
            import.file(path, true)?;
        }
    }
    import.flush()?;
    let Import { new, known, left_out, failed, .. } = import;
    if !args.quiet && !args.ids {
        let mut line = format!("{} stored", text::plural(new, "document"));
        for (count, what) in [(known, "there already"), (left_out, "no results"), (failed, "not imported")] {
            if count > 0 {
                line += &format!(", {count} {what}");
            }
        }
        outln!("{line}");
    }
    Ok(if failed > 0 { CommandOutcome::Findings } else { CommandOutcome::Clean })
}

/// Appends the files below a directory, sorted by name.
fn walk(directory: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    let mut entries = std::fs::read_dir(directory)?.collect::<Result<Vec<_>, _>>()?;
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let kind = entry.file_type()?;
        // Symbolic links are not followed: they may form a loop.
        if kind.is_dir() {
            walk(&entry.path(), files)?;
        } else if kind.is_file() {
            files.push(entry.path());
        }
    }
    Ok(())
}

struct Document {
    content: Vec<u8>,
    source: String,
    /// Whether the user named the file: it must then be a result.
    named: bool,
}

struct Import<'a> {
    args: &'a Args,
    archive: &'a mut Archive,
    batch: Vec<Document>,
    bytes: usize,
    new: u64,
    known: u64,
    left_out: u64,
    failed: u64,
}

impl Import<'_> {
    fn file(&mut self, path: &Path, named: bool) -> anyhow::Result<()> {
        let source = path.display().to_string();
        match file::read(path, MAX_DOCUMENT_BYTES) {
            Ok(bytes) => self.content(&bytes, &source, named),
            Err(why) => {
                self.fail(&source, &why);
                Ok(())
            }
        }
    }

    fn content(&mut self, bytes: &[u8], source: &str, named: bool) -> anyhow::Result<()> {
        match documents(bytes) {
            Ok(parts) => {
                for StoredPart { line, bytes } in parts {
                    let source = line.map_or_else(|| source.to_owned(), |line| format!("{source}:{line}"));
                    self.document(bytes, source, named)?;
                }
            }
            // A damaged result is named; a picture beside the results is not.
            Err(_) if !named && !is_result_name(source) => self.left_out += 1,
            Err(why) => self.fail(source, &why),
        }
        Ok(())
    }

    fn document(&mut self, content: Vec<u8>, source: String, named: bool) -> anyhow::Result<()> {
        self.bytes += content.len();
        self.batch.push(Document { content, source, named });
        if self.batch.len() >= BATCH_DOCUMENTS || self.bytes >= BATCH_BYTES { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> anyhow::Result<()> {
        self.bytes = 0;
        let mut batch = std::mem::take(&mut self.batch);
        let documents: Vec<(Vec<u8>, Option<String>)> = batch
            .iter_mut()
            .map(|document| (std::mem::take(&mut document.content), Some(document.source.clone())))
            .collect();
        let results = self.archive.import(&documents).map_err(advised)?;
        for (document, result) in batch.iter().zip(results) {
            match result {
                Ok(stored) => {
                    if stored.is_new {
                        self.new += 1;
                    } else {
                        self.known += 1;
                    }
                    self.tag(&stored.id)?;
                    if self.args.ids {
                        outln!("{}", stored.id);
                    }
                }
                Err(ArchiveError::NoResult(_)) if !document.named => self.left_out += 1,
                Err(why @ ArchiveError::NoResult(_)) => self.fail(&document.source, &why),
                Err(why) => return Err(advised(why)),
            }
        }
        Ok(())
    }

    fn tag(&mut self, id: &Id) -> anyhow::Result<()> {
        if self.args.tag.is_empty() {
            return Ok(());
        }
        let change = TagChange { add: self.args.tag.iter().cloned().collect(), ..TagChange::default() };
        self.archive.tag(id, &change).map(drop).map_err(advised)
    }

    fn fail(&mut self, source: &str, why: &dyn std::fmt::Display) {
        self.failed += 1;
        if self.failed <= MAX_PRINTED_ERRORS {
            errln!("landspeed: cannot import {source}: {why}");
        } else if self.failed == MAX_PRINTED_ERRORS + 1 {
            errln!("landspeed: more files cannot be imported; the last line counts them");
        }
    }
}

/// Whether a file in a directory is a result by its name.
fn is_result_name(source: &str) -> bool {
    let extension = Path::new(source).extension().map(std::ffi::OsStr::to_ascii_lowercase);
    extension.is_some_and(|extension| ["json", "jsonl", "flent", "gz"].iter().any(|known| extension == *known))
}
