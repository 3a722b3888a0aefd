use landspeed_model::{Applicability, Change, Fact, Role, Severity, Target};

use crate::check::{Outcome, Problem};
use crate::example;
use crate::hardware::FAST_BPS;
use crate::view::View;

declare_check! {
    /// Whether interrupts are gathered as the host's job asks for.
    ///
    /// **Reads** interrupt coalescing (`ethtool -c`).
    ///
    /// **Matters** because an interrupt for every packet costs more than the packet, and a fixed wait costs every small
    /// message. Adaptive coalescing follows the traffic; ESnet wants it on at 100 Gb/s. For latency it is off and the wait
    /// is zero: each message is announced at once.
    ///
    /// **Leave it alone** below 10 Gb/s and on virtual NICs, whose interrupts the host below gathers. ESnet found the
    /// defaults best in most cases in 2016. A benchmark may fix the wait so that runs do not differ.
    code: "IRQ-010",
    name: "coalescing",
    group: Interrupts,
    title: "Interrupt coalescing",
    scope: Port,
    severity: Minor,
    since: "0.1",
    sources: [
        "ESnet Fasterdata, 100G Network Tuning: https://fasterdata.es.net/host-tuning/linux/100g-tuning/",
        "Hanford and Tierney (ESnet), Recent Linux TCP Updates, and how to tune your 100G host, 2016: Coalescing Parameters",
        "ethtool(8): --coalesce",
    ],
    example: {
        good: example::as_is,
        bad: |facts, _| {
            if let Fact::Known(coalescing) = &mut example::port(facts).coalescing {
                coalescing.adaptive_rx = Some(false);
            }
        },
    },
}

/// The rate from which gathering interrupts is worth a word, bits/s.
const FROM_BPS: u64 = 10_000_000_000;

/// Drivers of devices whose interrupts the host below gathers: they have the parameters and refuse most values.
const PARAVIRTUAL: &[&str] = &["virtio_net", "vmxnet3", "hv_netvsc", "xen_netfront", "vif"];

fn evaluate(view: &View<'_>) -> Outcome {
    let port = known!(view.device());
    let driver = port.driver.known().map_or("", |driver| driver.name.as_str());
    let now = *known!(port.coalescing.as_ref());
    let change = |parameter: &str, value: &str| {
        let target = Target::Coalescing { interface: port.name.clone(), parameter: parameter.into() };
        Change::new(target, value)
    };
    let mut changes = Vec::new();
    let mut observed = Vec::new();
    let (recommended, why, effect, severity, applicability) = if view.role() == Role::Latency {
        if now.adaptive_rx == Some(true) {
            observed.push("adaptive-rx on".to_owned());
            changes.push(change("adaptive-rx", "off"));
        }
        if let Some(us) = now.rx_us.filter(|us| *us > 0) {
            observed.push(format!("rx-usecs {us}"));
            changes.push(change("rx-usecs", "0"));
        }
        let wait = now.rx_us.unwrap_or(0);
        (
            "adaptive-rx off, rx-usecs 0".to_owned(),
            "A message waits for others before it is announced.",
            format!(
                "Up to {wait} µs less for each message, by the setting itself; interrupts cost more processor time."
            ),
            None,
            Applicability::NeedsCare,
        )
    } else {
        for (name, value) in [("adaptive-rx", now.adaptive_rx), ("adaptive-tx", now.adaptive_tx)] {
            if value == Some(false) {
                observed.push(format!("{name} off"));
                changes.push(change(name, "on"));
            }
        }
        if now.adaptive_rx == Some(false) {
            let us = now.rx_us.map_or_else(String::new, |us| format!(", rx-usecs {us}"));
            observed.push(format!("a fixed wait{us}"));
        }
        // ESnet's advice is for 100 Gb/s; where packets come slowly a fixed wait does no harm worth a word.
        let speed = port.speed_bps.known().copied().unwrap_or(0);
        if speed < FROM_BPS || PARAVIRTUAL.contains(&driver) {
            changes.clear();
        }
        let mild = now.adaptive_rx != Some(false) || view.role() == Role::Benchmark || speed < FAST_BPS;
        (
            "on".to_owned(),
            "A fixed wait is wrong for either bulk data or acknowledgements; the adaptive one follows the traffic.",
            "No figure in the sources; ESnet lists it among the most important settings at 100 Gb/s.".to_owned(),
            mild.then_some(Severity::Note),
            Applicability::Safe,
        )
    };
    if changes.is_empty() {
        let said = [("adaptive-rx", now.adaptive_rx), ("adaptive-tx", now.adaptive_tx)];
        let said =
            said.iter().filter_map(|(name, value)| Some(format!("{name} {}", if (*value)? { "on" } else { "off" })));
        let said: Vec<_> = said.chain(now.rx_us.map(|us| format!("rx-usecs {us}"))).collect();
        if said.is_empty() {
            return Outcome::not_applicable("the driver has no such parameters");
        }
        return Outcome::pass(said.join(", "));
    }
    Outcome::found(Problem {
        severity,
        observed: observed.join(", "),
        recommended,
        why: why.into(),
        effect,
        by_hand: format!("ethtool -c {}", port.name),
        applicability,
        changes,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::audit_with;

    #[test]
    fn latency_wants_the_opposite_of_bulk() {
        let goal = landspeed_model::Goal { role: Role::Latency, ..example::goal() };
        let audit = audit_with(&example::facts(), &goal, [&CHECK]).expect("audited");
        let desired: Vec<_> = audit.findings[0].changes.iter().map(|change| change.desired.as_str()).collect();
        assert_eq!(desired, ["off", "0"]);
    }

    #[test]
    fn slow_links_and_virtual_devices_are_left_alone() {
        for (speed, driver, weight) in [
            (100_000_000_000, "mlx5_core", Some(Severity::Minor)),
            (25_000_000_000, "mlx5_core", Some(Severity::Note)),
            (1_000_000_000, "e1000e", None),
            (100_000_000_000, "virtio_net", None),
        ] {
            let mut facts = example::facts();
            let port = example::port(&mut facts);
            port.speed_bps = Fact::Known(speed);
            if let Fact::Known(facts) = &mut port.driver {
                facts.name = driver.into();
            }
            if let Fact::Known(coalescing) = &mut port.coalescing {
                coalescing.adaptive_rx = Some(false);
            }
            let audit = audit_with(&facts, &example::goal(), [&CHECK]).expect("audited");
            assert_eq!(audit.findings.first().map(|finding| finding.severity), weight, "{driver} {speed}");
        }
    }
}
