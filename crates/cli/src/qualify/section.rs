//! The section as a first test shows it, and whether the target can be tested over it.

use std::net::SocketAddr;

use landspeed_calc::IpVersion;
use landspeed_model::{Direction, ErrorEntry, QualifySection, RunDocument};
use landspeed_qualify::{Target, highest_target_bps, wire_rate_bps};
use landspeed_units::{BitRate, Nanos};

/// Returns addresses, RTT and path MTU of the section, from a probe over it.
pub fn of(probe: &RunDocument, direction: Direction) -> QualifySection {
    let sender = match direction {
        Direction::Download => &probe.hosts.server,
        Direction::Upload | Direction::Both => &probe.hosts.client,
    };
    let path = probe.path.as_ref();
    let mtu = path.and_then(|path| path.mtu.iter().find(|found| found.direction == direction));
    QualifySection {
        client_addr: path.map(|path| path.client_addr.clone()).unwrap_or_default(),
        server_addr: path.map(|path| path.server_addr.clone()).unwrap_or_default(),
        rtt_ns: path.map_or(0, |path| path.control_rtt_ns),
        path_mtu_bytes: mtu.and_then(|found| found.path_mtu_bytes),
        line_rate_bps: sender.as_ref().and_then(|host| host.nic.as_ref()?.line_rate_bps()),
    }
}

pub fn ip_version(section: &QualifySection) -> IpVersion {
    match section.server_addr.parse() {
        Ok(SocketAddr::V6(addr)) if addr.ip().to_ipv4_mapped().is_none() => IpVersion::V6,
        _ => IpVersion::V4,
    }
}

/// Refuses a target that this section cannot be tested for.
pub fn check(section: &QualifySection, target: &Target) -> Result<(), ErrorEntry> {
    let refused =
        |message, advice| Err(ErrorEntry { code: "impossible-target".to_owned(), message, advice: Some(advice) });
    if section.rtt_ns > target.rtt.get() {
        let rtt = Nanos::new(section.rtt_ns);
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
            client_addr: "192.0.2.1:40000".to_owned(),
            server_addr: "192.0.2.2:5210".to_owned(),
            rtt_ns: 300_000,
            path_mtu_bytes: Some(1500),
            line_rate_bps: Some(10_000_000_000),
        }
    }

    fn refusal(section: &QualifySection, target: &Target) -> String {
        let error = check(section, target).expect_err("impossible");
        format!("{}: {}", error.message, error.advice.unwrap_or_default())
    }

    #[test]
    fn impossible_targets_are_refused_with_advice() {
        let target = Target::new("9G".parse().expect("a rate"), "92ms".parse().expect("a time"));
        assert!(check(&section(), &target).is_ok());
        let ten = Target { rate: BitRate::from_bps(10_000_000_000), ..target };
        assert!(refusal(&section(), &ten).ends_with("use --target 9414M or less"), "{}", refusal(&section(), &ten));
        let jumbo = Target { mtu_bytes: 9000, ..target };
        assert!(refusal(&section(), &jumbo).contains("use --target-mtu 1500"));
        let far = QualifySection { rtt_ns: 120_000_000, ..section() };
        assert!(refusal(&far, &target).contains("the section alone has 120 ms"));
    }

    #[test]
    fn ip_version_is_that_of_the_server() {
        assert_eq!(ip_version(&section()), IpVersion::V4);
        let v6 = QualifySection { server_addr: "[2001:db8::2]:5210".to_owned(), ..section() };
        assert_eq!(ip_version(&v6), IpVersion::V6);
    }
}
