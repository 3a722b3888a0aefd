//! `serve --allow-third-party`: servers that this server may test against for clients.

use std::net::IpAddr;

use anyhow::bail;
use ipnet::IpNet;
use landspeed_flow::server::ThirdPartyTargets;

/// Value that allows all targets.
pub const ANY: &str = "any";

/// A value of the option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Allowed {
    Any,
    /// Targets with an address in this network.
    Network(IpNet),
}

/// Parses a network, an address or `any`.
pub fn allowed(text: &str) -> Result<Allowed, String> {
    if text == ANY {
        return Ok(Allowed::Any);
    }
    let network = text.parse::<IpNet>().ok().or_else(|| text.parse::<IpAddr>().ok().map(IpNet::from));
    network
        .map(Allowed::Network)
        .ok_or_else(|| format!("`{text}` is not a network; write 192.0.2.0/24, 2001:db8::/32, one address, or {ANY}"))
}

/// Returns the permitted targets; `None` if the option is not given. Without a key, networks must be listed.
pub fn targets(given: &[Allowed], keyed: bool) -> anyhow::Result<Option<ThirdPartyTargets>> {
    if given.is_empty() {
        return Ok(None);
    }
    let any = given.contains(&Allowed::Any);
    match (any, keyed) {
        (true, true) => return Ok(Some(ThirdPartyTargets::Any)),
        (true, false) => bail!(
            "cannot serve with --allow-third-party for all targets: without a key, every client could make this host test \
             against any server\nName the targets' networks, as in --allow-third-party 192.0.2.0/24, or pass --key-file."
        ),
        (false, true) => {}
        (false, false) => errln!(
            "landspeed: warning: every client that this server admits may make it test against these targets; --key-file \
             limits that to holders of a key"
        ),
    }
    let networks = given.iter().filter_map(|one| match one {
        Allowed::Network(network) => Some(*network),
        Allowed::Any => None,
    });
    Ok(Some(ThirdPartyTargets::Networks(networks.collect())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allowing_any_target_requires_a_key() {
        let network = allowed("192.0.2.0/24").unwrap();
        assert!(targets(&[Allowed::Any], false).is_err());
        assert!(targets(&[network, Allowed::Any], false).is_err());
        assert_eq!(targets(&[Allowed::Any, network], true).unwrap(), Some(ThirdPartyTargets::Any));
        let named = targets(&[network, allowed("2001:db8::1").unwrap()], false).unwrap();
        assert!(matches!(named, Some(ThirdPartyTargets::Networks(networks)) if networks.len() == 2));
        assert_eq!(targets(&[], true).unwrap(), None);
        assert!(allowed("dtn.example").is_err());
    }
}
