//! Rows of the index: written from documents, read as records.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use landspeed_model::{Confidence, Metric};
use landspeed_results::{Figures, Record, RecordStatus};
use rusqlite::{Connection, OptionalExtension as _, params, params_from_iter, types::Value};

use crate::files::Notes;
use crate::{Id, Reading, sets};

/// A record found by a query.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Id of its document.
    pub id: Id,
    /// Kind of the document.
    pub kind: String,
    /// Tags of the document, in order.
    pub tags: Vec<String>,
    /// Start, nanoseconds since the Unix epoch.
    pub started_ns: Option<i64>,
    /// Host name of the client.
    pub client: Option<String>,
    /// Host name of the server.
    pub server: Option<String>,
    /// The record; `settings` and `hosts` are empty unless requested.
    pub record: Record,
}

/// A document in a list, without its contents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedDocument {
    /// Id of the document.
    pub id: Id,
    /// `run`, `lab`, `iperf3` …
    pub kind: String,
    /// Schema such as `landspeed.run/1`.
    pub schema: String,
    /// Start, nanoseconds since the Unix epoch.
    pub started_ns: Option<i64>,
    /// Time of storing, nanoseconds since the Unix epoch.
    pub stored_ns: i64,
    /// Title, or name of a scenario or plan.
    pub title: Option<String>,
    /// Name and version of the measuring program.
    pub tool: String,
    /// Uncompressed size, bytes.
    pub bytes: u64,
    /// Command line; empty if unknown.
    pub command: Vec<String>,
    /// File that it was imported from, if any.
    pub source: Option<String>,
    /// Whether this version supports the document's schema.
    pub understood: bool,
    /// Tags in alphabetical order.
    pub tags: Vec<String>,
}

/// Parses an RFC 3339 time; returns nanoseconds since the Unix epoch.
pub fn nanoseconds(text: &str) -> Option<i64> {
    let system_time = humantime::parse_rfc3339_weak(text).ok()?;
    i64::try_from(system_time.duration_since(UNIX_EPOCH).ok()?.as_nanos()).ok()
}

/// Converts nanoseconds since the Unix epoch; earlier times become the epoch.
pub fn system_time(ns: i64) -> SystemTime {
    UNIX_EPOCH + Duration::from_nanos(u64::try_from(ns).unwrap_or(0))
}

/// Data about a document in addition to its contents.
pub struct StorageInfo<'a> {
    /// Time of storing, nanoseconds since the Unix epoch.
    pub stored_ns: i64,
    /// Uncompressed size, bytes.
    pub bytes: usize,
    /// Notes of the document.
    pub notes: &'a Notes,
}

/// Adds a document and its records. Returns whether the document is new.
pub fn insert(
    connection: &Connection,
    id: &Id,
    reading: &Reading,
    arrival: &StorageInfo<'_>,
) -> rusqlite::Result<bool> {
    let added = connection
        .prepare_cached(
            "INSERT OR IGNORE INTO documents (id, kind, schema, started, stored, title, tool, bytes, command, source, understood)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
        )?
        .execute(params![
            id.as_str(),
            reading.kind,
            reading.schema,
            nanoseconds(&reading.started),
            arrival.stored_ns,
            reading.title,
            reading.tool,
            arrival.bytes as i64,
            serde_json::to_string(&reading.command).unwrap_or_default(),
            arrival.notes.source,
            reading.understood,
        ])?;
    if added == 0 {
        return Ok(false);
    }
    let document = connection.last_insert_rowid();
    for record in &reading.records {
        insert_record(connection, document, reading.summarises, record)?;
    }
    for tag in &arrival.notes.tags {
        add_tag(connection, document, tag)?;
    }
    Ok(true)
}

/// Adds a tag to a document.
pub fn add_tag(connection: &Connection, document: i64, tag: &str) -> rusqlite::Result<()> {
    connection
        .prepare_cached("INSERT OR IGNORE INTO tags (document, tag) VALUES (?1, ?2)")?
        .execute(params![document, tag])?;
    Ok(())
}

/// Row number of a document, if it is in the index.
pub fn sequence(connection: &Connection, id: &Id) -> rusqlite::Result<Option<i64>> {
    connection
        .prepare_cached("SELECT seq FROM documents WHERE id = ?1")?
        .query_row([id.as_str()], |row| row.get(0))
        .optional()
}

/// Columns of a record before its metrics.
const COLUMNS: [&str; 19] = [
    "started",
    "started_text",
    "title",
    "flow",
    "target",
    "client",
    "server",
    "kernel",
    "cause",
    "confidence",
    "status",
    "tool",
    "seed",
    "digest",
    "block",
    "control",
    "streams",
    "settings",
    "facts",
];

fn insert_record(connection: &Connection, document: i64, summary: bool, record: &Record) -> rusqlite::Result<()> {
    let settings = sets::number(connection, &record.settings)?;
    let facts = sets::number(connection, &record.hosts)?;
    let text = |text: &Option<String>| text.clone().map_or(Value::Null, Value::Text);
    let number = |number: Option<i64>| number.map_or(Value::Null, Value::Integer);
    let host = |end: &str| record.hosts.get(&format!("{end}.hostname")).cloned();
    let streams =
        (!record.streams_bps.is_empty()).then(|| serde_json::to_string(&record.streams_bps).unwrap_or_default());
    let confidence = record.confidence.map(|confidence| word(confidence).to_owned());
    let mut values = vec![
        Value::Integer(document),
        Value::Integer(i64::from(summary)),
        number(nanoseconds(&record.started)),
        Value::Text(record.started.clone()),
        text(&record.title),
        text(&record.flow),
        text(&record.target),
        text(&host("client")),
        text(&host("server")),
        text(&record.kernel),
        text(&record.cause),
        text(&confidence),
        Value::Text(record.status.word().to_owned()),
        Value::Text(record.tool.clone()),
        // The same 64 bits as a signed integer, the only kind in SQLite.
        number(record.seed.map(|seed| seed as i64)),
        text(&record.digest),
        number(record.block.map(i64::from)),
        Value::Integer(i64::from(record.control)),
        text(&streams),
        number(settings),
        number(facts),
    ];
    values.extend(Metric::ALL.map(|metric| record.figures.get(metric).map_or(Value::Null, Value::Real)));
    let figures = Metric::ALL.map(Metric::field).join(", ");
    let places = vec!["?"; values.len()].join(", ");
    let insert =
        format!("INSERT INTO records (document, summary, {}, {figures}) VALUES ({places})", COLUMNS.join(", "));
    connection.prepare_cached(&insert)?.execute(params_from_iter(values))?;
    Ok(())
}

/// Columns for [`read`], of `records r` and `documents d`.
pub fn selected() -> String {
    let figures = Metric::ALL.map(|metric| format!("r.{}", metric.field())).join(", ");
    let columns = COLUMNS.map(|column| format!("r.{column}")).join(", ");
    format!(
        "d.id, d.kind, (SELECT group_concat(tag, char(10)) FROM tags t WHERE t.document = d.seq), {columns}, {figures}"
    )
}

/// Converts a row of [`selected`] to a record; also returns the numbers of its sets of settings and facts.
pub fn read(row: &rusqlite::Row<'_>) -> rusqlite::Result<(Row, Option<i64>, Option<i64>)> {
    let tags: Option<String> = row.get(2)?;
    let status: String = row.get(13)?;
    let seed: Option<i64> = row.get(15)?;
    let streams: Option<String> = row.get(19)?;
    let mut figures = Figures::default();
    for (i, metric) in Metric::ALL.into_iter().enumerate() {
        figures.set(metric, row.get(22 + i)?);
    }
    let mut record = Record::without_figures(row.get(14)?);
    record.started = row.get(4)?;
    record.title = row.get(5)?;
    record.flow = row.get(6)?;
    record.target = row.get(7)?;
    record.kernel = row.get(10)?;
    record.cause = row.get(11)?;
    record.confidence = row.get::<_, Option<String>>(12)?.and_then(|word| confidence(&word));
    record.status = RecordStatus::find(&status).unwrap_or(RecordStatus::Failed);
    record.seed = seed.map(|seed| seed as u64);
    record.digest = row.get(16)?;
    record.block = row.get(17)?;
    record.control = row.get(18)?;
    record.streams_bps = streams.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
    record.figures = figures;
    let found = Row {
        id: id(row, 0)?,
        kind: row.get(1)?,
        tags: lines(tags.as_deref()),
        started_ns: row.get(3)?,
        client: row.get(8)?,
        server: row.get(9)?,
        record,
    };
    Ok((found, row.get(20)?, row.get(21)?))
}

/// Columns for [`read_document`], of `documents d`.
pub const DOCUMENT: &str = "d.id, d.kind, d.schema, d.started, d.stored, d.title, d.tool, d.bytes, d.command, d.source, \
                            d.understood, (SELECT group_concat(tag, char(10)) FROM tags t WHERE t.document = d.seq)";

/// Converts a row of [`DOCUMENT`] to a document.
pub fn read_document(row: &rusqlite::Row<'_>) -> rusqlite::Result<ListedDocument> {
    let command: String = row.get(8)?;
    Ok(ListedDocument {
        id: id(row, 0)?,
        kind: row.get(1)?,
        schema: row.get(2)?,
        started_ns: row.get(3)?,
        stored_ns: row.get(4)?,
        title: row.get(5)?,
        tool: row.get(6)?,
        bytes: row.get::<_, i64>(7)? as u64,
        command: serde_json::from_str(&command).unwrap_or_default(),
        source: row.get(9)?,
        understood: row.get(10)?,
        tags: lines(row.get::<_, Option<String>>(11)?.as_deref()),
    })
}

fn id(row: &rusqlite::Row<'_>, column: usize) -> rusqlite::Result<Id> {
    let text: String = row.get(column)?;
    let wrong = || rusqlite::Error::InvalidColumnType(column, "id".to_owned(), rusqlite::types::Type::Text);
    Id::parse(&text).ok_or_else(wrong)
}

fn lines(text: Option<&str>) -> Vec<String> {
    let mut lines: Vec<String> = text.iter().flat_map(|text| text.lines()).map(str::to_owned).collect();
    lines.sort();
    lines
}

fn word(confidence: Confidence) -> &'static str {
    match confidence {
        Confidence::High => "high",
        Confidence::Medium => "medium",
        Confidence::Low => "low",
    }
}

fn confidence(word: &str) -> Option<Confidence> {
    serde_json::from_value(word.into()).ok()
}
