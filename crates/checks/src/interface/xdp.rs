use crate::prelude::*;

declare_check! {
    /// Whether an XDP program handles packets before the kernel does.
    ///
    /// **Reads** whether an XDP program is attached.
    ///
    /// **Matters** because it may drop, answer or redirect packets that then appear in no kernel counter,
    /// because drivers turn LRO off for it, and because it limits MTU and channels: changes to those may be
    /// rejected, or stop it.
    ///
    /// **Leave it alone** where you know its purpose (load balancers, DDoS filters, container networks).
    code: "NIC-018",
    title: "XDP program",
    scope: Port,
    severity: Note,
    sources: ["Linux kernel, Documentation/networking/af_xdp.rst", "ip-link(8): xdp"],
    bad: |facts, _| example::port(facts).xdp = Fact::Known(true),
}

fn evaluate(view: &View<'_>) -> Outcome {
    let port = known!(view.port());
    if !*known!(port.xdp.as_ref()) {
        return Outcome::pass("none");
    }
    Outcome::found(Problem {
        observed: "attached".into(),
        recommended: "find its owner before changing MTU, channels or offloads".into(),
        why: "It may drop or redirect packets before anything that counts them, and bounds what the driver accepts."
            .into(),
        by_hand: format!("ip -d link show {}; bpftool net", shell_word(&port.name)),
        ..Problem::default()
    })
}
