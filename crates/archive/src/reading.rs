//! Parsing of documents of any supported program and version.

use std::borrow::Cow;
use std::time::{Duration, UNIX_EPOCH};

use landspeed_model::Metric;
use landspeed_results::{Document, ReadError, Record, RecordStatus, foreign};
use serde::Deserialize;

use crate::ArchiveError;
use crate::files::unpack;

/// Decompresses gzip data up to 1 GiB; returns other data unchanged.
fn inflate(bytes: &[u8]) -> Result<Cow<'_, [u8]>, ArchiveError> {
    if bytes.starts_with(&[0x1f, 0x8b]) {
        let plain = unpack(bytes).map_err(|why| ArchiveError::NoResult(format!("damaged gzip data: {why}")))?;
        return Ok(Cow::Owned(plain));
    }
    Ok(Cow::Borrowed(bytes))
}

/// Splits a file into its documents: gzip data is decompressed, then [`landspeed_results::split`]. Import, comparison and report
/// read files by this function and [`Reading::of`].
///
/// # Errors
/// If the data is damaged, with the byte.
pub fn documents(bytes: &[u8]) -> Result<Vec<StoredPart>, ArchiveError> {
    let plain = inflate(bytes)?;
    landspeed_results::check_memory(&plain).map_err(|why| ArchiveError::NoResult(why.to_string()))?;
    let parts = landspeed_results::split(&plain).map_err(|why| ArchiveError::NoResult(why.to_string()))?;
    let single = parts.len() == 1;
    let of = |part: landspeed_results::Part<'_>| StoredPart {
        line: (!single).then_some(part.line),
        bytes: part.bytes.into_owned(),
    };
    Ok(parts.into_iter().map(of).collect())
}

/// One document of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredPart {
    /// Line in which it begins, if the file has several.
    pub line: Option<usize>,
    /// Its bytes, UTF-8.
    pub bytes: Vec<u8>,
}

/// Contents of a document, as far as the archive needs them.
#[derive(Debug, Clone, PartialEq)]
pub struct Reading {
    /// `run`, `lab` …; for other programs their name, such as `iperf3`.
    pub kind: String,
    /// Schema such as `landspeed.run/1`; the kind for other programs.
    pub schema: String,
    /// Start, RFC 3339 UTC; empty if unknown.
    pub started: String,
    /// Title, or name of a scenario or plan.
    pub title: Option<String>,
    /// Name and version of the measuring program.
    pub tool: String,
    /// Command line; empty if unknown.
    pub command: Vec<String>,
    /// Whether this version supports the document; false for schemas of later versions.
    pub understood: bool,
    /// Whether its records repeat those of other documents (sets of cells, experiments).
    pub summarises: bool,
    /// Records of the document; at least one.
    pub records: Vec<Record>,
    /// The parsed document, if it is a supported one of landspeed.
    pub document: Option<Document>,
}

/// Top-level fields of most documents.
#[derive(Default, Deserialize)]
struct Head {
    schema: Option<String>,
    landspeed: Option<Build>,
    started: Option<String>,
    created: Option<String>,
    start_unix_ns: Option<u64>,
    #[serde(default)]
    command: Vec<String>,
    name: Option<String>,
    hostname: Option<String>,
    kernel_release: Option<String>,
    target: Option<String>,
    capture: Option<Capture>,
}

#[derive(Deserialize)]
struct Build {
    version: Option<String>,
}

#[derive(Deserialize)]
struct Capture {
    file: Option<String>,
    start_ns: Option<u64>,
}

impl Reading {
    /// Parses a document of landspeed, of this or a later version, or a result of another program.
    ///
    /// # Errors
    /// If it is neither, or damaged.
    pub fn of(bytes: &[u8]) -> Result<Self, ArchiveError> {
        match Document::read(bytes) {
            Ok(document) => Ok(Self::of_document(bytes, document)),
            Err(ReadError::NewerVersion { .. } | ReadError::UnknownKind(_)) if is_landspeed(bytes) => {
                Ok(Self::from_newer_schema(bytes))
            }
            Err(ReadError::NoSchema | ReadError::NotJson(_) | ReadError::UnknownKind(_)) => {
                let foreign = foreign::read(bytes).map_err(|why| ArchiveError::NoResult(why.to_string()))?;
                Ok(Self::of_foreign(foreign))
            }
            Err(why) => Err(ArchiveError::NoResult(why.to_string())),
        }
    }

    fn of_document(bytes: &[u8], document: Document) -> Self {
        let head: Head = serde_json::from_slice(bytes).unwrap_or_default();
        let summarises = matches!(document, Document::Sweep(_));
        let mut records = document.records();
        if records.is_empty() {
            records.push(head.record());
        }
        if let (Document::Tuneup(tuneup), [record]) = (&document, records.as_mut_slice())
            && let Some(result) = &tuneup.result
        {
            record.figures.set(Metric::Goodput, Some(result.goodput_bps));
            record.cause = result.cause.map(|cause| cause.name().to_owned());
        }
        let first = &records[0];
        Self {
            kind: document.kind().to_owned(),
            started: if first.started.is_empty() { head.started() } else { first.started.clone() },
            title: first.title.clone().or_else(|| head.name.clone()),
            tool: first.tool.clone(),
            understood: true,
            summarises,
            schema: head.schema.unwrap_or_default(),
            command: head.command,
            records,
            document: Some(document),
        }
    }

    fn from_newer_schema(bytes: &[u8]) -> Self {
        let head: Head = serde_json::from_slice(bytes).unwrap_or_default();
        let record = head.record();
        let schema = head.schema.clone().unwrap_or_default();
        let kind = schema.strip_prefix("landspeed.").and_then(|name| name.split('/').next()).unwrap_or_default();
        Self {
            kind: kind.to_owned(),
            started: record.started.clone(),
            title: record.title.clone(),
            tool: record.tool.clone(),
            understood: false,
            summarises: false,
            schema,
            command: head.command,
            records: vec![record],
            document: None,
        }
    }

    fn of_foreign(foreign: foreign::ForeignDocument) -> Self {
        let first = &foreign.records[0];
        Self {
            kind: foreign.kind.to_owned(),
            schema: foreign.kind.to_owned(),
            started: first.started.clone(),
            title: first.title.clone(),
            tool: first.tool.clone(),
            command: Vec::new(),
            understood: true,
            summarises: false,
            records: foreign.records,
            document: None,
        }
    }
}

impl Head {
    fn started(&self) -> String {
        let ns = self.start_unix_ns.or_else(|| self.capture.as_ref()?.start_ns).filter(|ns| *ns > 0);
        let text = self.started.clone().or_else(|| self.created.clone());
        text.or_else(|| Some(humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_nanos(ns?)).to_string()))
            .unwrap_or_default()
    }

    /// A record without metrics, for documents that do not measure a transfer.
    fn record(&self) -> Record {
        let version = self.landspeed.as_ref().and_then(|build| build.version.clone());
        let mut record =
            Record::without_figures(format!("landspeed {}", version.unwrap_or_default()).trim_end().to_owned());
        record.started = self.started();
        record.title = self.name.clone().or_else(|| self.capture.as_ref()?.file.clone());
        record.status = RecordStatus::Complete;
        record.target.clone_from(&self.target);
        record.kernel.clone_from(&self.kernel_release);
        if let Some(host) = &self.hostname {
            record.hosts.insert("client.hostname".to_owned(), host.clone());
        }
        record
    }
}

fn is_landspeed(bytes: &[u8]) -> bool {
    let head: Head = serde_json::from_slice(bytes).unwrap_or_default();
    head.schema.is_some_and(|schema| schema.starts_with("landspeed."))
}
