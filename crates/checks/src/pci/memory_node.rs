use crate::prelude::*;

declare_check! {
    /// Whether the firmware reports the NIC's NUMA node.
    ///
    /// **Reads** `numa_node` of the device (-1 where the firmware does not report it) and the number of NUMA
    /// nodes.
    ///
    /// **Matters** because without it the kernel spreads the NIC's memory and interrupts over both sockets, and every tool
    /// that pins "to the NIC's node" pins to none.
    ///
    /// **Leave it alone** on hosts with one NUMA node.
    code: "PCI-007",
    title: "NUMA node of the NIC",
    scope: Port,
    severity: Minor,
    sources: [
        red_hat_2012!("Tuning- first pass bottleneck resolution"),
        "Linux kernel, Documentation/ABI/testing/sysfs-bus-pci: numa_node",
        "ESnet fasterdata, Interrupt Binding: https://fasterdata.es.net/host-tuning/linux/100g-tuning/interrupt-binding/",
    ],
    bad: |facts, _| example::pci(facts, |pci| pci.numa_node = Fact::Absent("the firmware does not say".into())),
}

fn evaluate(view: &View<'_>) -> Outcome {
    let (_, pci) = known!(view.pci());
    let nodes = known!(view.facts.numa.as_ref());
    if nodes.len() < 2 {
        return Outcome::not_applicable("there is one NUMA node");
    }
    match &pci.numa_node {
        Fact::Known(node) => Outcome::pass(format!("node {node}")),
        Fact::Unknown(why) => Outcome::unknown(why.clone()),
        Fact::Absent(_) => Outcome::found(Problem {
            observed: format!("-1 (the firmware does not say) on a host with {} nodes", nodes.len()),
            recommended: "the slot's socket from the board's manual; a newer firmware may state it".into(),
            why: "Interrupts, buffers and programs cannot be placed near a NIC whose place is unknown.".into(),
            effect: Effect::measured("Up to 2x slower on the wrong CPU socket", &[&source::SOCKET_CHOICE_EFFECT]),
            by_hand: format!("cat /sys/bus/pci/devices/{}/numa_node", shell_word(&pci.address)),
            ..Problem::default()
        }),
    }
}
