//! Whether a scenario that reads well also makes sense: what cannot be run, or would mislead, is refused with the reason;
//! what deserves a word gets one.

mod flows;
mod hosts;
mod links;
mod network;
mod queues;
mod slots;

use landspeed_model::Warning;
use landspeed_problems::{Problem, Problems};

use super::paths::Paths;
use super::read::{Cell, resolve};
use super::{Link, LinkDirection, Loss, LossPattern, Queue, QueueKind, Scenario, Time, estimate};

/// Warnings of one scenario that are kept.
const MAX_WARNINGS: usize = 40;
/// Finest sampling of the queues, nanoseconds: every reading costs about as much as a packet.
const MIN_SAMPLE_NS: u64 = 10_000;
/// Longest flow, and latest start, nanoseconds (30 days, as with `landspeed run`).
const MAX_TIME_NS: u64 = 30 * 86_400 * 1_000_000_000;
/// Least memory a guest boots with, bytes.
const MIN_MEMORY: u64 = 64 << 20;
/// Most memory a guest is given, bytes.
const MAX_MEMORY: u64 = 1 << 40;

/// What is to be said about a scenario.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Judgement {
    /// Why it cannot be run; none of them has a place (see [`load`], which finds it).
    pub problems: Vec<Problem>,
    /// What a reader should know; `code` is a stable word, `message` begins with the key it is about.
    pub warnings: Vec<Warning>,
}

/// A scenario that was read and found fit to run.
#[derive(Debug, Clone, PartialEq)]
pub struct Loaded {
    /// Its cells; never empty.
    pub cells: Vec<Cell>,
    /// Warnings about any of them, each once.
    pub warnings: Vec<Warning>,
}

/// Reads a scenario, spells out its cells (see [`super::read`]) and judges each.
pub fn load(text: &str) -> Result<Loaded, Problems> {
    let mut warnings = Vec::new();
    let cells = resolve(text, |scenario| {
        let judgement = judge(scenario);
        for warning in judgement.warnings {
            if warnings.len() < MAX_WARNINGS && !warnings.contains(&warning) {
                warnings.push(warning);
            }
        }
        judgement.problems
    })?;
    Ok(Loaded { cells, warnings })
}

/// Judges a scenario with nothing left to vary.
pub fn judge(scenario: &Scenario) -> Judgement {
    let mut judgement = Judgement::default();
    general(scenario, &mut judgement);
    network::judge(scenario, &mut judgement);
    let paths = Paths::new(scenario);
    links::judge(scenario, &mut judgement);
    queues::judge(scenario, &paths, &mut judgement);
    hosts::judge(scenario, &mut judgement);
    flows::judge(scenario, &paths, &mut judgement);
    // Sums only mean something when every part does.
    if judgement.problems.is_empty() {
        flows::load(scenario, &paths, &mut judgement);
        slots::judge(scenario, &paths, &mut judgement);
        memory(scenario, &mut judgement);
    }
    judgement
}

impl Judgement {
    fn refuse(&mut self, key: impl Into<String>, message: impl Into<String>) {
        self.add(Problem::new(key, message));
    }

    fn refuse_with(&mut self, key: impl Into<String>, message: impl Into<String>, hint: impl Into<String>) {
        self.add(Problem::new(key, message).hint(hint));
    }

    fn add(&mut self, problem: Problem) {
        if !self.problems.contains(&problem) {
            self.problems.push(problem);
        }
    }

    fn warn(&mut self, code: &str, key: &str, message: impl AsRef<str>) {
        let warning = Warning { code: code.to_owned(), message: format!("{key}: {}", message.as_ref()) };
        if !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }

    /// Refuses a time outside `least..=most` nanoseconds.
    fn time(&mut self, key: impl Into<String>, time: Option<Time>, least: u64, most: u64, range: &str) {
        if let Some(time) = time
            && !(least..=most).contains(&time.0.get())
        {
            self.refuse_with(key, format!("{time} is out of range"), range);
        }
    }
}

fn general(scenario: &Scenario, judgement: &mut Judgement) {
    if scenario.name.trim().is_empty() || scenario.name.chars().count() > 200 {
        judgement.refuse_with("name", "the name is empty or too long", "use 1 to 200 characters");
    }
    judgement.time("time", Some(scenario.time), 1_000_000, MAX_TIME_NS, "use 1ms to 30 days");
    if scenario.sample.0.get() < MIN_SAMPLE_NS {
        let reason = "use at least 10us: reading a queue costs as much as a packet";
        judgement.refuse_with("sample", format!("{} is too short", scenario.sample), reason);
    } else if scenario.sample.0.get() > 1_000_000_000 {
        judgement.warn(
            "coarse-sample",
            "sample",
            format!("with queues sampled every {}, peaks and delays are missed", scenario.sample),
        );
    }
    if scenario.repeats > 1 && !draws(scenario) {
        judgement.warn(
            "seeds-alike",
            "repeats",
            format!(
                "nothing in the scenario is random, so all {} runs give the same result; set start-spread for the flows",
                scenario.repeats
            ),
        );
    }
    if scenario.flow.is_empty() {
        judgement.refuse_with("flow", "the scenario has no flows", "add a [[flow]] with `from` and `to`");
    }
    for (i, chart) in scenario.charts.iter().enumerate() {
        let Some(flow) = &chart.flow else { continue };
        if !scenario.flow.iter().any(|named| named.name.as_ref() == Some(flow)) {
            judgement.refuse_with(
                format!("charts.{i}.flow"),
                format!("no flow has the name `{flow}`"),
                "use a flow's `name`",
            );
        }
    }
    if let Some(memory) = scenario.memory
        && !(MIN_MEMORY..=MAX_MEMORY).contains(&memory.0.get())
    {
        judgement.refuse_with(
            "memory",
            format!("{memory} is out of range for a guest"),
            "use 64MiB to 1TiB, or leave `memory` out: it is computed from the paths",
        );
    }
}

/// Whether anything in the scenario depends on the seed.
fn draws(scenario: &Scenario) -> bool {
    let random = |loss: &Loss| {
        matches!(loss, Loss::Random(_) | Loss::Pattern(LossPattern::Random(_) | LossPattern::GilbertElliott(_)))
    };
    let own = |way: &LinkDirection| {
        way.jitter.is_some()
            || way.reorder.is_some()
            || way.duplicate.is_some()
            || way.loss.as_ref().is_some_and(random)
    };
    let on_link = |link: &Link| {
        let whole = link.jitter.is_some() || link.reorder.is_some() || link.duplicate.is_some();
        whole || link.loss.as_ref().is_some_and(random) || own(&link.forward) || own(&link.reverse)
    };
    // These draw which packet to drop, or which queue a flow goes to.
    let kinds =
        [QueueKind::Red, QueueKind::Pie, QueueKind::FqCodel, QueueKind::Cake, QueueKind::Sfq, QueueKind::Netem];
    let draws = |queue: &Queue| match queue {
        Queue::Kind(kind) => kinds.contains(kind),
        Queue::Settings(settings) => kinds.contains(&settings.kind),
    };
    let hosts = || scenario.host.values().chain([&scenario.hosts]).filter_map(|host| host.qdisc.as_ref());
    let ports = || scenario.switch.values().flat_map(|switch| switch.queue.iter().chain(switch.port.values()));
    scenario.flow.iter().any(|flow| flow.start_spread.is_some())
        || scenario.link.iter().any(on_link)
        || hosts().chain(ports()).any(draws)
}

fn memory(scenario: &Scenario, judgement: &mut Judgement) {
    let needed = estimate::needed_memory(scenario);
    if let Some(memory) = scenario.memory
        && memory.0.get() < needed
    {
        let needed = landspeed_units::Bytes::new(needed);
        let message = format!("{memory} is less than the {needed} that full paths and queues need");
        judgement.warn("memory-small", "memory", message);
    }
}
