//! Server addresses `HOST[:PORT]`, with IPv6 literals, zones and names.

use std::fmt;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::str::FromStr;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc;
use std::time::Duration;

use landspeed_model::Family;

use crate::control::deadline::Deadline;
use crate::error::FlowError;

/// Default port of the server.
pub const DEFAULT_PORT: u16 = 5210;

/// Timeout for name resolution.
const RESOLVE_TIMEOUT: Duration = Duration::from_secs(30);

/// Name or address of a server, with an optional port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// Name or address; a link-local IPv6 address may carry a zone (`fe80::1%eth0`).
    pub host: String,
    /// Port; `None` for [`DEFAULT_PORT`].
    pub port: Option<u16>,
}

/// Error for a string that is not a valid server address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` names no server: {why}; write HOST, HOST:PORT, 192.0.2.1:5210 or [fe80::1%eth0]:5210")]
pub struct TargetError {
    text: String,
    why: &'static str,
}

impl FromStr for Target {
    type Err = TargetError;

    fn from_str(text: &str) -> Result<Self, TargetError> {
        let bad = |why| TargetError { text: text.to_owned(), why };
        let port = |digits: &str| match digits.parse::<u16>() {
            Ok(port) if port > 0 => Ok(Some(port)),
            _ => Err(bad("the port must be 1 to 65535")),
        };
        let (host, port) = if let Some(rest) = text.strip_prefix('[') {
            let (host, after) = rest.split_once(']').ok_or_else(|| bad("the bracket is not closed"))?;
            match after.strip_prefix(':') {
                Some(digits) => (host, port(digits)?),
                None if after.is_empty() => (host, None),
                None => return Err(bad("a colon and a port follow a bracket")),
            }
        } else if text.matches(':').count() > 1 {
            // An IPv6 literal without brackets has no port.
            (text, None)
        } else if let Some((host, digits)) = text.split_once(':') {
            (host, port(digits)?)
        } else {
            (text, None)
        };
        if host.is_empty() || host.len() > 255 || host.chars().any(|c| c.is_whitespace() || c.is_control()) {
            return Err(bad("the host is missing or has spaces"));
        }
        Ok(Self { host: host.to_owned(), port })
    }
}

/// Includes the port; [`DEFAULT_PORT`] if none was given.
impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let port = self.port.unwrap_or(DEFAULT_PORT);
        if self.host.contains(':') { write!(f, "[{}]:{port}", self.host) } else { write!(f, "{}:{port}", self.host) }
    }
}

impl Target {
    /// Returns the addresses of the given family, at least one, in the order in which to try them.
    ///
    /// # Errors
    /// The name is unknown, has no address of that family, or takes too long to resolve; [`FlowError::Interrupted`]
    /// when `stop` is set.
    pub fn addresses(&self, family: Family, stop: &AtomicBool) -> Result<Vec<SocketAddr>, FlowError> {
        let mut found = self.resolve(stop)?;
        found.retain(|addr| match family {
            Family::Any => true,
            Family::V4 => addr.is_ipv4(),
            Family::V6 => addr.is_ipv6(),
        });
        if found.is_empty() {
            return Err(FlowError::NoAddress {
                host: self.host.clone(),
                family: if family == Family::V6 { "IPv6" } else { "IPv4" },
            });
        }
        Ok(interleave(found))
    }

    /// Returns all addresses in the resolver's order (RFC 6724). The resolver blocks while its servers do not respond, so
    /// it runs on a thread that is abandoned on a timeout.
    fn resolve(&self, stop: &AtomicBool) -> Result<Vec<SocketAddr>, FlowError> {
        let target = (self.host.clone(), self.port.unwrap_or(DEFAULT_PORT));
        let unresolved = |source| FlowError::Resolve { host: self.host.clone(), source };
        let is_literal = self.host.parse::<IpAddr>().is_ok() || self.host.contains('%');
        if is_literal {
            return target.to_socket_addrs().map(Iterator::collect).map_err(unresolved);
        }
        let (answer, answered) = mpsc::channel();
        let look_up = move || {
            let _ = answer.send(target.to_socket_addrs().map(Iterator::collect));
        };
        std::thread::Builder::new().name("resolver".to_owned()).spawn(look_up).map_err(unresolved)?;
        let deadline = Deadline::after(RESOLVE_TIMEOUT).with_stop(stop);
        while let Ok(slice) = deadline.slice() {
            match answered.recv_timeout(slice) {
                Ok(found) => return found.map_err(unresolved),
                Err(mpsc::RecvTimeoutError::Timeout) => {}
                Err(mpsc::RecvTimeoutError::Disconnected) => break,
            }
        }
        Err(deadline.missed("the address of the server"))
    }
}

/// Alternates the families, the resolver's preferred one first (RFC 8305, section 4), each address once.
fn interleave(found: Vec<SocketAddr>) -> Vec<SocketAddr> {
    let preferred_v4 = found.first().is_some_and(SocketAddr::is_ipv4);
    let (first, second): (Vec<_>, Vec<_>) = found.into_iter().partition(|addr| addr.is_ipv4() == preferred_v4);
    let (mut first, mut second) = (first.into_iter(), second.into_iter());
    let mut ordered: Vec<SocketAddr> = Vec::new();
    loop {
        let next: Vec<_> = [first.next(), second.next()].into_iter().flatten().collect();
        if next.is_empty() {
            return ordered;
        }
        for addr in next {
            if !ordered.contains(&addr) {
                ordered.push(addr);
            }
        }
    }
}

/// Returns the local address for `--bind`, with port 0.
pub fn local_address(bind: Option<&str>, server: SocketAddr) -> Result<Option<SocketAddr>, FlowError> {
    let Some(text) = bind else { return Ok(None) };
    let resolved =
        (text, 0).to_socket_addrs().map_err(|source| FlowError::Resolve { host: text.to_owned(), source })?;
    let same_family = |addr: &SocketAddr| addr.is_ipv4() == server.is_ipv4();
    let addr = resolved.filter(same_family).find(|a| !matches!(a.ip(), IpAddr::V4(ip) if ip.is_broadcast()));
    addr.map(Some).ok_or_else(|| FlowError::NoAddress {
        host: text.to_owned(),
        family: if server.is_ipv4() { "IPv4" } else { "IPv6" },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> (String, Option<u16>) {
        let target: Target = text.parse().expect(text);
        (target.host, target.port)
    }

    #[test]
    fn hosts_ports_and_zones_are_parsed() {
        assert_eq!(parse("dtn.example"), ("dtn.example".into(), None));
        assert_eq!(parse("dtn.example:99"), ("dtn.example".into(), Some(99)));
        assert_eq!(parse("192.0.2.1:99"), ("192.0.2.1".into(), Some(99)));
        assert_eq!(parse("fe80::1%eth0"), ("fe80::1%eth0".into(), None));
        assert_eq!(parse("[fe80::1%eth0]:99"), ("fe80::1%eth0".into(), Some(99)));
        assert_eq!(parse("[::1]"), ("::1".into(), None));
    }

    #[test]
    fn addresses_alternate_between_the_families() {
        let list = |text: &str| text.split(' ').map(|addr| addr.parse().expect(addr)).collect::<Vec<SocketAddr>>();
        let found = list("[::1]:1 [::2]:1 [::2]:1 [::3]:1 192.0.2.1:1");
        assert_eq!(interleave(found), list("[::1]:1 192.0.2.1:1 [::2]:1 [::3]:1"));
        assert_eq!(interleave(list("192.0.2.1:1 [::1]:1")), list("192.0.2.1:1 [::1]:1"));
    }

    #[test]
    fn invalid_targets_are_rejected_with_an_example() {
        for text in ["", ":99", "host:", "host:0", "host:70000", "[::1", "[::1]99", "a b", "host:port"] {
            let error = text.parse::<Target>().expect_err(text).to_string();
            assert!(error.contains("HOST:PORT"), "{error}");
        }
    }
}
