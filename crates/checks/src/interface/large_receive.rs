use super::forwards;
use crate::prelude::*;

declare_check! {
    /// Whether a host that forwards packets lets the NIC merge them.
    ///
    /// **Reads** the offload `rx-lro`, the host's role, `net.ipv4.ip_forward` and whether the port belongs to a bridge.
    ///
    /// **Matters** because large receive offload (LRO) merges packets in a way that cannot be undone: a router sends on
    /// packets too large for the next link, or different from those that came in. The kernel switches it off when
    /// forwarding is switched on; a script may switch it on again.
    ///
    /// **Leave it alone** on hosts that only receive; GRO does the same work there, correctly for all.
    code: "NIC-009",
    title: "LRO on a host that forwards",
    scope: Port,
    severity: Major,
    sources: [
        "Linux kernel, Documentation/networking/segmentation-offloads.rst: LRO and GRO",
        "Linux kernel, net/core/dev.c: dev_disable_lro, called for routers and bridges",
        esnet_2016!("Settings to leave alone in CentOS7"),
    ],
    bad: |facts, goal| {
        goal.role = Role::Router;
        example::feature(facts, "rx-lro", true);
    },
}

fn evaluate(view: &View<'_>) -> Outcome {
    let port = known!(view.device());
    let features = known!(port.features.as_ref());
    let Some(lro) = features.get("rx-lro") else {
        return Outcome::not_applicable("the device has no LRO");
    };
    if !lro.active {
        return Outcome::pass("off");
    }
    let reason = match forwards(view, port) {
        Fact::Known(reason) => reason,
        Fact::Absent(why) => return Outcome::pass(format!("on, and {why}")),
        Fact::Unknown(why) => return Outcome::unknown(format!("on; whether this host forwards is unknown: {why}")),
    };
    Outcome::found(Problem {
        severity: (view.role() == Role::Router).then_some(Severity::Critical),
        observed: format!("on, and {reason}"),
        recommended: "off".into(),
        why: "Merged packets cannot be taken apart as they were: those sent on differ, or are too large.".into(),
        effect: Effect::stated(
            "Forwarded packets are malformed or too large for the next link: LRO must be off on routers and bridges",
            "Linux kernel, Documentation/networking/segmentation-offloads.rst",
        ),
        by_hand: format!("ethtool -k {} | grep large-receive", shell_word(&port.name)),
        applicability: if lro.changeable { Applicability::NeedsCare } else { Applicability::DisplayOnly },
        changes: if lro.changeable { vec![feature(port, "rx-lro", false)] } else { Vec::new() },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lro_is_a_fault_only_on_forwarding_hosts() {
        for (forward, role, weight) in [
            ("0", Role::Dtn, None),
            ("1", Role::Dtn, Some(Severity::Major)),
            ("0", Role::Router, Some(Severity::Critical)),
        ] {
            let (mut facts, mut goal) = (example::facts(), example::goal());
            example::feature(&mut facts, "rx-lro", true);
            example::sysctl(&mut facts, "net.ipv4.ip_forward", forward);
            goal.role = role;
            let audit = CHECK.audit_alone(&facts, &goal);
            assert_eq!(audit.findings.first().map(|finding| finding.severity), weight, "{forward} {role:?}");
        }
    }
}
