//! Three network namespaces: one for the command, one for the other side, and the path between them.

use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixListener;

use landspeed_netlink::configure::{LinkSettings, NewLink};
use landspeed_netlink::ethtool::Ethtool;
use landspeed_netlink::{LinkId, Netlink};
use landspeed_sys::{contain, netns};

use crate::carry::Ends;
use crate::error::EmulateError;
use crate::host::{Capability, has};
use crate::status::listen;

/// Addresses of the command's side: of the networks for benchmarks (RFC 2544, RFC 5180), which nobody routes.
pub const LOCAL: [&str; 2] = ["198.18.0.1", "2001:2::1"];
/// Addresses of the other side.
pub const REMOTE: [&str; 2] = ["198.18.0.2", "2001:2::2"];
const PREFIXES: [u8; 2] = [24, 64];
const LOCAL_MAC: [u8; 6] = [0x02, 0, 0, 0x4c, 0x53, 0x11];
const REMOTE_MAC: [u8; 6] = [0x02, 0, 0, 0x4c, 0x53, 0x22];

/// The interface of both sides, and the path's own two.
const INTERFACE: &str = "path0";
const INSIDE: [&str; 2] = ["local", "remote"];

/// Super-packets stay whole on a virtual link unless the sender cuts them.
pub(crate) const SEGMENTATION: &[&str] = &[
    "tx-tcp-segmentation",
    "tx-tcp-ecn-segmentation",
    "tx-tcp-mangleid-segmentation",
    "tx-tcp6-segmentation",
    "tx-udp-segmentation",
    "tx-gso-list",
    "tx-sctp-segmentation",
    "tx-udp_tnl-segmentation",
    "tx-udp_tnl-csum-segmentation",
    "tx-gre-segmentation",
    "tx-gre-csum-segmentation",
    "tx-ipxip4-segmentation",
    "tx-ipxip6-segmentation",
];
pub(crate) const MERGING: &[&str] = &["rx-gro"];

/// The namespaces. They have no names: they are gone with the processes in them, however these end.
#[derive(Debug)]
pub struct Namespaces {
    local: OwnedFd,
    remote: OwnedFd,
    middle: OwnedFd,
}

impl Namespaces {
    /// Makes them, with links of this MTU. A process without CAP_SYS_ADMIN gets a user namespace first; it must have one thread then.
    pub fn make(mtu_bytes: u32) -> Result<Self, EmulateError> {
        if ![Capability::SysAdmin, Capability::NetAdmin, Capability::NetRaw].into_iter().all(has) {
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
            let made = apart(|| netns::unshare().and_then(|()| netns::current()));
            made.map_err(EmulateError::system("make a network namespace"))
        };
        let namespaces = Self { local: make()?, remote: make()?, middle: make()? };
        inside(namespaces.middle.as_fd(), || namespaces.make_links(mtu_bytes))?;
        inside(namespaces.local.as_fd(), || furnish(LOCAL, REMOTE, REMOTE_MAC))?;
        inside(namespaces.remote.as_fd(), || furnish(REMOTE, LOCAL, LOCAL_MAC))?;
        Ok(namespaces)
    }

    /// The virtual links from the middle to both sides.
    fn make_links(&self, mtu_bytes: u32) -> Result<(), EmulateError> {
        // The path itself says nothing.
        write_sysctls(&[("net/ipv6/conf/all/disable_ipv6", "1"), ("net/ipv6/conf/default/disable_ipv6", "1")]);
        let mut netlink = Netlink::open()?;
        for (name, namespace, mac) in [(INSIDE[0], &self.local, LOCAL_MAC), (INSIDE[1], &self.remote, REMOTE_MAC)] {
            inside(namespace.as_fd(), || {
                // Addresses are usable at once, and no others come up by themselves.
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
            Ethtool::new(name)?.set_features(MERGING, false)?;
            netlink.set_link(LinkId::Name(name), &LinkSettings { up: Some(true), ..LinkSettings::default() })?;
        }
        Ok(())
    }

    /// The namespace of the command.
    pub fn local(&self) -> Result<OwnedFd, EmulateError> {
        self.local.try_clone().map_err(EmulateError::system("keep a network namespace"))
    }

    /// The namespace of the other side.
    pub fn remote(&self) -> Result<OwnedFd, EmulateError> {
        self.remote.try_clone().map_err(EmulateError::system("keep a network namespace"))
    }

    /// Listens on both sides for questions about the path.
    pub fn listen(&self) -> Result<Vec<UnixListener>, EmulateError> {
        let listen_in = |namespace: &OwnedFd| {
            inside(namespace.as_fd(), || listen(Netlink::open()?.link(LinkId::Name(INTERFACE))?.index))
        };
        [&self.local, &self.remote].into_iter().map(listen_in).collect()
    }

    /// Moves the calling thread to the path between the sides; returns its interfaces, and those of the sides to watch for drops.
    pub fn enter_path(&self) -> Result<(Ends, Vec<(Netlink, u32)>), EmulateError> {
        let mut watched = Vec::new();
        for namespace in [&self.local, &self.remote] {
            watched.push(inside(namespace.as_fd(), || {
                let mut netlink = Netlink::open()?;
                let index = netlink.link(LinkId::Name(INTERFACE))?.index;
                Ok((netlink, index))
            })?);
        }
        netns::enter(self.middle.as_fd()).map_err(EmulateError::system("enter a network namespace"))?;
        Ok((Ends { names: INSIDE.map(str::to_owned), ignore_reports: true, probe: false }, watched))
    }
}

/// One side: loopback, addresses, its neighbour, no super-packets.
fn furnish(own: [&str; 2], other: [&str; 2], other_mac: [u8; 6]) -> Result<(), EmulateError> {
    let mut netlink = Netlink::open()?;
    netlink.loopback_up()?;
    let mut tool = Ethtool::new(INTERFACE)?;
    tool.set_features(SEGMENTATION, false)?;
    tool.set_features(MERGING, false)?;
    netlink.set_link(LinkId::Name(INTERFACE), &LinkSettings { up: Some(true), ..LinkSettings::default() })?;
    let index = netlink.link(LinkId::Name(INTERFACE))?.index;
    // A kernel without IPv6 has the first address only.
    let v6 = std::path::Path::new("/proc/sys/net/ipv6").exists();
    for ((own, other), prefix_bits) in own.iter().zip(other).zip(PREFIXES).take(1 + usize::from(v6)) {
        let parse = |text: &str| text.parse::<IpAddr>().expect("the constants are addresses");
        netlink.add_address(index, parse(own), prefix_bits)?;
        netlink.set_neighbour(index, parse(other), other_mac)?;
    }
    // ping without a privilege, for the one group there is.
    let groups = std::fs::read_to_string("/proc/self/gid_map").unwrap_or_default();
    let group = groups.split_whitespace().next().unwrap_or("0");
    write_sysctls(&[("net/ipv4/ping_group_range", &format!("{group} {group}"))]);
    Ok(())
}

/// Settings of the namespace that a kernel may lack; nothing depends on them but silence.
pub(crate) fn write_sysctls(settings: &[(&str, &str)]) {
    for (name, value) in settings {
        let _ = std::fs::write(format!("/proc/sys/{name}"), value);
    }
}

/// Runs `work` on a thread of its own, whose namespaces are its own affair.
pub(crate) fn apart<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| scope.spawn(work).join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
}

/// Runs `work` in a network namespace.
pub(crate) fn inside<T: Send>(
    namespace: BorrowedFd<'_>,
    work: impl FnOnce() -> Result<T, EmulateError> + Send,
) -> Result<T, EmulateError> {
    apart(|| {
        let entered: io::Result<()> = netns::enter(namespace);
        entered.map_err(EmulateError::system("enter a network namespace"))?;
        work()
    })
}
