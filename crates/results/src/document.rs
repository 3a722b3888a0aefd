//! Documents of all kinds, parsed by their schema.

use landspeed_model::{
    AuditDocument, ComparisonDocument, DemoDocument, EmulateDocument, Facts, FiguresDocument, LabDocument,
    MeshDocument, QualifyDocument, RunDocument, SuiteDocument, SweepDocument, TapDocument, TraceComparison,
    TraceDocument, TuneupDocument, WatchDocument,
};
use serde::Deserialize;
use serde_json::error::Category;
use thiserror::Error;

use crate::labset::LabSet;
use crate::{Record, record};

/// A landspeed document.
#[derive(Debug, Clone, PartialEq)]
pub enum Document {
    /// `landspeed.run/1`.
    Run(Box<RunDocument>),
    /// `landspeed.lab/2` or `/1`.
    Lab(Box<LabDocument>),
    /// `landspeed.sweep/1`, and `landspeed.labset/1` of earlier versions.
    Sweep(Box<SweepDocument>),
    /// `landspeed.comparison/1`.
    Comparison(Box<ComparisonDocument>),
    /// `landspeed.figures/1`.
    Figures(Box<FiguresDocument>),
    /// `landspeed.tuneup/1`.
    Tuneup(Box<TuneupDocument>),
    /// `landspeed.qualify/1`.
    Qualify(Box<QualifyDocument>),
    /// `landspeed.suite/1`.
    Suite(Box<SuiteDocument>),
    /// `landspeed.mesh/1`.
    Mesh(Box<MeshDocument>),
    /// `landspeed.watch/1`.
    Watch(Box<WatchDocument>),
    /// `landspeed.trace/2` or `/1`.
    Trace(Box<TraceDocument>),
    /// `landspeed.tracecomparison/1`.
    TraceComparison(Box<TraceComparison>),
    /// `landspeed.tap/1`.
    Tap(Box<TapDocument>),
    /// `landspeed.audit/1`.
    Audit(Box<AuditDocument>),
    /// `landspeed.facts/1`.
    Facts(Box<Facts>),
    /// `landspeed.demo/1`.
    Demo(Box<DemoDocument>),
    /// `landspeed.emulate/1`.
    Emulate(Box<EmulateDocument>),
}

/// Error of [`Document::read`].
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ReadError {
    /// The text is not JSON, or it is truncated.
    #[error("damaged: {0}")]
    NotJson(String),
    /// JSON without landspeed's `schema` field.
    #[error("not a document of landspeed: it has no `schema`")]
    NoSchema,
    /// A kind unknown to this version.
    #[error("a `{0}` document, which this version does not know")]
    UnknownKind(String),
    /// A newer version of a known kind.
    #[error("a `{found}` document; this version reads up to `{known}`")]
    NewerVersion {
        /// Schema of the document.
        found: String,
        /// The newest supported schema of this kind.
        known: String,
    },
    /// Supported kind and version, but with missing or invalid fields.
    #[error("damaged `{schema}` document: {why}")]
    Damaged {
        /// Schema of the document.
        schema: String,
        /// The first problem.
        why: String,
    },
}

/// Supported kinds with their newest version.
const SUPPORTED_VERSIONS: &[(&str, u32)] = &[
    ("run", 1),
    ("lab", 2),
    ("labset", 1),
    ("sweep", 1),
    ("comparison", 1),
    ("figures", 1),
    ("tuneup", 1),
    ("qualify", 1),
    ("suite", 1),
    ("mesh", 1),
    ("watch", 1),
    ("trace", 2),
    ("tracecomparison", 1),
    ("tap", 1),
    ("audit", 1),
    ("facts", 1),
    ("demo", 1),
    ("emulate", 1),
];

#[derive(Deserialize)]
struct Head {
    schema: Option<String>,
}

/// The value of `schema` if it is the first field, as landspeed writes it; the rest need not be parsed.
fn first_field(bytes: &[u8]) -> Option<String> {
    let rest = bytes.trim_ascii_start().strip_prefix(b"{")?.trim_ascii_start();
    let value = rest.strip_prefix(b"\"schema\"")?.trim_ascii_start().strip_prefix(b":")?;
    serde_json::Deserializer::from_slice(value).into_iter().next()?.ok()
}

impl Document {
    /// Parses a document.
    ///
    /// # Errors
    /// The bytes are not JSON, come from another program or a newer version, or are damaged.
    pub fn read(bytes: &[u8]) -> Result<Self, ReadError> {
        let schema = if let Some(schema) = first_field(bytes) {
            schema
        } else {
            let head: Head = serde_json::from_slice(bytes).map_err(|why| ReadError::NotJson(why.to_string()))?;
            head.schema.ok_or(ReadError::NoSchema)?
        };
        let unknown = || ReadError::UnknownKind(schema.chars().take(60).collect());
        let (kind, version) = schema
            .strip_prefix("landspeed.")
            .and_then(|name| name.split_once('/'))
            .and_then(|(kind, version)| Some((kind, version.parse::<u32>().ok()?)))
            .ok_or_else(unknown)?;
        let (_, newest) = SUPPORTED_VERSIONS.iter().find(|(known, _)| *known == kind).ok_or_else(unknown)?;
        if version > *newest {
            return Err(ReadError::NewerVersion {
                found: schema.clone(),
                known: format!("landspeed.{kind}/{newest}"),
            });
        }
        let damaged = |why: serde_json::Error| match why.classify() {
            Category::Data => ReadError::Damaged { schema: schema.clone(), why: why.to_string() },
            _ => ReadError::NotJson(why.to_string()),
        };
        let document = match kind {
            "run" => serde_json::from_slice(bytes).map(Self::Run),
            "lab" => serde_json::from_slice(bytes).map(Self::Lab),
            "labset" => serde_json::from_slice::<LabSet>(bytes).map(|set| Self::Sweep(Box::new(set.into()))),
            "sweep" => serde_json::from_slice(bytes).map(Self::Sweep),
            "comparison" => serde_json::from_slice(bytes).map(Self::Comparison),
            "figures" => serde_json::from_slice(bytes).map(Self::Figures),
            "tuneup" => serde_json::from_slice(bytes).map(Self::Tuneup),
            "qualify" => serde_json::from_slice(bytes).map(Self::Qualify),
            "suite" => serde_json::from_slice(bytes).map(Self::Suite),
            "mesh" => serde_json::from_slice(bytes).map(Self::Mesh),
            "watch" => serde_json::from_slice(bytes).map(Self::Watch),
            "trace" => serde_json::from_slice(bytes).map(Self::Trace),
            "tracecomparison" => serde_json::from_slice(bytes).map(Self::TraceComparison),
            "tap" => serde_json::from_slice(bytes).map(Self::Tap),
            "audit" => serde_json::from_slice(bytes).map(Self::Audit),
            "facts" => serde_json::from_slice(bytes).map(Self::Facts),
            "emulate" => serde_json::from_slice(bytes).map(Self::Emulate),
            _ => serde_json::from_slice(bytes).map(Self::Demo),
        };
        document.map_err(damaged)
    }

    /// The kind: `run`, `lab` and so on, as `landspeed schema` names it.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Run(_) => "run",
            Self::Lab(_) => "lab",
            Self::Sweep(_) => "sweep",
            Self::Comparison(_) => "comparison",
            Self::Figures(_) => "figures",
            Self::Tuneup(_) => "tuneup",
            Self::Qualify(_) => "qualify",
            Self::Suite(_) => "suite",
            Self::Mesh(_) => "mesh",
            Self::Watch(_) => "watch",
            Self::Trace(_) => "trace",
            Self::TraceComparison(_) => "tracecomparison",
            Self::Tap(_) => "tap",
            Self::Audit(_) => "audit",
            Self::Facts(_) => "facts",
            Self::Demo(_) => "demo",
            Self::Emulate(_) => "emulate",
        }
    }

    /// One record for each flow of each run. Empty for kinds that do not measure a transfer themselves.
    pub fn records(&self) -> Vec<Record> {
        match self {
            Self::Run(run) => vec![record::of_run(run)],
            Self::Lab(lab) => record::of_lab(lab),
            Self::Sweep(sweep) => record::of_sweep(sweep),
            _ => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn read_errors_give_the_reason() {
        let why = |text: &str| Document::read(text.as_bytes()).unwrap_err();
        assert!(matches!(why("{"), ReadError::NotJson(_)));
        assert_eq!(why("{\"start\": 1}"), ReadError::NoSchema);
        assert_eq!(why("{\"schema\": \"other\"}"), ReadError::UnknownKind("other".to_owned()));
        assert_eq!(why("{\"schema\": \"landspeed.cake/1\"}"), ReadError::UnknownKind("landspeed.cake/1".to_owned()));
        let newer = why("{\"schema\": \"landspeed.run/9\", \"future\": true}");
        assert_eq!(newer.to_string(), "a `landspeed.run/9` document; this version reads up to `landspeed.run/1`");
        assert!(matches!(why("{\"schema\": \"landspeed.run/1\"}"), ReadError::Damaged { .. }));
    }

    /// Answers of the archive are computed on request and not stored.
    const ANSWERS: [&str; 3] = ["archivelist", "trend", "archivecheck"];

    #[test]
    fn every_schema_can_be_read() {
        for name in landspeed_model::SCHEMA_NAMES.iter().filter(|name| !ANSWERS.contains(name)) {
            assert!(SUPPORTED_VERSIONS.iter().any(|(known, _)| known == name), "{name}");
        }
    }

    #[test]
    fn upgrade_notes_have_every_version_of_documents() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/upgrading.md");
        let page = std::fs::read_to_string(path).expect("the page");
        for (name, newest) in SUPPORTED_VERSIONS.iter().copied().chain(ANSWERS.map(|name| (name, 1))) {
            for version in 1..=newest {
                assert!(page.contains(&format!("{name}/{version}`")), "docs/upgrading.md lacks {name}/{version}");
            }
        }
    }
}
