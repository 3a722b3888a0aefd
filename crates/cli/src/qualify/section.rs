//! The section as a first test shows it.

use std::net::SocketAddr;

use landspeed_calc::IpVersion;
use landspeed_model::{Direction, ErrorEntry, QualifySection, RunDocument};
use landspeed_qualify::{Target, check_section};

/// Returns addresses, RTT and path MTU of the section, from a probe over it.
pub fn of(probe: &RunDocument, direction: Direction) -> QualifySection {
    let sender = match direction {
        Direction::Download => &probe.hosts.server,
        Direction::Upload | Direction::Both => &probe.hosts.client,
    };
    let path = probe.path.as_ref();
    let mtu = path.and_then(|path| path.mtu.iter().find(|found| found.direction == direction));
    let known = |addr: &String| Some(addr.clone()).filter(|addr| !addr.is_empty());
    QualifySection {
        client_addr: path.and_then(|path| known(&path.client_addr)),
        server_addr: path.and_then(|path| known(&path.server_addr)),
        rtt_ns: path.map(|path| path.control_rtt_ns).filter(|rtt_ns| *rtt_ns > 0),
        path_mtu_bytes: mtu.and_then(|found| found.path_mtu_bytes),
        line_rate_bps: sender.as_ref().and_then(|host| host.nic.as_ref()?.line_rate_bps()),
    }
}

/// Returns the version of the Internet Protocol of the server's address; IPv4 if that is unknown.
pub fn ip_version(section: &QualifySection) -> IpVersion {
    match section.server_addr.as_deref().map(str::parse) {
        Some(Ok(SocketAddr::V6(addr))) if addr.ip().to_ipv4_mapped().is_none() => IpVersion::V6,
        _ => IpVersion::V4,
    }
}

/// Returns the MTU of the sender's interface, bytes; `None` if the probe did not report it.
pub fn interface_mtu_bytes(probe: &RunDocument, direction: Direction) -> Option<u32> {
    let mut probes = probe.path.as_ref()?.mtu.iter();
    probes.find(|found| found.direction == direction)?.interface_mtu_bytes
}

/// Refuses a target that this section cannot be tested for. Where the path MTU is unknown, that of the interface is its upper limit: the
/// sender would fragment larger packets.
pub fn check(section: &QualifySection, interface_mtu_bytes: Option<u32>, target: &Target) -> Result<(), ErrorEntry> {
    let path_mtu_bytes = section.path_mtu_bytes.or(interface_mtu_bytes);
    check_section(&QualifySection { path_mtu_bytes, ..section.clone() }, target).map_err(|unfit| ErrorEntry {
        code: "impossible-target".to_owned(),
        message: unfit.message,
        advice: Some(unfit.advice),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn section(server_addr: Option<&str>) -> QualifySection {
        QualifySection {
            client_addr: None,
            server_addr: server_addr.map(str::to_owned),
            rtt_ns: None,
            path_mtu_bytes: None,
            line_rate_bps: None,
        }
    }

    #[test]
    fn ip_version_is_that_of_the_server() {
        assert_eq!(ip_version(&section(Some("192.0.2.2:5210"))), IpVersion::V4);
        assert_eq!(ip_version(&section(Some("[2001:db8::2]:5210"))), IpVersion::V6);
        assert_eq!(ip_version(&section(None)), IpVersion::V4);
    }

    #[test]
    fn packets_that_the_interface_would_fragment_are_refused() {
        let mut target = Target::new("1G".parse().expect("a rate"), "92ms".parse().expect("a time"));
        target.mtu_bytes = 9000;
        assert!(check(&section(None), None, &target).is_ok(), "unknown");
        let error = check(&section(None), Some(1500), &target).expect_err("too large");
        assert!(error.advice.is_some_and(|advice| advice.contains("--target-mtu 1500")));
    }

    #[test]
    fn a_probe_without_a_path_leaves_the_section_unknown() {
        let mut probe: RunDocument =
            serde_json::from_str(include_str!("../../../../fixtures/documents/udp.json")).expect("a run document");
        assert!(of(&probe, Direction::Upload).rtt_ns.is_some_and(|rtt_ns| rtt_ns > 0));
        probe.path = None;
        let unknown = of(&probe, Direction::Upload);
        assert_eq!((unknown.rtt_ns, unknown.client_addr, unknown.server_addr), (None, None, None));
    }
}
