use landspeed_model::{Applicability, Fact};

use crate::check::{Outcome, Problem};
use crate::example;
use crate::view::View;

declare_check! {
    /// Whether the firmware says which socket the NIC belongs to.
    ///
    /// **Reads** `numa_node` of the device (-1 where the firmware does not say) and the number of memory nodes.
    ///
    /// **Matters** because without it the kernel spreads the NIC's memory and interrupts over both sockets, and every tool
    /// that pins "to the NIC's node" pins to none.
    ///
    /// **Leave it alone** on hosts with one memory node.
    code: "PCI-007",
    name: "memory-node",
    group: Pci,
    title: "Memory node of the NIC",
    scope: Port,
    severity: Minor,
    since: "0.1",
    sources: [
        "Wagner (Red Hat), Achieving Top Network Performance, 2012: a value of -1 could mean error or undefined",
        "Linux kernel, Documentation/ABI/testing/sysfs-bus-pci: numa_node",
        "ESnet Fasterdata, Interrupt Binding: https://fasterdata.es.net/host-tuning/linux/100g-tuning/interrupt-binding/",
    ],
    example: {
        good: example::as_is,
        bad: |facts, _| example::pci(facts, |pci| pci.numa_node = Fact::Absent("the firmware does not say".into())),
    },
}

fn evaluate(view: &View<'_>) -> Outcome {
    let (_, pci) = known!(view.pci());
    let nodes = known!(view.facts.numa.as_ref());
    if nodes.len() < 2 {
        return Outcome::not_applicable("there is one memory node");
    }
    match &pci.numa_node {
        Fact::Known(node) => Outcome::pass(format!("node {node}")),
        Fact::Unknown(why) => Outcome::unknown(why.clone()),
        Fact::Absent(_) => Outcome::found(Problem {
            severity: None,
            observed: format!("-1 (the firmware does not say) on a host with {} nodes", nodes.len()),
            recommended: "the slot's socket from the board's manual; a newer firmware may state it".into(),
            why: "Interrupts, buffers and programs cannot be placed near a NIC whose place is unknown.".into(),
            effect: "ESnet: up to a factor of 2 between the right and the wrong socket.".into(),
            by_hand: format!("cat /sys/bus/pci/devices/{}/numa_node", pci.address),
            applicability: Applicability::DisplayOnly,
            changes: Vec::new(),
        }),
    }
}
