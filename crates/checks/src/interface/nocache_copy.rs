use crate::prelude::*;

declare_check! {
    /// Whether sent data is copied past the CPU's cache.
    ///
    /// **Reads** the offload `tx-nocache-copy`.
    ///
    /// **Matters** because data that was just written is usually in the cache: bypassing the cache makes the
    /// NIC fetch it from memory. The kernel turned it on by default at first, and off later.
    ///
    /// **Leave it alone** while it is off; a benchmark may try it where the sender's CPU cache is the
    /// bottleneck.
    code: "NIC-011",
    title: "tx-nocache-copy",
    scope: Port,
    severity: Note,
    sources: [
        "Linux commit, net: Do not enable tx-nocache-copy by default (in SUSE's kernels as bnc#845378)",
        "Linux commit c6e1a0d12ca7 (2011), net: Allow no-cache copy from user on transmit",
    ],
    bad: |facts, _| example::feature(facts, "tx-nocache-copy", true),
}

fn evaluate(view: &View<'_>) -> Outcome {
    let port = known!(view.port());
    let features = known!(port.features.as_ref());
    let Some(nocache) = features.get("tx-nocache-copy") else {
        return Outcome::not_applicable("this kernel has no such setting for the device");
    };
    if !nocache.active {
        return Outcome::pass("off");
    }
    let changes = if nocache.changeable { vec![feature(port, "tx-nocache-copy", false)] } else { Vec::new() };
    Outcome::found(Problem {
        observed: "on".into(),
        recommended: "off, the default".into(),
        why: "Data that was just written is in the cache; copied past it, it has to come from memory again.".into(),
        by_hand: format!("ethtool -k {} | grep nocache", shell_word(&port.name)),
        applicability: if changes.is_empty() { Applicability::DisplayOnly } else { Applicability::Safe },
        changes,
        ..Problem::default()
    })
}
