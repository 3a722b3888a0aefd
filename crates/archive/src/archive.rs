//! The archive: stores documents; finds and returns documents and records.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use landspeed_results::Record;
use landspeed_sys::clock;
use landspeed_sys::trust::Untrusted;
use landspeed_units::Nanos;
use rusqlite::{Connection, TransactionBehavior};

use crate::files::{Files, Notes, Sync, modified_ns};
use crate::lookup::Detail;
use crate::marks::Mark;
use crate::rows::{ListedDocument, Row, StorageInfo};
use crate::{ArchiveError, Id, Query, Reading, id, index, lookup, rows};

/// An archive of results in a directory.
#[derive(Debug)]
pub struct Archive {
    pub(crate) files: Files,
    pub(crate) index: Connection,
    pub(crate) index_path: PathBuf,
    pub(crate) is_new: bool,
    /// Reason why the archive must not be changed.
    pub(crate) protection: Option<Protection>,
    /// Reason why documents that a killed process left may be missing in the index.
    pub(crate) unadopted: Option<ArchiveError>,
}

/// Reason why an archive must not be changed.
#[derive(Debug, Clone)]
pub enum Protection {
    /// Another user could have written to it.
    Untrusted(Untrusted),
    /// This process cannot write to it.
    ReadOnly,
}

/// Result of storing a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// Id of the document.
    pub id: Id,
    /// Whether it was not in the archive before.
    pub is_new: bool,
}

/// Tags to add to and remove from a document.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TagChange {
    /// Tags to add.
    pub add: BTreeSet<String>,
    /// Tags to remove.
    pub remove: BTreeSet<String>,
}

/// Criteria of documents to remove: those that exceed any of the limits.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Limits {
    /// Age: remove documents that started longer ago than this.
    pub older_than: Option<Nanos>,
    /// Number: keep this many of the newest documents.
    pub keep: Option<u64>,
    /// Size: remove the oldest documents until the files of the archive take at most this many bytes.
    pub max_bytes: Option<u64>,
    /// Only documents of these kinds; empty for all.
    pub kinds: Vec<String>,
    /// Whether tagged documents are removed too.
    pub tagged: bool,
}

/// A document that exceeds the limits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pruned {
    /// The document's row in the index.
    pub document: ListedDocument,
    /// Size of its files, bytes.
    pub file_bytes: u64,
}

/// A document that is stored as a file but not indexed yet.
struct Prepared {
    id: Id,
    reading: Option<Reading>,
    bytes: usize,
    notes: Notes,
}

impl Archive {
    /// Directory of the archive.
    pub fn directory(&self) -> &Path {
        self.files.root()
    }

    /// Whether [`Archive::open`] created the archive.
    pub fn is_new(&self) -> bool {
        self.is_new
    }

    pub(crate) fn explain(&self) -> impl Fn(rusqlite::Error) -> ArchiveError + use<> {
        let path = self.index_path.clone();
        move |why| index::explain(&path, why)
    }

    /// Stores a document unchanged. When this returns, the document survives a power failure.
    ///
    /// # Errors
    /// If the bytes are not a result, or cannot be written.
    pub fn insert(&mut self, bytes: &[u8]) -> Result<Id, ArchiveError> {
        let mark = self.begin_writing()?;
        let prepared = match self.prepare(bytes, Notes::default(), Sync::Yes) {
            Ok(prepared) => prepared,
            Err(why) => {
                mark.end();
                return Err(why);
            }
        };
        let id = prepared.id.clone();
        self.commit(vec![prepared])?;
        mark.end();
        Ok(id)
    }

    /// Checks that the archive may be changed, and marks it as being changed.
    fn begin_writing(&self) -> Result<Mark, ArchiveError> {
        self.check_writable()?;
        Mark::begin(&self.files).map_err(ArchiveError::file("write to", self.directory()))
    }

    /// Stores documents, each given by its content ([`crate::documents`]) and file name.
    /// Parses them on all cores and indexes them in one transaction. Does not sync the files, because they can be
    /// imported again.
    ///
    /// # Errors
    /// If the index cannot be written. Errors of single documents are in their place in the list.
    pub fn import(
        &mut self,
        documents: &[(Vec<u8>, Option<String>)],
    ) -> Result<Vec<Result<Stored, ArchiveError>>, ArchiveError> {
        let threads =
            std::thread::available_parallelism().map_or(1, std::num::NonZero::get).min(documents.len()).max(1);
        let part = documents.len().div_ceil(threads).max(1);
        let known = |bytes: &[u8]| {
            let id = Id::of(bytes);
            let known = matches!(rows::sequence(&self.index, &id), Ok(Some(_))) && self.files.document(&id).exists();
            known.then_some(id)
        };
        let known: Vec<Option<Id>> = documents.iter().map(|(bytes, _)| known(bytes)).collect();
        let mark = self.begin_writing()?;
        let files = &self.files;
        let read: Vec<Result<Prepared, ArchiveError>> = std::thread::scope(|scope| {
            let workers: Vec<_> = documents
                .chunks(part)
                .zip(known.chunks(part))
                .map(|(documents, known)| {
                    let of = move |((bytes, source), known): (&(Vec<u8>, Option<String>), &Option<Id>)| match known {
                        Some(id) => Ok(Prepared::known(id.clone())),
                        None => Prepared::write(
                            files,
                            bytes,
                            Notes { source: source.clone(), ..Notes::default() },
                            Sync::No,
                        ),
                    };
                    scope.spawn(move || documents.iter().zip(known).map(of).collect::<Vec<_>>())
                })
                .collect();
            workers
                .into_iter()
                .flat_map(|worker| worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
                .collect()
        });
        let mut prepared = Vec::new();
        let places: Vec<Result<usize, ArchiveError>> = read
            .into_iter()
            .map(|one| {
                prepared.push(one?);
                Ok(prepared.len() - 1)
            })
            .collect();
        let stored = self.commit(prepared)?;
        mark.end();
        Ok(places.into_iter().map(|place| place.map(|at| stored[at].clone())).collect())
    }

    fn prepare(&self, bytes: &[u8], notes: Notes, sync: Sync) -> Result<Prepared, ArchiveError> {
        let id = Id::of(bytes);
        if rows::sequence(&self.index, &id).map_err(self.explain())?.is_some() && self.files.document(&id).exists() {
            return Ok(Prepared::known(id));
        }
        Prepared::write(&self.files, bytes, notes, sync)
    }

    /// Adds documents that are stored as files to the index.
    fn commit(&mut self, prepared: Vec<Prepared>) -> Result<Vec<Stored>, ArchiveError> {
        let explain = self.explain();
        let stored_ns = clock::realtime_ns() as i64;
        let transaction = self.index.transaction_with_behavior(TransactionBehavior::Immediate).map_err(&explain)?;
        let mut stored = Vec::with_capacity(prepared.len());
        for Prepared { id, reading, bytes, notes } in prepared {
            let is_new = match reading {
                Some(reading) => {
                    rows::insert(&transaction, &id, &reading, &StorageInfo { stored_ns, bytes, notes: &notes })
                        .map_err(&explain)?
                }
                None => false,
            };
            stored.push(Stored { id, is_new });
        }
        transaction.commit().map_err(&explain)?;
        Ok(stored)
    }

    /// Adds a document that is stored as a file to the index, with its notes.
    pub(crate) fn add_to_index(&self, id: &Id, bytes: &[u8]) -> Result<bool, ArchiveError> {
        let reading = Reading::of(bytes)?;
        let notes = self.files.read_notes(id).unwrap_or_default();
        let stored_ns = modified_ns(&self.files.document(id));
        let arrival = StorageInfo { stored_ns, bytes: bytes.len(), notes: &notes };
        rows::insert(&self.index, id, &reading, &arrival).map_err(self.explain())
    }

    /// Returns the matching records, newest first. Their `settings` and `hosts` are empty; [`Archive::records`]
    /// includes them.
    ///
    /// # Errors
    /// If the index cannot be read.
    pub fn find(&self, query: &Query) -> Result<Vec<Row>, ArchiveError> {
        lookup::find(&self.index, query, None, Detail::Figures).map_err(self.explain())
    }

    /// [`Archive::find`], limited to the `limit` newest records.
    ///
    /// # Errors
    /// If the index cannot be read.
    pub fn find_newest(&self, query: &Query, limit: u64) -> Result<Vec<Row>, ArchiveError> {
        lookup::find(&self.index, query, Some(limit), Detail::Figures).map_err(self.explain())
    }

    /// Returns the number of matching records.
    ///
    /// # Errors
    /// If the index cannot be read.
    pub fn count(&self, query: &Query) -> Result<u64, ArchiveError> {
        lookup::count(&self.index, query).map_err(self.explain())
    }

    /// Returns the matching records with settings and hosts, newest first, each with the id of its document.
    ///
    /// # Errors
    /// If the index cannot be read.
    pub fn records(&self, query: &Query) -> Result<Vec<(Id, Record)>, ArchiveError> {
        Ok(self.rows(query)?.into_iter().map(|row| (row.id, row.record)).collect())
    }

    /// Returns the matching rows with settings and hosts, newest first.
    ///
    /// # Errors
    /// If the index cannot be read.
    pub fn rows(&self, query: &Query) -> Result<Vec<Row>, ArchiveError> {
        lookup::find(&self.index, query, None, Detail::Everything).map_err(self.explain())
    }

    /// Returns the documents with a matching record, newest first, at most `limit`.
    ///
    /// # Errors
    /// If the index cannot be read.
    pub fn documents(&self, query: &Query, limit: Option<u64>) -> Result<Vec<ListedDocument>, ArchiveError> {
        lookup::documents(&self.index, query, limit).map_err(self.explain())
    }

    /// Returns the number of documents.
    ///
    /// # Errors
    /// If the index cannot be read.
    pub fn count_documents(&self) -> Result<u64, ArchiveError> {
        let count = self.index.query_row("SELECT count(*) FROM documents", [], |row| row.get::<_, i64>(0));
        Ok(count.map_err(self.explain())? as u64)
    }

    /// Returns the bytes of a document, exactly as stored.
    ///
    /// # Errors
    /// If it is missing or damaged.
    pub fn document(&self, id: &Id) -> Result<Vec<u8>, ArchiveError> {
        self.files.read_document(id)
    }

    /// Returns the document whose id begins with `prefix`.
    ///
    /// # Errors
    /// If there is none, or more than one.
    pub fn resolve(&self, prefix: &str) -> Result<ListedDocument, ArchiveError> {
        let unknown = || ArchiveError::Unknown { prefix: prefix.to_owned() };
        let lower = prefix.to_ascii_lowercase();
        if !id::is_prefix(&lower) {
            return Err(unknown());
        }
        let mut query = Query::all();
        query.push(crate::Condition::Id(lower));
        let mut found = self.documents(&query, None)?;
        match found.len() {
            0 => Err(unknown()),
            1 => Ok(found.remove(0)),
            count => Err(ArchiveError::Ambiguous { prefix: prefix.to_owned(), count: count as u64 }),
        }
    }

    /// Adds and removes tags of a document. Returns its new tags.
    ///
    /// # Errors
    /// If the notes or the index cannot be written.
    pub fn tag(&mut self, id: &Id, change: &TagChange) -> Result<BTreeSet<String>, ArchiveError> {
        let mark = self.begin_writing()?;
        let explain = self.explain();
        // The transaction prevents concurrent changes of the notes.
        let transaction = self.index.transaction_with_behavior(TransactionBehavior::Immediate).map_err(&explain)?;
        let document = rows::sequence(&transaction, id)
            .map_err(&explain)?
            .ok_or_else(|| ArchiveError::Unknown { prefix: id.to_string() })?;
        let mut notes = self.files.read_notes(id)?;
        notes.tags.retain(|tag| !change.remove.contains(tag));
        notes.tags.extend(change.add.iter().cloned());
        self.files.write_notes(id, &notes, Sync::Yes)?;
        transaction.execute("DELETE FROM tags WHERE document = ?1", [document]).map_err(&explain)?;
        for tag in &notes.tags {
            rows::add_tag(&transaction, document, tag).map_err(&explain)?;
        }
        transaction.commit().map_err(&explain)?;
        mark.end();
        Ok(notes.tags)
    }

    /// Returns the documents that exceed the limits, oldest first.
    ///
    /// # Errors
    /// If the index cannot be read.
    pub fn prunable(&self, limits: &Limits) -> Result<Vec<Pruned>, ArchiveError> {
        let now_ns = clock::realtime_ns() as i64;
        let all = self.documents(&Query::all(), None)?;
        let age = |document: &ListedDocument| document.started_ns.unwrap_or(document.stored_ns);
        let size = |id: &Id| {
            let paths = [self.files.document(id), self.files.notes(id), self.files.series(id)];
            paths.iter().filter_map(|path| std::fs::metadata(path).ok()).map(|facts| facts.len()).sum::<u64>()
        };
        let sized: Vec<Pruned> = all
            .into_iter()
            .map(|document| Pruned {
                file_bytes: if limits.max_bytes.is_some() { size(&document.id) } else { 0 },
                document,
            })
            .collect();
        let mut total: u64 = sized.iter().map(|pruned| pruned.file_bytes).sum();
        let mut named = Vec::new();
        let eligible: Vec<Pruned> = sized
            .into_iter()
            .filter(|pruned| limits.kinds.is_empty() || limits.kinds.contains(&pruned.document.kind))
            .filter(|pruned| limits.tagged || pruned.document.tags.is_empty())
            .collect();
        let count = eligible.len() as u64;
        for (i, mut pruned) in eligible.into_iter().rev().enumerate() {
            let newer = count - 1 - i as u64;
            let old = limits
                .older_than
                .is_some_and(|span| age(&pruned.document) < now_ns.saturating_sub(span.get() as i64));
            let beyond = limits.keep.is_some_and(|keep| newer >= keep);
            let large = limits.max_bytes.is_some_and(|most| total > most);
            if old || beyond || large {
                pruned.file_bytes = size(&pruned.document.id);
                total = total.saturating_sub(pruned.file_bytes);
                named.push(pruned);
            }
        }
        Ok(named)
    }

    /// Removes documents in batches: first their files, which frees the space that the index needs, then from the index.
    ///
    /// # Errors
    /// If the index or a file cannot be written; documents removed before stay removed.
    pub fn remove(&mut self, ids: &[Id]) -> Result<(), ArchiveError> {
        self.check_writable()?;
        // There may be no space for a mark.
        let mark = Mark::begin(&self.files).ok();
        let mut indexed: Vec<Id> = Vec::new();
        for batch in ids.chunks(100) {
            for id in batch {
                self.files.remove(id)?;
            }
            indexed.extend_from_slice(batch);
            match self.remove_rows(&indexed) {
                Ok(()) => indexed.clear(),
                // The next batch frees more.
                Err(why) if why.is_full() => {}
                Err(why) => return Err(why),
            }
        }
        self.remove_rows(&indexed)?;
        if let Some(mark) = mark {
            mark.end();
        }
        match self.remove_unused_sets() {
            Err(why) if why.is_full() => Ok(()),
            done => done,
        }
    }

    fn remove_rows(&mut self, ids: &[Id]) -> Result<(), ArchiveError> {
        if ids.is_empty() {
            return Ok(());
        }
        let explain = self.explain();
        let transaction = self.index.transaction_with_behavior(TransactionBehavior::Immediate).map_err(&explain)?;
        for id in ids {
            transaction.execute("DELETE FROM documents WHERE id = ?1", [id.as_str()]).map_err(&explain)?;
        }
        transaction.commit().map_err(&explain)
    }

    /// Removes sets of settings that no record refers to.
    pub(crate) fn remove_unused_sets(&self) -> Result<(), ArchiveError> {
        const DELETE_UNUSED: &str = "DELETE FROM sets WHERE seq NOT IN (SELECT settings FROM records WHERE settings IS NOT NULL \
                              UNION SELECT facts FROM records WHERE facts IS NOT NULL)";
        self.index.execute(DELETE_UNUSED, []).map(drop).map_err(self.explain())
    }

    /// Path of a document's series file, if it exists.
    pub fn series_file(&self, id: &Id) -> Option<PathBuf> {
        Some(self.files.series(id)).filter(|path| path.exists())
    }
}

impl Prepared {
    /// A document that is already in the archive.
    fn known(id: Id) -> Self {
        Self { id, reading: None, bytes: 0, notes: Notes::default() }
    }

    /// Parses a document and writes its files.
    fn write(files: &Files, bytes: &[u8], notes: Notes, sync: Sync) -> Result<Self, ArchiveError> {
        let id = Id::of(bytes);
        let reading = Reading::of(bytes)?;
        if notes != Notes::default() {
            files.write_notes(&id, &notes, sync)?;
        }
        files.write_document(&id, bytes, sync)?;
        // A failure is ignored: `verify` writes missing series.
        let _ = write_series(files, &id, &reading);
        Ok(Self { id, reading: Some(reading), bytes: bytes.len(), notes })
    }
}

/// Writes the series of a document. Returns whether it has any.
#[cfg(feature = "columns")]
pub(crate) fn write_series(files: &Files, id: &Id, reading: &Reading) -> Result<bool, ArchiveError> {
    let Some(document) = &reading.document else { return Ok(false) };
    let Some(columns) = crate::series::series(document)? else { return Ok(false) };
    crate::files::write_whole(&files.series(id), &columns, Sync::No)?;
    Ok(true)
}

/// Without the feature `columns` there are no series.
#[cfg(not(feature = "columns"))]
pub(crate) fn write_series(_: &Files, _: &Id, _: &Reading) -> Result<bool, ArchiveError> {
    Ok(false)
}
