//! Events: what they name, their times, contradictions; and the links that change.

use landspeed_emulation::MAX_EVENTS;
use landspeed_problems::{Problem, suggest_or_list};
use landspeed_settings::MAX_TIME_NS;
use landspeed_units::Nanos;

use super::hosts;
use crate::scenario::event::{self, find_flow};
use crate::scenario::judgement::Judgement;
use crate::scenario::{Event, Scenario, Written};

pub(super) fn judge(scenario: &Scenario, judgement: &mut Judgement) {
    if scenario.event.len() > MAX_EVENTS {
        judgement
            .refuse("event", format!("{} events are too many, the maximum is {MAX_EVENTS}", scenario.event.len()));
        return;
    }
    let before = judgement.problems.len();
    for (i, event) in scenario.event.iter().enumerate() {
        let key = |name: &str| format!("event.{i}.{name}");
        judgement.time(key("at"), Some(event.at), 0, MAX_TIME_NS, "use at most 30 days");
        object(event, &key, scenario, judgement);
        within(event, &key("at"), scenario, judgement);
    }
    flows(scenario, judgement);
    sysctls(scenario, judgement);
    let broken = |problem: &Problem| problem.key.starts_with("link.") || problem.key.starts_with("switch.");
    if judgement.problems.len() > before || judgement.problems.iter().any(broken) {
        return;
    }
    for link in (0..scenario.link.len()).filter(|&link| scenario.changes(link)) {
        changing_link(scenario, link, judgement);
    }
}

/// Validates what an event names and that it changes something of it.
fn object(event: &Event, key: &dyn Fn(&str) -> String, scenario: &Scenario, judgement: &mut Judgement) {
    let objects = [("link", event.link.is_some()), ("host", event.host.is_some()), ("flow", event.flow.is_some())];
    let named: Vec<&str> = objects.iter().filter(|(_, is_set)| *is_set).map(|(name, _)| *name).collect();
    let one = match named.as_slice() {
        [one] => *one,
        [] => {
            let hint = "add link = 0, link = \"west->east\", host = \"sender\" or flow = \"tcp\"";
            judgement.refuse_with(key("at"), "the event names no link, host or flow", hint);
            return;
        }
        [_, second, ..] => {
            judgement.refuse_with(key(second), "an event changes one object", "write one [[event]] for each");
            return;
        }
    };
    let link_keys = event.link_change().keys();
    let own: Vec<&str> = [
        ("sysctl", !event.sysctl.is_empty()),
        ("start", event.start.is_some()),
        ("stop", event.stop.is_some()),
        ("direction", event.direction.is_some()),
    ]
    .into_iter()
    .filter_map(|(name, is_set)| is_set.then_some(name))
    .collect();
    let belongs = |name: &str| match name {
        "sysctl" => "host",
        "start" | "stop" => "flow",
        _ => "link",
    };
    for name in link_keys.iter().chain(&own).filter(|name| belongs(name) != one) {
        let hint = format!("it changes a {}: name one, in an event for it", belongs(name));
        judgement.refuse_with(key(name), format!("`{name}` does not belong to a {one}"), hint);
    }
    match one {
        "link" => {
            if let Some(link) = event.link.as_ref().filter(|_| event.target(scenario).is_none()) {
                judgement.add(event::unknown_link(key("link"), link, scenario));
            } else if event.direction.is_some() && matches!(event.link, Some(crate::scenario::LinkName::Direction(_)))
            {
                judgement.refuse_with(key("direction"), "`link` names the direction already", "remove `direction`");
            }
            if link_keys.is_empty() {
                judgement.refuse_with(
                    key("link"),
                    "the event changes nothing",
                    "add a change, such as rate = \"10M\"",
                );
            }
        }
        "host" => {
            let name = event.host.as_deref().unwrap_or_default();
            if !scenario.host.contains_key(name) {
                let known: Vec<&str> = scenario.host.keys().map(String::as_str).collect();
                let problem = Problem::new(key("host"), format!("no such host: `{name}`"));
                judgement.add(problem.maybe_hint(suggest_or_list(name, known)));
            }
            if event.sysctl.is_empty() {
                let hint = "add sysctl = { \"net.ipv4.tcp_sack\" = 0 }";
                judgement.refuse_with(key("host"), "the event changes nothing", hint);
            }
            hosts::sysctls(&key("sysctl"), &event.sysctl, judgement);
        }
        _ => {
            let name = event.flow.as_deref().unwrap_or_default();
            if find_flow(&scenario.flow, name).is_none() {
                let names: Vec<String> = scenario
                    .flow
                    .iter()
                    .map(|flow| flow.name.clone().unwrap_or_else(|| format!("{}-{}", flow.from, flow.to)))
                    .collect();
                let problem = Problem::new(key("flow"), format!("no such flow: `{name}`"));
                judgement.add(problem.maybe_hint(suggest_or_list(name, names.iter().map(String::as_str))));
            }
            match (event.start, event.stop) {
                (Some(true), Some(true)) => {
                    judgement.refuse_with(key("stop"), "the flow starts and stops at once", "write two events");
                }
                (Some(true), None) | (None, Some(true)) => {}
                _ => {
                    judgement.refuse_with(
                        key("flow"),
                        "the event changes nothing",
                        "add start = true or stop = true",
                    );
                }
            }
        }
    }
}

/// Validates that an event is within the scenario.
fn within(event: &Event, key: &str, scenario: &Scenario, judgement: &mut Judgement) {
    let at_ns = event.at.0.get();
    if let Some(end_ns) = event::end_ns(scenario)
        && at_ns >= end_ns
        && event.start != Some(true)
    {
        let end = Written(Nanos::new(end_ns));
        judgement.refuse_with(key, format!("the scenario ends at {end}"), "use an earlier time, or a longer `time`");
    }
    let starts = scenario.flow.iter().map(|flow| flow.start).chain(scenario.program.iter().map(|program| program.at));
    let first_ns = starts.map(|start| start.map_or(0, |time| time.0.get())).min().unwrap_or(0);
    if event.flow.is_none() && first_ns > 0 && at_ns < first_ns {
        let first = Written(Nanos::new(first_ns));
        judgement.warn(
            "event-early",
            key,
            format!("nothing is sent before {first}, so the event changes the start only"),
        );
    }
}

/// Validates events that start and stop flows.
fn flows(scenario: &Scenario, judgement: &mut Judgement) {
    let mut seen: Vec<(usize, bool, usize)> = Vec::new();
    for (i, event) in scenario.event.iter().enumerate() {
        let Some(index) = event.flow.as_deref().and_then(|name| find_flow(&scenario.flow, name)) else { continue };
        let flow = &scenario.flow[index];
        let starts = event.start == Some(true);
        if !starts && event.stop != Some(true) {
            continue;
        }
        let name = if starts { "start" } else { "stop" };
        let key = format!("event.{i}.{name}");
        if let Some((.., other)) = seen.iter().find(|(flow, start, _)| (*flow, *start) == (index, starts)) {
            judgement.refuse_with(key, format!("event {other} has `{name}` for this flow too"), "remove one");
            continue;
        }
        seen.push((index, starts, i));
        if starts && flow.start.is_some_and(|start| start.0.get() > 0 && start != event.at) {
            judgement.refuse_with(key, "the flow has a `start` of another time", "remove one");
        } else if !starts && flow.start_spread.is_some() {
            let hint = "remove `start-spread`, or set `time` of the flow";
            judgement.refuse_with(key, "a flow with a random start has no fixed duration until its stop", hint);
        } else if !starts {
            let ns = |time: Option<crate::scenario::Time>| time.map_or(0, |time| time.0.get());
            let is_start = |other: &&Event| other.start == Some(true) && other.flow == event.flow;
            let start = scenario.event.iter().find(is_start).map(|other| other.at).or(flow.start);
            let steady_ns = ns(start).saturating_add(ns(flow.omit));
            let end_ns = steady_ns.saturating_add(flow.time.unwrap_or(scenario.time).0.get());
            if event.at.0.get() <= steady_ns {
                let steady = Written(Nanos::new(steady_ns));
                let hint = "use a later time: a flow starts, and its `omit` passes, before it stops";
                judgement.refuse_with(key, format!("the flow's steady phase begins at {steady}"), hint);
            } else if event.at.0.get() > end_ns {
                let end = Written(Nanos::new(end_ns));
                judgement.refuse_with(
                    key,
                    format!("the flow ends by itself at {end}"),
                    "remove the event, or set a longer `time`",
                );
            }
        }
    }
}

/// Finds events that set a sysctl of a host twice at one time.
fn sysctls(scenario: &Scenario, judgement: &mut Judgement) {
    for (i, event) in scenario.event.iter().enumerate() {
        let same = |other: &&Event| other.at == event.at && other.host == event.host;
        for name in event.sysctl.keys() {
            if scenario.event[..i].iter().filter(same).any(|other| other.sysctl.contains_key(name)) {
                let message = format!("another event sets this sysctl at {} too", event.at);
                judgement.refuse_with(format!("event.{i}.sysctl.{name}"), message, "remove one, or change its time");
            }
        }
    }
}

/// Validates a link that changes, as its model does.
fn changing_link(scenario: &Scenario, index: usize, judgement: &mut Judgement) {
    let unsupported = event::unsupported(scenario, index);
    if !unsupported.is_empty() {
        unsupported.into_iter().for_each(|problem| judgement.add(problem));
        return;
    }
    let (path, positions) = scenario.changing_path(index);
    let warnings = match event::load(path) {
        Ok(loaded) => loaded.warnings,
        Err(problems) => {
            for mut problem in problems {
                problem.key = scenario_key(&problem.key, index, &positions);
                // A message may name another event by its position.
                judgement.add(problem);
            }
            return;
        }
    };
    for warning in warnings {
        let (key, message) = warning.split_once(": ").unwrap_or(("", &warning));
        judgement.warn("changing-link", &scenario_key(key, index, &positions), message);
    }
}

/// Returns the key in the scenario of a key in the path of one link.
fn scenario_key(key: &str, link: usize, positions: &[usize]) -> String {
    if let Some(rest) = key.strip_prefix("link.0") {
        return format!("link.{link}{rest}");
    }
    let position = key.strip_prefix("event.").and_then(|rest| {
        let (number, rest) = rest.split_once('.')?;
        Some(format!("event.{}.{rest}", positions.get(number.parse::<usize>().ok()?)?))
    });
    position.unwrap_or_else(|| key.to_owned())
}
