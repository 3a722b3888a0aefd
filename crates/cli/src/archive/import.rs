//! `landspeed archive import`.

use std::borrow::Cow;
use std::io::{self, BufRead, Read as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};
use landspeed_archive::{Archive, ArchiveError, Id, TagChange, inflate};
use landspeed_sys::file::{self, MAX_DOCUMENT_BYTES, too_large};

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

Files are kept as they are (gzip data decompressed); what is there already is not stored twice. A file of JSON documents, one a
line, is several documents. A directory stands for the files in it; those that are no results are left out.")]
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
            import.lines(io::stdin().lock(), "standard input")?;
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
            Ok(bytes) => self.content(bytes, source, named),
            Err(why) => {
                self.fail(&source, &why);
                Ok(())
            }
        }
    }

    fn content(&mut self, bytes: Vec<u8>, source: String, named: bool) -> anyhow::Result<()> {
        let plain = match inflate(&bytes) {
            Ok(Cow::Owned(plain)) => plain,
            Ok(Cow::Borrowed(_)) => bytes,
            Err(why) => {
                self.fail(&source, &why);
                return Ok(());
            }
        };
        let first = plain.iter().position(|byte| *byte == b'\n').unwrap_or(plain.len());
        if is_lines(&plain) && !plain[first..].trim_ascii().is_empty() {
            return self.lines(plain.as_slice(), &source);
        }
        self.document(plain, source, named)
    }

    /// Imports one document per line, or the whole input as one document.
    fn lines(&mut self, mut input: impl BufRead, source: &str) -> anyhow::Result<()> {
        let read = |why| anyhow!("cannot read {source}: {why}");
        let mut first = Vec::new();
        read_line(&mut input, &mut first).map_err(read)?;
        if !is_lines(&first) {
            input.take(MAX_DOCUMENT_BYTES + 1 - first.len() as u64).read_to_end(&mut first).map_err(read)?;
            check_size(&first).map_err(read)?;
            let plain = match inflate(&first) {
                Ok(plain) => plain.into_owned(),
                Err(why) => {
                    self.fail(source, &why);
                    return Ok(());
                }
            };
            return self.document(plain, source.to_owned(), true);
        }
        let mut line = first;
        let mut number = 1_u64;
        while !line.is_empty() {
            let content = line.trim_ascii().to_vec();
            if !content.is_empty() {
                self.document(content, format!("{source}:{number}"), true)?;
            }
            line.clear();
            read_line(&mut input, &mut line).map_err(read)?;
            number += 1;
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

/// Reads a line of at most [`MAX_DOCUMENT_BYTES`].
fn read_line(input: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<()> {
    input.take(MAX_DOCUMENT_BYTES + 1).read_until(b'\n', line)?;
    check_size(line)
}

fn check_size(bytes: &[u8]) -> io::Result<()> {
    if bytes.len() as u64 > MAX_DOCUMENT_BYTES { Err(too_large(MAX_DOCUMENT_BYTES)) } else { Ok(()) }
}

/// Whether the first line is a complete JSON object and not an event: the file then has one document per line.
fn is_lines(bytes: &[u8]) -> bool {
    let Some(end) = bytes.iter().position(|byte| *byte == b'\n') else { return false };
    let line: Result<serde_json::Map<String, serde_json::Value>, _> = serde_json::from_slice(&bytes[..end]);
    line.is_ok_and(|document| !document.contains_key("event"))
}
