//! Builds the plan's network: namespaces, cables, addresses, queues.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use landspeed_netlink::configure::{self, Discipline, Fq, LinkSettings, NewLink, NewRoute};
use landspeed_netlink::ethtool::{Ethtool, RECEIVE_MERGING_OFFLOADS, SEGMENTATION_OFFLOADS};
use landspeed_netlink::{self as netlink, LinkId, Netlink, NetlinkError, QdiscReading};
use landspeed_sys::bpf::{FrameFilter, Pattern, frame_clock};
use landspeed_sys::netns;

use super::carry::Carriers;
use super::egress;
use super::report::{HostCounters, PortReport, Sample};
use crate::plan::{EgressKind, Impairments, Node, Plan, PlannedLoss, Port, Role};

/// `netdev_max_backlog`, packets; the backlog of a CPU must never overflow.
const BACKLOG: &str = "10000000";
/// Memory limits of TCP and UDP (`tcp_mem`, `udp_mem`), pages: more than any path's windows.
const MAX_MEMORY_PAGES: &str = "1000000000";
/// Name of a host's interface on the control network.
const CONTROL: &str = "ctl";

/// The network after it was built.
pub struct Network {
    namespaces: Vec<OwnedFd>,
    sockets: Vec<Mutex<Netlink>>,
    /// Interface index of every port, by node.
    indices: Vec<Vec<u32>>,
    /// Filters that drop given frames: of a wire by the port through which frames leave, of a host by the port
    /// through which they arrive.
    filters: BTreeMap<(usize, usize), FrameFilter>,
}

/// Returns the error as text; it is shown only on the console.
#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
pub fn error_text(error: NetlinkError) -> String {
    error.to_string()
}

/// Builds the network of a plan.
pub fn build(plan: &Plan) -> Result<Network, String> {
    let home = netns::current().map_err(|e| format!("no network namespace: {e}"))?;
    let mut root = Netlink::open().map_err(error_text)?;
    root.loopback_up().map_err(error_text)?;
    apply_global_settings()?;
    write("net/ipv6/conf/default/disable_ipv6", "1");
    root.add_bridge(&NewLink { name: "control", ..NewLink::default() }).map_err(error_text)?;
    let bridge = up(&mut root, "control")?;
    let mut network =
        Network { namespaces: Vec::new(), sockets: Vec::new(), indices: Vec::new(), filters: BTreeMap::new() };
    for node in &plan.nodes {
        netns::unshare().map_err(|e| format!("cannot make a network namespace: {e}"))?;
        network.namespaces.push(netns::current().map_err(|e| format!("no network namespace: {e}"))?);
        let mut socket = Netlink::open().map_err(error_text)?;
        socket.loopback_up().map_err(error_text)?;
        network.sockets.push(Mutex::new(socket));
        if node.role == Role::Host && !plan.uses_ipv6() {
            write("net/ipv6/conf/all/disable_ipv6", "1");
            write("net/ipv6/conf/default/disable_ipv6", "1");
        }
        for (key, value) in &node.sysctls {
            let path = Path::new("/proc/sys").join(key);
            std::fs::write(&path, value)
                .map_err(|e| format!("cannot set {} to `{value}` on {}: {e}", key.replace('/', "."), node.name))?;
        }
        network.indices.push(vec![0; node.ports.len()]);
        netns::enter(home.as_fd()).map_err(|e| format!("cannot leave a namespace: {e}"))?;
    }
    for cable in &plan.cables {
        network.add_cable(plan, cable.a, cable.b)?;
    }
    for (index, node) in plan.nodes.iter().enumerate() {
        if let Some(address) = node.control {
            network.join_control(&mut root, bridge, index, address.into())?;
        }
    }
    for (index, node) in plan.nodes.iter().enumerate() {
        network.load_filters(index, node)?;
        netns::enter(network.namespace(index)).map_err(|e| format!("cannot enter a namespace: {e}"))?;
        let result = network.configure_node(plan, index, node);
        netns::enter(home.as_fd()).map_err(|e| format!("cannot leave a namespace: {e}"))?;
        result.map_err(|e| format!("{}: {e}", node.name))?;
    }
    Ok(network)
}

/// Applies the settings that all namespaces share.
fn apply_global_settings() -> Result<(), String> {
    let set = |key: &str, value: &str| {
        std::fs::write(Path::new("/proc/sys").join(key), value).map_err(|e| format!("cannot set {key}: {e}"))
    };
    set("net/core/netdev_max_backlog", BACKLOG)?;
    set("net/core/rmem_max", "2147483647")?;
    set("net/core/wmem_max", "2147483647")?;
    // A namespace's default congestion control must be allowed for unprivileged processes, which htcp and others are
    // not.
    let available = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control")
        .map_err(|e| format!("cannot read which congestion controls there are: {e}"))?;
    set("net/ipv4/tcp_allowed_congestion_control", available.trim())?;
    // Sender and receiver share a payload's pages, but TCP counts them on both sides: with limits based on the
    // guest's memory, flows that need a tenth of it would be slowed down. Real use is estimated before the boot.
    set("net/ipv4/tcp_mem", &format!("{MAX_MEMORY_PAGES} {MAX_MEMORY_PAGES} {MAX_MEMORY_PAGES}"))?;
    set("net/ipv4/udp_mem", &format!("{MAX_MEMORY_PAGES} {MAX_MEMORY_PAGES} {MAX_MEMORY_PAGES}"))
}

/// Writes a sysctl that is missing, and not needed, in kernels without the feature.
fn write(key: &str, value: &str) {
    let _ = std::fs::write(Path::new("/proc/sys").join(key), value);
}

fn up(socket: &mut Netlink, name: &str) -> Result<u32, String> {
    let settings = LinkSettings { up: Some(true), ..LinkSettings::default() };
    socket.set_link(LinkId::Name(name), &settings).map_err(error_text)?;
    Ok(socket.link(LinkId::Name(name)).map_err(error_text)?.index)
}

impl Network {
    /// Returns the namespace of a node.
    pub fn namespace(&self, node: usize) -> BorrowedFd<'_> {
        self.namespaces[node].as_fd()
    }

    /// Returns the interface index of a port.
    pub fn interface(&self, node: usize, port: usize) -> u32 {
        self.indices[node][port]
    }

    /// Returns the netlink socket of a node. A poisoned lock only means that a thread panicked while it read
    /// counters.
    pub fn socket(&self, node: usize) -> MutexGuard<'_, Netlink> {
        self.sockets[node].lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add_cable(&mut self, plan: &Plan, a: (usize, usize), b: (usize, usize)) -> Result<(), String> {
        // The neighbours of a wire may have names of the maximum length, so its ports are numbered.
        let name = |(node, port): (usize, usize)| match plan.nodes[node].role {
            Role::Wire | Role::Cpu => format!("end{port}"),
            Role::Host | Role::Switch => plan.nodes[node].ports[port].name.clone(),
        };
        let settings = |(node, port): (usize, usize)| {
            let Port { mtu, mac, gso_max_segs, .. } = plan.nodes[node].ports[port];
            LinkSettings { mtu_bytes: Some(mtu), address: Some(mac), gso_max_segs, ..LinkSettings::default() }
        };
        let (near, far) = (name(a), name(b));
        self.socket(a.0)
            .add_veth(
                &NewLink { name: &near, settings: settings(a), ..NewLink::default() },
                &NewLink { name: &far, namespace: Some(self.namespace(b.0)), settings: settings(b) },
            )
            .map_err(error_text)?;
        for ((node, port), name) in [(a, near), (b, far)] {
            let index = up(&mut self.socket(node), &name)?;
            self.indices[node][port] = index;
        }
        Ok(())
    }

    fn join_control(&self, root: &mut Netlink, bridge: u32, node: usize, address: IpAddr) -> Result<(), String> {
        let far = format!("c{node}");
        let attached = LinkSettings { master: Some(bridge), ..LinkSettings::default() };
        root.add_veth(
            &NewLink { name: &far, settings: attached, ..NewLink::default() },
            &NewLink { name: CONTROL, namespace: Some(self.namespace(node)), ..NewLink::default() },
        )
        .map_err(error_text)?;
        up(root, &far)?;
        let mut socket = self.socket(node);
        let index = up(&mut socket, CONTROL)?;
        socket.add_address(index, address, 16).map_err(error_text)
    }

    /// Loads filters for periodic losses and losses of given or long frames, which netem does not support.
    fn load_filters(&mut self, index: usize, node: &Node) -> Result<(), String> {
        for (port, at) in node.ports.iter().enumerate() {
            let loss = match &at.egress.kind {
                EgressKind::Wire(Impairments { loss, .. }) => loss,
                EgressKind::Shaped { .. } => &at.drops,
                EgressKind::Carried => continue,
            };
            let pattern = match loss {
                PlannedLoss::Every(distance) => Pattern::Every(*distance),
                PlannedLoss::Packets(numbers) => Pattern::Numbers(numbers.clone()),
                PlannedLoss::LongerThan(bytes) => Pattern::Longer(*bytes),
                PlannedLoss::None | PlannedLoss::Random(_) | PlannedLoss::GilbertElliott(..) => continue,
            };
            let filter = FrameFilter::load(&pattern)
                .map_err(|e| format!("{}: cannot load the filter that loses given frames: {e}", node.name))?;
            self.filters.insert((index, port), filter);
        }
        Ok(())
    }

    /// Starts the filters' frame counts, shortly before the scenario's zero: the next frame on each link is number 1.
    pub fn start_counting_frames(&self) -> Result<(), String> {
        self.filters.values().try_for_each(|filter| filter.start().map_err(|e| format!("cannot count frames: {e}")))
    }

    /// Configures offloads, addresses, tables and queues of one node, from inside its namespace.
    fn configure_node(&self, plan: &Plan, index: usize, node: &Node) -> Result<(), String> {
        let mut socket = self.socket(index);
        for (port, &interface) in node.ports.iter().zip(&self.indices[index]) {
            let name = socket.link(LinkId::Index(interface)).map_err(error_text)?.name;
            let mut tool = Ethtool::new(&name).map_err(|e| e.to_string())?;
            tool.set_features(SEGMENTATION_OFFLOADS, false).map_err(|e| e.to_string())?;
            tool.set_features(RECEIVE_MERGING_OFFLOADS, port.gro_ns.is_some()).map_err(|e| e.to_string())?;
            if let Some(gro_ns) = port.gro_ns {
                let file = interfaces_of_this_namespace(index)?.join(&name).join("gro_flush_timeout");
                std::fs::write(&file, gro_ns.to_string())
                    .map_err(|e| format!("cannot set {}: {e}", file.display()))?;
            }
            Self::address(&mut socket, plan, node, port, interface)?;
            egress::install(&mut socket, interface, port)?;
        }
        match node.role {
            Role::Host => {
                if plan.runs_programs(index) {
                    let loopback = socket.link(LinkId::Name("lo")).map_err(error_text)?.index;
                    egress::limit_loopback(&mut socket, loopback)?;
                }
                for (port, &interface) in self.indices[index].iter().enumerate() {
                    let Some(filter) = self.filters.get(&(index, port)) else { continue };
                    // Ingress filters run after captures have taken their copy.
                    socket
                        .add_qdisc(interface, netlink::Qdisc::INGRESS, 0, &Discipline::Ingress)
                        .map_err(error_text)?;
                    socket.filter_ingress(interface, filter.program()).map_err(error_text)?;
                }
            }
            Role::Switch => {
                socket.add_bridge(&NewLink { name: "switch", ..NewLink::default() }).map_err(error_text)?;
                let master = up(&mut socket, "switch")?;
                for &interface in &self.indices[index] {
                    let settings = LinkSettings { master: Some(master), ..LinkSettings::default() };
                    socket.set_link(LinkId::Index(interface), &settings).map_err(error_text)?;
                }
                for &(mac, port) in &node.forwarding {
                    socket.set_bridge_entry(self.indices[index][port], mac).map_err(error_text)?;
                }
            }
            Role::Cpu => {
                // What the host sends passes at once.
                let [host, link] = [self.indices[index][0], self.indices[index][1]];
                socket.add_qdisc(host, netlink::Qdisc::INGRESS, 0, &Discipline::Ingress).map_err(error_text)?;
                socket.redirect_ingress(host, link).map_err(error_text)?;
            }
            Role::Wire => {
                for (from, out) in [(0, 1), (1, 0)] {
                    if node.ports[out].egress.kind == EgressKind::Carried {
                        continue;
                    }
                    let filter = self.filters.get(&(index, out));
                    let (from, to) = (self.indices[index][from], self.indices[index][out]);
                    socket.add_qdisc(from, netlink::Qdisc::INGRESS, 0, &Discipline::Ingress).map_err(error_text)?;
                    if let Some(filter) = filter {
                        socket.filter_ingress(from, filter.program()).map_err(error_text)?;
                    }
                    let EgressKind::Wire(impairments) = &node.ports[out].egress.kind else { continue };
                    let to = if impairments.frame_ns == 0 {
                        to
                    } else {
                        add_frame_clock(&mut socket, out, node.ports[out].mtu, impairments.frame_ns, to)?
                    };
                    socket.redirect_ingress(from, to).map_err(error_text)?;
                }
            }
        }
        Ok(())
    }

    fn address(socket: &mut Netlink, plan: &Plan, node: &Node, port: &Port, interface: u32) -> Result<(), String> {
        let v6 = plan.uses_ipv6();
        for &(address, prefix) in port.addresses.iter().filter(|(ip, _)| v6 || ip.is_ipv4()) {
            socket.add_address(interface, address, prefix).map_err(error_text)?;
            if node.quick_ack {
                let route = NewRoute {
                    destination: masked(address, prefix),
                    prefix_bits: prefix,
                    ifindex: interface,
                    source: address,
                    quickack: true,
                };
                socket.replace_route(&route).map_err(error_text)?;
            }
        }
        for &(address, mac) in node.neighbours.iter().filter(|(ip, _)| v6 || ip.is_ipv4()) {
            socket.set_neighbour(interface, address, mac).map_err(error_text)?;
        }
        Ok(())
    }

    /// Reads all counters of all nodes.
    pub fn counters(&self, plan: &Plan, carriers: &Carriers) -> Result<HostCounters, String> {
        let mut found = HostCounters::default();
        for index in 0..plan.nodes.len() {
            // A separate thread, because /proc/thread-self/net is that of the thread's namespace.
            let counters = std::thread::scope(|scope| {
                scope
                    .spawn(|| {
                        netns::enter(self.namespace(index)).ok()?;
                        Some(protocol_counters())
                    })
                    .join()
                    .ok()
                    .flatten()
            });
            found.counters.push(counters.unwrap_or_default());
            found.ports.push(self.ports(plan, index, carriers)?);
        }
        let softnet = std::fs::read_to_string("/proc/net/softnet_stat").unwrap_or_default();
        let hex = |line: &str, at: usize| {
            line.split_whitespace().nth(at).and_then(|word| u64::from_str_radix(word, 16).ok()).unwrap_or(0)
        };
        found.softnet_drops = softnet.lines().map(|line| hex(line, 1)).sum();
        let sockstat = std::fs::read_to_string("/proc/net/sockstat").unwrap_or_default();
        let tcp = sockstat.lines().find(|line| line.starts_with("TCP:")).unwrap_or_default();
        let mut tcp_words = tcp.split_whitespace().skip_while(|word| *word != "mem");
        found.tcp_pages = tcp_words.nth(1).and_then(|word| word.parse().ok()).unwrap_or(0);
        Ok(found)
    }

    fn ports(&self, plan: &Plan, node: usize, carriers: &Carriers) -> Result<Vec<PortReport>, String> {
        let mut socket = self.socket(node);
        let mut readings: Vec<QdiscReading> = Vec::new();
        socket.read_all_qdiscs(&mut readings).map_err(error_text)?;
        let mut reports = Vec::with_capacity(plan.nodes[node].ports.len());
        for (port, &interface) in self.indices[node].iter().enumerate() {
            let filtered = match self.filters.get(&(node, port)) {
                Some(filter) => {
                    filter.counted().map_err(|e| format!("cannot read a filter's counters: {e}"))?.dropped
                }
                None => 0,
            };
            let link = socket.link(LinkId::Index(interface)).map_err(error_text)?;
            let stat = |name: &str| {
                let at = netlink::LINK_STATS_NAMES.iter().position(|n| *n == name);
                at.and_then(|at| link.stats.get(at)).copied().unwrap_or(0)
            };
            reports.push(PortReport {
                rx_packets: stat("rx_packets"),
                rx_bytes: stat("rx_bytes"),
                rx_dropped: stat("rx_dropped"),
                tx_packets: stat("tx_packets"),
                tx_bytes: stat("tx_bytes"),
                tx_dropped: stat("tx_dropped"),
                qdiscs: match carriers.sample(node, port) {
                    Some(carried) => vec![carried],
                    None => readings
                        .iter()
                        .filter(|r| r.ifindex == interface && r.parent != netlink::Qdisc::INGRESS)
                        .map(sample)
                        .collect(),
                },
                filtered,
            });
        }
        Ok(reports)
    }

    /// Returns the offloads that are active where frames must not be merged or segmented.
    pub fn offloads(&self, plan: &Plan) -> Vec<String> {
        let mut found = Vec::new();
        for (index, node) in plan.nodes.iter().enumerate() {
            let checked = std::thread::scope(|scope| {
                scope.spawn(|| self.offloads_of(index, node)).join().unwrap_or_else(|_| Err("a panic".to_owned()))
            });
            match checked {
                Ok(on) => found.extend(on),
                Err(error) => found.push(format!("{}: {error}", node.name)),
            }
        }
        found
    }

    fn offloads_of(&self, index: usize, node: &Node) -> Result<Vec<String>, String> {
        netns::enter(self.namespace(index)).map_err(|e| e.to_string())?;
        let mut found = Vec::new();
        for (port, &interface) in node.ports.iter().zip(&self.indices[index]) {
            let name = self.socket(index).link(LinkId::Index(interface)).map_err(error_text)?.name;
            let features = Ethtool::new(&name).and_then(|mut tool| tool.features()).map_err(|e| e.to_string())?;
            let merging = if port.gro_ns.is_some() { &[][..] } else { RECEIVE_MERGING_OFFLOADS };
            let forbidden = |name: &str| SEGMENTATION_OFFLOADS.contains(&name) || merging.contains(&name);
            let on = features.iter().filter(|f| f.active && forbidden(&f.name));
            found.extend(on.map(|feature| format!("{}:{name} {}", node.name, feature.name)));
        }
        Ok(found)
    }
}

/// Adds a veth pair to a wire's node that releases frames at the ticks of a clock and redirects them to `to`.
/// Returns its input interface. It drops nothing, and holds the frames that arrived since the last tick.
fn add_frame_clock(socket: &mut Netlink, port: usize, mtu: u32, frame_ns: u64, to: u32) -> Result<u32, String> {
    let (near, far) = (format!("clock{port}"), format!("clocked{port}"));
    let settings = || LinkSettings { mtu_bytes: Some(mtu), ..LinkSettings::default() };
    let ends = [&near, &far].map(|name| NewLink { name, settings: settings(), ..NewLink::default() });
    socket.add_veth(&ends[0], &ends[1]).map_err(error_text)?;
    let (near_index, far_index) = (up(socket, &near)?, up(socket, &far)?);
    for name in [&near, &far] {
        let mut tool = Ethtool::new(name).map_err(|e| e.to_string())?;
        tool.set_features(SEGMENTATION_OFFLOADS, false).map_err(|e| e.to_string())?;
        tool.set_features(RECEIVE_MERGING_OFFLOADS, false).map_err(|e| e.to_string())?;
    }
    let hold = Fq {
        limit_packets: Some(egress::WIRE_LIMIT),
        flow_limit_packets: Some(egress::WIRE_LIMIT),
        pacing: Some(false),
        timer_slack_ns: Some(0),
        ..Fq::default()
    };
    let handle = configure::handle(1, 0);
    socket.add_qdisc(near_index, netlink::Qdisc::ROOT, handle, &Discipline::Fq(hold)).map_err(error_text)?;
    socket.add_qdisc(near_index, netlink::Qdisc::INGRESS, 0, &Discipline::Clsact).map_err(error_text)?;
    let clock = frame_clock(frame_ns).map_err(|e| format!("cannot load the clock of a framing: {e}"))?;
    socket.filter_egress(near_index, clock.as_fd()).map_err(error_text)?;
    socket.add_qdisc(far_index, netlink::Qdisc::INGRESS, 0, &Discipline::Ingress).map_err(error_text)?;
    socket.redirect_ingress(far_index, to).map_err(error_text)?;
    Ok(near_index)
}

/// Converts a qdisc reading. 32-bit counters are not extended: no run drops 2³² packets.
pub fn sample(reading: &QdiscReading) -> Sample {
    Sample {
        root: reading.parent == netlink::Qdisc::ROOT,
        bytes: reading.bytes,
        packets: reading.packets,
        drops: reading.drops.into(),
        backlog_bytes: reading.backlog_bytes.into(),
        backlog_packets: reading.queue_packets.into(),
        copies: 0,
    }
}

/// Returns `/sys/class/net` with the interfaces of the calling thread's network namespace, that of node `index`: a mount shows
/// those of the namespace in which it was made.
fn interfaces_of_this_namespace(index: usize) -> Result<PathBuf, String> {
    let place = PathBuf::from(format!("/sysfs-{index}"));
    let interfaces = place.join("class/net");
    if !interfaces.exists() {
        std::fs::create_dir_all(&place)
            .and_then(|()| landspeed_sys::guest::mount("sysfs", &place, "sysfs", ""))
            .map_err(|why| format!("cannot mount {}: {why}", place.display()))?;
    }
    Ok(interfaces)
}

/// Returns the SNMP counters of the calling thread's namespace, by `GROUP.NAME`.
fn protocol_counters() -> BTreeMap<String, u64> {
    let mut found = BTreeMap::new();
    for file in ["snmp", "netstat"] {
        let text = std::fs::read_to_string(format!("/proc/thread-self/net/{file}")).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        for pair in lines.chunks(2) {
            let [names, values] = pair else { continue };
            let Some((group, names)) = names.split_once(':') else { continue };
            let Some((_, values)) = values.split_once(':') else { continue };
            for (name, value) in names.split_whitespace().zip(values.split_whitespace()) {
                if let Ok(value) = value.parse() {
                    found.insert(format!("{group}.{name}"), value);
                }
            }
        }
    }
    found
}

fn masked(address: IpAddr, prefix: u8) -> IpAddr {
    match address {
        IpAddr::V4(v4) => IpAddr::V4((u32::from(v4) & (u32::MAX << (32 - u32::from(prefix)))).into()),
        IpAddr::V6(v6) => IpAddr::V6((u128::from(v6) & (u128::MAX << (128 - u32::from(prefix)))).into()),
    }
}
