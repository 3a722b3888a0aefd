use crate::prelude::*;

declare_check! {
    /// Whether the MTU is large enough for fast bulk data.
    ///
    /// **Reads** the MTU of the interface, and the largest its driver takes.
    ///
    /// **Matters** because every packet costs the same work whatever its size: with 9000 bytes there are six times fewer.
    /// A deck of 2012 went from 9 to 24 Gb/s with nothing else changed.
    ///
    /// **Leave it alone** until a probe with the don't-fragment bit has shown that the whole path and every
    /// host of the subnet carry it: a hop that does not, and that sends no ICMP, silently drops every full-size
    /// packet. In a cloud the provider's network decides. Routers carry what their neighbours send.
    code: "NIC-004",
    title: "MTU for bulk data",
    scope: Interface,
    severity: Minor,
    sources: [
        red_hat_2012!("Why Bother – A quick teaser"),
        esnet_2016!("Test Environment"),
        "RFC 8200: IPv6 needs an MTU of 1280 bytes",
    ],
    bad: |facts, _| example::port(facts).mtu_bytes = 1500,
}

/// MTU of research networks, bytes.
const JUMBO: u32 = 9000;

/// MTU that counts as jumbo, bytes: clouds and tunnels leave 8896 or 8900.
const MIN_JUMBO_MTU: u32 = 8000;

/// Minimum rate at which the decks use jumbo frames, bits/s.
const MIN_RATE_BPS: u64 = 10_000_000_000;

/// Minimum MTU of IPv6, bytes.
const IPV6: u32 = 1280;

fn evaluate(view: &View<'_>) -> Outcome {
    let top = known!(view.interface());
    let mtu = top.mtu_bytes;
    if mtu == 0 {
        return Outcome::unknown("its MTU cannot be read");
    }
    if mtu < IPV6 {
        return Outcome::found(Problem {
            severity: Some(Severity::Major),
            observed: format!("{mtu} bytes"),
            recommended: "1500 bytes, or what the path carries, but not less than 1280".into(),
            why: "IPv6 does not work below 1280 bytes: the kernel takes its addresses off the interface.".into(),
            effect: Effect::stated("IPv6 does not work", "RFC 8200"),
            by_hand: format!("ip link show {}", shell_word(&top.name)),
            ..Problem::default()
        });
    }
    if matches!(view.role(), Role::Latency | Role::Router) {
        return Outcome::not_applicable("large packets are advice for hosts that send bulk data");
    }
    let rate = known!(view.rate_bps());
    if mtu >= MIN_JUMBO_MTU || rate < MIN_RATE_BPS {
        return Outcome::pass(format!("{mtu} bytes at {}", rate_text(rate)));
    }
    let most = top.max_mtu_bytes.known().copied().filter(|most| *most > 0);
    let wanted = JUMBO.min(most.unwrap_or(JUMBO));
    if wanted <= mtu {
        return Outcome::pass(format!("{mtu} bytes, the most the driver takes"));
    }
    let guest = view.is_guest() || view.is_container();
    let mut changes = Vec::new();
    if !guest {
        // Lower interfaces must be raised first. A bond sets the MTU of its ports.
        let below = view.bottom.filter(|port| port.name != top.name && top.kind.as_deref() != Some("bond"));
        let fits = below.is_none_or(|port| port.max_mtu_bytes.known().is_none_or(|most| *most >= wanted));
        if fits {
            let set = |name: &str| Change::new(Target::Mtu { interface: name.to_owned() }, wanted.to_string());
            changes.extend(below.filter(|port| port.mtu_bytes < wanted).map(|port| set(&port.name)));
            changes.push(set(&top.name));
        }
    }
    Outcome::found(Problem {
        severity: guest.then_some(Severity::Note),
        observed: match most {
            Some(most) => format!("{mtu} bytes at {}, the driver takes up to {most}", rate_text(rate)),
            None => format!("{mtu} bytes at {}; the driver's maximum is unknown", rate_text(rate)),
        },
        recommended: format!(
            "{wanted} bytes, once a probe shows that the whole path carries it{}",
            if guest { " and the provider's network does" } else { "" }
        ),
        why: "Each packet costs the same work whatever its size.".into(),
        effect: Effect::measured("One TCP flow: 9 Gb/s before, 24 Gb/s after raising the MTU", &[&source::JUMBO]),
        by_hand: "ping -M do -s 8972 PEER".into(),
        applicability: if changes.is_empty() { Applicability::DisplayOnly } else { Applicability::NeedsCare },
        changes,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recommended_mtus_stay_within_the_driver_limit() {
        for (mtu, most, desired) in
            [(1500, 9978, Some("9000")), (1500, 8896, Some("8896")), (1500, 1500, None), (8896, 9978, None)]
        {
            let mut facts = example::facts();
            let port = example::port(&mut facts);
            (port.mtu_bytes, port.max_mtu_bytes) = (mtu, Fact::Known(most));
            let audit = CHECK.audit_alone(&facts, &example::goal());
            let found = audit.findings.first().map(|finding| finding.changes[0].desired.as_str());
            assert_eq!(found, desired, "{mtu} of {most}");
        }
    }

    #[test]
    fn vlan_mtu_is_raised_after_its_device() {
        let mut facts = example::facts();
        let mut vlan = facts.interfaces[0].clone();
        (vlan.name, vlan.kind, vlan.lower) = ("v7".into(), Some("vlan".into()), vec!["ens1f0np0".into()]);
        vlan.mtu_bytes = 1500;
        facts.interfaces[0].mtu_bytes = 1500;
        facts.interfaces.push(vlan);
        let goal = landspeed_model::Goal { interface: Some("v7".into()), ..example::goal() };
        let audit = CHECK.audit_alone(&facts, &goal);
        let order: Vec<_> = audit.findings[0].changes.iter().map(|change| change.target.to_string()).collect();
        assert_eq!(order, ["ens1f0np0 mtu", "v7 mtu"]);
    }
}
