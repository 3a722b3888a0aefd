use crate::prelude::*;

declare_check! {
    /// Whether the NIC's writes may be reordered on the bus.
    ///
    /// **Reads** relaxed ordering (device control register, bit 4); this takes root.
    ///
    /// **Matters** at 100 Gb/s and above on machines, mainly AMD's, whose bus delays ordered writes. The kernel
    /// itself turns it off behind root ports that are known to handle it wrongly.
    ///
    /// **Leave it alone** unless the bus limits the rate. landspeed never writes PCI configuration space; use
    /// the NIC's firmware tool or the host's firmware setup.
    code: "PCI-005",
    title: "PCIe relaxed ordering",
    scope: Port,
    severity: Note,
    sources: [
        "PCI Express Base Specification: device control register, Enable Relaxed Ordering",
        "Linux kernel, drivers/pci/quirks.c: PCI_DEV_FLAGS_NO_RELAXED_ORDERING for root ports that mishandle it",
    ],
    bad: |facts, _| example::pci(facts, |pci| pci.relaxed_ordering = Fact::Known(false)),
}

fn evaluate(view: &View<'_>) -> Outcome {
    let (port, pci) = known!(view.pci());
    let on = *known!(pci.relaxed_ordering.as_ref());
    if on {
        return Outcome::pass("on");
    }
    if *known!(port.speed_bps.as_ref()) < FAST_BPS {
        return Outcome::pass("off, which does no harm below 100 Gb/s");
    }
    Outcome::found(Problem {
        observed: "off".into(),
        recommended: "on, in the firmware's setup or with the NIC's own tool, if the bus turns out to be the limit"
            .into(),
        why: "Writes that keep their order wait for each other on the way to memory.".into(),
        by_hand: format!("sudo lspci -s {} -vvv | grep RlxdOrd", shell_word(&pci.address)),
        ..Problem::default()
    })
}
