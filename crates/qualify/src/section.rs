//! Whether a section can be tested for a target.

use landspeed_model::QualifySection;
use landspeed_units::{BitRate, Nanos};

use crate::target::{Target, highest_target_bps, wire_rate_bps};

/// Reason why a section cannot be tested for a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unfit {
    /// What is wrong, a clause.
    pub message: String,
    /// What to do, beginning with a verb.
    pub advice: String,
}

/// Checks that a section can be tested for a target: its RTT and MTU, and the sender's interface. What is unknown is not checked.
///
/// # Errors
/// If the target is impossible over this section.
pub fn check_section(section: &QualifySection, target: &Target) -> Result<(), Unfit> {
    let refused = |message, advice| Err(Unfit { message, advice });
    if let Some(rtt_ns) = section.rtt_ns.filter(|rtt_ns| *rtt_ns > target.rtt.get()) {
        let rtt = Nanos::new(rtt_ns);
        let message = format!("cannot test for an RTT of {}: the section alone has {rtt}", target.rtt);
        return refused(
            message,
            "give --target-rtt the RTT of the whole path, which contains the section".to_owned(),
        );
    }
    if let Some(mtu) = section.path_mtu_bytes.filter(|mtu| *mtu < target.mtu_bytes) {
        let message = format!("cannot test for an MTU of {}: the section's path MTU is {mtu}", target.mtu_bytes);
        return refused(message, format!("use --target-mtu {mtu}, or raise the MTU of the section"));
    }
    if let Some(line_bps) = section.line_rate_bps
        && wire_rate_bps(target) > line_bps as f64
    {
        let wire = BitRate::from_bps(wire_rate_bps(target) as u64);
        let message = format!(
            "cannot test for {} of data: at MTU {} they need a link of {wire}, and the sender's interface has {}",
            target.rate,
            target.mtu_bytes,
            BitRate::from_bps(line_bps)
        );
        let highest = highest_target_bps(target, line_bps as f64) / 1e6;
        return refused(message, format!("use --target {highest:.0}M or less", highest = highest.floor()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn section() -> QualifySection {
        QualifySection {
            client_addr: Some("192.0.2.1:40000".to_owned()),
            server_addr: Some("192.0.2.2:5210".to_owned()),
            rtt_ns: Some(300_000),
            path_mtu_bytes: Some(1500),
            line_rate_bps: Some(10_000_000_000),
        }
    }

    fn refusal(section: &QualifySection, target: &Target) -> String {
        let error = check_section(section, target).expect_err("impossible");
        format!("{}: {}", error.message, error.advice)
    }

    #[test]
    fn impossible_targets_are_refused_with_advice() {
        let target = Target::new("9G".parse().expect("a rate"), "92ms".parse().expect("a time"));
        assert!(check_section(&section(), &target).is_ok());
        let ten = Target { rate: BitRate::from_bps(10_000_000_000), ..target };
        assert!(refusal(&section(), &ten).ends_with("use --target 9414M or less"), "{}", refusal(&section(), &ten));
        let jumbo = Target { mtu_bytes: 9000, ..target };
        assert!(refusal(&section(), &jumbo).contains("use --target-mtu 1500"));
        let far = QualifySection { rtt_ns: Some(120_000_000), ..section() };
        assert!(refusal(&far, &target).contains("the section alone has 120 ms"));
    }

    #[test]
    fn an_unknown_rtt_is_not_zero() {
        let target = Target::new("9G".parse().expect("a rate"), "92ms".parse().expect("a time"));
        let unknown = QualifySection { rtt_ns: None, path_mtu_bytes: None, line_rate_bps: None, ..section() };
        assert!(check_section(&unknown, &target).is_ok());
    }
}
