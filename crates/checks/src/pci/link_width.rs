use super::{assumed, link_text, usable_now};
use crate::prelude::*;

declare_check! {
    /// Whether the NIC's PCIe link uses all of its lanes.
    ///
    /// **Reads** `current_link_width` and `max_link_width` of the device.
    ///
    /// **Matters** because a NIC in the wrong slot, or badly seated, works silently at half or a quarter of its
    /// bandwidth. Nothing else on the host reports it.
    ///
    /// **Leave it alone** where the slot was chosen on purpose and still carries the link's rate.
    code: "PCI-001",
    title: "PCIe link width",
    scope: Port,
    severity: Critical,
    sources: [
        esnet_2016!("PCI Bus Commands"),
        red_hat_2012!("PCI Bus – and related issues"),
        "Neugebauer et al., Understanding PCIe performance for end host networking, SIGCOMM 2018",
        "Linux kernel, Documentation/ABI/testing/sysfs-bus-pci: current_link_width, max_link_width",
    ],
    bad: |facts, _| example::pci(facts, |pci| pci.width = Fact::Known(8)),
}

fn evaluate(view: &View<'_>) -> Outcome {
    let (port, pci) = known!(view.pci());
    let (now, most) = (*known!(pci.width.as_ref()), *known!(pci.max_width.as_ref()));
    if now >= most {
        return Outcome::pass(format!("x{now}"));
    }
    let usable = usable_now(pci);
    let speed = port.speed_bps.known();
    let severity = match (usable, speed) {
        // Enough for this link, but the card has more lanes: the wrong slot or a bad contact.
        (Some(usable), Some(&speed)) if usable >= speed as f64 => Severity::Minor,
        (Some(_), Some(_)) => Severity::Critical,
        _ => Severity::Major,
    };
    let carries = usable
        .map_or_else(String::new, |bps| format!(", which carries {} of data{}", rate_text(bps as u64), assumed(pci)));
    let link = speed.map_or_else(String::new, |&bps| format!(" for a link of {}", rate_text(bps)));
    let text = link_text(pci.speed_gts.known().copied(), Some(now));
    Outcome::found(Problem {
        severity: Some(severity),
        observed: format!("{text} of x{most}{carries}{link}"),
        recommended: format!(
            "x{most}: another slot, or the same after reseating the card and looking at the slot's firmware setup"
        ),
        why: "The lanes in use bound what the device can move, in each direction.".into(),
        effect: Effect::arithmetic(format!(
            "The bandwidth of the link grows with its lanes: x{now} has {:.0} % of x{most}.",
            100.0 * f64::from(now) / f64::from(most.max(1))
        )),
        by_hand: format!("cat /sys/bus/pci/devices/{0}/*_link_width; lspci -s {0} -vv", shell_word(&pci.address)),
        ..Problem::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn narrow_links_that_suffice_are_minor() {
        for (gts, weight) in [(8.0, Severity::Critical), (16.0, Severity::Minor)] {
            let mut facts = example::facts();
            example::pci(&mut facts, |pci| (pci.width, pci.speed_gts) = (Fact::Known(8), Fact::Known(gts)));
            let audit = CHECK.audit_alone(&facts, &example::goal());
            assert_eq!(audit.findings[0].severity, weight, "{gts} GT/s x8");
        }
    }
}
