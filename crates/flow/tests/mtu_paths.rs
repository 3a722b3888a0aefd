//! Path MTU probes over routed paths in network namespaces: client — router — server, both families.

use std::net::UdpSocket;
use std::sync::atomic::AtomicBool;

use landspeed_flow::mtu::{probe, serve};
use landspeed_model::MtuProbe;
use landspeed_sys::clock::monotonic_ns;
use landspeed_testkit::netns::{Namespace, Veth, address, veth};

const TAG: u32 = 0x7e57_3755;
const S: u64 = 1_000_000_000;
const V4: (&str, &str) = ("10.97.1.1", "10.97.2.1");
const V6: (&str, &str) = ("fd97:1::1", "fd97:2::1");

struct RoutedPath {
    client: Namespace,
    router: Namespace,
    server: Namespace,
    client_side: Veth,
    server_side: Veth,
}

impl RoutedPath {
    fn new() -> Result<Self, String> {
        let (client, router, server) =
            (Namespace::new("client")?, Namespace::new("router")?, Namespace::new("server")?);
        router.forward();
        let client_side = veth(&client, &router, "10.97.1.1/24", "10.97.1.254/24");
        let server_side = veth(&server, &router, "10.97.2.1/24", "10.97.2.254/24");
        for (end, inner, net) in [(&client, &client_side, "fd97:1::"), (&server, &server_side, "fd97:2::")] {
            address(end, &inner.a, &format!("{net}1/64"));
            address(&router, &inner.b, &format!("{net}ff/64"));
            let gateway = if net == "fd97:1::" { "10.97.1.254" } else { "10.97.2.254" };
            end.exec(["ip", "route", "add", "default", "via", gateway]);
            end.exec(["ip", "-6", "route", "add", "default", "via", &format!("{net}ff")]);
        }
        Ok(Self { client, router, server, client_side, server_side })
    }

    /// Sets the MTUs of the client's interface, the router's two, and the server's.
    fn mtus(&self, client: u32, client_side: u32, server_side: u32, server: u32) {
        let all = [
            (&self.client, &self.client_side.a, client),
            (&self.router, &self.client_side.b, client_side),
            (&self.router, &self.server_side.b, server_side),
            (&self.server, &self.server_side.a, server),
        ];
        for (namespace, interface, mtu) in all {
            namespace.exec(["ip", "link", "set", interface, "mtu", &mtu.to_string()]);
        }
    }

    /// Sets firewall rules for packets that the router forwards.
    fn forwarding(&self, rules: &str) {
        self.router.nft(&format!(
            "table inet path {{\n chain forward {{ type filter hook forward priority 0; {rules} }}\n \
             chain output {{ type filter hook output priority 0; }}\n}}"
        ));
    }

    /// Makes the router drop its own ICMP messages.
    fn silence(&self) {
        self.router.nft("add rule inet path output icmp type destination-unreachable drop");
        self.router.nft("add rule inet path output icmpv6 type packet-too-big drop");
    }

    fn probe(&self, (here, there): (&str, &str)) -> (MtuProbe, MtuProbe) {
        let client = self.client.run(|| UdpSocket::bind((here, 0))).expect("the client's address");
        let server = self.server.run(|| UdpSocket::bind((there, 0))).expect("the server's address");
        let to = server.local_addr().expect("bound");
        self.client.run(|| client.connect(to)).expect("a route");
        server.connect(client.local_addr().expect("bound")).expect("a route");
        let start_ns = monotonic_ns();
        let found = std::thread::scope(|scope| {
            scope.spawn(|| self.server.run(|| serve(&server, TAG, 0, &AtomicBool::new(false))));
            self.client.run(|| probe(&client, TAG, 0, &AtomicBool::new(false)))
        });
        let took_ns = monotonic_ns() - start_ns;
        println!("{here} to {there} in {} ms: {found:#?}", took_ns / 1_000_000);
        assert!(took_ns < 15 * S, "{took_ns} ns");
        found.try_into().map(|[up, down]: [MtuProbe; 2]| (up, down)).expect("two directions")
    }
}

macro_rules! routed {
    () => {
        landspeed_testkit::or_skip!(RoutedPath::new())
    };
}

fn assert_found(found: &MtuProbe, path_mtu: u32, interface_mtu: u32, words: &str) {
    assert_eq!(found.path_mtu_bytes, Some(path_mtu), "{found:?}");
    assert_eq!(found.smallest_failed_bytes, Some(path_mtu + 1), "{found:?}");
    assert_eq!(found.interface_mtu_bytes, Some(interface_mtu), "{found:?}");
    assert!(found.note.as_deref().is_some_and(|note| note.contains(words)), "{words:?} in {found:?}");
}

#[test]
fn a_router_reports_a_smaller_link_to_a_jumbo_sender() {
    let path = routed!();
    path.mtus(9_000, 9_000, 1_500, 1_500);
    for family in [V4, V6] {
        let (up, down) = path.probe(family);
        assert_found(&up, 1_500, 9_000, "router");
        assert_found(&down, 1_500, 1_500, "interface");
        assert_eq!((up.silent, down.silent), (0, 0));
        assert!(up.probes < 30 && down.probes < 30, "{} and {} probes", up.probes, down.probes);
    }
}

#[test]
fn the_server_relays_icmp_messages_from_routers() {
    let path = routed!();
    path.mtus(1_500, 1_500, 9_000, 9_000);
    for family in [V4, V6] {
        let (up, down) = path.probe(family);
        assert_found(&up, 1_500, 1_500, "interface");
        assert_found(&down, 1_500, 9_000, "router");
        assert_eq!((up.silent, down.silent), (0, 0));
    }
}

#[test]
fn each_direction_has_its_own_mtu() {
    let path = routed!();
    path.mtus(9_000, 9_000, 9_000, 9_000);
    // Locked, because a forwarding kernel ignores a learned path MTU.
    let (client_side, server_side) = (&path.client_side.b, &path.server_side.b);
    for (interface, mtu, nets) in
        [(client_side, 1400, ["10.97.1.0/24", "fd97:1::/64"]), (server_side, 4321, ["10.97.2.0/24", "fd97:2::/64"])]
    {
        for net in nets {
            // IPv4 routes here have no metric; the kernel's own IPv6 route has a larger one than 1.
            let metric = if net.contains(':') { "metric 1" } else { "" };
            let route = format!("ip route replace {net} dev {interface} {metric} mtu lock {mtu}");
            path.router.exec(route.split_whitespace());
        }
    }
    for family in [V4, V6] {
        let (up, down) = path.probe(family);
        assert_found(&up, 4_321, 9_000, "router");
        assert_found(&down, 1_400, 9_000, "router");
    }
}

#[test]
fn a_link_with_mismatched_mtus_is_a_black_hole() {
    let path = routed!();
    // A veth link drops packets larger than the peer's MTU and reports it only to the sender's queue.
    path.mtus(9_000, 1_400, 9_000, 9_000);
    let (up, _) = path.probe(V4);
    assert_eq!(up.interface_mtu_bytes, Some(9_000), "{up:?}");
    assert!(up.silent >= 9 && up.note.as_deref().is_some_and(|note| note.contains("black hole")), "{up:?}");
}

#[test]
fn a_black_hole_is_located_to_the_byte() {
    let path = routed!();
    path.mtus(1_500, 1_500, 1_500, 1_500);
    path.forwarding("meta length > 1400 drop;");
    path.silence();
    for family in [V4, V6] {
        let (up, down) = path.probe(family);
        for found in [&up, &down] {
            assert_found(found, 1_400, 1_500, "black hole");
            assert!(found.silent >= 9, "{found:?}");
        }
    }
}

#[test]
fn a_router_without_icmp_is_a_black_hole() {
    let path = routed!();
    path.mtus(9_000, 9_000, 3_333, 3_333);
    path.forwarding("");
    path.silence();
    for family in [V4, V6] {
        let (up, down) = path.probe(family);
        assert_found(&up, 3_333, 9_000, "black hole");
        assert!(up.silent >= 9, "{up:?}");
        assert_found(&down, 3_333, 3_333, "interface");
        assert_eq!(down.silent, 0);
    }
}

#[test]
fn ten_percent_loss_does_not_change_the_result() {
    let path = routed!();
    path.mtus(9_000, 9_000, 1_500, 1_500);
    // Drops every tenth packet in both directions, including ICMP.
    path.forwarding("numgen inc mod 10 < 1 drop;");
    for family in [V4, V6, V4, V6] {
        let (up, down) = path.probe(family);
        assert_eq!((up.path_mtu_bytes, up.smallest_failed_bytes), (Some(1_500), Some(1_501)), "{up:?}");
        assert_eq!((down.path_mtu_bytes, down.smallest_failed_bytes), (Some(1_500), Some(1_501)), "{down:?}");
    }
}

#[test]
fn loss_does_not_change_the_result_of_a_black_hole() {
    let path = routed!();
    path.mtus(9_000, 9_000, 9_000, 9_000);
    path.forwarding("meta length > 5001 drop; numgen inc mod 10 < 1 drop;");
    path.silence();
    for family in [V4, V6] {
        let (up, down) = path.probe(family);
        assert_found(&up, 5_001, 9_000, "black hole");
        assert_found(&down, 5_001, 9_000, "black hole");
    }
}

#[test]
fn the_cached_path_mtu_is_ignored() {
    let path = routed!();
    path.mtus(9_000, 9_000, 1_500, 1_500);
    let (before, _) = path.probe(V4);
    assert_found(&before, 1_500, 9_000, "router");
    // The client's kernel caches 1,500 for minutes; the path is already wider.
    path.mtus(9_000, 9_000, 9_000, 9_000);
    let (after, _) = path.probe(V4);
    assert_found(&after, 9_000, 9_000, "interface");
}

#[test]
fn a_device_that_clears_df_is_detected() {
    let path = routed!();
    path.mtus(9_000, 9_000, 1_500, 1_500);
    path.router
        .nft("table ip clears {\n chain early { type filter hook prerouting priority -300; ip frag-off set 0; }\n}");
    let (up, _) = path.probe(V4);
    assert_found(&up, 1_500, 9_000, "fragments");
    assert_eq!(up.silent, 0);
}

#[test]
fn a_firewall_on_the_sending_host_is_reported() {
    let path = routed!();
    path.client
        .nft("table inet own {\n chain output { type filter hook output priority 0; meta length > 1300 drop; }\n}");
    let (up, down) = path.probe(V4);
    assert_found(&up, 1_300, 1_500, "firewall");
    assert_found(&down, 1_500, 1_500, "interface");
}
