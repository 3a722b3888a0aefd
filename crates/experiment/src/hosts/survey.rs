//! Short tests before a sweep: the facts of the hosts, and whether their settings can be changed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::AtomicBool;

use landspeed_results::Document;
use landspeed_tune::ChangeError;

use super::attempt::{Unmeasured, try_run};
use super::cell::{HostCell, Pair};
use super::command::RunCommand;
use crate::directory::Directory;
use crate::error::Error;

/// Duration of the test that collects facts of the hosts, nanoseconds.
const SURVEY_NS: u64 = 200_000_000;

/// Facts of the hosts of each pair, collected by a short test.
#[derive(Debug, Default, Clone)]
pub struct Survey(BTreeMap<Pair, BTreeMap<String, String>>);

impl Survey {
    /// Runs a short test of each cell. The facts of a pair are those of its first test.
    pub fn take(
        command: &dyn RunCommand,
        cells: &[&HostCell],
        interrupted: &'static AtomicBool,
    ) -> Result<Self, Error> {
        let mut hosts = BTreeMap::new();
        for cell in cells {
            let pair = cell.pair();
            let mut request = cell.test.request().map_err(|entry| Error::Request(command.describe(&entry)))?;
            request.parameters.time_ns = Some(SURVEY_NS);
            request.parameters.omit_ns = 0;
            request.parameters.bytes = None;
            let document = try_run(interrupted, &mut || {
                cell.test.measure(&request, cell.from.as_ref(), interrupted, &mut |_| {})
            });
            let failed = |why| Error::Survey { pair: pair.to_string(), why };
            let document = document.map_err(|why| match why {
                Unmeasured::Interrupted => Error::Interrupted,
                Unmeasured::Refused(message) => failed(message),
                Unmeasured::Failed(entry) => failed(command.describe(&entry)),
            })?;
            hosts.entry(pair).or_insert_with(|| Document::Run(Box::new(document)).records().remove(0).hosts);
        }
        Ok(Self(hosts))
    }

    /// Returns the different facts of hosts in stored runs.
    pub fn recorded<'a>(
        directory: &Directory,
        ids: impl Iterator<Item = &'a String>,
    ) -> Vec<BTreeMap<String, String>> {
        let mut found = Vec::new();
        for id in ids {
            let document = directory.bytes(id).and_then(|bytes| Document::read(&bytes).ok());
            let facts = document.and_then(|document| Some(document.records().into_iter().next()?.hosts));
            found.extend(facts.filter(|facts| !found.contains(facts)));
        }
        found
    }

    /// Returns the survey with the facts of another pair.
    pub fn with(&self, pair: Pair, facts: BTreeMap<String, String>) -> Self {
        let mut survey = self.clone();
        survey.0.insert(pair, facts);
        survey
    }

    /// Returns the facts of a pair's hosts.
    pub fn hosts(&self, pair: &Pair) -> Option<&BTreeMap<String, String>> {
        self.0.get(pair)
    }
}

/// Checks before the first run that the settings of the hosts can be changed.
pub fn check_changes(cells: &[HostCell], interrupted: &'static AtomicBool) -> Result<(), Error> {
    let mut asked = BTreeSet::new();
    for cell in cells.iter().filter(|cell| cell.changes_hosts()) {
        if !asked.insert(cell.pair()) {
            continue;
        }
        let request = cell.test.request().map_err(ChangeError::unavailable);
        if let Err(error) = request.and_then(|request| cell.open_changes(&request, interrupted)) {
            return Err(Error::HostChanges { pair: cell.pair().to_string(), why: error.to_string() });
        }
    }
    Ok(())
}
