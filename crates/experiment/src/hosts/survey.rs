//! Short tests before a sweep: the facts of the hosts, and whether their settings can be changed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::AtomicBool;

use landspeed_flow::client::Target;
use landspeed_model::{Parameters, RunDocument, TuneupPlan};
use landspeed_results::Document;
use landspeed_tune::{ChangeError, ChangeErrorKind};

use super::attempt::{Unmeasured, try_run};
use super::cell::{HostCell, Pair};
use super::command::{RunCommand, RunTest};
use crate::directory::Directory;
use crate::error::Error;

/// Duration of the test that collects facts of the hosts, nanoseconds.
const SURVEY_NS: u64 = 200_000_000;

/// Facts of the hosts of each pair, collected by a short test.
#[derive(Debug, Default, Clone)]
pub struct Survey(BTreeMap<Pair, BTreeMap<String, String>>);

impl Survey {
    /// Runs a short test of each pair, and of each value that only the hosts can judge. The facts of a pair are those of
    /// its first test.
    pub fn take(
        command: &dyn RunCommand,
        cells: &[HostCell],
        interrupted: &'static AtomicBool,
    ) -> Result<Self, Objection> {
        let mut hosts = BTreeMap::new();
        let mut asked = BTreeSet::new();
        for (number, cell) in cells.iter().enumerate() {
            let main = (cell.pair(), &*cell.test, cell.from.as_ref());
            let cross = cell.cross.iter().map(|cross| (cross.pair(), &*cross.test, Some(&cross.from)));
            for (at, (pair, test, from)) in std::iter::once(main).chain(cross).enumerate() {
                let values = judged_by_hosts(&test.parameters().0).into_iter().chain([String::new()]);
                let new = values.filter(|value| asked.insert((pair.clone(), value.clone()))).count();
                if new == 0 {
                    continue;
                }
                let document = short_test(command, test, from, interrupted)
                    .map_err(|why| why.objection(number, |why| Error::Survey { pair: pair.to_string(), why }))?;
                if at == 0 {
                    let facts = || Document::Run(Box::new(document)).records().remove(0).hosts;
                    hosts.entry(pair).or_insert_with(facts);
                }
            }
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

/// A cell that hosts refuse.
#[derive(Debug)]
pub struct Objection {
    /// Number of the cell.
    pub cell: usize,
    /// What the host says; `None` if it is not about a value.
    pub message: Option<String>,
    /// The error without a place in the plan.
    pub error: Box<Error>,
}

/// Failure of a short test.
enum Failure {
    Interrupted,
    Refused(String),
    Failed(String),
}

impl Failure {
    fn objection(self, cell: usize, error: impl Fn(String) -> Error) -> Objection {
        match self {
            Self::Interrupted => Objection { cell, message: None, error: Box::new(Error::Interrupted) },
            Self::Refused(why) => Objection { cell, error: Box::new(error(why.clone())), message: Some(why) },
            Self::Failed(why) => Objection { cell, message: None, error: Box::new(error(why)) },
        }
    }
}

fn short_test(
    command: &dyn RunCommand,
    test: &dyn RunTest,
    from: Option<&Target>,
    interrupted: &'static AtomicBool,
) -> Result<RunDocument, Failure> {
    let mut request = test.request().map_err(|entry| Failure::Failed(command.describe(&entry)))?;
    request.parameters.time_ns = Some(SURVEY_NS);
    request.parameters.omit_ns = 0;
    request.parameters.bytes = None;
    try_run(interrupted, &mut || test.measure(&request, from, interrupted, &mut |_| {})).map_err(|why| match why {
        Unmeasured::Interrupted => Failure::Interrupted,
        Unmeasured::Refused(message) => Failure::Refused(message),
        Unmeasured::Failed(entry) => Failure::Failed(command.describe(&entry)),
    })
}

/// Names and numbers in parameters of which only a host knows whether it has them: congestion control, addresses, cores,
/// system calls.
fn judged_by_hosts(parameters: &Parameters) -> Vec<String> {
    let Parameters { congestion, bind, client_cpus, server_cpus, client_numa, server_numa, .. } = parameters;
    let Parameters { mptcp, send, receive, family, mss_bytes, .. } = parameters;
    vec![
        format!("congestion {congestion:?}"),
        format!("bind {bind:?} {family:?}"),
        format!("client {client_cpus:?} {client_numa:?}"),
        format!("server {server_cpus:?} {server_numa:?}"),
        format!("mptcp {mptcp}"),
        format!("send {send:?}"),
        format!("receive {receive:?}"),
        format!("MSS {mss_bytes:?}"),
    ]
}

/// Applies each setting of hosts once before the first run, and rolls it back: only the hosts know whether they have a
/// queueing discipline, and whether a value is in range.
pub fn check_changes(cells: &[HostCell], interrupted: &'static AtomicBool) -> Result<(), Objection> {
    let mut pairs: BTreeMap<Pair, Vec<(usize, &HostCell)>> = BTreeMap::new();
    for (number, cell) in cells.iter().enumerate().filter(|(_, cell)| cell.changes_hosts()) {
        pairs.entry(cell.pair()).or_default().push((number, cell));
    }
    for (pair, cells) in pairs {
        let refused = |cell, why: ChangeError| {
            let (pair, message) = (pair.to_string(), why.to_string());
            if why.kind == ChangeErrorKind::Unavailable {
                return Objection { cell, message: None, error: Box::new(Error::HostChanges { pair, why: message }) };
            }
            let error = Box::new(Error::Settings { pair, why: message.clone() });
            Objection { cell, error, message: Some(message) }
        };
        let first = cells[0].1;
        let request = first.test.request().map_err(ChangeError::unavailable);
        let open = request.and_then(|request| first.open_changes(&request, interrupted));
        let mut settings = open.map_err(|why| refused(cells[0].0, why))?;
        let mut asked = BTreeSet::new();
        for (number, cell) in &cells {
            let changes = [(false, &cell.client), (true, &cell.server)];
            let changes = changes.into_iter().flat_map(|(server, list)| list.iter().map(move |one| (server, one)));
            let new = changes.filter(|(server, change)| asked.insert(format!("{server} {change:?}"))).count();
            if new > 0 {
                let plan = TuneupPlan { client: cell.client.clone(), server: cell.server.clone() };
                settings.hold(&plan).map_err(|why| refused(*number, why))?;
            }
        }
        settings.roll_back().map_err(|why| refused(cells[0].0, why))?;
    }
    Ok(())
}
