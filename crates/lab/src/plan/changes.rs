//! Links that change during the run, and the events of a scenario.
//!
//! The kernel's qdiscs cannot change a link at an exact time without side effects: tbf refills its bucket, and netem
//! measures from the last frame in flight. So a link that changes is carried by the model of `landspeed-emulation`,
//! which reads the frames at one port of the wire and sends them from the other, in virtual time. The queue of the
//! port before the link is in the model too.

use landspeed_emulation::{DirectionPlan, LinkChange, LoadedPath, Loss};
use landspeed_model::LabEvent;
use serde::{Deserialize, Serialize};

use super::PlanError;
use crate::scenario::event::load;
use crate::scenario::{Scenario, SysctlValue};

/// A link that changes during the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlannedCarrier {
    /// Node of the wire, by index.
    pub node: usize,
    /// Node and port that send into the link: in forward and in reverse direction.
    pub senders: [(usize, usize); 2],
    /// The path of one link that the model carries.
    pub path: landspeed_emulation::Path,
}

/// A change of a host's sysctl at a given time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedSetting {
    /// Time, nanoseconds from zero.
    pub at_ns: u64,
    /// Index of the host in the plan.
    pub node: usize,
    /// File under `/proc/sys`.
    pub file: String,
    /// Value written to the file.
    pub value: String,
    /// Index of the event in [`super::Plan::events`].
    pub event: usize,
}

impl PlannedCarrier {
    /// Returns the plans of both directions.
    ///
    /// # Errors
    /// If the path is invalid, which the scenario's validation refuses.
    pub fn load(&self) -> Result<LoadedPath, PlanError> {
        load(self.path.clone()).map_err(|problems| {
            let texts: Vec<String> =
                problems.iter().map(|problem| format!("{}: {}", problem.key, problem.message)).collect();
            PlanError(format!("the link {}: {}", self.path.name, texts.join("; ")))
        })
    }

    /// Returns the plan of the direction in which frames leave by port `out` of the wire.
    pub fn direction(path: &LoadedPath, out: usize) -> &DirectionPlan {
        if out == 1 { &path.forward } else { &path.reverse }
    }
}

/// Returns the events of a scenario as documents show them, in the order of time, and the sysctls to set.
pub fn plan<E>(
    scenario: &Scenario,
    host: impl Fn(&str) -> Result<usize, E>,
) -> Result<(Vec<LabEvent>, Vec<PlannedSetting>), E> {
    let mut order: Vec<usize> = (0..scenario.event.len()).collect();
    order.sort_by_key(|&index| scenario.event[index].at.0.get());
    let (mut events, mut settings) = (Vec::new(), Vec::new());
    for event in order.into_iter().map(|index| &scenario.event[index]) {
        let at_ns = event.at.0.get();
        let shown = |object: String, key: &str, value: String, number: Option<f64>| LabEvent {
            at_ns,
            applied_ns: None,
            object,
            key: key.to_owned(),
            value,
            number,
            error: None,
        };
        if let Some((index, direction)) = event.target(scenario) {
            let [a, b] = &scenario.link[index].between;
            let names: Vec<String> = landspeed_emulation::EventDirection::BOTH
                .into_iter()
                .filter(|one| direction.is_none_or(|only| only == *one))
                .map(|one| match one {
                    landspeed_emulation::EventDirection::Forward => format!("{a}->{b}"),
                    landspeed_emulation::EventDirection::Reverse => format!("{b}->{a}"),
                })
                .collect();
            for name in names {
                for (key, value, number) in values(&event.link_change()) {
                    events.push(shown(format!("link {name}"), key, value, number));
                }
            }
        }
        if let Some(name) = &event.flow {
            let key = if event.start == Some(true) { "start" } else { "stop" };
            events.push(LabEvent {
                applied_ns: Some(at_ns),
                ..shown(format!("flow {name}"), key, String::new(), None)
            });
        }
        if let Some(name) = &event.host {
            for (key, value) in &event.sysctl {
                let value = match value {
                    SysctlValue::Number(number) => number.to_string(),
                    SysctlValue::Text(text) => text.clone(),
                };
                settings.push(PlannedSetting {
                    at_ns,
                    node: host(name)?,
                    file: key.replace('.', "/"),
                    value: value.clone(),
                    event: events.len(),
                });
                events.push(shown(format!("host {name}"), key, value, None));
            }
        }
    }
    Ok((events, settings))
}

/// Returns the keys of a change, each with its value as text and, if it has one, as a number: bits/s, nanoseconds or
/// a share.
fn values(change: &LinkChange) -> Vec<(&'static str, String, Option<f64>)> {
    let LinkChange { rate, delay, jitter, loss, reorder, duplicate, down, queue } = change;
    let mut values = Vec::new();
    if let Some(rate) = rate {
        values.push(("rate", rate.to_string(), Some(rate.0.bps() as f64)));
    }
    if let Some(delay) = delay {
        values.push(("delay", delay.to_string(), Some(delay.0.get() as f64)));
    }
    if let Some(jitter) = jitter {
        values.push(("jitter", jitter.spread.to_string(), Some(jitter.spread.0.get() as f64)));
    }
    match loss {
        None => {}
        Some(Loss::Random(share)) => values.push(("loss", share.to_string(), Some(share.0.get()))),
        Some(pattern) => values.push(("loss", serde_json::to_string(pattern).unwrap_or_default(), None)),
    }
    for (key, share) in [("reorder", reorder), ("duplicate", duplicate)] {
        if let Some(share) = share {
            values.push((key, share.to_string(), Some(share.0.get())));
        }
    }
    if let Some(down) = down {
        values.push((if *down { "down" } else { "up" }, String::new(), None));
    }
    if let Some(queue) = queue {
        let text = match queue {
            landspeed_emulation::Queue::Kind(kind) => kind.name().to_owned(),
            landspeed_emulation::Queue::Settings(settings) => {
                let limit = settings.limit.map(|limit| format!(" {limit}"));
                let packets = settings.packets.map(|packets| format!(" {packets} packets"));
                format!("{}{}", settings.kind.name(), limit.or(packets).unwrap_or_default())
            }
        };
        values.push(("queue", text, None));
    }
    values
}
