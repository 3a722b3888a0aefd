use super::largest;
use crate::hardware::loss_text;
use crate::prelude::*;

declare_check! {
    /// Whether packets arrive with CRC, symbol or FEC errors.
    ///
    /// **Reads** checksum, symbol and uncorrectable FEC errors, against packets received.
    ///
    /// **Matters** because a dirty connector, an ageing laser or a bent cable loses an occasional packet, which
    /// is enough to slow down a long path. No setting of the host fixes it.
    ///
    /// **Leave it alone** where the count no longer grows: it includes errors from when the cable was plugged
    /// in.
    code: "NIC-015",
    title: "CRC, symbol and FEC errors",
    scope: Port,
    severity: Major,
    sources: [
        "Linux kernel, Documentation/networking/statistics.rst: rx_crc_errors, FEC statistics",
        "IEEE 802.3: Ethernet's objective is one wrong bit in 10^12",
        esnet_2014!("A small amount of packet loss makes a huge difference in TCP performance"),
    ],
    bad: |facts, _| {
        example::port(facts).statistics.insert("rx_crc_errors_phy".into(), 60_000);
    },
}

/// Counter names of the kernel and of drivers (mlx5, i40e and ice, bnxt).
const NAMES: &[&str] = &[
    "rx_crc_errors",
    "rx_crc_errors_phy",
    "rx_symbol_err_phy",
    "rx_pcs_symbol_err_phy",
    "rx_crc_errors.nic",
    "port.rx_crc_errors",
    "rx_fcs_err_frames",
    "fec_uncorrectable_errors",
    "fec_uncorrectable_blocks",
    "rx_frame_errors",
];

/// Error rate of a fault: at Ethernet's objective, one bit error in 10^12, 7 in 10^8 packets of 9000 bytes are
/// damaged; more than one in ten million is a fault.
const MIN_ERROR_RATE: f64 = 1e-7;

/// Severe error rate: near the 0.0046 % that, according to ESnet, a long path does not tolerate.
const CRITICAL_ERROR_RATE: f64 = 1e-5;

/// Fewer errors than this may all stem from plugging in the cable.
const MIN_ERRORS: u64 = 100;

fn evaluate(view: &View<'_>) -> Outcome {
    let port = known!(view.device());
    let Some(&packets) = port.statistics.get("rx_packets") else {
        return Outcome::unknown("its statistics cannot be read");
    };
    let Some((errors, name)) = largest(port, NAMES) else {
        return Outcome::not_applicable("the driver does not count damaged packets");
    };
    let share = errors as f64 / packets.saturating_add(errors).max(1) as f64;
    if errors < MIN_ERRORS || share < MIN_ERROR_RATE {
        return Outcome::pass(format!("{errors} of {packets} since the driver was loaded"));
    }
    Outcome::found(Problem {
        severity: Some(if share >= CRITICAL_ERROR_RATE { Severity::Critical } else { Severity::Major }),
        observed: format!("{name} {}, since the driver was loaded", loss_text(errors, packets)),
        recommended: "none: clean the connectors, then change optics and cable, and look at both ends' light levels"
            .into(),
        why: "The packets were damaged on the wire or in the optics.".into(),
        effect: Effect::measured(
            "The deck calls the effect of 0.0046 % packet loss huge; its graph has no figures",
            &[&source::LOSS_2014],
        ),
        by_hand: format!("ethtool -S {0} | grep -iE 'crc|symbol|fec'; ethtool -m {0}", shell_word(&port.name)),
        ..Problem::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_rates_that_ethernet_allows_pass() {
        // Of five billion packets: the objective allows some 350.
        for (errors, weight) in
            [(99, None), (450, None), (600, Some(Severity::Major)), (60_000, Some(Severity::Critical))]
        {
            let mut facts = example::facts();
            example::port(&mut facts).statistics.insert("rx_crc_errors".into(), errors);
            let audit = CHECK.audit_alone(&facts, &example::goal());
            assert_eq!(audit.findings.first().map(|finding| finding.severity), weight, "{errors} errors");
        }
    }
}
