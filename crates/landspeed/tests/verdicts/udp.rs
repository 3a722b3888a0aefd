//! UDP: delivered whole, lost in the receiver's socket, lost in the sender's queue, lost on the path.

use landspeed_sys::thread;
use landspeed_testkit::claims::{Sure, holds};
use landspeed_testkit::netns::{Namespace, veth};
use landspeed_testkit::pair::{Burden, Pair};
use landspeed_testkit::skip;
use landspeed_testkit::wire::Leg;

use crate::or_skip;
use crate::path::{Across, DELAY_NS, PROGRAM};

#[test]
fn a_rate_delivered_whole_is_the_application() {
    let pair = Pair::on_loopback(PROGRAM);
    let document = holds("udp whole", &["application", "sender-cpu"], Sure::Medium, || pair.run("-u -b 50M -t 3"));
    let reached = document["summary"]["goodput_bps"].as_f64().expect("a figure") / 50e6;
    // A sender that other load keeps from its core does not reach its rate, and that is what is said then.
    let kept = document["verdict"]["cause"] == "application";
    assert_eq!(kept, reached >= 0.95, "{reached}: {:#}", document["verdict"]);
}

#[test]
fn a_socket_buffer_smaller_than_a_burst_is_named() {
    let pair = Pair::on_loopback(PROGRAM);
    let options = "-u -b 200M -l 1448 --burst 64 -w 32K -t 3";
    let document = holds("udp small buffer", &["receive-buffer"], Sure::Medium, || pair.run(options));
    let next = document["verdict"]["next_step"].as_str().expect("text");
    assert!(next.contains("--window "), "{next}");
}

#[test]
fn loss_on_the_path_is_the_network() {
    let back = Leg { delay_ns: DELAY_NS, ..Leg::default() };
    let across = or_skip!(Across::new([Leg { loss: 0.05, ..back }, back]));
    holds("udp loss", &["network-loss"], Sure::High, || across.pair.run("-u -b 20M -t 3"));
}

#[test]
fn a_receiver_without_its_core_is_the_receivers_processor() {
    let [one, other, ..] = thread::allowed_cores()[..] else { skip!("two ends need two cores") };
    let pair = Pair::on_loopback(PROGRAM);
    let _burden = Burden::on(other, 3);
    // Where the sender's core is full as well, the sender can be the one that falls behind.
    holds("udp starved", &["receiver-cpu", "sender-cpu"], Sure::Medium, || {
        pair.run(&format!("-u -b 4G -l 8900 -t 3 --cpus {one} --peer-cpus {other}"))
    });
}

#[test]
fn a_shaper_at_the_sender_is_found_there() {
    let (client, server) = match (Namespace::new("client"), Namespace::new("server")) {
        (Ok(client), Ok(server)) => (client, server),
        (Err(why), _) | (_, Err(why)) => skip!("{why}"),
    };
    let link = veth(&client, &server, "10.3.0.1/24", "10.3.0.2/24");
    let shape = "qdisc add dev OUT root tbf rate 20mbit burst 16kb limit 60kb".replace("OUT", &link.a);
    client.exec(std::iter::once("tc").chain(shape.split(' ')));
    let pair = Pair::across(PROGRAM, &client, &server, "10.3.0.2");
    let document = holds("udp tbf", &["local-qdisc"], Sure::High, || pair.run("-u -b 40M -t 3"));
    assert_eq!(document["verdict"]["place"], "client, qdisc");
}
