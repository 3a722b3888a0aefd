//! Archive of results: an index, compressed documents, and series as Parquet.
//!
//! An archive is a directory. `documents/ab/ID.json.gz` contains each document, named by the SHA-256 of its
//! bytes; `series/ab/ID.parquet` its intervals and samples; `index.sqlite` is what [`Archive::find`] searches.
//! Only the documents and their notes (`ID.notes.json`: tags, source) are primary data; [`Archive::rebuild`]
//! recreates the rest.
//!
//! A document is completely on disk before the index refers to it, so a killed process loses at most the write
//! in progress. A writer that is killed leaves a mark, and the next opening brings index and documents into agreement.
#![forbid(unsafe_code)]

mod archive;
mod error;
mod export;
mod files;
mod id;
mod index;
mod location;
mod lookup;
mod marks;
mod opening;
mod query;
mod reading;
mod rows;
#[cfg(feature = "columns")]
mod series;
mod sets;
#[cfg(feature = "columns")]
mod table;
mod verify;

pub use archive::{Archive, Limits, Pruned, Stored, TagChange};
pub use error::ArchiveError;
pub use export::{csv, flent, openmetrics};
pub use id::Id;
pub use location::{ENV_VARIABLE, Location};
pub use query::{Condition, Operator, Query, QueryError};
pub use reading::{Reading, StoredPart, documents};
pub use rows::{ListedDocument, Row};
#[cfg(feature = "columns")]
pub use series::series;
#[cfg(feature = "columns")]
pub use table::records_table;
pub use verify::{Damage, Unreadable, Verification};
