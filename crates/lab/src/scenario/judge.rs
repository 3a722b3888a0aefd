//! Validation of a parsed scenario. Settings that cannot be run, or would be misleading, are refused with the
//! reason; doubtful ones get a warning.

mod events;
mod flows;
mod hosts;
mod links;
mod network;
mod programs;
mod queues;
pub(super) mod reference;
mod sections;
mod slots;

use landspeed_model::Warning;
use landspeed_problems::{Problem, Problems};
use landspeed_settings::MAX_TIME_NS;

pub use super::judgement::Judgement;
use super::paths::Paths;
use super::read::{Cell, resolve};
use super::{HostSettings, Link, LinkDirection, Loss, LossPattern, Queue, QueueKind, Scenario, estimate};

/// Maximum number of warnings kept for a scenario.
const MAX_WARNINGS: usize = 40;
/// Minimum sampling interval of queues, nanoseconds: every reading costs about as much as a packet.
const MIN_SAMPLE_NS: u64 = 10_000;
/// Minimum memory of a guest, bytes.
const MIN_MEMORY: u64 = 64 << 20;
/// Maximum memory of a guest, bytes.
const MAX_MEMORY: u64 = 1 << 40;

/// A valid scenario.
#[derive(Debug, Clone, PartialEq)]
pub struct Loaded {
    /// Its cells; never empty.
    pub cells: Vec<Cell>,
    /// Warnings about all cells, without duplicates.
    pub warnings: Vec<Warning>,
}

/// Parses a scenario, expands its cells (see [`super::read`]) and validates each.
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
    if cells.len() > 1 && cells[0].scenario.flow.is_empty() {
        let message = "a scenario without flows cannot be varied or repeated: tables and charts show flows";
        let hint = "add a [[flow]], or run one cell at a time with --set and --seed";
        return Err(Problems::new("scenario", vec![Problem::new("program", message).hint(hint)]));
    }
    Ok(Loaded { cells, warnings })
}

/// Validates a scenario with nothing left to vary.
pub fn judge(scenario: &Scenario) -> Judgement {
    let mut judgement = Judgement::default();
    general(scenario, &mut judgement);
    reference::judge(scenario, &mut judgement);
    network::judge(scenario, &mut judgement);
    let paths = Paths::new(scenario);
    links::judge(scenario, &mut judgement);
    queues::judge(scenario, &paths, &mut judgement);
    hosts::judge(scenario, &mut judgement);
    flows::judge(scenario, &paths, &mut judgement);
    programs::problems(scenario).into_iter().for_each(|problem| judgement.add(problem));
    events::judge(scenario, &mut judgement);
    // Totals are meaningful only if every part is valid.
    if judgement.problems.is_empty() {
        flows::load(scenario, &paths, &mut judgement);
        slots::judge(scenario, &paths, &mut judgement);
        memory(scenario, &mut judgement);
    }
    judgement
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
    if scenario.repeats > 1 && !uses_seed(scenario) {
        judgement.warn(
            "seeds-alike",
            "repeats",
            format!(
                "nothing in the scenario is random, so all {} runs give the same result; set start-spread for the flows",
                scenario.repeats
            ),
        );
    }
    if scenario.flow.is_empty() && scenario.program.is_empty() {
        judgement.refuse_with(
            "flow",
            "the scenario has no flows and no programs",
            "add a [[flow]] with `from` and `to`, or a [[program]] with `host` and `run`",
        );
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

/// Returns whether anything in the scenario depends on the seed.
fn uses_seed(scenario: &Scenario) -> bool {
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
    let changes_at_random = |event: &super::Event| {
        let change = event.link_change();
        change.jitter.is_some()
            || change.reorder.is_some()
            || change.duplicate.is_some()
            || change.loss.as_ref().is_some_and(random)
    };
    // These choose at random which packet to drop, or which queue a flow uses.
    let kinds =
        [QueueKind::Red, QueueKind::Pie, QueueKind::FqCodel, QueueKind::Cake, QueueKind::Sfq, QueueKind::Netem];
    let uses_seed = |queue: &Queue| kinds.contains(&queue.kind());
    let has_noise =
        |host: &HostSettings| host.cpu.as_ref().and_then(|cpu| cpu.noise).is_some_and(|noise| noise.0.get() > 0);
    let hosts = || scenario.host.values().chain([&scenario.hosts]).filter_map(|host| host.qdisc.as_ref());
    let ports = || scenario.switch.values().flat_map(|switch| switch.queue.iter().chain(switch.port.values()));
    // The guest's randomness is seeded, and programs may use it.
    !scenario.program.is_empty()
        || scenario.flow.iter().any(|flow| flow.start_spread.is_some())
        || scenario.host.values().chain([&scenario.hosts]).any(has_noise)
        || scenario.link.iter().any(on_link)
        || scenario.event.iter().any(changes_at_random)
        || hosts().chain(ports()).any(uses_seed)
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
