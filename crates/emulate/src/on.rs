//! A path on one interface of this host, for given peers only.
//!
//! Programs at the interface's TCX hooks take the packets to and from the peers and send them into two virtual links, whose
//! other ends are in a nameless namespace. There frames are carried as between two interfaces, and what comes back is put where it was
//! taken. Everything belongs to descriptors of this process: the kernel removes it when the process ends, also by SIGKILL.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixListener;

use ipnet::IpNet;
use landspeed_netlink::configure::{LinkSettings, NewLink};
use landspeed_netlink::ethtool::{Ethtool, MERGING};
use landspeed_netlink::{Link, LinkId, Netlink};
use landspeed_sys::bpf::steer::{Attachment, Hook, Mark, PEERS_MOST, Peer, divert, forward, guard};
use landspeed_sys::clock::realtime_ns;
use landspeed_sys::netns;

use crate::between::{IFF_UP, check_link, find, lock};
use crate::carry::Ends;
use crate::error::EmulateError;
use crate::namespaces::{in_namespace, on_new_thread, refuse_super_packets, write_sysctls};
use crate::peers::Management;
use crate::status::{StatusRequests, listen};
use landspeed_sys::process::{Capability, has_capability};

/// The ends of the path: towards this host, and towards the network.
const PATH_INTERFACES: [&str; 2] = ["host", "network"];
/// What needs no program.
const INSTEAD: &str = "Put the path between two interfaces instead: --between.";
/// `EPERM`, and `EINVAL` from a kernel that does not know TCX.
const EPERM: i32 = 1;
const EINVAL: i32 = 22;

/// A path on an interface, which is locked against another emulation until this is dropped.
#[derive(Debug)]
pub struct OnInterface {
    interface: u32,
    name: String,
    peers: Vec<Peer>,
    mark: Mark,
    middle: OwnedFd,
    /// The ends on this host: towards this host, and towards the network.
    outside: [u32; 2],
    /// What brings packets back, and keeps others out.
    _returns: Vec<Attachment>,
    _lock: UnixListener,
}

/// Packets of the peers take the path until this is dropped.
#[derive(Debug)]
pub struct Diversion {
    _taken: [Attachment; 2],
}

impl OnInterface {
    /// Prepares a path on an interface of the calling thread's network namespace; nothing takes it yet. `ssh_connection` is that
    /// variable's value.
    pub fn open(
        name: &str,
        peers: &[IpNet],
        mtu_bytes: u32,
        ssh_connection: Option<&str>,
    ) -> Result<Self, EmulateError> {
        if ![Capability::SysAdmin, Capability::NetAdmin, Capability::NetRaw].into_iter().all(has_capability) {
            return Err(EmulateError::Privilege {
                what: format!("emulate on {name}"),
                cause: io::ErrorKind::PermissionDenied.into(),
                advice: "Run it as root, or around a command, which needs no privilege: `landspeed emulate PATH.toml -- CMD`."
                    .to_owned(),
            });
        }
        let mut netlink = Netlink::open()?;
        let link = find(&mut netlink, name, "one")?;
        check_link(&link, mtu_bytes)?;
        judge(&mut netlink, &link, peers, ssh_connection)?;
        let lock = lock(&link)?;
        let middle = on_new_thread(|| netns::unshare().and_then(|()| netns::current()))
            .map_err(EmulateError::system("make a network namespace"))?;
        let outside = make_links(&link, &middle, mtu_bytes)?;
        let mark = new_mark();
        let [host, network] = outside;
        let attach = || -> io::Result<Vec<Attachment>> {
            Ok(vec![
                guard(host, mark)?,
                guard(network, mark)?,
                forward(host, link.index, Hook::Ingress, mark)?,
                forward(network, link.index, Hook::Egress, mark)?,
            ])
        };
        let returns = attach().map_err(|cause| refused(name, cause, INSTEAD))?;
        for index in outside {
            netlink.set_link(LinkId::Index(index), &LinkSettings { up: Some(true), ..LinkSettings::default() })?;
        }
        Ok(Self {
            interface: link.index,
            name: name.to_owned(),
            peers: peers.iter().map(|peer| (peer.network(), peer.prefix_len())).collect(),
            mark,
            middle,
            outside,
            _returns: returns,
            _lock: lock,
        })
    }

    /// Listens at the interface for status requests.
    pub fn listen(&self) -> Result<StatusRequests, EmulateError> {
        Ok(StatusRequests::AtInterfaces(vec![listen(self.interface)?]))
    }

    /// Whether the interface is there and up. To be asked in its network namespace.
    pub fn is_up(&self) -> bool {
        is_up(self.interface)
    }

    /// Moves the calling thread to the namespace of the path; returns the path's interfaces.
    pub fn enter_path(&self) -> Result<Ends, EmulateError> {
        enter_middle(&self.middle, self.outside)
    }

    /// From now on the packets of the peers take the path.
    pub fn divert(&self) -> Result<Diversion, EmulateError> {
        let [host, network] = self.outside;
        let take = |hook, to| divert(self.interface, hook, &self.peers, to, self.mark);
        let taken = take(Hook::Egress, host).and_then(|out| Ok([out, take(Hook::Ingress, network)?]));
        Ok(Diversion { _taken: taken.map_err(|cause| refused(&self.name, cause, INSTEAD))? })
    }
}

/// Whether an interface of the calling thread's namespace is there and up.
pub(crate) fn is_up(interface: u32) -> bool {
    let link = Netlink::open().and_then(|mut netlink| netlink.link(LinkId::Index(interface)));
    link.is_ok_and(|link| link.flags & IFF_UP != 0)
}

/// A mark that no other emulation uses.
pub(crate) fn new_mark() -> Mark {
    Mark::new(realtime_ns() ^ u64::from(std::process::id()).rotate_left(16))
}

/// Moves the calling thread to the namespace `middle`; returns the path's interfaces there, whose other ends are `outside`.
pub(crate) fn enter_middle(middle: &OwnedFd, outside: [u32; 2]) -> Result<Ends, EmulateError> {
    let mut watched = Vec::new();
    for index in outside {
        watched.push((Netlink::open()?, index));
    }
    netns::enter(middle.as_fd()).map_err(EmulateError::system("enter a network namespace"))?;
    Ok(Ends { names: PATH_INTERFACES.map(str::to_owned), ignore_reports: false, probe: false, watched })
}

/// The kernel attaches no program to the interface `name`; `instead` says what needs none.
pub(crate) fn refused(name: &str, cause: io::Error, instead: &str) -> EmulateError {
    let advice = match cause.raw_os_error() {
        Some(EPERM) => {
            "Run it as root of the host: programs at an interface need CAP_BPF outside of user namespaces.".to_owned()
        }
        Some(EINVAL) => format!("Use Linux 6.6 or later with CONFIG_NET_XGRESS. {instead}"),
        _ => instead.to_owned(),
    };
    EmulateError::Privilege { what: format!("attach a program to {name}"), cause, advice }
}

/// Refuses peers that are not reached by this interface, and those that must stay reachable whatever happens.
fn judge(
    netlink: &mut Netlink,
    link: &Link,
    peers: &[IpNet],
    ssh_connection: Option<&str>,
) -> Result<(), EmulateError> {
    let name = &link.name[..];
    if peers.len() > PEERS_MOST {
        let why = format!("{} peers are more than {PEERS_MOST}", peers.len());
        return Err(EmulateError::interface(name, why, "Name networks instead of hosts: --peer 10.0.0.0/24."));
    }
    let management = Management::read(ssh_connection);
    for peer in peers {
        if let Some((why, advice)) = management.objection(peer) {
            return Err(EmulateError::interface(name, why, advice));
        }
        let host: IpAddr = peer.hosts().next().unwrap_or(peer.network());
        let Ok(route) = netlink.route(SocketAddr::new(host, 0)) else {
            let why = format!("there is no route to the peer {peer}");
            return Err(EmulateError::interface(name, why, format!("Add one: `ip route add {peer} dev {name}`.")));
        };
        if route.local {
            let why = format!("the peer {host} is this host");
            return Err(EmulateError::interface(name, why, "Name other hosts."));
        }
        if route.out_ifindex != link.index {
            let by =
                netlink.link(LinkId::Index(route.out_ifindex)).map_or_else(|_| "another".to_owned(), |by| by.name);
            let why = format!("the route to the peer {peer} leaves by {by}");
            return Err(EmulateError::interface(name, why, format!("Emulate on that one: --on {by}.")));
        }
    }
    Ok(())
}

/// The two virtual links between this host and the path; returns the ends on this host, which are down.
pub(crate) fn make_links(link: &Link, middle: &OwnedFd, mtu_bytes: u32) -> Result<[u32; 2], EmulateError> {
    let here = netns::current().map_err(EmulateError::system("keep a network namespace"))?;
    let names = ["h", "n"].map(|side| format!("lsemu{}{side}", link.index % 100_000_000));
    in_namespace(middle.as_fd(), || {
        // The path sends no packets itself.
        write_sysctls(&[("net/ipv6/conf/all/disable_ipv6", "1"), ("net/ipv6/conf/default/disable_ipv6", "1")]);
        let mut netlink = Netlink::open()?;
        for (own, name) in PATH_INTERFACES.iter().zip(&names) {
            let settings = LinkSettings { mtu_bytes: Some(mtu_bytes), ..LinkSettings::default() };
            let local = NewLink { name: own, namespace: None, settings };
            let remote = NewLink { name, namespace: Some(here.as_fd()), settings };
            netlink.add_veth(&local, &remote)?;
            Ethtool::new(own)?.set_features(MERGING, false)?;
            netlink.set_link(LinkId::Name(own), &LinkSettings { up: Some(true), ..LinkSettings::default() })?;
        }
        Ok(())
    })?;
    let mut netlink = Netlink::open()?;
    let mut indices = [0; 2];
    for (index, name) in indices.iter_mut().zip(&names) {
        // It has no addresses and sends no unsolicited packets.
        write_sysctls(&[(&format!("net/ipv6/conf/{name}/disable_ipv6"), "1")]);
        // The kernel splits the host's super-packets, and what was merged on receipt, before this interface.
        refuse_super_packets(name)?;
        *index = netlink.link(LinkId::Name(name))?.index;
    }
    Ok(indices)
}
