//! Three network namespaces: one for the command, one for the remote side, and one for the path between them.

use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use landspeed_netlink::configure::{LinkSettings, NewLink};
use landspeed_netlink::ethtool::{Ethtool, RECEIVE_MERGING_OFFLOADS, SEGMENTATION_OFFLOADS};
use landspeed_netlink::{LinkId, Netlink};
use landspeed_sys::{contain, netns};

use crate::carry::Ends;
use crate::error::EmulateError;
use crate::status::{StatusRequests, listen};
use landspeed_sys::process::{Capability, has_capability};

/// IPv4 and IPv6 address of the command's side, from the benchmarking networks (RFC 2544, RFC 5180), which are
/// not routed on the Internet.
pub const LOCAL: [&str; 2] = ["198.18.0.1", "2001:2::1"];
/// IPv4 and IPv6 address of the remote side.
pub const REMOTE: [&str; 2] = ["198.18.0.2", "2001:2::2"];
const PREFIXES: [u8; 2] = [24, 64];
const LOCAL_MAC: [u8; 6] = [0x02, 0, 0, 0x4c, 0x53, 0x11];
const REMOTE_MAC: [u8; 6] = [0x02, 0, 0, 0x4c, 0x53, 0x22];

/// Name of the interface of each side, and names of the path's two interfaces.
const INTERFACE: &str = "path0";
const PATH_INTERFACES: [&str; 2] = ["local", "remote"];

/// Segmentation offloads of tunnels: veth passes their super-packets whole, like those of TCP and UDP.
const TUNNEL_SEGMENTATION: &[&str] = &[
    "tx-sctp-segmentation",
    "tx-udp_tnl-segmentation",
    "tx-udp_tnl-csum-segmentation",
    "tx-gre-segmentation",
    "tx-gre-csum-segmentation",
    "tx-ipxip4-segmentation",
    "tx-ipxip6-segmentation",
];

/// The three namespaces. They have no names, so the kernel removes them with their last process.
#[derive(Debug)]
pub struct Namespaces {
    local: OwnedFd,
    remote: OwnedFd,
    middle: OwnedFd,
}

impl Namespaces {
    /// Creates the namespaces and links with this MTU. Without CAP_SYS_ADMIN the process first enters a new user
    /// namespace, for which it must be single-threaded.
    pub fn make(mtu_bytes: u32) -> Result<Self, EmulateError> {
        if ![Capability::SysAdmin, Capability::NetAdmin, Capability::NetRaw].into_iter().all(has_capability) {
            contain::unshare_user().map_err(|cause| EmulateError::Privilege {
                what: "make a user namespace".to_owned(),
                cause,
                advice:
                    "Run it as root, or allow user namespaces: `sysctl user.max_user_namespaces` must not be 0, and \
                         `sysctl kernel.unprivileged_userns_clone` (Debian) or \
                         `sysctl kernel.apparmor_restrict_unprivileged_userns` (Ubuntu) must permit them."
                        .to_owned(),
            })?;
        }
        let make = || {
            let made = on_new_thread(|| netns::unshare().and_then(|()| netns::current()));
            made.map_err(EmulateError::system("make a network namespace"))
        };
        let namespaces = Self { local: make()?, remote: make()?, middle: make()? };
        in_namespace(namespaces.middle.as_fd(), || namespaces.make_links(mtu_bytes))?;
        in_namespace(namespaces.local.as_fd(), || configure_side(LOCAL, REMOTE, REMOTE_MAC))?;
        in_namespace(namespaces.remote.as_fd(), || configure_side(REMOTE, LOCAL, LOCAL_MAC))?;
        Ok(namespaces)
    }

    /// Creates the veth links from the path's namespace to both sides.
    fn make_links(&self, mtu_bytes: u32) -> Result<(), EmulateError> {
        // The path must not originate packets.
        write_sysctls(&[("net/ipv6/conf/all/disable_ipv6", "1"), ("net/ipv6/conf/default/disable_ipv6", "1")]);
        let mut netlink = Netlink::open()?;
        for (name, namespace, mac) in
            [(PATH_INTERFACES[0], &self.local, LOCAL_MAC), (PATH_INTERFACES[1], &self.remote, REMOTE_MAC)]
        {
            in_namespace(namespace.as_fd(), || {
                // Addresses are usable at once, and no further ones are configured automatically.
                write_sysctls(&[
                    ("net/ipv6/conf/default/addr_gen_mode", "1"),
                    ("net/ipv6/conf/default/accept_ra", "0"),
                    ("net/ipv6/conf/default/accept_dad", "0"),
                ]);
                Ok(())
            })?;
            let settings = LinkSettings { mtu_bytes: Some(mtu_bytes), ..LinkSettings::default() };
            let own = NewLink { name, namespace: None, settings };
            let settings = LinkSettings { address: Some(mac), ..settings };
            let side = NewLink { name: INTERFACE, namespace: Some(namespace.as_fd()), settings };
            netlink.add_veth(&own, &side)?;
            Ethtool::new(name)?.set_features(RECEIVE_MERGING_OFFLOADS, false)?;
            netlink.set_link(LinkId::Name(name), &LinkSettings { up: Some(true), ..LinkSettings::default() })?;
        }
        Ok(())
    }

    /// The namespace of the command.
    pub fn local(&self) -> Result<OwnedFd, EmulateError> {
        self.local.try_clone().map_err(EmulateError::system("keep a network namespace"))
    }

    /// The namespace of the remote side.
    pub fn remote(&self) -> Result<OwnedFd, EmulateError> {
        self.remote.try_clone().map_err(EmulateError::system("keep a network namespace"))
    }

    /// Listens on both sides for status requests.
    pub fn listen(&self) -> Result<StatusRequests, EmulateError> {
        let listen_in = |namespace: &OwnedFd| {
            in_namespace(namespace.as_fd(), || listen(Netlink::open()?.link(LinkId::Name(INTERFACE))?.index))
        };
        let listeners: Result<_, _> = [&self.local, &self.remote].into_iter().map(listen_in).collect();
        Ok(StatusRequests::LocalSockets(listeners?))
    }

    /// Moves the calling thread into the path's namespace; returns the path's interfaces.
    pub fn enter_path(&self) -> Result<Ends, EmulateError> {
        let mut watched = Vec::new();
        for namespace in [&self.local, &self.remote] {
            watched.push(in_namespace(namespace.as_fd(), || {
                let mut netlink = Netlink::open()?;
                let index = netlink.link(LinkId::Name(INTERFACE))?.index;
                Ok((netlink, index))
            })?);
        }
        netns::enter(self.middle.as_fd()).map_err(EmulateError::system("enter a network namespace"))?;
        Ok(Ends { names: PATH_INTERFACES.map(str::to_owned), ignore_reports: true, probe: false, watched })
    }
}

/// Configures one side: loopback, addresses, neighbour entry, no super-packets.
fn configure_side(own: [&str; 2], other: [&str; 2], other_mac: [u8; 6]) -> Result<(), EmulateError> {
    let mut netlink = Netlink::open()?;
    netlink.loopback_up()?;
    disable_super_packets(INTERFACE)?;
    netlink.set_link(LinkId::Name(INTERFACE), &LinkSettings { up: Some(true), ..LinkSettings::default() })?;
    let index = netlink.link(LinkId::Name(INTERFACE))?.index;
    // Without IPv6 in the kernel only the IPv4 address is added.
    let v6 = std::path::Path::new("/proc/sys/net/ipv6").exists();
    for ((own, other), prefix_bits) in own.iter().zip(other).zip(PREFIXES).take(1 + usize::from(v6)) {
        let parse = |text: &str| text.parse::<IpAddr>().expect("the constants are addresses");
        netlink.add_address(index, parse(own), prefix_bits)?;
        netlink.set_neighbour(index, parse(other), other_mac)?;
    }
    // Unprivileged ping, for the only group of the user namespace.
    let groups = std::fs::read_to_string("/proc/self/gid_map").unwrap_or_default();
    let group = groups.split_whitespace().next().unwrap_or("0");
    write_sysctls(&[("net/ipv4/ping_group_range", &format!("{group} {group}"))]);
    Ok(())
}

/// Makes a veth interface pass single frames only, in both directions; by default it passes super-packets
/// whole.
pub(crate) fn disable_super_packets(interface: &str) -> Result<(), EmulateError> {
    let mut tool = Ethtool::new(interface)?;
    for features in [SEGMENTATION_OFFLOADS, TUNNEL_SEGMENTATION, RECEIVE_MERGING_OFFLOADS] {
        tool.set_features(features, false)?;
    }
    Ok(())
}

/// Writes settings of the namespace that some kernels lack. Without them the kernel sends unsolicited packets.
pub(crate) fn write_sysctls(settings: &[(&str, &str)]) {
    for (name, value) in settings {
        let _ = std::fs::write(format!("/proc/sys/{name}"), value);
    }
}

/// Runs `work` on a new thread, so that the namespaces of the calling thread do not change.
pub(crate) fn on_new_thread<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| scope.spawn(work).join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
}

/// Runs `work` in a network namespace.
pub(crate) fn in_namespace<T: Send>(
    namespace: BorrowedFd<'_>,
    work: impl FnOnce() -> Result<T, EmulateError> + Send,
) -> Result<T, EmulateError> {
    on_new_thread(|| {
        let entered: io::Result<()> = netns::enter(namespace);
        entered.map_err(EmulateError::system("enter a network namespace"))?;
        work()
    })
}
