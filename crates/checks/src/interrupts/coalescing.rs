use crate::prelude::*;

declare_check! {
    /// Whether interrupt coalescing suits the role of the host.
    ///
    /// **Reads** interrupt coalescing (`ethtool -c`).
    ///
    /// **Matters** for latency: every message waits for `rx-usecs`, so a latency host turns adaptive moderation
    /// off and sets the wait to 0. For bulk data the advice has changed twice: the 2016 ESnet deck found the
    /// defaults best in most cases, later ESnet recommended adaptive moderation at 100 Gb/s, and now says that
    /// this no longer applies from Linux 6.11 on. So for bulk data this check only notes adaptive moderation
    /// that is off at 100 Gb/s on a kernel before 6.11.
    ///
    /// **Leave it alone** otherwise: the driver's defaults are the best start, and a change needs a measurement. On virtual
    /// NICs the hypervisor coalesces. A benchmark may fix the wait so that runs do not differ.
    code: "IRQ-010",
    title: "Interrupt coalescing",
    scope: Port,
    severity: Note,
    sources: [
        "ESnet fasterdata, 100G Network Tuning: https://fasterdata.es.net/host-tuning/linux/100g-tuning/",
        esnet_2016!("Coalescing Parameters"),
        "ethtool(8): --coalesce",
    ],
    bad: |facts, _| {
        facts.kernel.release = "6.1.0-30-amd64".into();
        if let Fact::Known(coalescing) = &mut example::port(facts).coalescing {
            coalescing.adaptive_rx = Some(false);
        }
    },
}

/// Drivers of devices whose interrupts the host below coalesces: they have the parameters but reject most
/// values.
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
    let (recommended, why, effect, severity) = if view.role() == Role::Latency {
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
            Effect::arithmetic(format!("Up to {wait} µs less for each message; more interrupts cost CPU time.")),
            Some(Severity::Minor),
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
        // ESnet's advice is for 100 Gb/s before 6.11; otherwise the driver's defaults stay.
        let fast = port.speed_bps.known().is_some_and(|&speed| speed >= FAST_BPS);
        let old = view.facts.kernel.at_least(6, 11) == Some(false);
        if !fast || !old || view.role() == Role::Benchmark || PARAVIRTUAL.contains(&driver) {
            changes.clear();
        }
        (
            "adaptive-rx on and adaptive-tx on, if a measurement shows a gain over the driver's defaults".to_owned(),
            "A fixed wait suits either bulk data or ACKs; adaptive moderation follows the traffic.",
            Effect::measured(
                "None in most cases: \"Default settings seem best for most cases\"",
                &[&source::COALESCING],
            ),
            None,
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
        by_hand: format!("ethtool -c {}", shell_word(&port.name)),
        applicability: Applicability::NeedsCare,
        changes,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latency_hosts_turn_coalescing_off() {
        let goal = landspeed_model::Goal { role: Role::Latency, ..example::goal() };
        let audit = CHECK.audit_alone(&example::facts(), &goal);
        let desired: Vec<_> = audit.findings[0].changes.iter().map(|change| change.desired.as_str()).collect();
        assert_eq!(desired, ["off", "0"]);
    }

    #[test]
    fn default_coalescing_passes_for_bulk_data() {
        for (speed, driver, release, weight) in [
            (100_000_000_000, "mlx5_core", "6.1.0", Some(Severity::Note)),
            (100_000_000_000, "mlx5_core", "6.18.5", None),
            (25_000_000_000, "mlx5_core", "6.1.0", None),
            (100_000_000_000, "virtio_net", "6.1.0", None),
        ] {
            let mut facts = example::facts();
            facts.kernel.release = release.into();
            let port = example::port(&mut facts);
            port.speed_bps = Fact::Known(speed);
            if let Fact::Known(facts) = &mut port.driver {
                facts.name = driver.into();
            }
            if let Fact::Known(coalescing) = &mut port.coalescing {
                coalescing.adaptive_rx = Some(false);
            }
            let findings = CHECK.audit_alone(&facts, &example::goal()).findings;
            assert_eq!(findings.first().map(|finding| finding.severity), weight, "{driver} {speed} {release}");
            // Only applied when requested by name.
            assert!(findings.iter().all(|finding| finding.applicability == Applicability::NeedsCare));
        }
    }
}
