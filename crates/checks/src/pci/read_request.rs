use crate::prelude::*;

declare_check! {
    /// Maximum amount that the NIC may read from memory at once when it sends.
    ///
    /// **Reads** the maximum read request size (device control register, bits 14:12); this takes root.
    ///
    /// **Matters** little: vendors' guides raise it to 4096 with `setpci`, and ESnet found that this neither
    /// helps nor hurts at 100 Gb/s. Below 512 bytes, the size every device must work with after reset, a fast
    /// NIC needs very many requests.
    ///
    /// **Leave it alone** at 512 and above. landspeed never writes PCI configuration space: a wrong offset can
    /// crash the machine.
    code: "PCI-004",
    title: "PCIe maximum read request",
    scope: Port,
    severity: Note,
    sources: [
        esnet_2016!("BIOS Setting"),
        red_hat_2012!("PCI Bus – and related issues"),
        "Linux kernel, Documentation/admin-guide/kernel-parameters.txt: pci=pcie_bus_perf",
    ],
    bad: |facts, _| example::pci(facts, |pci| pci.max_read_request_bytes = Fact::Known(128)),
}

/// Minimum rate for this check, bits/s: the slowest NIC in the decks whose vendor's guide mentions the request
/// size.
const MIN_LINK_BPS: u64 = 40_000_000_000;

/// The default after reset (PCI Express Base Specification, device control register), bytes.
const DEFAULT_BYTES: u32 = 512;

fn evaluate(view: &View<'_>) -> Outcome {
    let (port, pci) = known!(view.pci());
    let bytes = *known!(pci.max_read_request_bytes.as_ref());
    if bytes >= DEFAULT_BYTES || port.speed_bps.known().is_some_and(|&speed| speed < MIN_LINK_BPS) {
        return Outcome::pass(format!("{bytes} bytes"));
    }
    Outcome::found(Problem {
        observed: format!("{bytes} bytes"),
        recommended: format!(
            "{DEFAULT_BYTES} bytes or more, set by the firmware or with pci=pcie_bus_perf; not with setpci"
        ),
        why: "A NIC that sends fast from memory asks for each packet in many small pieces.".into(),
        effect: Effect::measured(
            "4096 bytes neither helped nor hurt; smaller sizes were not measured",
            &[&source::READ_REQUEST],
        ),
        by_hand: format!("sudo lspci -s {} -vvv | grep MaxReadReq", shell_word(&pci.address)),
        ..Problem::default()
    })
}
