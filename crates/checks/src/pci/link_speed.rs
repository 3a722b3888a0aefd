use super::{assumed, link_text, usable_now};
use crate::prelude::*;

declare_check! {
    /// Whether the NIC's PCIe link runs at its maximum speed.
    ///
    /// **Reads** `current_link_speed` and `max_link_speed` of the device.
    ///
    /// **Matters** where the slower link no longer carries the network's rate: an older slot, a riser card or a
    /// firmware setting limits it to an older PCIe generation.
    ///
    /// **Leave it alone** where the link carries the rate all the same: a Gen4 NIC in a Gen3
    /// slot is common and harmless.
    code: "PCI-002",
    title: "PCIe link speed",
    scope: Port,
    severity: Critical,
    sources: [
        esnet_2016!("PCI Bus Commands"),
        red_hat_2012!("PCI Bus – and related issues"),
        "Neugebauer et al., Understanding PCIe performance for end host networking, SIGCOMM 2018",
    ],
    bad: |facts, _| example::pci(facts, |pci| pci.speed_gts = Fact::Known(5.0)),
}

fn evaluate(view: &View<'_>) -> Outcome {
    let (port, pci) = known!(view.pci());
    let (now, most) = (*known!(pci.speed_gts.as_ref()), *known!(pci.max_speed_gts.as_ref()));
    let text = link_text(Some(now), pci.width.known().copied());
    if now >= most {
        return Outcome::pass(text);
    }
    let carries =
        usable_now(pci).map(|bps| format!(", which carries {} of data{}", rate_text(bps as u64), assumed(pci)));
    let carries = carries.unwrap_or_default();
    let severity = match (usable_now(pci), port.speed_bps.known()) {
        (Some(usable), Some(&speed)) if usable >= speed as f64 => {
            return Outcome::pass(format!("{text} of {most} GT/s{carries}: enough for {}", rate_text(speed)));
        }
        (Some(_), Some(_)) => Severity::Critical,
        _ => Severity::Minor,
    };
    let link = port.speed_bps.known().map_or_else(String::new, |&bps| format!(" for a link of {}", rate_text(bps)));
    Outcome::found(Problem {
        severity: Some(severity),
        observed: format!("{text} of {most} GT/s{carries}{link}"),
        recommended: format!("{most} GT/s: a slot of that generation, or the firmware's setting for this one"),
        why: "The speed of the lanes bounds what the device can move, in each direction.".into(),
        effect: Effect::arithmetic(format!("Each PCIe generation doubles the bandwidth: {now} of {most} GT/s.")),
        by_hand: format!("cat /sys/bus/pci/devices/{0}/*_link_speed; lspci -s {0} -vv", shell_word(&pci.address)),
        ..Problem::default()
    })
}
