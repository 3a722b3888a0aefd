use landspeed_model::NumaNode;

use crate::prelude::*;

declare_check! {
    /// Whether a multi-socket host exposes its NUMA nodes.
    ///
    /// **Reads** `/sys/devices/system/node` and the number of packages.
    ///
    /// **Matters** because with node interleaving switched on in the firmware, or `numa=off`, every other cache
    /// line is on the remote socket, and neither the kernel nor an administrator can keep a flow near its NIC.
    ///
    /// **Leave it alone** where one program needs the whole machine's memory and is not NUMA-aware.
    code: "CPU-009",
    title: "NUMA nodes",
    severity: Major,
    sources: [
        "Linux kernel, Documentation/admin-guide/kernel-parameters.txt: numa=",
        "ESnet fasterdata, Interrupt Binding: https://fasterdata.es.net/host-tuning/linux/100g-tuning/interrupt-binding/",
        esnet_2016!("BIOS Setting"),
    ],
    bad: |facts, _| facts.numa = Fact::Known(vec![NumaNode { id: 0, cpus: "0-31".into() }]),
}

fn evaluate(view: &View<'_>) -> Outcome {
    let sockets = *known!(known!(view.cpus()).sockets.as_ref());
    if sockets < 2 {
        return Outcome::not_applicable("there is one socket");
    }
    let nodes = known!(view.facts.numa.as_ref());
    let with_processors = nodes.iter().filter(|node| !node.cpus.is_empty()).count();
    if with_processors >= sockets as usize {
        return Outcome::pass(format!("{with_processors} nodes for {sockets} sockets"));
    }
    let off = view.facts.kernel.parameter("numa") == Some("off");
    Outcome::found(Problem {
        observed: format!(
            "{with_processors} NUMA node for {sockets} sockets{}",
            if off { ", because the command line says numa=off" } else { "" }
        ),
        recommended: if off {
            "take numa=off off the kernel's command line and reboot".into()
        } else {
            format!("{sockets} nodes or more: switch node interleaving off in the firmware's setup")
        },
        why: "With memory spread over all sockets nothing can be kept near the NIC: half of the accesses cross sockets.".into(),
        effect: Effect::measured("Up to 2x slower for a flow on the wrong CPU socket; the effect of interleaving itself was not measured", &[&source::SOCKET_CHOICE_EFFECT]),
        by_hand: "numactl --hardware; lscpu | grep -i -e socket -e numa".into(),
        ..Problem::default()
    })
}
