//! Changes of a scenario at given times, and the links that change.

use std::collections::BTreeMap;

use landspeed_emulation::{self as emulation, EventDirection, Feature, LoadedPath};
use landspeed_problems::{Notations, Problem, read_by_notations, suggest_or_list};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::Error;

use super::{DEFAULT_MTU, Emulator, Flow, Link, LinkDirection, Queue, Scenario, SysctlValue, Time, Written};

landspeed_emulation::declare_event! {
    /// A change at a given time of virtual time. It names one link, host or flow, and what changes.
    pub struct Event {
        /// The link: its position in the scenario, from 0, or one direction of it as results name it, such as
        /// `"west->east"`.
        pub link: Option<LinkName>,
        /// The host whose sysctls change.
        pub host: Option<String>,
        /// New values of the host's sysctls.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        pub sysctl: BTreeMap<String, SysctlValue>,
        /// The flow, by name, that starts or stops.
        pub flow: Option<String>,
        /// Whether the flow starts.
        pub start: Option<bool>,
        /// Whether the flow stops.
        pub stop: Option<bool>,
    }
}

/// A link, or one direction of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum LinkName {
    /// Position in the scenario, from 0.
    Position(usize),
    /// One direction: `FROM->TO`.
    Direction(String),
}

read_by_notations!(LinkName);

impl Notations for LinkName {
    const EXPECTED: &'static str = "a link: its position such as 0, or one direction of it such as \"west->east\"";

    fn text<E: Error>(text: &str) -> Result<Self, E> {
        Ok(Self::Direction(text.trim().to_owned()))
    }

    fn integer<E: Error>(number: i64) -> Result<Self, E> {
        usize::try_from(number).map(Self::Position).map_err(|_| E::custom("positions of links begin at 0"))
    }
}

impl Event {
    /// Returns the link and the direction that change; `None` as direction stands for both.
    pub(crate) fn target(&self, scenario: &Scenario) -> Option<(usize, Option<EventDirection>)> {
        match self.link.as_ref()? {
            LinkName::Position(index) => (*index < scenario.link.len()).then_some((*index, self.direction)),
            LinkName::Direction(name) => {
                let (from, to) = name.split_once("->")?;
                let (from, to) = (from.trim(), to.trim());
                scenario.link.iter().enumerate().find_map(|(index, link)| {
                    let [a, b] = &link.between;
                    let direction = match (a == from && b == to, a == to && b == from) {
                        (true, _) => EventDirection::Forward,
                        (_, true) => EventDirection::Reverse,
                        _ => return None,
                    };
                    Some((index, Some(direction)))
                })
            }
        }
    }
}

impl Scenario {
    /// Whether a link changes during the run: then its model carries the frames instead of the kernel's qdiscs.
    pub fn changes(&self, index: usize) -> bool {
        let Some(link) = self.link.get(index) else { return false };
        let over_time = |own: &LinkDirection| {
            let features = link.effective(own).features();
            features.iter().any(|feature| matches!(feature, Feature::RateOverTime | Feature::Policer | Feature::Down))
        };
        over_time(&link.forward)
            || over_time(&link.reverse)
            || self.event.iter().any(|event| event.target(self).is_some_and(|(link, _)| link == index))
    }

    /// Returns the path of one link that changes, and the position in the scenario of each of its events.
    pub(crate) fn changing_path(&self, index: usize) -> (emulation::Path, Vec<usize>) {
        let Link { between: [a, b], mtu, rate, framing, forward, reverse, delay, jitter, loss, reorder, .. } =
            &self.link[index];
        let Link { slot, frame_clock, duplicate, policer, down, .. } = &self.link[index];
        let with_queue = |own: &LinkDirection, from: &str, to: &str| LinkDirection {
            queue: self.port_queue(from, to).cloned(),
            ..own.clone()
        };
        let link = emulation::Link {
            rate: rate.clone(),
            framing: *framing,
            forward: with_queue(forward, a, b),
            reverse: with_queue(reverse, b, a),
            delay: *delay,
            jitter: jitter.clone(),
            slot: *slot,
            frame_clock: *frame_clock,
            loss: loss.clone(),
            reorder: *reorder,
            duplicate: *duplicate,
            queue: None,
            policer: policer.clone(),
            down: down.clone(),
        };
        let (mut events, mut positions) = (Vec::new(), Vec::new());
        for (position, event) in self.event.iter().enumerate() {
            let Some((_, direction)) = event.target(self).filter(|(link, _)| *link == index) else { continue };
            let change = event.link_change();
            events.push(emulation::PathEvent {
                at: event.at,
                link: Some(0),
                direction,
                rate: change.rate,
                delay: change.delay,
                jitter: change.jitter,
                loss: change.loss,
                reorder: change.reorder,
                duplicate: change.duplicate,
                down: change.down,
                queue: change.queue,
            });
            positions.push(position);
        }
        let path = emulation::Path {
            name: format!("{a}={b}"),
            description: None,
            // Different from the seeds of other links, which are made of small numbers too.
            seed: landspeed_stats::SplitMix64::new(self.seed ^ ((index as u64) << 32)).bits(),
            mtu: Some(mtu.unwrap_or(DEFAULT_MTU)),
            link: vec![link],
            event: events,
        };
        (path, positions)
    }

    /// Returns the plans of both directions of a link that changes; `None` if it does not, or is invalid.
    pub(crate) fn changing_link(&self, index: usize) -> Option<LoadedPath> {
        self.changes(index).then(|| load(self.changing_path(index).0).ok()).flatten()
    }

    /// Returns the queue of a switch's port towards a neighbour, as written.
    fn port_queue(&self, from: &str, to: &str) -> Option<&Queue> {
        let switch = self.switch.get(from)?;
        switch.port.get(to).or(switch.queue.as_ref())
    }

    /// Sets start and duration of flows that events start and stop.
    pub(super) fn apply_flow_events(&mut self) {
        for event in &self.event {
            let Some(name) = &event.flow else { continue };
            let Some(flow) = find_flow(&self.flow, name) else { continue };
            let flow = &mut self.flow[flow];
            if event.start == Some(true) {
                flow.start = Some(event.at);
            }
        }
        for event in &self.event {
            let Some(name) = &event.flow else { continue };
            let Some(flow) = find_flow(&self.flow, name) else { continue };
            let flow = &mut self.flow[flow];
            if event.stop == Some(true) {
                let begins = |time: Option<Time>| time.map_or(0, |time| time.0.get());
                let from_ns = begins(flow.start).saturating_add(begins(flow.omit));
                let time_ns = event.at.0.get().saturating_sub(from_ns);
                flow.time = Some(Written(landspeed_units::Nanos::new(time_ns)));
            }
        }
    }
}

/// Returns the plans of a path that has no trace files.
pub(crate) fn load(path: emulation::Path) -> Result<LoadedPath, Vec<Problem>> {
    emulation::load_typed(path, &mut |name| {
        Err(format!(
            "`{name}` was not read: trace files are read by `landspeed lab run FILE`, from the file's directory"
        ))
    })
}

/// Returns the position of the flow with a name, as results name it.
pub(super) fn find_flow(flows: &[Flow], name: &str) -> Option<usize> {
    let by_default = |flow: &Flow| flow.name.is_none() && format!("{}-{}", flow.from, flow.to) == name;
    let named = flows.iter().position(|flow| flow.name.as_deref() == Some(name));
    named.or_else(|| flows.iter().position(by_default))
}

/// Returns the time at which the scenario ends, nanoseconds; `None` if it depends on how fast flows and programs are.
pub(super) fn end_ns(scenario: &Scenario) -> Option<u64> {
    let ns = |time: Option<Time>| time.map_or(0, |time| time.0.get());
    if scenario.flow.iter().any(|flow| flow.bytes.is_some() && flow.time.is_none()) {
        return None;
    }
    let flows = scenario.flow.iter().map(|flow| {
        let time_ns = flow.time.unwrap_or(scenario.time).0.get();
        let start_ns = ns(flow.start).saturating_add(ns(flow.start_spread));
        start_ns.saturating_add(ns(flow.omit)).saturating_add(time_ns)
    });
    let programs = scenario.program.iter().map(|program| match program.stop {
        Some(super::Stop::At(stop)) => stop.0.get(),
        Some(super::Stop::With(_)) => 0,
        None => ns(program.at).saturating_add(program.time.unwrap_or(scenario.time).0.get()),
    });
    flows.chain(programs).max()
}

/// Returns what prevents a link that changes from being carried by its model, besides its values.
pub(super) fn unsupported(scenario: &Scenario, index: usize) -> Vec<Problem> {
    let link = &scenario.link[index];
    let [a, b] = &link.between;
    let mut problems = Vec::new();
    for (own, from, to) in [(&link.forward, a, b), (&link.reverse, b, a)] {
        let settings = link.effective(own);
        for (key, is_set) in [("slot", settings.slot.is_some()), ("frame-clock", settings.frame_clock.is_some())] {
            if is_set {
                let message = format!("`{key}` does not work on a link that changes during the run");
                problems.push(Problem::new(format!("link.{index}.{key}"), message).hint("remove it, or the events"));
            }
        }
        let Some(queue) = scenario.port_queue(from, to) else { continue };
        if Feature::Queue(queue.kind()).unsupported_by(Emulator::Userspace).is_some() {
            let message = format!(
                "queue kind `{}` does not work before a link that changes during the run ({from}->{to})",
                queue.kind().name()
            );
            let key = match scenario.switch.get(from).filter(|switch| switch.port.contains_key(to)) {
                Some(_) => format!("switch.{from}.port.{to}"),
                None => format!("switch.{from}.queue"),
            };
            problems.push(Problem::new(key, message).hint("use bfifo, pfifo, red, codel, fq_codel or pie"));
        }
    }
    problems
}

/// Returns the problem of a name of a link that does not exist.
pub(super) fn unknown_link(key: String, name: &LinkName, scenario: &Scenario) -> Problem {
    match name {
        LinkName::Position(index) => {
            let most = scenario.link.len().saturating_sub(1);
            Problem::new(key, format!("no such link: {index}"))
                .hint(format!("use 0 to {most}, in the order of [[link]]"))
        }
        LinkName::Direction(name) => {
            let links = scenario.link.iter().map(|link| &link.between);
            let known: Vec<String> = links.flat_map(|[a, b]| [format!("{a}->{b}"), format!("{b}->{a}")]).collect();
            let hint = suggest_or_list(name, known.iter().map(String::as_str));
            Problem::new(key, format!("no such link: `{name}`")).maybe_hint(hint)
        }
    }
}
