//! Results of the scenarios, kept on disk: what the proof needs of each document.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use landspeed_model::{LabDocument, LabStatus, PhaseName, QualifyDocument};
use serde::{Deserialize, Serialize};

use crate::bench::child::run;

/// Time limit of a scenario.
const LIMIT: Duration = Duration::from_mins(10);

/// A scenario to run.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// Name of its files.
    pub name: String,
    /// Scenario file, TOML.
    pub toml: String,
}

/// Result of a scenario.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Kept {
    /// Text of the scenario; a result of another text is not used.
    toml: String,
    /// Whether all checks of the lab passed.
    pub is_valid: bool,
    /// Names of the self-checks of the lab that failed.
    pub failed_checks: Vec<String>,
    /// Virtual time, seconds.
    pub virtual_s: f64,
    /// Real time, seconds.
    pub wall_s: f64,
    /// Tests of the section, if the scenario has them.
    pub qualify: Option<QualifyDocument>,
    /// TCP flows over the long path, in the order of their start.
    pub flows: Vec<TcpFlow>,
}

/// A TCP flow over the long path.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TcpFlow {
    /// Name: congestion control and number.
    pub name: String,
    /// Goodput of the steady phase, bits/s.
    pub goodput_bps: Option<f64>,
    /// Payload delivered before the steady phase, bytes, and its duration, nanoseconds.
    pub start: Option<(u64, u64)>,
    /// TCP segments retransmitted by the sender.
    pub retransmits: Option<u64>,
}

/// Results in a directory.
pub struct Results {
    directory: PathBuf,
}

impl Results {
    /// Opens or creates the directory.
    pub fn open(directory: &Path) -> Result<Self> {
        std::fs::create_dir_all(directory).with_context(|| format!("cannot create {}", directory.display()))?;
        Ok(Self { directory: directory.to_owned() })
    }

    fn file(&self, name: &str, extension: &str) -> PathBuf {
        self.directory.join(format!("{name}.{extension}"))
    }

    /// Reads the result of a scenario; `None` if it is missing or belongs to another text.
    pub fn read(&self, scenario: &Scenario) -> Option<Kept> {
        let text = std::fs::read(self.file(&scenario.name, "json")).ok()?;
        serde_json::from_slice::<Kept>(&text).ok().filter(|kept| kept.toml == scenario.toml)
    }

    /// Runs the scenarios that have no result, `jobs` at a time. Returns the errors.
    pub fn complete(&self, scenarios: &[Scenario], binary: &Path, jobs: usize) -> Vec<String> {
        let missing: Vec<&Scenario> = scenarios.iter().filter(|scenario| self.read(scenario).is_none()).collect();
        let (queue, failed) = (Mutex::new(missing.iter().enumerate()), Mutex::new(Vec::new()));
        std::thread::scope(|scope| {
            for _ in 0..jobs.max(1) {
                scope.spawn(|| {
                    loop {
                        let next = queue.lock().unwrap_or_else(PoisonError::into_inner).next();
                        let Some((number, scenario)) = next else { return };
                        let outcome = self.run(scenario, binary);
                        let text = match &outcome {
                            Ok(kept) => format!("{:.1} s", kept.wall_s),
                            Err(error) => format!("FAILED: {error:#}"),
                        };
                        println!("  {:>4} of {}  {:<40} {text}", number + 1, missing.len(), scenario.name);
                        if let Err(error) = outcome {
                            let message = format!("{}: {error:#}", scenario.name);
                            failed.lock().unwrap_or_else(PoisonError::into_inner).push(message);
                        }
                    }
                });
            }
        });
        failed.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs one scenario and keeps its result.
    fn run(&self, scenario: &Scenario, binary: &Path) -> Result<Kept> {
        let (toml, document) = (self.file(&scenario.name, "toml"), self.file(&scenario.name, "document"));
        std::fs::write(&toml, &scenario.toml).with_context(|| format!("cannot write {}", toml.display()))?;
        let mut command = Command::new(binary);
        command.args(["lab", "run"]).arg(&toml).arg("--json").arg(&document);
        command.args(["--quiet", "--yes", "--jobs", "1"]).env("LANDSPEED_ARCHIVE", "off");
        let finished = run(&mut command, LIMIT)?;
        ensure!(
            matches!(finished.status.code(), Some(0 | 1)) && document.is_file(),
            "{}: {}",
            finished.status,
            finished.last_line()
        );
        let text = std::fs::read(&document).with_context(|| format!("cannot read {}", document.display()))?;
        let lab: LabDocument = serde_json::from_slice(&text).context("cannot read the lab's document")?;
        let kept = Kept::of(scenario, lab);
        let partial = self.file(&scenario.name, "part");
        std::fs::write(&partial, serde_json::to_vec(&kept)?)
            .and_then(|()| std::fs::rename(&partial, self.file(&scenario.name, "json")))
            .and_then(|()| std::fs::remove_file(&document))
            .with_context(|| format!("cannot keep the result of {}", scenario.name))?;
        Ok(kept)
    }
}

impl Kept {
    fn of(scenario: &Scenario, lab: LabDocument) -> Self {
        let mut kept = Self {
            toml: scenario.toml.clone(),
            is_valid: lab.status == LabStatus::Complete,
            failed_checks: lab.checks.iter().filter(|check| !check.passed).map(|check| check.name.clone()).collect(),
            virtual_s: lab.virtual_s,
            wall_s: lab.wall_s,
            qualify: None,
            flows: Vec::new(),
        };
        for flow in lab.flows {
            if let Some(section) = flow.qualify {
                kept.qualify = Some(*section);
                continue;
            }
            let start = flow.run.as_ref().and_then(|run| {
                let phases = run.phases.iter();
                let before = phases.filter(|phase| matches!(phase.name, PhaseName::Startup | PhaseName::Omitted));
                before.map(|phase| Some((phase.bytes?, phase.end_ns - phase.start_ns))).try_fold(
                    (0, 0),
                    |sum, phase| {
                        let (bytes, ns) = phase?;
                        Some((sum.0 + bytes, sum.1 + ns))
                    },
                )
            });
            kept.flows.push(TcpFlow {
                name: flow.name,
                goodput_bps: flow.goodput_bps,
                start,
                retransmits: flow.retransmits,
            });
        }
        kept
    }
}
