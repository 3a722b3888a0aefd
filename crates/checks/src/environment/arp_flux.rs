use std::net::Ipv4Addr;

use landspeed_model::InterfaceFacts;

use super::{conf, effective};
use crate::prelude::*;

declare_check! {
    /// Whether interfaces on one subnet answer ARP requests for each other.
    ///
    /// **Reads** addresses of all interfaces, `arp_filter`, `arp_ignore` and `arp_announce`.
    ///
    /// **Matters** because Linux answers ARP requests for any of its addresses on any interface: peers send to
    /// the interface that answered first, so that all traffic may arrive on one of two interfaces, and not
    /// always on the same.
    ///
    /// **Leave it alone** with one interface for each subnet, or a bond instead of two interfaces (the better remedy).
    /// `arp_filter` needs routes by source address to work.
    code: "ENV-018",
    title: "ARP flux",
    severity: Minor,
    sources: ["Linux Documentation/networking/ip-sysctl.rst, arp_filter, arp_ignore, arp_announce", red_hat_2012!("Network Tuning Tips")],
    good: |facts, _| add_second_nic(facts, "198.51.100.7/24"),
    bad: |facts, _| add_second_nic(facts, "192.0.2.11/24"),
}

/// Adds a second NIC to the example host.
fn add_second_nic(facts: &mut landspeed_model::Facts, address: &str) {
    facts.interfaces.push(InterfaceFacts {
        name: "ens2f0".into(),
        addresses: vec![address.into()],
        state: "up".into(),
        ..InterfaceFacts::default()
    });
    for setting in ["arp_announce", "arp_filter", "arp_ignore"] {
        example::sysctl(facts, &conf("ens2f0", setting), "0");
    }
}

/// Returns the subnet of an IPv4 address with prefix length; `None` for IPv6, a /32 and an invalid address.
fn subnet(address: &str) -> Option<(u32, u32)> {
    let (address, length) = address.split_once('/')?;
    let (address, length): (Ipv4Addr, u32) = (address.parse().ok()?, length.parse().ok()?);
    let mask = u32::MAX.checked_shl(32_u32.checked_sub(length)?)?;
    (length < 32).then(|| (u32::from(address) & mask, length))
}

fn evaluate(view: &View<'_>) -> Outcome {
    let up: Vec<_> = view.facts.interfaces.iter().filter(|i| i.state != "down" && !i.addresses.is_empty()).collect();
    if up.len() < 2 {
        return Outcome::not_applicable("fewer than two interfaces have addresses");
    }
    let nets =
        |interface: &InterfaceFacts| -> Vec<_> { interface.addresses.iter().filter_map(|a| subnet(a)).collect() };
    let pair = up.iter().enumerate().find_map(|(at, one)| {
        let others = up.iter().skip(at + 1);
        others
            .filter(|other| nets(one).iter().any(|net| nets(other).contains(net)))
            .map(|other| (*one, *other))
            .next()
    });
    let Some((one, other)) = pair else {
        return Outcome::pass(format!("{} interfaces, each on its own subnet", up.len()));
    };
    let text =
        format!("{} and {} are on one subnet ({}, {})", one.name, other.name, one.addresses[0], other.addresses[0]);
    for interface in [one, other] {
        let filter = known!(effective(view, &interface.name, "arp_filter"));
        if filter != 0 {
            continue;
        }
        let ignore = known!(effective(view, &interface.name, "arp_ignore"));
        let announce = known!(effective(view, &interface.name, "arp_announce"));
        if ignore < 1 || announce < 2 {
            return Outcome::found(Problem {
                observed: format!("{text}; {} answers for both", interface.name),
                recommended: "arp_filter 1 with routes by source address; or one bond instead of two interfaces"
                    .into(),
                applicability: Applicability::NeedsCare,
                effect: Effect::stated(
                    "All traffic for both addresses may arrive on one interface",
                    "Linux Documentation/networking/ip-sysctl.rst, arp_filter",
                ),
                ..advice::sysctl(
                    &conf("all", "arp_filter"),
                    0,
                    1,
                    "Peers send to whichever interface answered first, and that changes.",
                )
            });
        }
    }
    Outcome::pass(format!("{text}; each answers for itself"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ipv6_and_single_addresses_have_no_subnet() {
        assert_eq!(subnet("192.0.2.10/24"), subnet("192.0.2.200/24"));
        assert_ne!(subnet("192.0.2.10/24"), subnet("192.0.2.10/25"));
        for none in ["192.0.2.1/32", "2001:db8::1/64", "192.0.2.1", "192.0.2.1/33", "x/24"] {
            assert_eq!(subnet(none), None, "{none}");
        }
        assert_eq!(subnet("192.0.2.1/0"), None);
    }

    #[test]
    fn arp_filter_on_all_interfaces_passes() {
        let mut facts = example::facts();
        add_second_nic(&mut facts, "192.0.2.11/24");
        example::sysctl(&mut facts, "net.ipv4.conf.all.arp_filter", "1");
        let audit = CHECK.audit_alone(&facts, &example::goal());
        assert_eq!((audit.findings.len(), audit.passed.len()), (0, 1));
    }
}
