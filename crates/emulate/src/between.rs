//! An emulated path between two interfaces of this host: checks and locks of the interfaces.

use std::io;
use std::net::{IpAddr, SocketAddr};

use landspeed_netlink::ethtool::Ethtool;
use landspeed_netlink::{Link, LinkId, Netlink};

use crate::carry::Ends;
use crate::error::EmulateError;
use crate::in_band::InBand;
use crate::lock::InterfaceLock;
use crate::peers::Management;
use crate::status::StatusRequests;
use landspeed_quote::shell_word;
use landspeed_sys::process::{Capability, has_capability};

/// Hardware type of Ethernet (linux/if_arp.h).
const ARPHRD_ETHER: u16 = 1;
pub(crate) const IFF_UP: u32 = 1;
const IFF_LOOPBACK: u32 = 8;
/// Offloads that merge frames on receipt.
const MERGING: [(&str, &str); 3] = [("rx-gro", "gro"), ("rx-lro", "lro"), ("rx-gro-hw", "rx-gro-hw")];

/// Two interfaces that passed the checks, locked against other emulations until dropped.
#[derive(Debug)]
pub struct Between {
    names: [String; 2],
    indices: [u32; 2],
    locks: [InterfaceLock; 2],
}

impl Between {
    /// Checks and locks two interfaces of the calling thread's network namespace. `ssh_connection` is the value of
    /// `SSH_CONNECTION`.
    pub fn open(names: [&str; 2], mtu_bytes: u32, ssh_connection: Option<&str>) -> Result<Self, EmulateError> {
        if !has_capability(Capability::NetRaw) {
            return Err(EmulateError::Privilege {
                what: format!("read frames of {}", names[0]),
                cause: io::ErrorKind::PermissionDenied.into(),
                advice: "Run it as root, or around a command, which needs no privilege: `landspeed emulate PATH.toml -- CMD`."
                    .to_owned(),
            });
        }
        let mut netlink = Netlink::open()?;
        let [a, b] = names;
        if a == b {
            return Err(EmulateError::interface(
                a,
                "it is both ends of the path",
                "Name two interfaces: --between eth1,eth2.",
            ));
        }
        let links = [find(&mut netlink, a, "two")?, find(&mut netlink, b, "two")?];
        for link in &links {
            check_link(link, mtu_bytes)?;
        }
        let [first, second] = &links;
        let management = Management::read(ssh_connection);
        for link in &links {
            refuse_management(&mut netlink, link, &management)?;
            refuse_merging(link)?;
        }
        Ok(Self {
            names: names.map(str::to_owned),
            indices: links.each_ref().map(|link| link.index),
            locks: [InterfaceLock::take(first)?, InterfaceLock::take(second)?],
        })
    }

    /// The locks of the two interfaces.
    pub fn locks(&self) -> &[InterfaceLock] {
        &self.locks
    }

    /// Listens for status requests in band.
    pub fn listen(&self) -> Result<StatusRequests, EmulateError> {
        InBand::listen([0, 1].map(|side| (self.names[side].as_str(), self.indices[side]))).map(StatusRequests::InBand)
    }

    /// Names of the two interfaces.
    pub(crate) fn names(&self) -> &[String; 2] {
        &self.names
    }

    /// The interfaces as parameters of [`crate::carry`].
    pub fn ends(&self) -> Ends {
        Ends { names: self.names.clone(), ignore_reports: false, probe: true, watched: Vec::new() }
    }
}

/// Looks up an interface by name; `count` is the number of interfaces needed, for the error.
pub(crate) fn find(netlink: &mut Netlink, name: &str, count: &str) -> Result<Link, EmulateError> {
    netlink.link(LinkId::Name(name)).map_err(|error| {
        let known = Netlink::open().and_then(|mut netlink| netlink.links()).unwrap_or_default();
        let known: Vec<&str> =
            known.iter().filter(|link| link.flags & IFF_LOOPBACK == 0).map(|l| &l.name[..]).collect();
        match error.os_error() {
            Some(19) => EmulateError::interface(
                name,
                "there is no such interface",
                if known.is_empty() {
                    format!("Make {count} first; this network namespace has none.")
                } else {
                    format!("Use {count} of: {}.", known.join(", "))
                },
            ),
            _ => error.into(),
        }
    })
}

/// Refuses an interface that is not Ethernet, is down, is a port of a bridge or bond, or whose MTU differs from
/// the path's.
pub(crate) fn check_link(link: &Link, mtu_bytes: u32) -> Result<(), EmulateError> {
    let name = &link.name[..];
    let refuse = |why: String, advice: String| Err(EmulateError::interface(name, why, advice));
    if link.hardware != ARPHRD_ETHER || link.flags & IFF_LOOPBACK != 0 {
        return refuse("it carries no Ethernet frames".to_owned(), "Use Ethernet interfaces.".to_owned());
    }
    if link.flags & IFF_UP == 0 {
        return refuse("it is down".to_owned(), format!("Set it up: `ip link set {} up`.", shell_word(name)));
    }
    if link.master.is_some() {
        let why = "it is a port of a bridge, bond or VRF, which takes its frames".to_owned();
        return refuse(why, format!("Release it: `ip link set {} nomaster`.", shell_word(name)));
    }
    if link.mtu_bytes != mtu_bytes {
        let why = format!("its MTU is {}, the path's is {mtu_bytes}", link.mtu_bytes);
        return refuse(
            why,
            format!(
                "Write mtu = {} into the path file, or: `ip link set {} mtu {mtu_bytes}`.",
                link.mtu_bytes,
                shell_word(name)
            ),
        );
    }
    Ok(())
}

/// Refuses an interface that carries management traffic of this host, which would be sent through the path and
/// could be cut off.
fn refuse_management(netlink: &mut Netlink, link: &Link, management: &Management) -> Result<(), EmulateError> {
    let name = &link.name[..];
    let advice = "Use interfaces without addresses that nothing else needs.";
    // Documentation addresses: only a default route matches them.
    for anywhere in [IpAddr::from([192, 0, 2, 1]), IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, 1])] {
        if leads_to(netlink, anywhere, link.index) {
            return Err(EmulateError::interface(name, "the default route uses it", advice));
        }
    }
    if management.sessions.iter().any(|client| leads_to(netlink, *client, link.index)) {
        return Err(EmulateError::interface(name, "an SSH session of this host uses it", advice));
    }
    let own = netlink.addresses()?.into_iter().find(|address| {
        let link_local = matches!(address.ip, IpAddr::V6(v6) if v6.segments()[0] & 0xffc0 == 0xfe80);
        address.ifindex == link.index && !link_local
    });
    if let Some(address) = own {
        let why = format!(
            "it has the address {}/{}: this host would answer beside the path",
            address.ip, address.prefix_bits
        );
        let remove =
            format!("Remove it: `ip address del {}/{} dev {}`.", address.ip, address.prefix_bits, shell_word(name));
        return Err(EmulateError::interface(name, why, remove));
    }
    Ok(())
}

fn leads_to(netlink: &mut Netlink, address: IpAddr, index: u32) -> bool {
    netlink.route(SocketAddr::new(address, 0)).is_ok_and(|route| route.out_ifindex == index)
}

/// Refuses an interface that merges received frames: a path cannot delay the frames of a super-packet
/// individually.
fn refuse_merging(link: &Link) -> Result<(), EmulateError> {
    let name = &link.name[..];
    let features = Ethtool::new(name)?.features()?;
    let on: Vec<&str> = MERGING
        .iter()
        .filter(|(kernel, _)| features.iter().any(|feature| feature.name == *kernel && feature.active))
        .map(|(_, short)| *short)
        .collect();
    if on.is_empty() {
        return Ok(());
    }
    let off: Vec<String> = on.iter().map(|short| format!("{short} off")).collect();
    let why = format!("it merges frames on receipt ({})", on.join(", "));
    Err(EmulateError::interface(
        name,
        why,
        format!("Switch that off: `ethtool -K {} {}`.", shell_word(name), off.join(" ")),
    ))
}
