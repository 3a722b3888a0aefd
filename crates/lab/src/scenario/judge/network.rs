//! Nodes, and the links between them.

use std::collections::{BTreeMap, BTreeSet};

use crate::scenario::Scenario;
use crate::scenario::judgement::Judgement;
use landspeed_problems::{Problem, suggest_or_list};

/// Maximum length of a node's name: interfaces are named after their neighbour, and the kernel allows 15
/// characters, a few of which are used for other purposes.
const MAX_NAME: usize = 12;
/// Maximum number of hosts and switches: each is a network namespace.
const MAX_NODES: usize = 256;
/// Names that are reserved, for interfaces and for their settings.
const RESERVED_NAMES: [&str; 4] = ["lo", "all", "default", "control"];

pub(super) fn judge(scenario: &Scenario, judgement: &mut Judgement) {
    nodes(scenario, judgement);
    links(scenario, judgement);
    for (name, switch) in &scenario.switch {
        let neighbours: Vec<&str> = neighbours(scenario, name).collect();
        for port in switch.port.keys().filter(|port| !neighbours.contains(&port.as_str())) {
            let problem =
                Problem::new(format!("switch.{name}.port.{port}"), format!("no link between `{name}` and `{port}`"));
            judgement.add(problem.maybe_hint(suggest_or_list(port, neighbours.iter().copied())));
        }
        if neighbours.is_empty() {
            judgement.warn("unused-node", &format!("switch.{name}"), "no link connects it");
        }
    }
}

fn neighbours<'a>(scenario: &'a Scenario, node: &'a str) -> impl Iterator<Item = &'a str> {
    scenario.link.iter().filter_map(move |link| match &link.between {
        [a, b] if a == node => Some(b.as_str()),
        [a, b] if b == node => Some(a.as_str()),
        _ => None,
    })
}

fn nodes(scenario: &Scenario, judgement: &mut Judgement) {
    if scenario.host.len() + scenario.switch.len() > MAX_NODES {
        judgement.refuse(
            "host",
            format!("{} nodes are too many, the maximum is {MAX_NODES}", scenario.host.len() + scenario.switch.len()),
        );
    }
    let all = scenario.host.keys().map(|n| ("host", n)).chain(scenario.switch.keys().map(|n| ("switch", n)));
    for (kind, name) in all {
        let key = format!("{kind}.{name}");
        let legal = name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
        if !legal || name.is_empty() || name.len() > MAX_NAME || name.starts_with('-') {
            let rule = format!(
                "use 1 to {MAX_NAME} characters of a-z, 0-9 and -, not beginning with -: interfaces have the same names"
            );
            judgement.refuse_with(key, format!("invalid node name: `{name}`"), rule);
        } else if RESERVED_NAMES.contains(&name.as_str()) {
            judgement.refuse_with(key, format!("`{name}` is reserved by the kernel"), "use another name");
        }
    }
    for name in scenario.switch.keys().filter(|name| scenario.host.contains_key(*name)) {
        let reason = "use another name: links and flows refer to hosts and switches by name";
        judgement.refuse_with(format!("switch.{name}"), format!("a host has the name `{name}`"), reason);
    }
}

fn links(scenario: &Scenario, judgement: &mut Judgement) {
    if scenario.link.is_empty() {
        judgement.refuse_with("link", "the scenario has no links", "add a [[link]] with `between` and `rate`");
        return;
    }
    let known = || scenario.host.keys().chain(scenario.switch.keys()).map(String::as_str);
    let mut joined: BTreeMap<[&str; 2], usize> = BTreeMap::new();
    let mut islands = ConnectedNodes::default();
    let mut of_host: BTreeMap<&str, usize> = BTreeMap::new();
    for (i, link) in scenario.link.iter().enumerate() {
        let key = format!("link.{i}.between");
        let [a, b] = [link.between[0].as_str(), link.between[1].as_str()];
        let mut sound = true;
        for node in BTreeSet::from([a, b]) {
            if !known().any(|k| k == node) {
                judgement.add(
                    Problem::new(&key, format!("no such node: `{node}`"))
                        .maybe_hint(suggest_or_list(node, known().collect::<Vec<_>>())),
                );
                sound = false;
            }
        }
        if a == b {
            judgement.refuse_with(&key, format!("both ends of the link are `{a}`"), "name two different nodes");
            continue;
        }
        let pair = if a < b { [a, b] } else { [b, a] };
        if let Some(first) = joined.insert(pair, i) {
            let reason = "remove one: interfaces are named after their neighbour, so two nodes have at most one link";
            judgement.refuse_with(&key, format!("link {first} connects `{a}` and `{b}`"), reason);
            continue;
        }
        for host in [a, b].into_iter().filter(|node| scenario.host.contains_key(*node)) {
            if let Some(first) = of_host.insert(host, i) {
                let reason = "put a switch in between: a host has one interface";
                judgement.refuse_with(&key, format!("host `{host}` has link {first}"), reason);
                sound = false;
            }
        }
        if sound && !islands.join(a, b) {
            let reason =
                "remove one link of the loop: switches forward over a tree, without spanning tree or routing";
            judgement.refuse_with(
                &key,
                format!("the link makes a loop: there is another path between `{a}` and `{b}`"),
                reason,
            );
        }
    }
    if judgement.problems.iter().any(|problem| problem.key.starts_with("link.")) {
        // One of the refused links may have been meant to connect it.
        return;
    }
    for host in scenario.host.keys().filter(|host| !of_host.contains_key(host.as_str())) {
        judgement.refuse_with(
            format!("host.{host}"),
            format!("no link connects `{host}`"),
            "add a link, or remove the host",
        );
    }
}

/// Sets of connected nodes (union-find).
#[derive(Default)]
struct ConnectedNodes<'a>(BTreeMap<&'a str, &'a str>);

impl<'a> ConnectedNodes<'a> {
    /// Joins two nodes; returns false if they were connected before.
    fn join(&mut self, a: &'a str, b: &'a str) -> bool {
        let (a, b) = (self.root(a), self.root(b));
        self.0.insert(a, b);
        a != b
    }

    fn root(&self, mut node: &'a str) -> &'a str {
        while let Some(&above) = self.0.get(node)
            && above != node
        {
            node = above;
        }
        node
    }
}
