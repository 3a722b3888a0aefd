//! Programs: from the scenario to what the guest starts and stops.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::scenario::{Program, Scenario, Stop};

/// Path of landspeed itself on hosts with programs.
pub const OWN_PROGRAM: &str = "/run/landspeed";

/// A program with all settings resolved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedProgram {
    /// Name of the program.
    pub name: String,
    /// Its host, by index.
    pub node: usize,
    /// Command line, as in the scenario.
    pub command: Vec<String>,
    /// Command line to execute: an absolute path, and arguments. See [`crate::program::resolve`].
    pub run: Vec<String>,
    /// Start, nanoseconds from zero.
    pub start_ns: u64,
    /// When it is stopped, if it still runs.
    pub stop: PlannedStop,
    /// Expected exit status, if the scenario sets one.
    pub expect: Option<u8>,
    /// Absolute paths of the files whose contents the result keeps.
    pub keep: Vec<String>,
    /// Further writable directories of its host.
    pub writable: Vec<String>,
}

/// End of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum PlannedStop {
    /// By itself, after at most this time, nanoseconds.
    Itself(u64),
    /// At this time, nanoseconds from zero.
    At(u64),
    /// When all flows and all other programs have ended.
    End,
}

impl PlannedProgram {
    /// Returns the latest end, nanoseconds from zero; 0 if it depends on the others.
    pub fn latest_end_ns(&self) -> u64 {
        match self.stop {
            PlannedStop::Itself(limit_ns) => self.start_ns.saturating_add(limit_ns),
            PlannedStop::At(ns) => ns,
            PlannedStop::End => 0,
        }
    }
}

/// Plans every program; `host` finds the index of a host.
pub fn plan<E>(scenario: &Scenario, host: impl Fn(&str) -> Result<usize, E>) -> Result<Vec<PlannedProgram>, E> {
    let mut programs: Vec<PlannedProgram> = Vec::with_capacity(scenario.program.len());
    for (index, program) in scenario.program.iter().enumerate() {
        let mut name = program.name.clone().unwrap_or_else(|| program.default_name());
        let taken = |name: &str| {
            programs.iter().any(|other| other.name == name)
                || scenario.program.iter().skip(index + 1).any(|other| other.name.as_deref() == Some(name))
        };
        if program.name.is_none() && taken(&name) {
            name = format!("{name}-{}", index + 1);
        }
        programs.push(PlannedProgram {
            name,
            node: host(&program.host)?,
            command: program.run.clone(),
            run: program.run.clone(),
            start_ns: program.at.map_or(0, |at| at.0.get()),
            stop: stop(scenario, program),
            expect: program.expect,
            keep: program.keep.clone(),
            writable: program.writable.clone(),
        });
    }
    Ok(programs)
}

fn stop(scenario: &Scenario, program: &Program) -> PlannedStop {
    match program.stop {
        None => PlannedStop::Itself(program.time.unwrap_or(scenario.time).0.get()),
        Some(Stop::At(stop)) => PlannedStop::At(stop.0.get()),
        Some(Stop::With(_)) => PlannedStop::End,
    }
}

/// Returns the pairs of hosts with programs, between which these may send.
pub fn pairs(programs: &[PlannedProgram]) -> Vec<(usize, usize)> {
    let hosts: BTreeSet<usize> = programs.iter().map(|program| program.node).collect();
    hosts.iter().flat_map(|&a| hosts.range(a + 1..).map(move |&b| (a, b))).collect()
}
