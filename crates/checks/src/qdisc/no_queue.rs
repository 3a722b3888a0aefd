use super::{by_hand, if_fq_exists, queueing};
use crate::prelude::*;

declare_check! {
    /// Whether a hardware device has a qdisc that queues.
    ///
    /// **Reads** the root qdisc, the kind of the interface and its driver.
    ///
    /// **Matters** because with `noqueue` a packet that finds the device's ring full is dropped at once, TCP
    /// small queues cannot work, and nothing paces.
    ///
    /// **Leave it alone** on virtual interfaces (bridge, VLAN, veth, bond): they have no ring, the device below queues.
    code: "QDISC-002",
    title: "Qdisc in front of the device",
    scope: Port,
    severity: Note,
    sources: ["tc(8), section QDISCS", "Linux Documentation/networking/ip-sysctl.rst, tcp_limit_output_bytes"],
    bad: |facts, _| {
        example::for_each_qdisc(facts, |qdisc| if qdisc.parent.is_none() { qdisc.kind = "noqueue".into() });
    },
}

fn evaluate(view: &View<'_>) -> Outcome {
    let port = known!(view.port());
    let queueing = queueing!(port);
    if queueing.root != "noqueue" {
        return Outcome::pass(queueing.root);
    }
    if let Some(kind) = &port.kind {
        return Outcome::not_applicable(format!("{kind} is virtual: what is below it queues"));
    }
    known!(&port.driver);
    let change = Change::new(Target::Qdisc { interface: port.name.clone() }, "fq");
    let problem = Problem {
        observed: "noqueue on a device with a driver".into(),
        recommended: "fq on every transmit queue".into(),
        why: "A full ring drops packets at once, and nothing paces.".into(),
        by_hand: by_hand(port),
        applicability: Applicability::NeedsCare,
        changes: vec![change],
        ..Problem::default()
    };
    Outcome::found(if_fq_exists(view, problem))
}
