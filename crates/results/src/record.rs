//! Records: settings, hosts and figures of one flow.

use std::collections::BTreeMap;

use landspeed_model::{
    Confidence, LabDocument, LabStatus, Metric, Parameters, QualifyDocument, RunDocument, Status, SweepDocument,
    SweepEnvironment,
};

use crate::figures::{Figures, figures, streams_bps};
use crate::hosts;

/// Status of a result; the figures of complete ones can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordStatus {
    /// Finished normally.
    Complete,
    /// Ended early, or the results of one end are missing.
    Partial,
    /// Finished, but a check failed.
    Invalid,
    /// No measurement.
    Failed,
}

impl RecordStatus {
    /// The status as in documents and indexes.
    pub fn word(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Partial => "partial",
            Self::Invalid => "invalid",
            Self::Failed => "failed",
        }
    }

    /// The status for the string of [`RecordStatus::word`].
    pub fn find(word: &str) -> Option<Self> {
        [Self::Complete, Self::Partial, Self::Invalid, Self::Failed].into_iter().find(|status| status.word() == word)
    }
}

/// One flow of one result: the unit of archive indexes and comparisons.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// Program and version, such as `landspeed 0.1.0`.
    pub tool: String,
    /// Start, RFC 3339 UTC.
    pub started: String,
    /// Title of a run, or name of a scenario or a plan.
    pub title: Option<String>,
    /// Flow of a lab, or pair of hosts; `None` for results with one flow.
    pub flow: Option<String>,
    /// Only figures of complete records are compared.
    pub status: RecordStatus,
    /// The server as given on the command line.
    pub target: Option<String>,
    /// Kernel release of the sender, or of the lab.
    pub kernel: Option<String>,
    /// Settings of the test by parameter name, such as `congestion` and `streams`, and the varied keys of an
    /// experiment.
    pub settings: BTreeMap<String, String>,
    /// Properties of hosts and path by dotted name: `client.kernel_release`, `server.nic.mtu_bytes`.
    pub hosts: BTreeMap<String, String>,
    /// Limiting cause of the throughput.
    pub cause: Option<String>,
    /// Confidence in the cause.
    pub confidence: Option<Confidence>,
    /// Figures by metric.
    pub figures: Figures,
    /// Reasons why figures are unknown; not in an archive's index.
    pub notes: Vec<String>,
    /// Goodput of each stream, bits/s.
    pub streams_bps: Vec<f64>,
    /// Seed, if it is a lab's run.
    pub seed: Option<u64>,
    /// Digest, if it is a lab's run.
    pub digest: Option<String>,
    /// Id of the experiment; blocks of the same experiment can be paired.
    pub experiment: Option<String>,
    /// Block of the experiment; runs of one block are close in time.
    pub block: Option<u32>,
    /// Whether it is the second run of its cell in its block.
    pub control: bool,
}

impl Record {
    /// A failed record of which only the program is known.
    pub fn without_figures(tool: String) -> Self {
        Self {
            tool,
            started: String::new(),
            title: None,
            flow: None,
            status: RecordStatus::Failed,
            target: None,
            kernel: None,
            settings: BTreeMap::new(),
            hosts: BTreeMap::new(),
            cause: None,
            confidence: None,
            figures: Figures::default(),
            notes: Vec::new(),
            streams_bps: Vec::new(),
            seed: None,
            digest: None,
            experiment: None,
            block: None,
            control: false,
        }
    }
}

/// Makes the record of a run.
pub fn of_run(run: &RunDocument) -> Record {
    let parameters = run.effective.as_ref().unwrap_or(&run.requested);
    let mut facts = BTreeMap::new();
    for (end, host) in [("client", &run.hosts.client), ("server", &run.hosts.server)] {
        if let Some(host) = host {
            hosts::flatten(end, host, &mut facts);
        }
    }
    let sender = match run.requested.direction.parts()[0] {
        landspeed_model::Direction::Download => &run.hosts.server,
        _ => &run.hosts.client,
    };
    let judged = run.status != Status::Failed;
    Record {
        tool: format!("landspeed {}", run.landspeed.version),
        started: run.started.clone(),
        title: parameters.title.clone(),
        flow: None,
        status: match run.status {
            Status::Complete => RecordStatus::Complete,
            Status::Partial => RecordStatus::Partial,
            Status::Failed => RecordStatus::Failed,
        },
        target: run.path.as_ref().map(|path| path.target.clone()),
        kernel: sender.as_ref().map(|host| host.kernel_release.clone()),
        settings: settings(parameters),
        hosts: facts,
        cause: judged.then(|| word(&run.verdict.cause)),
        confidence: judged.then_some(run.verdict.confidence),
        figures: figures(run),
        notes: Vec::new(),
        streams_bps: streams_bps(run),
        seed: None,
        digest: None,
        experiment: None,
        block: None,
        control: false,
    }
}

/// Makes the records of a lab run, one for each flow.
pub fn of_lab(lab: &LabDocument) -> Vec<Record> {
    let drops: u64 =
        lab.queues.iter().filter(|queue| queue.role == landspeed_model::QueueRole::Switch).map(|q| q.drops).sum();
    let of = |flow: &landspeed_model::LabFlow| {
        let run = flow.run.as_ref();
        let mut record = run.map_or_else(|| empty(&lab.landspeed.version), of_run);
        record.started.clone_from(&lab.started);
        record.title = Some(lab.scenario.name.clone());
        record.flow = Some(flow.name.clone());
        record.status = lab_status(lab.status);
        record.target = Some(format!("{} to {}", flow.from, flow.to));
        record.kernel = Some(lab.kernel.release.clone());
        record.settings.extend(levels(&lab.scenario.cell));
        record.hosts = lab_hosts(&lab.kernel);
        record.hosts.insert("lab.scenario".to_owned(), lab.scenario.hash.clone());
        record.figures.set(Metric::Drops, Some(drops as f64));
        // Lab hosts have unlimited CPU, so there is no meaningful CPU time.
        record.figures.remove(Metric::Cpu);
        if let Some(section) = &flow.qualify {
            add_section(&mut record, section);
        }
        record.seed = Some(lab.seed);
        record.digest.clone_from(&lab.digest);
        record
    };
    lab.flows.iter().map(of).collect()
}

/// Adds a section's target, the loss at the target rate, and the verdict instead of a cause.
fn add_section(record: &mut Record, section: &QualifyDocument) {
    let target = &section.target_performance;
    record.settings.extend([
        ("protocol".to_owned(), "qualify".to_owned()),
        ("target_bps".to_owned(), target.rate_bps.to_string()),
        ("target_rtt_ns".to_owned(), target.rtt_ns.to_string()),
        ("target_mtu_bytes".to_owned(), target.mtu_bytes.to_string()),
        ("target_congestion".to_owned(), word(&target.congestion)),
    ]);
    record.cause = Some(word(&section.verdict));
    let delivery = section.tests.iter().find(|test| test.name == "delivery-at-target-rate");
    record.figures.set(Metric::Loss, delivery.and_then(|test| test.measured));
}

/// Makes the records of an experiment, one for each flow of each run.
pub fn of_sweep(sweep: &SweepDocument) -> Vec<Record> {
    let mut records = Vec::new();
    let unknown = SweepEnvironment::default();
    for cell in &sweep.cells {
        for run in &cell.runs {
            for flow in &run.flows {
                let mut record = empty(&sweep.landspeed.version);
                record.started.clone_from(&run.started);
                record.title = Some(sweep.name.clone());
                record.flow.clone_from(&flow.name);
                record.status = if run.usable { RecordStatus::Complete } else { RecordStatus::Invalid };
                let environment = flow.environment.and_then(|at| sweep.environments.get(at)).unwrap_or(&unknown);
                record.target.clone_from(&environment.target);
                record.kernel.clone_from(&environment.kernel);
                record.hosts.clone_from(&environment.hosts);
                record.settings.clone_from(&environment.settings);
                record.settings.extend(levels(&cell.levels));
                record.cause.clone_from(&flow.cause);
                record.confidence = flow.confidence;
                record.figures = Figures::from_fields(&flow.figures);
                record.streams_bps.clone_from(&flow.streams_bps);
                record.seed = Some(run.seed);
                record.digest.clone_from(&run.digest);
                record.experiment = Some(format!("{} {}", sweep.id, sweep.started));
                record.block = Some(run.block);
                record.control = run.control;
                records.push(record);
            }
        }
    }
    records
}

fn empty(version: &str) -> Record {
    Record::without_figures(format!("landspeed {version}"))
}

fn lab_status(status: LabStatus) -> RecordStatus {
    match status {
        LabStatus::Complete => RecordStatus::Complete,
        LabStatus::Invalid => RecordStatus::Invalid,
        LabStatus::Partial => RecordStatus::Partial,
        LabStatus::Failed => RecordStatus::Failed,
    }
}

/// Returns the facts of a lab's hosts.
pub(crate) fn lab_hosts(kernel: &landspeed_model::KernelInfo) -> BTreeMap<String, String> {
    BTreeMap::from([
        ("lab.kernel_release".to_owned(), kernel.release.clone()),
        ("lab.kernel_build".to_owned(), kernel.build_id.clone()),
    ])
}

fn levels(values: &BTreeMap<String, serde_json::Value>) -> BTreeMap<String, String> {
    values.iter().map(|(key, value)| (key.clone(), plain(value))).collect()
}

/// A value as text; strings without quotes.
fn plain(value: &serde_json::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The JSON string of an enum value.
fn word(value: &impl serde::Serialize) -> String {
    serde_json::to_value(value).map(|value| plain(&value)).unwrap_or_default()
}

/// The parameters that are set, by name, without title, distance and sampling, which do not influence a test.
fn settings(parameters: &Parameters) -> BTreeMap<String, String> {
    let Ok(serde_json::Value::Object(all)) = serde_json::to_value(parameters) else { return BTreeMap::new() };
    let mut settings = BTreeMap::new();
    for (key, value) in all {
        match value {
            serde_json::Value::Null => {}
            serde_json::Value::Array(list) if list.is_empty() => {}
            serde_json::Value::Object(inner) => {
                settings.extend(inner.iter().map(|(name, value)| (format!("{key}.{name}"), plain(value))));
            }
            value => {
                settings.insert(key, plain(&value));
            }
        }
    }
    for unimportant in ["title", "distance_m", "interval_ns", "host_interval_ns"] {
        settings.remove(unimportant);
    }
    settings
}
