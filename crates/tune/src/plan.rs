//! Converts changes into ordered steps, each with its disruption or the reason of its refusal. Nothing is
//! written.

use std::collections::BTreeMap;

use landspeed_model::{Change, Target};
use serde::Serialize;

use crate::discipline::QdiscRequest;
use crate::{Device, Knobs, Value, rules};

/// Disruptions that the user allows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Allow {
    /// Steps that take a link down for a moment.
    pub disruptive: bool,
    /// Disruptive steps on interfaces that others depend on (bond ports, bridge ports, VLAN parents, XDP, SR-IOV).
    pub tied: bool,
}

/// One step of a plan.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Step {
    /// The setting to change.
    pub target: Target,
    /// Name of the setting for the user.
    pub name: String,
    /// Current value; `None` if it cannot be read.
    pub observed: Option<Value>,
    /// Requested value.
    pub desired: String,
    /// Whether the step disrupts traffic.
    pub disruptive: bool,
    /// Reason of a refusal; `None` for an accepted step.
    pub refused: Option<String>,
    /// Whether the setting already has the requested value.
    pub no_op: bool,
    /// Whether the step only records the value: a reset by another step may change it, and then a revert
    /// restores it.
    pub keep: bool,
    /// The device of the setting, if it has one.
    pub device: Option<Device>,
    /// Notes for the user.
    pub notes: Vec<String>,
}

impl Step {
    /// Whether the step will be executed.
    pub fn is_live(&self) -> bool {
        self.refused.is_none() && !self.no_op
    }
}

/// Steps in the order of execution; a rollback uses the reverse order.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Plan {
    /// All steps, including refused ones and no-ops.
    pub steps: Vec<Step>,
}

impl Plan {
    /// Steps that will be executed, including those that only record a value.
    pub fn live(&self) -> impl Iterator<Item = &Step> {
        self.steps.iter().filter(|step| step.is_live())
    }

    /// Number of steps that write something.
    pub fn writes(&self) -> usize {
        self.live().filter(|step| !step.keep).count()
    }

    /// Steps that were refused.
    pub fn refused(&self) -> impl Iterator<Item = &Step> {
        self.steps.iter().filter(|step| step.refused.is_some())
    }
}

/// Reads the host and orders the changes. Impossible changes are in the plan with the reason.
pub fn plan(changes: &[Change], knobs: &dyn Knobs, allow: Allow) -> Plan {
    let mut wanted: Vec<&Change> = Vec::new();
    let mut twice: BTreeMap<&Target, &str> = BTreeMap::new();
    for change in changes {
        match wanted.iter().find(|seen| seen.target == change.target) {
            None => wanted.push(change),
            Some(first) if first.desired.trim() == change.desired.trim() => {}
            Some(_) => {
                twice.insert(&change.target, change.desired.trim());
            }
        }
    }
    wanted.sort_by(|a, b| order(&a.target).cmp(&order(&b.target)).then_with(|| a.target.cmp(&b.target)));
    let resized: Vec<String> = wanted
        .iter()
        .filter(|change| matches!(change.target, Target::Channels { .. }))
        .filter_map(|change| change.target.interface().map(ToOwned::to_owned))
        .collect();
    let mut steps: Vec<Step> = Vec::new();
    for change in wanted {
        let mut step = look(change, knobs, allow);
        if let Some(other) = twice.get(&change.target) {
            step.refused = Some(format!("asked for twice: `{}` and `{other}`", step.desired));
        }
        let renumbered = match &change.target {
            Target::Queue { interface, .. } => resized.contains(interface),
            Target::InterruptAffinity { name, .. } => {
                resized.iter().any(|interface| name.contains(interface.as_str()))
            }
            _ => false,
        };
        if renumbered {
            step.refused = Some(
                "the number of channels changes in the same plan, and with it the queues and interrupts: apply that first, \
                 then look again"
                    .into(),
            );
        }
        if step.is_live() && step.desired != "0" && matches!(change.target, Target::EgressRate { .. }) {
            check_egress_qdisc(&mut step, &steps, knobs);
        }
        if step.is_live() && matches!(change.target, Target::Channels { .. }) {
            record_qdiscs(&change.target, knobs, &mut steps, &mut step);
        }
        steps.push(step);
    }
    Plan { steps }
}

/// Checks that a qdisc enforces a cgroup's rate: the current one, or the one that an earlier step sets.
fn check_egress_qdisc(step: &mut Step, earlier: &[Step], knobs: &dyn Knobs) {
    let Some(interface) = step.target.interface() else { return };
    let qdisc = Target::Qdisc { interface: interface.to_owned() };
    let planned = earlier.iter().find(|earlier| earlier.target == qdisc && earlier.is_live() && !earlier.keep);
    let kinds: Vec<String> = match planned {
        Some(planned) => planned.desired.split(' ').next().map(ToOwned::to_owned).into_iter().collect(),
        None => match knobs.read(&qdisc) {
            Ok(Value::Qdiscs(tree)) => tree.transmit_qdiscs().iter().map(|node| node.kind.clone()).collect(),
            _ => Vec::new(),
        },
    };
    let all = |kind: &str| !kinds.is_empty() && kinds.iter().all(|have| have == kind);
    if all("fq") {
        step.notes.push(
            "a BPF program at the group sets the departure time of each packet for fq; the queues stay apart".into(),
        );
    } else if all("htb") {
        step.notes.push("a class of the htb at the root keeps it; all queues wait for that one".into());
    } else {
        step.refused = Some(format!(
            "nothing on {interface} keeps a rate: ask for --set {interface}:qdisc=fq as well, or, on a kernel without fq, for \
             --set {interface}:qdisc=htb, which puts all queues behind one"
        ));
    }
}

/// Adds a step that records the qdiscs of a device whose channels change: the kernel may remove some with
/// their queues.
fn record_qdiscs(target: &Target, knobs: &dyn Knobs, steps: &mut Vec<Step>, cause: &mut Step) {
    let Some(interface) = target.interface() else { return };
    let qdisc = Target::Qdisc { interface: interface.to_owned() };
    match knobs.read(&qdisc) {
        Ok(Value::Qdiscs(tree)) => match tree.unsupported_reason() {
            Some(why) => cause.refused = Some(format!("fewer or more queues change the queueing disciplines: {why}")),
            None => steps.push(Step {
                name: qdisc.to_string(),
                target: qdisc,
                observed: Some(Value::Qdiscs(tree)),
                desired: String::new(),
                disruptive: false,
                refused: None,
                no_op: false,
                keep: true,
                device: cause.device.clone(),
                notes: Vec::new(),
            }),
        },
        Ok(Value::Text(_)) => {}
        Err(why) => cause.refused = Some(format!("its queueing disciplines could not be put back: {why}")),
    }
}

/// Position of a setting in the order. Queues exist only after channels; limits of buffers are raised
/// before the buffers; the default qdisc comes last, so that it is restored first: deleting a root attaches
/// the default of that time.
fn order(target: &Target) -> (u8, u8) {
    match target {
        Target::Channels { .. } => (0, 0),
        Target::Ring { .. } => (1, 0),
        Target::Mtu { .. } => (2, 0),
        Target::Feature { .. } => (3, 0),
        Target::Pause { .. } => (3, 1),
        Target::Coalescing { parameter, .. } => (3, if parameter.starts_with("adaptive") { 2 } else { 3 }),
        Target::TxQueueLen { .. } => (3, 4),
        Target::SegmentLimit { name, .. } => (4, u8::from(name.contains("ipv4"))),
        Target::InterruptAffinity { .. } => (5, 0),
        Target::Queue { .. } => (6, 0),
        Target::InterfaceFile { .. } => (6, 1),
        Target::Qdisc { .. } => (7, 0),
        Target::EgressRate { .. } => (7, 1),
        Target::Governor { .. } => (8, 0),
        Target::EnergyPreference { .. } => (8, 1),
        Target::ResumeLatency { .. } => (8, 2),
        Target::Sysctl { name } => match name.as_str() {
            "net.core.default_qdisc" => (12, 0),
            name if name.starts_with("net.core.") && name.ends_with("_max") => (9, 0),
            name if name.starts_with("net.core.") => (10, 0),
            _ => (11, 0),
        },
    }
}

fn look(change: &Change, knobs: &dyn Knobs, allow: Allow) -> Step {
    let desired = change.desired.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut step = Step {
        name: change.target.to_string(),
        target: change.target.clone(),
        observed: None,
        desired,
        disruptive: false,
        refused: rules::objection(change),
        no_op: false,
        keep: false,
        device: None,
        notes: Vec::new(),
    };
    if step.refused.is_some() {
        return step;
    }
    if let Some(interface) = crate::sysctl::interface(&change.target) {
        match knobs.device(&interface) {
            Ok(device) => step.device = Some(device),
            Err(why) => {
                step.refused = Some(why.to_string());
                return step;
            }
        }
    }
    match knobs.read(&change.target) {
        Ok(value) => step.observed = Some(value),
        Err(why) => {
            step.refused = Some(why.to_string());
            return step;
        }
    }
    step.no_op = step.observed.as_ref().is_some_and(|now| is_as_desired(now, &step.desired));
    if step.no_op {
        return step;
    }
    if let Some(why) = knobs.read_only(&change.target) {
        step.refused = Some(why);
        return step;
    }
    if let Some(Value::Qdiscs(tree)) = &step.observed
        && let Some(why) = tree.unsupported_reason()
    {
        step.refused = Some(why);
        return step;
    }
    if let Some(interface) = change.target.interface() {
        add_hazards(&mut step, interface, knobs, allow);
    }
    step
}

/// Whether nothing needs to be written. A qdisc with options is always set, because the kernel's binary
/// options cannot be compared with text.
fn is_as_desired(now: &Value, desired: &str) -> bool {
    match now {
        Value::Text(_) => now.same(&Value::text(desired)),
        Value::Qdiscs(tree) => match QdiscRequest::parse(desired) {
            Ok(QdiscRequest::Default) => tree.is_default(),
            Ok(wanted) => {
                let transmit_qdiscs = tree.transmit_qdiscs();
                let bare = desired.split_whitespace().count() == 1;
                bare && !transmit_qdiscs.is_empty()
                    && transmit_qdiscs.iter().all(|node| Some(node.kind.as_str()) == wanted.kind())
            }
            Err(_) => false,
        },
    }
}

fn add_hazards(step: &mut Step, interface: &str, knobs: &dyn Knobs, allow: Allow) {
    let resets = matches!(
        step.target,
        Target::Ring { .. } | Target::Channels { .. } | Target::Mtu { .. } | Target::Pause { .. }
    );
    let dependents = knobs.dependents(interface);
    step.disruptive = resets && dependents.hardware;
    if matches!(step.target, Target::Mtu { .. }) {
        let own = Target::Sysctl { name: format!("net/ipv6/conf/{interface}/mtu") };
        if let (Ok(own), Some(now)) = (knobs.read(&own), &step.observed)
            && !own.same(now)
        {
            step.refused =
                Some(format!("its IPv6 MTU was set apart to {own} bytes, and changing the MTU would overwrite that"));
            return;
        }
    }
    if resets && !dependents.tied.is_empty() && !allow.tied {
        step.refused = Some(format!(
            "{interface} has {}: changing it disturbs them too. Say --allow-tied if that is meant",
            dependents.tied.join(", ")
        ));
    } else if step.disruptive && !allow.disruptive {
        step.refused = Some("the link goes down for a moment: say --disruptive if that is meant".into());
    } else if step.disruptive {
        step.notes.push("the link goes down for a moment".into());
    }
}
