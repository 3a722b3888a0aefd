//! The index: schema, opening, and conversion of SQLite errors.

use std::path::{Path, PathBuf};
use std::time::Duration;

use landspeed_model::Metric;
use landspeed_sys::clock;
use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};

use crate::ArchiveError;

/// Schema version, stored in `user_version`.
pub const VERSION: i64 = 1;

/// Maximum wait of a writer for another one.
const BUSY: Duration = Duration::from_secs(20);

/// Tables of schema version 1, without the columns of the metrics.
const SCHEMA: &str = "
CREATE TABLE documents (
  seq INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  kind TEXT NOT NULL,
  schema TEXT NOT NULL,
  started INTEGER,
  stored INTEGER NOT NULL,
  title TEXT,
  tool TEXT NOT NULL,
  bytes INTEGER NOT NULL,
  command TEXT NOT NULL,
  source TEXT,
  understood INTEGER NOT NULL
);
CREATE INDEX documents_order ON documents (coalesce(started, stored));
CREATE TABLE sets (seq INTEGER PRIMARY KEY, hash BLOB NOT NULL UNIQUE);
CREATE TABLE set_values (
  set_seq INTEGER NOT NULL REFERENCES sets (seq) ON DELETE CASCADE,
  key TEXT NOT NULL,
  value TEXT NOT NULL,
  PRIMARY KEY (set_seq, key)
) WITHOUT ROWID;
CREATE INDEX set_values_key ON set_values (key, value);
CREATE TABLE records (
  seq INTEGER PRIMARY KEY,
  document INTEGER NOT NULL REFERENCES documents (seq) ON DELETE CASCADE,
  summary INTEGER NOT NULL,
  started INTEGER,
  started_text TEXT NOT NULL,
  title TEXT,
  flow TEXT,
  target TEXT,
  client TEXT,
  server TEXT,
  kernel TEXT,
  cause TEXT,
  confidence TEXT,
  status TEXT NOT NULL,
  tool TEXT NOT NULL,
  seed INTEGER,
  digest TEXT,
  block INTEGER,
  control INTEGER NOT NULL,
  streams TEXT,
  settings INTEGER REFERENCES sets (seq),
  facts INTEGER REFERENCES sets (seq)
);
CREATE INDEX records_document ON records (document);
CREATE INDEX records_started ON records (started);
CREATE INDEX records_client ON records (client, started);
CREATE INDEX records_server ON records (server, started);
CREATE INDEX records_target ON records (target, started);
CREATE INDEX records_settings ON records (settings);
CREATE INDEX records_facts ON records (facts);
CREATE TABLE tags (
  document INTEGER NOT NULL REFERENCES documents (seq) ON DELETE CASCADE,
  tag TEXT NOT NULL,
  PRIMARY KEY (document, tag)
) WITHOUT ROWID;
CREATE INDEX tags_tag ON tags (tag);
";

/// Opens the index of an archive; creates it if missing, for its owner only.
pub fn open(path: &Path) -> Result<Connection, ArchiveError> {
    // SQLite gives the files that it adds the same mode. If this fails, SQLite says why.
    let _ = landspeed_sys::file::create_new_private(path);
    open_for_writing(path, false)
}

/// Opens the existing index on a full file system: without the shared-memory file, for which there is no space. Other
/// processes wait until the connection is closed.
pub fn open_on_full_disk(path: &Path) -> Result<Connection, ArchiveError> {
    open_for_writing(path, true)
}

fn open_for_writing(path: &Path, exclusively: bool) -> Result<Connection, ArchiveError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags).map_err(|why| explain(path, why))?;
    prepare(&mut connection, exclusively).map_err(|why| explain(path, why))?;
    migrate(&mut connection, path)?;
    Ok(connection)
}

/// Creates an index in memory.
pub fn open_in_memory() -> Result<Connection, ArchiveError> {
    let path = Path::new(":memory:");
    let mut connection = Connection::open_in_memory().map_err(|why| explain(path, why))?;
    connection.pragma_update(None, "foreign_keys", true).map_err(|why| explain(path, why))?;
    migrate(&mut connection, path)?;
    Ok(connection)
}

/// Opens the index of an archive that this process cannot or must not write, without creating files beside it. `None` if
/// it cannot be used in this way: its schema is earlier, or rows are in a write-ahead log that cannot be read.
pub fn open_read_only(path: &Path) -> Result<Option<Connection>, ArchiveError> {
    let escaped = path.to_string_lossy().replace('%', "%25").replace('?', "%3f").replace('#', "%23");
    let open = |option: &str| -> Result<Option<Connection>, ArchiveError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_URI;
        let uri = PathBuf::from(format!("file:{escaped}?{option}=1"));
        let connection = Connection::open_with_flags(uri, flags).map_err(|why| explain(path, why))?;
        let read = || -> rusqlite::Result<()> {
            connection.busy_timeout(BUSY)?;
            connection.pragma_update(None, "temp_store", "MEMORY")
        };
        read().map_err(|why| explain(path, why))?;
        let is_current = version(&connection, path)? == VERSION
            && missing_metrics(&connection).map_err(|why| explain(path, why))?.is_empty();
        Ok(is_current.then_some(connection))
    };
    let beside = |end: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(end);
        std::fs::metadata(name)
    };
    // SQLite would create the write-ahead log that belongs to the shared-memory file.
    let shared =
        if beside("-shm").is_ok() && beside("-wal").is_ok() { open("readonly_shm").map(Some) } else { Ok(None) };
    match shared {
        Ok(None) | Err(ArchiveError::Index { .. }) => {
            // Without a shared-memory file no process is writing; `immutable` ignores the write-ahead log.
            if beside("-wal").is_ok_and(|log| log.len() > 0) { Ok(None) } else { open("immutable") }
        }
        Ok(Some(index)) => Ok(index),
        Err(why) => Err(why),
    }
}

fn prepare(connection: &mut Connection, exclusively: bool) -> rusqlite::Result<()> {
    connection.busy_timeout(BUSY)?;
    connection.set_prepared_statement_cache_capacity(64);
    if exclusively {
        // Before the first access: the index of the write-ahead log is then in memory, and so is everything temporary.
        connection.pragma_update(None, "locking_mode", "EXCLUSIVE")?;
        connection.pragma_update(None, "temp_store", "MEMORY")?;
    }
    let mode: String = connection.pragma_query_value(None, "journal_mode", |row| row.get(0))?;
    if mode != "wal" {
        into_wal(connection)?;
    }
    // In WAL mode, NORMAL always keeps the index consistent; a power failure can lose the last rows, which
    // `verify` restores from their documents.
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    connection.pragma_update(None, "foreign_keys", true)
}

/// Switches to WAL mode. This needs exclusive access, for which SQLite does not wait by itself.
fn into_wal(connection: &Connection) -> rusqlite::Result<()> {
    let deadline_ns = clock::monotonic_ns() + BUSY.as_nanos() as u64;
    loop {
        match connection.pragma_update(None, "journal_mode", "WAL") {
            Err(why) if is_busy(&why) && clock::monotonic_ns() < deadline_ns => {
                clock::sleep_until(clock::monotonic_ns() + 2_000_000);
            }
            other => return other,
        }
    }
}

fn is_busy(why: &rusqlite::Error) -> bool {
    matches!(why.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}

/// Returns the schema version; an error if it is newer than supported.
fn version(connection: &Connection, path: &Path) -> Result<i64, ArchiveError> {
    let found: i64 =
        connection.pragma_query_value(None, "user_version", |row| row.get(0)).map_err(|why| explain(path, why))?;
    if found > VERSION {
        return Err(ArchiveError::NewerIndex { path: path.to_owned(), found, known: VERSION });
    }
    Ok(found)
}

/// Returns the metrics for which the index has no column.
fn missing_metrics(connection: &Connection) -> rusqlite::Result<Vec<Metric>> {
    let mut columns = connection.prepare("SELECT name FROM pragma_table_info('records')")?;
    let names: Vec<String> = columns.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
    Ok(Metric::ALL.into_iter().filter(|metric| !names.iter().any(|name| name == metric.field())).collect())
}

/// Upgrades the schema to this version in one transaction.
fn migrate(connection: &mut Connection, path: &Path) -> Result<(), ArchiveError> {
    if version(connection, path)? == VERSION
        && missing_metrics(connection).map_err(|why| explain(path, why))?.is_empty()
    {
        return Ok(());
    }
    let explained = |why| explain(path, why);
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(explained)?;
    // Another process may have created the tables first.
    if version(&transaction, path)? == 0 {
        transaction.execute_batch(SCHEMA).map_err(explained)?;
        transaction.pragma_update(None, "user_version", VERSION).map_err(explained)?;
    }
    // Add columns for metrics that the index lacks; earlier records have no value for them.
    for metric in missing_metrics(&transaction).map_err(explained)? {
        let add = format!("ALTER TABLE records ADD COLUMN {} REAL", metric.field());
        transaction.execute_batch(&add).map_err(explained)?;
    }
    transaction.commit().map_err(explained)
}

/// Converts an error of SQLite.
pub fn explain(path: &Path, why: rusqlite::Error) -> ArchiveError {
    match why.sqlite_error_code() {
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            ArchiveError::DamagedIndex { path: path.to_owned(), why: why.to_string() }
        }
        _ if why.to_string().contains("no such table") || why.to_string().contains("no such column") => {
            ArchiveError::DamagedIndex { path: path.to_owned(), why: why.to_string() }
        }
        _ => ArchiveError::Index { path: path.to_owned(), source: why },
    }
}

/// Whether an index could not be opened because the file system is full or cannot be written. SQLite has several codes
/// for each.
pub fn is_write_failure(why: &ArchiveError) -> bool {
    let ArchiveError::Index { source, .. } = why else { return false };
    matches!(
        source.sqlite_error_code(),
        Some(
            ErrorCode::ReadOnly
                | ErrorCode::CannotOpen
                | ErrorCode::PermissionDenied
                | ErrorCode::DiskFull
                | ErrorCode::SystemIoFailure
        )
    )
}
