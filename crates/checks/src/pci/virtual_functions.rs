use crate::prelude::*;

declare_check! {
    /// Whether the NIC is shared with virtual functions.
    ///
    /// **Reads** `sriov_numvfs`, `sriov_totalvfs` and whether the device is a virtual function itself.
    ///
    /// **Matters** because virtual functions share the port's bandwidth, link settings and bus: changes here
    /// also apply to the guests behind them, and a setting that resets the link interrupts all of them. A
    /// virtual function in turn cannot change what its parent decides: link speed, flow control, its own rate
    /// limit.
    ///
    /// **Leave it alone**: it is information to have before changing anything, not a fault.
    code: "PCI-009",
    title: "Virtual functions (SR-IOV)",
    scope: Port,
    severity: Note,
    sources: ["Linux kernel, Documentation/PCI/pci-iov-howto.rst"],
    bad: |facts, _| example::port(facts).virtual_functions = Fact::Known((4, 8)),
}

fn evaluate(view: &View<'_>) -> Outcome {
    let (port, pci) = known!(view.pci());
    let (observed, recommended) = if pci.virtual_function {
        (
            "the interface is a virtual function".into(),
            "look at its parent's settings too: link, flow control, rate limit",
        )
    } else {
        let (used, most) = *known!(port.virtual_functions.as_ref());
        if used == 0 {
            return Outcome::pass(format!("none of {most} in use"));
        }
        let observed = format!("{used} of {most} virtual functions in use");
        (observed, "change rings, channels and MTU only when those behind them can bear a reset of the link")
    };
    Outcome::found(Problem {
        observed,
        recommended: recommended.into(),
        why: "Virtual functions share the port's bandwidth, link and bus with their parent.".into(),
        by_hand: format!(
            "cat /sys/bus/pci/devices/{}/sriov_numvfs; ip link show {}",
            shell_word(&pci.address),
            shell_word(&port.name)
        ),
        ..Problem::default()
    })
}
