use crate::prelude::*;

/// Drivers of NICs that hypervisors emulate.
const EMULATED_DRIVERS: [&str; 7] = ["e1000", "e1000e", "8139cp", "8139too", "ne2k_pci", "pcnet32", "tulip"];

declare_check! {
    /// Whether a guest has an emulated NIC.
    ///
    /// **Reads** the driver of the port, and whether this is a virtual machine.
    ///
    /// **Matters** because every register access of an emulated NIC traps into the hypervisor, and it has one
    /// queue; virtio and virtual functions are made for virtual machines.
    ///
    /// **Leave it alone** where the guest system has no driver for anything better.
    code: "ENV-003",
    title: "Emulated NIC",
    scope: Port,
    severity: Minor,
    sources: [
        "Red Hat Enterprise Linux 7, Virtualization Deployment and Administration Guide, KVM paravirtualized (virtio) drivers",
        "Virtual I/O Device (VIRTIO) specification 1.2, section 5.1, network device",
        "Linux Documentation/PCI/pci-iov-howto.rst, SR-IOV",
    ],
    good: |facts, _| facts.virtualization.hypervisor = Fact::Known("kvm".into()),
    bad: |facts, _| {
        facts.virtualization.hypervisor = Fact::Known("vmware".into());
        if let Fact::Known(driver) = &mut example::port(facts).driver {
            driver.name = "e1000".into();
        }
    },
}

fn evaluate(view: &View<'_>) -> Outcome {
    let port = known!(view.port());
    let hypervisor = known!(&view.facts.virtualization.hypervisor);
    let driver = known!(&port.driver);
    if !EMULATED_DRIVERS.contains(&driver.name.as_str()) {
        return Outcome::pass(format!("{} under {hypervisor}", driver.name));
    }
    let problem = advice::manual_problem(
        format!("{} under {hypervisor}", driver.name),
        "virtio_net (vmxnet3 under VMware) or a virtual function, in the hypervisor's settings",
        "The hypervisor emulates every access to the NIC.",
        format!("ethtool -i {}", shell_word(&port.name)),
    );
    Outcome::found(problem.with_effect(Effect::stated(
        "Paravirtualized drivers decrease I/O latency and increase throughput almost to bare-metal levels",
        "Red Hat Enterprise Linux 7, Virtualization Deployment and Administration Guide",
    )))
}
