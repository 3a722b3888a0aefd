use super::side;
use crate::prelude::*;

declare_check! {
    /// Whether receive flow steering runs in software although the NIC supports it.
    ///
    /// **Reads** `net.core.rps_sock_flow_entries`, `queues/rx-*/rps_flow_cnt` and the offload `rx-ntuple-filter`.
    ///
    /// **Matters** only with receive flow steering (RFS) in use: accelerated, the NIC puts a flow into the
    /// queue of the CPU on which its application runs, and no packet has to be passed to another CPU.
    ///
    /// **Leave it alone** without RFS, and where the NIC's flow rules are used for something else.
    code: "IRQ-015",
    title: "Accelerated RFS",
    scope: Port,
    severity: Note,
    sources: ["Linux kernel, Documentation/networking/scaling.rst: Accelerated RFS Suggested Configuration"],
    good: |facts, _| {
        steered(facts);
        example::feature(facts, "rx-ntuple-filter", true);
    },
    bad: |facts, _| {
        steered(facts);
        example::feature(facts, "rx-ntuple-filter", false);
    },
}

fn steered(facts: &mut landspeed_model::Facts) {
    example::sysctl(facts, "net.core.rps_sock_flow_entries", "32768");
    example::queues(facts, "rx-", |queue| queue.rps_flow_count = Some(2048));
}

fn evaluate(view: &View<'_>) -> Outcome {
    let port = known!(view.device());
    let entries = known!(view.sysctl_last("net.core.rps_sock_flow_entries"));
    let queues = known!(port.queues.as_ref());
    let flows: u64 = side(queues, "rx-").iter().filter_map(|queue| queue.rps_flow_count).map(u64::from).sum();
    if entries == 0 || flows == 0 {
        return Outcome::not_applicable("RFS is not in use");
    }
    let features = known!(port.features.as_ref());
    match features.get("rx-ntuple-filter") {
        None => Outcome::not_applicable("the device has no flow rules"),
        Some(filter) if filter.active => Outcome::pass("flow rules are on"),
        Some(filter) if !filter.changeable => {
            Outcome::not_applicable("the device's flow rules cannot be switched on")
        }
        Some(_) => Outcome::found(Problem {
            observed: format!("RFS with {entries} entries, flow rules of the NIC off"),
            recommended: "on, where driver and kernel support it (CONFIG_RFS_ACCEL)".into(),
            why: "Software hands each packet to the application's CPU though the NIC could choose its queue.".into(),
            by_hand: format!("ethtool -k {} | grep ntuple", shell_word(&port.name)),
            applicability: Applicability::NeedsCare,
            changes: vec![feature(port, "rx-ntuple-filter", true)],
            ..Problem::default()
        }),
    }
}
