use crate::prelude::*;

declare_check! {
    /// Whether a virtio interface has as many queues as it could.
    ///
    /// **Reads** driver and channels of the port, and the number of CPUs.
    ///
    /// **Matters** because one queue is one virtual CPU for all packets, and one thread in the host below.
    ///
    /// **Leave it alone** with one or two CPUs, or where the guest moves little data.
    code: "ENV-002",
    title: "Queues of a virtio NIC",
    scope: Port,
    severity: Minor,
    sources: [
        "Red Hat Enterprise Linux 7, Virtualization Tuning and Optimization Guide, section 5.4.2, Multi-Queue virtio-net",
        "Virtual I/O Device (VIRTIO) specification 1.2, section 5.1.6.5.6: multiqueue",
        "QEMU documentation: -device virtio-net-pci,mq=on",
    ],
    good: |facts, _| virtio(facts, 16, 16),
    bad: |facts, _| virtio(facts, 1, 1),
}

/// Turns the example's port into a virtio interface with these numbers of channels.
fn virtio(facts: &mut landspeed_model::Facts, now: u32, max: u32) {
    let port = example::port(facts);
    if let Fact::Known(driver) = &mut port.driver {
        driver.name = "virtio_net".into();
    }
    if let Fact::Known(channels) = &mut port.channels {
        channels.combined = landspeed_model::Extent { now, max };
    }
}

fn effect() -> Effect {
    Effect::stated(
        "With a single queue, network performance does not scale with the number of vCPUs",
        "Red Hat Enterprise Linux 7, Virtualization Tuning and Optimization Guide",
    )
}

fn evaluate(view: &View<'_>) -> Outcome {
    let port = known!(view.port());
    let driver = known!(&port.driver);
    if driver.name != "virtio_net" {
        return Outcome::not_applicable(format!("the driver is {}, not virtio", driver.name));
    }
    let queues = known!(&port.channels).combined;
    let cpus = u32::try_from(view.facts.cpu.online.len()).unwrap_or(u32::MAX);
    if cpus == 0 {
        return Outcome::unknown("the number of CPUs is not known");
    }
    let text = format!("{} of at most {} queues, {cpus} CPUs", queues.now, queues.max);
    let by_hand = format!("ethtool -l {}", shell_word(&port.name));
    if queues.max <= 1 && cpus > 1 {
        return Outcome::found(
            advice::manual_problem(
                text,
                "multiqueue in the hypervisor (libvirt: <driver name='vhost' queues='N'/>), or SR-IOV",
                "One virtual CPU and one thread of the host below handle all packets.",
                by_hand,
            )
            .with_effect(effect()),
        );
    }
    let wanted = queues.max.min(cpus);
    if queues.now >= wanted {
        return Outcome::pass(text);
    }
    Outcome::found(Problem {
        severity: None,
        observed: text,
        recommended: format!("{wanted} combined channels"),
        why: "The host offers more queues than are used; each is a CPU that can share the work.".into(),
        effect: effect(),
        by_hand,
        applicability: Applicability::NeedsCare,
        changes: vec![Change::new(Target::Channels { interface: port.name.clone() }, wanted.to_string())],
    })
}
