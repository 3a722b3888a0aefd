use crate::prelude::*;

declare_check! {
    /// Whether every packet buffer is mapped and unmapped in the IOMMU.
    ///
    /// **Reads** the type of the device's IOMMU group (`/sys/kernel/iommu_groups/*/type`) and the kernel's command line.
    ///
    /// **Matters** because translation costs a page-table update for each buffer and a look-up for each access.
    /// Intel recommends pass-through for host traffic; ESnet gives up to 40 % for "Enable IOMMU", without
    /// saying which mode. With `iommu=pt` the host's own devices access memory without translation, while
    /// devices handed to virtual machines are still translated.
    ///
    /// **Leave it alone** where devices are not trusted (Thunderbolt, removable cards): translation keeps them
    /// from reading all of memory. It is a boot option: landspeed prints it and does not change the boot
    /// loader.
    code: "PCI-008",
    title: "IOMMU translation",
    scope: Port,
    severity: Minor,
    sources: [
        "Intel Ethernet 700 Series Linux Performance Tuning Guide, Kernel Boot Parameters: IOMMU in pass-through mode",
        "ESnet fasterdata, 100G Network Tuning: https://fasterdata.es.net/host-tuning/linux/100g-tuning/",
        "Linux kernel, Documentation/admin-guide/kernel-parameters.txt: iommu=pt, iommu.passthrough=",
        "Linux kernel, Documentation/ABI/testing/sysfs-kernel-iommu_groups: type",
        "Neugebauer et al., Understanding PCIe performance for end host networking, SIGCOMM 2018: impact of IOMMUs",
    ],
    bad: |facts, _| example::pci(facts, |pci| pci.iommu = Fact::Known("DMA-FQ".into())),
}

/// Rate below which translation rarely limits a host, bits/s: the sources are about 40 Gb/s and more.
const MIN_LINK_BPS: u64 = 40_000_000_000;

fn evaluate(view: &View<'_>) -> Outcome {
    let (port, pci) = known!(view.pci());
    let kind = known!(pci.iommu.as_ref());
    if kind == "identity" {
        return Outcome::pass("pass-through (identity)");
    }
    let kernel = &view.facts.kernel;
    let option = if kernel.machine == "aarch64" { "iommu.passthrough=1" } else { "iommu=pt" };
    let requested = kernel.parameter("iommu") == Some("pt") || kernel.parameter("iommu.passthrough") == Some("1");
    Outcome::found(Problem {
        severity: port.speed_bps.known().filter(|&&speed| speed < MIN_LINK_BPS).map(|_| Severity::Note),
        observed: format!("translated ({kind})"),
        recommended: if requested {
            format!("pass-through: {option} is on the command line, but this device's group was given another type")
        } else {
            format!("pass-through: {option} on the kernel's command line, and a reboot")
        },
        why: "Each packet buffer is entered into and removed from the IOMMU's tables.".into(),
        effect: Effect::stated(
            "Pass-through removes the DMA mapping cost for the host's own traffic",
            "Intel Ethernet 700 Series Linux Performance Tuning Guide",
        ),
        by_hand: format!("cat /sys/bus/pci/devices/{}/iommu_group/type; cat /proc/cmdline", shell_word(&pci.address)),
        ..Problem::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_option_depends_on_architecture_and_link_speed() {
        let mut facts = example::facts();
        example::pci(&mut facts, |pci| pci.iommu = Fact::Known("DMA".into()));
        facts.kernel.command_line = Fact::Known("ro".into());
        facts.kernel.machine = "aarch64".into();
        let audit = CHECK.audit_alone(&facts, &example::goal());
        assert!(audit.findings[0].recommended.contains("iommu.passthrough=1"));
        assert_eq!(audit.findings[0].severity, Severity::Minor);
        example::port(&mut facts).speed_bps = Fact::Known(10_000_000_000);
        let audit = CHECK.audit_alone(&facts, &example::goal());
        assert_eq!(audit.findings[0].severity, Severity::Note);
    }
}
