use landspeed_model::{InterfaceFacts, PciFacts};

use super::{TYPICAL_PAYLOAD_BYTES, assumed, link_text, usable_bps, usable_now};
use crate::prelude::*;

declare_check! {
    /// Whether the slot carries the rate of all ports of the NIC.
    ///
    /// **Reads** speed, width and payload of the device's link, and the speeds of all ports of the same NIC.
    ///
    /// **Matters** because a NIC may have more network than bus bandwidth: two ports of 100 Gb/s on sixteen
    /// lanes of the third generation share a bandwidth that one of them fills. The figure is lanes × GT/s ×
    /// coding, less 8 % for ACKs and flow control and less 24 bytes for each packet on the bus; descriptors and
    /// interrupts take a little more.
    ///
    /// **Leave it alone** where the second port is only a standby.
    code: "PCI-003",
    title: "PCIe bandwidth of the slot",
    scope: Port,
    severity: Critical,
    sources: [
        "Neugebauer et al., Understanding PCIe performance for end host networking, SIGCOMM 2018: section on the model",
        red_hat_2012!("PCI Bus – and related issues"),
    ],
    bad: |facts, _| {
        example::port(facts).speed_bps = Fact::Known(200_000_000_000);
    },
}

fn evaluate(view: &View<'_>) -> Outcome {
    let (port, pci) = known!(view.pci());
    let speed = *known!(port.speed_bps.as_ref());
    known!(pci.speed_gts.as_ref());
    known!(pci.width.as_ref());
    let usable = usable_now(pci).unwrap_or(0.0) as u64;
    let link = link_text(pci.speed_gts.known().copied(), pci.width.known().copied());
    let card: Vec<&InterfaceFacts> = view.facts.interfaces.iter().filter(|other| same_card(other, pci)).collect();
    let together =
        card.iter().filter_map(|other| other.speed_bps.known()).fold(0_u64, |all, bps| all.saturating_add(*bps));
    let observed = format!("{link} carries {} of data{}", rate_text(usable), assumed(pci));
    if usable >= speed.max(together) {
        return Outcome::pass(format!("{observed}; the NIC's ports have {}", rate_text(speed.max(together))));
    }
    // Bandwidth of the card in the best slot.
    let payload = pci.max_payload_bytes.known().copied().unwrap_or(TYPICAL_PAYLOAD_BYTES);
    let best = match (&pci.max_speed_gts, &pci.max_width) {
        (Fact::Known(gts), Fact::Known(lanes)) => Some(usable_bps(*gts, *lanes, payload) as u64),
        _ => None,
    };
    if best.is_some_and(|best| best > usable && best >= speed) {
        return Outcome::not_applicable("the link is below what the NIC can do (PCI-001, PCI-002)");
    }
    let (severity, observed) = if usable < speed {
        // A deficit of less than 10 % is within the model's tolerance.
        let severity = if (usable as f64) < speed as f64 * 0.9 { Severity::Critical } else { Severity::Minor };
        (severity, format!("{observed}; the link's rate is {}", rate_text(speed)))
    } else {
        (Severity::Minor, format!("{observed}; the NIC's {} ports have {}", card.len(), rate_text(together)))
    };
    Outcome::found(Problem {
        severity: Some(severity),
        observed,
        recommended: format!(
            "{} of data: {}, or the ports spread over two NICs",
            rate_text(speed.max(together)),
            if best.is_some() { "a NIC and slot of a newer generation" } else { "more lanes or a newer generation" }
        ),
        why: "All ports of a NIC share its PCIe link.".into(),
        effect: Effect::arithmetic(format!(
            "All transfers together get at most {}, by the model.",
            rate_text(usable)
        )),
        by_hand: format!("lspci -s {} -vv | grep -E 'LnkCap|LnkSta|MaxPayload'", shell_word(&pci.address)),
        ..Problem::default()
    })
}

/// Returns whether an interface is a port of the same card and has a link: the same device with another
/// function. Virtual functions do not count: their traffic is part of their parent's.
fn same_card(other: &InterfaceFacts, pci: &PciFacts) -> bool {
    let device = |address: &str| address.rsplit_once('.').map(|(device, _)| device.to_owned());
    let theirs = other.pci.known().filter(|theirs| !theirs.virtual_function);
    other.state == "up"
        && theirs.is_some_and(|t| device(&t.address).is_some() && device(&t.address) == device(&pci.address))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_ports_of_one_card_share_its_slot() {
        let mut facts = example::facts();
        let mut second = facts.interfaces[0].clone();
        second.name = "ens1f1np1".into();
        if let Fact::Known(pci) = &mut second.pci {
            pci.address = "0000:3b:00.1".into();
        }
        facts.interfaces.push(second);
        let audit = CHECK.audit_alone(&facts, &example::goal());
        assert_eq!(audit.findings[0].severity, Severity::Minor);
        assert!(
            audit.findings[0].observed.ends_with("the NIC's 2 ports have 200 Gb/s"),
            "{}",
            audit.findings[0].observed
        );
    }
}
