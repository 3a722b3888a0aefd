//! Short tests before a sweep: the facts of the hosts, and whether their settings can be changed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::AtomicBool;

use landspeed_results::Document;
use landspeed_tune::ChangeError;

use super::attempt::{Unmeasured, try_run};
use super::cell::{HostCell, Pair};
use super::command::RunCommand;
use crate::error::Error;

/// Duration of the test that collects facts of the hosts, nanoseconds.
const SURVEY_NS: u64 = 200_000_000;

/// Facts of the hosts of each pair, collected by a short test.
#[derive(Debug, Default)]
pub struct Survey(BTreeMap<Pair, BTreeMap<String, String>>);

impl Survey {
    /// Runs a short test between each pair.
    pub fn take(
        command: &dyn RunCommand,
        pairs: &BTreeMap<Pair, &HostCell>,
        interrupted: &'static AtomicBool,
    ) -> Result<Self, Error> {
        let mut hosts = BTreeMap::new();
        for (pair, cell) in pairs {
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
            hosts.insert(pair.clone(), Document::Run(Box::new(document)).records().remove(0).hosts);
        }
        Ok(Self(hosts))
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
