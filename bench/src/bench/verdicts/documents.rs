//! Lab documents of the scenarios, cached on disk.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use landspeed_model::LabDocument;

use super::truth::Case;
use crate::bench::child::run;

/// Time limit of a scenario; after that it has failed. Most take a few seconds.
const LIMIT: Duration = Duration::from_mins(5);

/// Scenarios and their documents in a directory.
pub struct Documents {
    directory: PathBuf,
}

impl Documents {
    /// Opens or creates the directory.
    pub fn open(directory: &Path) -> Result<Self> {
        std::fs::create_dir_all(directory).with_context(|| format!("cannot create {}", directory.display()))?;
        Ok(Self { directory: directory.to_owned() })
    }

    fn file(&self, case: &Case, extension: &str) -> PathBuf {
        self.directory.join(format!("{}.{extension}", case.name))
    }

    /// Reads the document of a case; `None` if it is missing or belongs to another scenario.
    pub fn read(&self, case: &Case) -> Result<Option<LabDocument>> {
        if !self.is_current(case) {
            return Ok(None);
        }
        let path = self.file(case, "json");
        let text = std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        serde_json::from_slice(&text)
            .with_context(|| format!("cannot read {}: run it again with --fresh", path.display()))
    }

    /// Whether the document of exactly this scenario exists.
    fn is_current(&self, case: &Case) -> bool {
        std::fs::read_to_string(self.file(case, "toml")).is_ok_and(|text| text == case.toml)
            && self.file(case, "json").is_file()
    }

    /// Runs the scenarios that have no document (all with `fresh`), `jobs` at a time. Returns the number that ran
    /// and the errors.
    pub fn complete(&self, cases: &[Case], binary: &Path, jobs: usize, fresh: bool) -> (usize, Vec<String>) {
        let missing: Vec<&Case> = cases.iter().filter(|case| fresh || !self.is_current(case)).collect();
        let (queue, failed) = (Mutex::new(missing.iter().enumerate()), Mutex::new(Vec::new()));
        std::thread::scope(|scope| {
            for _ in 0..jobs.max(1) {
                scope.spawn(|| {
                    loop {
                        let next = queue.lock().unwrap_or_else(std::sync::PoisonError::into_inner).next();
                        let Some((number, case)) = next else { return };
                        let outcome = self.run(case, binary);
                        let error = outcome.as_ref().err().map(|error| format!("{}: {error:#}", case.name));
                        println!(
                            "  {:>3} of {}  {:<26} {}",
                            number + 1,
                            missing.len(),
                            case.name,
                            outcome.map_or_else(
                                |error| format!("FAILED: {error:#}"),
                                |seconds| format!("{seconds:.1} s")
                            )
                        );
                        failed.lock().unwrap_or_else(std::sync::PoisonError::into_inner).extend(error);
                    }
                });
            }
        });
        (missing.len(), failed.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner))
    }

    /// Runs one scenario. Returns its wall time in seconds.
    fn run(&self, case: &Case, binary: &Path) -> Result<f64> {
        let (scenario, document) = (self.file(case, "toml"), self.file(case, "json"));
        let partial = self.file(case, "part");
        if let Err(error) = std::fs::remove_file(&document)
            && error.kind() != std::io::ErrorKind::NotFound
        {
            return Err(error).with_context(|| format!("cannot replace {}", document.display()));
        }
        std::fs::write(&scenario, &case.toml).with_context(|| format!("cannot write {}", scenario.display()))?;
        let mut command = Command::new(binary);
        command
            .args(["lab", "run"])
            .arg(&scenario)
            .arg("--json")
            .arg(&partial)
            .args(["--quiet", "--yes", "--jobs", "1"]);
        let started = crate::machine::now();
        let finished = run(&mut command, LIMIT)?;
        // A failed check makes the run invalid (exit status 1), but its document still counts, for example with a
        // black hole.
        ensure!(
            matches!(finished.status.code(), Some(0 | 1)) && partial.is_file(),
            "{}: {}",
            finished.status,
            finished.last_line()
        );
        std::fs::rename(&partial, &document).with_context(|| format!("cannot write {}", document.display()))?;
        Ok((crate::machine::now() - started).as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_of_other_scenarios_are_ignored() {
        let directory = tempfile::tempdir().unwrap();
        let documents = Documents::open(directory.path()).unwrap();
        let case = crate::bench::verdicts::truth::cases(1, 1).remove(0);
        std::fs::write(documents.file(&case, "json"), "{}").unwrap();
        assert!(documents.read(&case).unwrap().is_none());
        std::fs::write(documents.file(&case, "toml"), "name = \"another\"").unwrap();
        assert!(documents.read(&case).unwrap().is_none());
        std::fs::write(documents.file(&case, "toml"), &case.toml).unwrap();
        let error = documents.read(&case).unwrap_err();
        assert!(error.to_string().contains("--fresh"), "{error}");
    }

    #[test]
    fn a_scenario_that_cannot_run_leaves_no_document() {
        let directory = tempfile::tempdir().unwrap();
        let documents = Documents::open(directory.path()).unwrap();
        let cases = crate::bench::verdicts::truth::cases(1, 1);
        let (ran, failed) = documents.complete(&cases[..2], Path::new("false"), 2, false);
        assert_eq!((ran, failed.len()), (2, 2), "{failed:?}");
        assert!(cases[..2].iter().all(|case| documents.read(case).unwrap().is_none()));
    }
}
