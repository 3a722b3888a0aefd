use crate::prelude::*;

declare_check! {
    /// Whether the NIC passes its flow hash to the kernel.
    ///
    /// **Reads** the offload `rx-hashing` and the number of receive queues.
    ///
    /// **Matters** because the kernel uses the hash to steer and to merge packets; otherwise it has to read the
    /// headers of each packet to compute one.
    ///
    /// **Leave it alone** where a driver's hash is known to be wrong.
    code: "NIC-017",
    title: "Receive hash offload",
    scope: Port,
    severity: Note,
    sources: ["Linux kernel, Documentation/networking/scaling.rst: RPS uses the hash of the hardware where there is one"],
    bad: |facts, _| example::feature(facts, "rx-hashing", false),
}

fn evaluate(view: &View<'_>) -> Outcome {
    let port = known!(view.device());
    let features = known!(port.features.as_ref());
    let Some(hashing) = features.get("rx-hashing") else {
        return Outcome::not_applicable("the device does not hand over its hash");
    };
    if hashing.active || !hashing.changeable {
        return Outcome::pass(if hashing.active { "on" } else { "off, and cannot be changed" });
    }
    if port.rx_queues.known() == Some(&1) {
        return Outcome::pass("off, with one receive queue");
    }
    Outcome::found(Problem {
        observed: "off".into(),
        recommended: "on".into(),
        why: "The kernel computes a hash for each packet that the NIC has computed already.".into(),
        by_hand: format!("ethtool -k {} | grep receive-hashing", shell_word(&port.name)),
        applicability: Applicability::Safe,
        changes: vec![feature(port, "rx-hashing", true)],
        ..Problem::default()
    })
}
