//! A sweep without a plan file: every combination of the values that a scenario varies.

use std::path::Path;

use landspeed_lab::cell;
use landspeed_lab::scenario::{FlowProtocol, Loaded, Scenario};
use landspeed_model::{LabFigure, Metric};
use landspeed_sweep::order::Order;
use landspeed_sweep::plan::{LabSubject, Written};
use landspeed_sweep::{Plan, Rules, Subject};

use crate::directory::Directory;
use crate::error::Error;
use crate::lab::Lab;
use crate::setup::{Request, Setup};

/// A scenario that varies keys, and how its cells run.
pub struct Inline<'a> {
    /// Name of the scenario file, for messages.
    pub file: &'a str,
    /// Text of the scenario, with the keys it varies.
    pub text: &'a str,
    /// The scenario, read from `text`; its first seed is that of the first block.
    pub loaded: &'a Loaded,
    /// Kernel of all cells; `None` if the scenario chooses it.
    pub kernel: Option<&'a str>,
    /// Directory of the kernels; `None` is the default one.
    pub cache: Option<&'a Path>,
    /// Directory for the results.
    pub directory: Directory,
    /// Maximum number of concurrent runs; `None` is as many as possible.
    pub jobs: Option<u16>,
    /// Whether the first run is made twice, to compare digests.
    pub repeat: bool,
}

impl Inline<'_> {
    /// Makes the sweep: varied keys are factors, and each seed is a block without random order or control, since runs
    /// in virtual time do not influence each other.
    pub fn prepare(self) -> Result<(Lab, Setup), Error> {
        let mut plan = self.plan();
        let Subject::Lab(subject) = plan.subject.clone() else { unreachable!("the plan has a scenario") };
        let first = &self.loaded.cells[0];
        let flow = subject.flow.as_ref().map(|flow| flow.value.clone());
        let mut warnings = self.loaded.warnings.clone();
        warnings.extend(cell::one_draw(first.repeats, plan.seed));
        let mut lab = Lab::open(&mut plan, subject, self.text.to_owned(), self.cache, first.repeats)?;
        lab.only_kernel = self.kernel.map(str::to_owned);
        let request = Request { directory: self.directory, rules: plan.rules, jobs: self.jobs, dry_run: false };
        let mut setup = lab.setup(plan, (flow, warnings), request)?;
        setup.order = Order::in_sequence(setup.cells.len(), setup.plan.seed, self.repeat);
        Ok((lab, setup))
    }

    fn plan(&self) -> Plan {
        let first = &self.loaded.cells[0];
        let scenario = &first.scenario;
        let (metric, flow) = question(scenario);
        Plan {
            name: scenario.name.clone(),
            description: scenario.description.clone(),
            reference: scenario.reference.clone(),
            metric,
            rules: Rules { blocks: Some(first.repeats), ..Rules::default() },
            seed: first.seed,
            fraction: 0,
            subject: Subject::Lab(LabSubject {
                scenario: unwritten(self.file.to_owned()),
                flow: flow.map(unwritten),
                set: Vec::new(),
            }),
            factors: Vec::new(),
            text: self.text.to_owned(),
            file: self.file.to_owned(),
        }
    }
}

/// Returns the metric and the flow of the scenario's first chart, or else of its first flow. The flow is `None` if the
/// scenario has only one.
fn question(scenario: &Scenario) -> (Metric, Option<String>) {
    let chart = scenario.charts.iter().find(|chart| chart.over.is_none());
    let named = chart.and_then(|chart| chart.flow.as_ref());
    let flow = scenario.flow.iter().find(|flow| flow.name.as_ref() == named).or(scenario.flow.first());
    let of_requests =
        flow.is_some_and(|flow| matches!(flow.protocol, Some(FlowProtocol::TcpRr | FlowProtocol::UdpRr)));
    let metric = match chart.map(|chart| chart.figure) {
        Some(LabFigure::Loss) => Metric::Loss,
        Some(LabFigure::Rtt) => Metric::RttP50,
        Some(LabFigure::Retransmits) => Metric::Retransmits,
        _ if of_requests => Metric::LatencyP50,
        _ if flow.is_some_and(|flow| flow.protocol == Some(FlowProtocol::Qualify)) => Metric::Loss,
        _ => Metric::Goodput,
    };
    (metric, flow.filter(|_| scenario.flow.len() > 1).and_then(|flow| flow.name.clone()))
}

/// Returns a value without a position in a plan's text.
fn unwritten(value: String) -> Written<String> {
    Written { value, span: 0..0 }
}
