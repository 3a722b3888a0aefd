//! Queues and loss on the path: a wire in user space, and the kernel's own shapers and filters between veths.

use landspeed_testkit::claims::{Sure, holds};
use landspeed_testkit::netns::{Namespace, veth};
use landspeed_testkit::pair::Pair;
use landspeed_testkit::wire::{Leg, RIGHT, Wire};

use crate::or_skip;
use crate::path::{Across, CONTROLS, DELAY_NS, PROGRAM};

/// 20 ms, and a bottleneck of 50 Mb/s with so many bandwidth-delay products of queue.
fn bottleneck(products: f64) -> [Leg; 2] {
    let rate_bps = 50e6;
    let queue_bytes = (rate_bps / 8.0 * 2.0 * DELAY_NS as f64 / 1e9 * products) as u64;
    let back = Leg { delay_ns: DELAY_NS, ..Leg::default() };
    [Leg { rate_bps: Some(rate_bps), queue_bytes, ..back }, back]
}

#[test]
fn a_queue_that_overflows_is_congestion() {
    let across = or_skip!(Across::new(bottleneck(2.0)));
    for control in ["cubic", "reno"] {
        holds(&format!("overflow {control}"), &["network-congestion"], Sure::High, || {
            across.pair.run(&format!("-t 6 -C {control}"))
        });
    }
    // BBR keeps the queue from overflowing: it names the path, or the little it still loses.
    holds("overflow bbr", &["network-path", "network-congestion"], Sure::Medium, || {
        across.pair.run("-t 4 -C bbr --omit 1")
    });
}

#[test]
fn a_queue_that_only_stands_is_a_full_path() {
    let across = or_skip!(Across::new(bottleneck(50.0)));
    for control in CONTROLS {
        holds(&format!("standing {control}"), &["network-path"], Sure::Medium, || {
            across.pair.run(&format!("-t 4 -C {control} --omit 1"))
        });
    }
}

#[test]
fn random_loss_is_told_from_congestion() {
    let back = Leg { delay_ns: DELAY_NS, ..Leg::default() };
    let ahead = Leg { rate_bps: Some(100e6), queue_bytes: 1 << 20, loss: 0.01, ..back };
    let across = or_skip!(Across::new([ahead, back]));
    for control in ["cubic", "reno"] {
        holds(&format!("loss {control}"), &["network-loss"], Sure::High, || {
            across.pair.run(&format!("-t 5 -C {control}"))
        });
    }
    // BBR shrugs at 1 %: the path's rate is its limit.
    holds("loss bbr", &["network-path"], Sure::Medium, || across.pair.run("-t 4 -C bbr --omit 1"));
}

/// Client, router and server, joined by veths; the server is at 10.2.0.2.
fn routed() -> Result<([Namespace; 3], String), String> {
    let (client, router, server) = (Namespace::new("client")?, Namespace::new("router")?, Namespace::new("server")?);
    router.forward();
    veth(&client, &router, "10.1.0.1/24", "10.1.0.2/24");
    let far = veth(&router, &server, "10.2.0.1/24", "10.2.0.2/24");
    client.exec(["ip", "route", "add", "default", "via", "10.1.0.2"]);
    server.exec(["ip", "route", "add", "default", "via", "10.2.0.1"]);
    Ok(([client, router, server], far.a))
}

#[test]
fn a_shaper_between_the_hosts_is_the_network() {
    let ([client, router, server], out) = or_skip!(routed());
    let shape = "qdisc add dev OUT root tbf rate 100mbit burst 32kb limit 400kb".replace("OUT", &out);
    router.exec(std::iter::once("tc").chain(shape.split(' ')));
    let pair = Pair::across(PROGRAM, &client, &server, "10.2.0.2");
    for control in CONTROLS {
        holds(&format!("tbf {control}"), &["network-congestion", "network-path"], Sure::Medium, || {
            pair.run(&format!("-t 4 -C {control}"))
        });
    }
}

#[test]
fn loss_between_the_hosts_is_the_network() {
    let far = |prefix| Namespace::new(prefix);
    let (client, router, server) = (or_skip!(far("client")), or_skip!(far("router")), or_skip!(far("server")));
    router.forward();
    // A filter on a path without delay costs next to nothing: lost data is there again at once.
    let leg = Leg { delay_ns: DELAY_NS, ..Leg::default() };
    let _wire = or_skip!(Wire::between(&client, &router, [leg, leg], 2));
    veth(&router, &server, "10.2.0.1/24", "10.2.0.2/24");
    client.exec(["ip", "route", "add", "default", "via", RIGHT]);
    server.exec(["ip", "route", "add", "default", "via", "10.2.0.1"]);
    router.nft(
        "table inet t {\n chain c {\n type filter hook forward priority 0;\n \
         meta length > 600 numgen random mod 1000 < 10 drop\n }\n}\n",
    );
    let pair = Pair::across(PROGRAM, &client, &server, "10.2.0.2");
    for control in ["cubic", "reno"] {
        holds(&format!("nft {control}"), &["network-loss"], Sure::High, || pair.run(&format!("-t 4 -C {control}")));
    }
}
