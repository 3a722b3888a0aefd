use super::{TYPICAL_PAYLOAD_BYTES, usable_bps};
use crate::prelude::*;

declare_check! {
    /// Maximum payload of each packet on the bus.
    ///
    /// **Reads** the maximum payload size (device control register, bits 7:5); this takes root.
    ///
    /// **Matters** because each packet on the bus has 24 bytes of overhead: at 128 bytes that is 16 % of the
    /// link, at 256 bytes 9 %. At 100 Gb/s on sixteen lanes of the third generation the difference is decisive.
    ///
    /// **Leave it alone** where the link has capacity to spare. One device on the path that supports only 128
    /// bytes limits all of them.
    code: "PCI-006",
    title: "PCIe maximum payload",
    scope: Port,
    severity: Note,
    sources: [
        "Neugebauer et al., Understanding PCIe performance for end host networking, SIGCOMM 2018",
        "Linux kernel, Documentation/admin-guide/kernel-parameters.txt: pci=pcie_bus_safe, pcie_bus_perf",
    ],
    bad: |facts, _| example::pci(facts, |pci| pci.max_payload_bytes = Fact::Known(128)),
}

fn evaluate(view: &View<'_>) -> Outcome {
    let (port, pci) = known!(view.pci());
    let bytes = *known!(pci.max_payload_bytes.as_ref());
    if bytes >= TYPICAL_PAYLOAD_BYTES {
        return Outcome::pass(format!("{bytes} bytes"));
    }
    let speed = *known!(port.speed_bps.as_ref());
    let (gts, lanes) = (*known!(pci.speed_gts.as_ref()), *known!(pci.width.as_ref()));
    let (now, then) = (usable_bps(gts, lanes, bytes) as u64, usable_bps(gts, lanes, TYPICAL_PAYLOAD_BYTES) as u64);
    if speed < FAST_BPS && now >= speed {
        return Outcome::pass(format!("{bytes} bytes; the link still carries {}", rate_text(now)));
    }
    Outcome::found(Problem {
        observed: format!("{bytes} bytes: the link carries {} of data", rate_text(now)),
        recommended: format!("{TYPICAL_PAYLOAD_BYTES} bytes, with which it carries {}", rate_text(then)),
        why: "Each packet on the bus costs 24 bytes beside its data.".into(),
        effect: Effect::arithmetic(format!("{} more.", rate_text(then.saturating_sub(now)))),
        by_hand: format!("sudo lspci -s {} -vvv | grep MaxPayload", shell_word(&pci.address)),
        ..Problem::default()
    })
}
