//! An emulated path on one interface of this host, for given peers only.
//!
//! BPF programs at the interface's TCX hooks redirect packets to and from the peers into two veth links, whose
//! peers are in an unnamed network namespace. There frames are forwarded as between two interfaces, and frames
//! that come back continue where they were redirected. Everything belongs to file descriptors of this process,
//! so the kernel removes it when the process ends, also on SIGKILL.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd as _, OwnedFd};

use ipnet::IpNet;
use landspeed_netlink::configure::{LinkSettings, NewLink};
use landspeed_netlink::ethtool::{Ethtool, RECEIVE_MERGING_OFFLOADS};
use landspeed_netlink::{Link, LinkId, Netlink};
use landspeed_quote::shell_word;
use landspeed_sys::bpf::steer::{Attachment, Hook, MAX_PEERS, Mark, Peer, divert, drop_unmarked, forward};
use landspeed_sys::clock::realtime_ns;
use landspeed_sys::netns;

use crate::between::{IFF_UP, check_link, find};
use crate::carry::Ends;
use crate::error::EmulateError;
use crate::lock::InterfaceLock;
use crate::namespaces::{disable_super_packets, in_namespace, on_new_thread, write_sysctls};
use crate::peers::Management;
use crate::status::{StatusRequests, listen};
use landspeed_sys::process::{Capability, has_capability};

/// The path's interfaces: towards this host, and towards the network.
const PATH_INTERFACES: [&str; 2] = ["host", "network"];
/// Advice for an alternative without BPF programs.
const BETWEEN_ADVICE: &str = "Put the path between two interfaces instead: --between.";
/// Errors of attaching: `EPERM`, and `EINVAL` from a kernel without TCX.
const EPERM: i32 = 1;
const EINVAL: i32 = 22;

/// A path on an interface, which is locked against other emulations until this is dropped.
#[derive(Debug)]
pub struct OnInterface {
    interface: u32,
    name: String,
    peers: Vec<Peer>,
    mark: Mark,
    middle: OwnedFd,
    /// The veth interfaces outside of the path's namespace: towards this host, and towards the network.
    outside: [u32; 2],
    /// Programs that return packets from the path, and keep other packets out of it.
    _returns: Vec<Attachment>,
    lock: InterfaceLock,
}

/// Packets of the peers take the path until this is dropped.
#[derive(Debug)]
pub struct Diversion {
    _taken: [Attachment; 2],
}

impl OnInterface {
    /// Prepares a path on an interface of the calling thread's network namespace; no traffic takes it yet.
    /// `ssh_connection` is the value of `SSH_CONNECTION`.
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
        let lock = InterfaceLock::take(&link)?;
        let middle = on_new_thread(|| netns::unshare().and_then(|()| netns::current()))
            .map_err(EmulateError::system("make a network namespace"))?;
        let outside = make_links(&link, &middle, mtu_bytes)?;
        let mark = new_mark();
        let [host, network] = outside;
        let attach = || -> io::Result<Vec<Attachment>> {
            Ok(vec![
                drop_unmarked(host, mark)?,
                drop_unmarked(network, mark)?,
                forward(host, link.index, Hook::Ingress, mark)?,
                forward(network, link.index, Hook::Egress, mark)?,
            ])
        };
        let returns = attach().map_err(|cause| refused(name, cause, BETWEEN_ADVICE))?;
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
            lock,
        })
    }

    /// The interface's lock.
    pub fn locks(&self) -> &[InterfaceLock] {
        std::slice::from_ref(&self.lock)
    }

    /// Listens at the interface for status requests.
    pub fn listen(&self) -> Result<StatusRequests, EmulateError> {
        Ok(StatusRequests::LocalSockets(vec![listen(self.interface)?]))
    }

    /// Whether the interface exists and is up. Call it in its network namespace.
    pub fn is_up(&self) -> bool {
        is_up(self.interface)
    }

    /// Moves the calling thread into the path's namespace; returns the path's interfaces.
    pub fn enter_path(&self) -> Result<Ends, EmulateError> {
        enter_path_namespace(&self.middle, self.outside)
    }

    /// Starts to redirect the packets of the peers into the path.
    pub fn divert(&self) -> Result<Diversion, EmulateError> {
        let [host, network] = self.outside;
        let take = |hook, to| divert(self.interface, hook, &self.peers, to, self.mark);
        let taken = take(Hook::Egress, host).and_then(|out| Ok([out, take(Hook::Ingress, network)?]));
        Ok(Diversion { _taken: taken.map_err(|cause| refused(&self.name, cause, BETWEEN_ADVICE))? })
    }
}

/// Whether an interface of the calling thread's namespace exists and is up.
pub(crate) fn is_up(interface: u32) -> bool {
    let link = Netlink::open().and_then(|mut netlink| netlink.link(LinkId::Index(interface)));
    link.is_ok_and(|link| link.flags & IFF_UP != 0)
}

/// A packet mark unique to this emulation.
pub(crate) fn new_mark() -> Mark {
    Mark::new(realtime_ns() ^ u64::from(std::process::id()).rotate_left(16))
}

/// Moves the calling thread into the namespace `middle`; returns the path's interfaces there, whose veth peers
/// are `outside`.
pub(crate) fn enter_path_namespace(middle: &OwnedFd, outside: [u32; 2]) -> Result<Ends, EmulateError> {
    let mut watched = Vec::new();
    for index in outside {
        watched.push((Netlink::open()?, index));
    }
    netns::enter(middle.as_fd()).map_err(EmulateError::system("enter a network namespace"))?;
    Ok(Ends { names: PATH_INTERFACES.map(str::to_owned), ignore_reports: false, probe: false, watched })
}

/// Error of attaching a program to the interface `name`; `instead` is advice that needs no program.
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

/// Refuses peers that are not reached by this interface, and those that must stay reachable: SSH clients and
/// gateways.
fn judge(
    netlink: &mut Netlink,
    link: &Link,
    peers: &[IpNet],
    ssh_connection: Option<&str>,
) -> Result<(), EmulateError> {
    let name = &link.name[..];
    if peers.len() > MAX_PEERS {
        let why = format!("{} peers are more than {MAX_PEERS}", peers.len());
        return Err(EmulateError::interface(name, why, "Name networks instead of hosts: --peer 10.0.0.0/24."));
    }
    let management = Management::read(ssh_connection);
    for peer in peers {
        if let Some((why, advice)) = management.refusal_reason(peer) {
            return Err(EmulateError::interface(name, why, advice));
        }
        let host: IpAddr = peer.hosts().next().unwrap_or(peer.network());
        let Ok(route) = netlink.route(SocketAddr::new(host, 0)) else {
            let why = format!("there is no route to the peer {peer}");
            return Err(EmulateError::interface(
                name,
                why,
                format!("Add one: `ip route add {peer} dev {}`.", shell_word(name)),
            ));
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

/// Creates the two veth links between this host and the path; returns the indices of the interfaces on this
/// host, which are down.
pub(crate) fn make_links(link: &Link, middle: &OwnedFd, mtu_bytes: u32) -> Result<[u32; 2], EmulateError> {
    let here = netns::current().map_err(EmulateError::system("keep a network namespace"))?;
    let names = ["h", "n"].map(|side| format!("lsemu{}{side}", link.index % 100_000_000));
    in_namespace(middle.as_fd(), || {
        // The path must not originate packets.
        write_sysctls(&[("net/ipv6/conf/all/disable_ipv6", "1"), ("net/ipv6/conf/default/disable_ipv6", "1")]);
        let mut netlink = Netlink::open()?;
        for (own, name) in PATH_INTERFACES.iter().zip(&names) {
            let settings = LinkSettings { mtu_bytes: Some(mtu_bytes), ..LinkSettings::default() };
            let local = NewLink { name: own, namespace: None, settings };
            let remote = NewLink { name, namespace: Some(here.as_fd()), settings };
            netlink.add_veth(&local, &remote)?;
            Ethtool::new(own)?.set_features(RECEIVE_MERGING_OFFLOADS, false)?;
            netlink.set_link(LinkId::Name(own), &LinkSettings { up: Some(true), ..LinkSettings::default() })?;
        }
        Ok(())
    })?;
    let mut netlink = Netlink::open()?;
    let mut indices = [0; 2];
    for (index, name) in indices.iter_mut().zip(&names) {
        // The interface has no addresses and sends no unsolicited packets.
        write_sysctls(&[(&format!("net/ipv6/conf/{name}/disable_ipv6"), "1")]);
        // Makes the kernel split super-packets, sent or merged on receipt, before this interface.
        disable_super_packets(name)?;
        *index = netlink.link(LinkId::Name(name))?.index;
    }
    Ok(indices)
}
