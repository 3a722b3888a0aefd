//! Accounting under injected faults: intervals add up to totals, every packet is accounted for, and the
//! accounting matches the counters of the fault injector.

use std::net::SocketAddr;

use landspeed_sys::clock;
use landspeed_testkit::detour::RunRelay;
use landspeed_testkit::netns::{Namespace, veth};
use landspeed_testkit::pair::Pair;
use landspeed_testkit::process::{signal, until};
use landspeed_testkit::relay::Impairments;
use landspeed_testkit::skip;
use landspeed_testkit::wire::{RIGHT, Wire, WireDirection};
use serde_json::Value;

use crate::common::{PROGRAM, list};

fn number(value: &Value) -> i64 {
    value.as_i64().unwrap_or_else(|| panic!("{value} is not a number"))
}

/// Asserts what holds under any fault: the sum of the intervals equals the totals, and no bytes are
/// unaccounted for.
#[track_caller]
fn assert_balanced(document: &Value) {
    let accounting = &document["conservation"];
    assert_eq!(document["status"], "complete", "{:#}", document["errors"]);
    assert_eq!(accounting["holds"], true, "{accounting:#}");
    assert_eq!(number(&accounting["unaccounted_bytes"]), 0, "{accounting:#}");
    assert_eq!(number(&accounting["intervals_minus_totals_bytes"]), 0, "{accounting:#}");
    let mut delivered = 0;
    for stream in list(&document["streams"]) {
        let intervals: i64 = list(&stream["intervals"]).iter().map(|interval| number(&interval["bytes"])).sum();
        assert_eq!(intervals, number(&stream["receiver"]["bytes"]), "stream {}", stream["id"]);
        delivered += intervals;
    }
    assert_eq!(delivered, number(&document["summary"]["bytes_delivered"]));
    assert!(delivered > 0, "nothing arrived");
}

/// UDP counters of a document.
#[derive(Debug, PartialEq)]
struct Packets {
    sent: i64,
    delivered: i64,
    lost: i64,
    duplicate: i64,
}

#[track_caller]
fn packets(document: &Value) -> Packets {
    assert_balanced(document);
    let udp = &document["udp"];
    let of = |name: &str| number(&udp[format!("{name}_packets")]);
    let packets =
        Packets { sent: of("sent"), delivered: of("delivered"), lost: of("lost"), duplicate: of("duplicate") };
    assert_eq!(packets.sent, packets.delivered + packets.lost, "{udp:#}");
    let placed: i64 = list(&document["conservation"]["losses"]).iter().map(|loss| number(&loss["packets"])).sum();
    assert_eq!(placed, packets.lost, "{:#}", document["conservation"]["losses"]);
    packets
}

/// Packets of the document's losses at `place`.
fn lost_at(document: &Value, place: &str) -> i64 {
    let losses = list(&document["conservation"]["losses"]);
    losses.iter().filter(|loss| loss["place"] == place).map(|loss| number(&loss["packets"])).sum()
}

#[test]
fn udp_accounting_matches_a_lossy_reordering_relay() {
    let pair = Pair::on_loopback(PROGRAM);
    let server: SocketAddr = pair.target().parse().expect("an address");
    let unimpaired = Impairments { seed: 1, ..Impairments::default() };
    let cases = [
        (unimpaired, 1),
        (Impairments { drop: 0.05, ..unimpaired }, 1),
        (Impairments { duplicate: 0.1, ..unimpaired }, 1),
        (Impairments { reorder: 0.05, ..unimpaired }, 1),
        (Impairments { drop_after: Some(1000), ..unimpaired }, 1),
        (Impairments { drop: 0.03, duplicate: 0.05, reorder: 0.05, ..unimpaired }, 2),
    ];
    for (impairments, streams) in cases {
        let detour = RunRelay::to(server, impairments).expect("a detour");
        let target = detour.address().to_string();
        let document = pair.run_to(&target, &format!("-u -b 15M -l 1000 -t 1 -P {streams}"));
        let relay_counts = detour.end();
        let seen = packets(&document);
        let relayed = Packets {
            sent: relay_counts.received as i64,
            delivered: (relay_counts.received - relay_counts.dropped) as i64,
            lost: relay_counts.dropped as i64,
            duplicate: relay_counts.duplicated as i64,
        };
        assert_eq!(seen, relayed, "{impairments:?}");
        assert_eq!(number(&document["udp"]["reordered_packets"]), relay_counts.reordered as i64, "{impairments:?}");
        assert_eq!(lost_at(&document, "network"), relay_counts.dropped as i64, "{impairments:?}");
        if impairments.drop_after.is_some() {
            assert_eq!(number(&document["udp"]["tail_lost_packets"]), relay_counts.dropped as i64, "the tail");
        }
    }
}

/// Joins two namespaces by a wire; the error gives the reason if it is not possible.
fn pair_over_wire(directions: [WireDirection; 2]) -> Result<(Pair, Wire, [Namespace; 2]), String> {
    let (left, right) = (Namespace::new("left")?, Namespace::new("right")?);
    let wire = Wire::between(&left, &right, directions, 3)?;
    Ok((Pair::across(PROGRAM, &left, &right, RIGHT), wire, [left, right]))
}

#[test]
fn udp_accounting_matches_the_wire_in_both_directions() {
    let direction = WireDirection {
        delay_ns: 2_000_000,
        loss: 0.02,
        duplicate: 0.03,
        reorder: 0.02,
        reorder_ns: 3_000_000,
        udp_only: true,
        ..WireDirection::default()
    };
    for (way, index) in [("", 0), ("-R", 1)] {
        let (pair, wire, _ends) = landspeed_testkit::or_skip!(pair_over_wire([direction, direction]));
        let document = pair.run(&format!("-u -b 15M -l 1000 -t 1 {way}"));
        let seen = packets(&document);
        let count = wire.shutdown()[index];
        let carried = Packets {
            sent: count.received as i64,
            delivered: (count.received - count.lost) as i64,
            lost: count.lost as i64,
            duplicate: count.duplicated as i64,
        };
        assert_eq!(seen, carried, "{count:?}");
        assert!(count.delayed > 0 && number(&document["udp"]["reordered_packets"]) > 0, "{count:?}");
    }
}

#[test]
fn tcp_accounting_balances_over_a_faulty_wire() {
    let direction = WireDirection {
        delay_ns: 2_000_000,
        rate_bps: Some(200e6),
        queue_bytes: 200_000,
        loss: 0.002,
        duplicate: 0.01,
        reorder: 0.01,
        reorder_ns: 1_000_000,
        ..WireDirection::default()
    };
    let (pair, _wire, _ends) = landspeed_testkit::or_skip!(pair_over_wire([direction, direction]));
    for arguments in ["-t 0.8 -C cubic", "-t 0.8 -C bbr -R", "-t 0.8 --bidir -P 2", "-n 5M --send zerocopy -i 10ms"] {
        let document = pair.run(arguments);
        assert_balanced(&document);
        assert_eq!(document["conservation"]["offered"], document["conservation"]["delivered"], "{arguments}");
    }
}

/// Otherwise the last interval of a stream that is sampled late would count for the next phase, and that
/// phase would exceed the link's rate.
#[test]
fn streams_of_one_host_are_sampled_together() {
    let pair = Pair::on_loopback(PROGRAM);
    for arguments in ["-t 0.5 -P 8 --omit 300ms -i 20ms", "-t 0.5 -P 4 --bidir --omit 200ms", "-u -b 20M -P 4 -t 0.5"]
    {
        let document = pair.run(arguments);
        assert_balanced(&document);
        for end in ["sender", "receiver"] {
            for direction in ["upload", "download"] {
                let times: Vec<Vec<i64>> = list(&document["streams"])
                    .iter()
                    .filter(|stream| stream["direction"] == direction)
                    .map(|stream| list(&stream[end]["samples"]).iter().map(|s| number(&s["t_ns"])).collect())
                    .collect();
                let differs = times.windows(2).find(|pair| pair[0] != pair[1]);
                assert!(differs.is_none(), "{arguments}: {end}, {direction}: {differs:?}");
                assert!(times.iter().all(|of_stream| of_stream.len() > 3), "{arguments}: {end}, {direction}");
            }
        }
        for phase in list(&document["phases"]) {
            let span = (number(&phase["start_ns"]), number(&phase["end_ns"]));
            let of_phase = |stream: &&Value| stream["direction"] == phase["direction"];
            for stream in list(&document["streams"]).iter().filter(of_phase) {
                let inside = |i: &&Value| i["phase"] == phase["name"];
                for interval in list(&stream["intervals"]).iter().filter(inside) {
                    let (start, end) = (number(&interval["start_ns"]), number(&interval["end_ns"]));
                    assert!(span.0 <= start && end <= span.1, "{arguments}: {interval} outside of {phase}");
                }
            }
        }
    }
}

#[test]
fn drops_of_a_small_socket_buffer_are_attributed_to_it() {
    let pair = Pair::on_loopback(PROGRAM);
    let document = pair.run("-u -b 2G -l 8000 --burst 64 -w 16K --no-gro -t 0.5");
    let seen = packets(&document);
    assert!(seen.lost > 0, "a buffer of 16 KiB holds no burst of 64: {seen:?}");
    assert_eq!(lost_at(&document, "receiver-socket"), seen.lost, "{:#}", document["conservation"]["losses"]);
}

/// Client, router and server namespaces joined by veth, with the server at 10.2.0.2; also returns the
/// client's interface.
fn routed_namespaces() -> Result<([Namespace; 3], String), String> {
    let (client, router, server) = (Namespace::new("client")?, Namespace::new("router")?, Namespace::new("server")?);
    router.forward();
    let near = veth(&client, &router, "10.1.0.1/24", "10.1.0.2/24");
    veth(&router, &server, "10.2.0.1/24", "10.2.0.2/24");
    client.exec(["ip", "route", "add", "default", "via", "10.1.0.2"]);
    server.exec(["ip", "route", "add", "default", "via", "10.2.0.1"]);
    Ok(([client, router, server], near.a))
}

#[test]
fn packets_dropped_between_hosts_are_network_loss() {
    let ([client, router, server], _) = landspeed_testkit::or_skip!(routed_namespaces());
    router.nft(
        "table ip t {\n chain c {\n type filter hook forward priority 0;\n \
         ip protocol udp meta length > 600 numgen random mod 100 < 3 counter drop\n }\n}\n",
    );
    let pair = Pair::across(PROGRAM, &client, &server, "10.2.0.2");
    let document = pair.run("-u -b 20M -l 1200 -t 1");
    let seen = packets(&document);
    let rules = router.exec(["nft", "list", "ruleset"]);
    let counted = rules.split("counter packets ").nth(1).and_then(|rest| rest.split(' ').next()).expect("a counter");
    assert_eq!(seen.lost.to_string(), counted, "{rules}");
    assert_eq!(lost_at(&document, "network"), seen.lost, "{:#}", document["conservation"]["losses"]);
    assert!(seen.lost > 0, "{seen:?}");
    // TCP with losses: 0.5 % of the segments are dropped.
    router.nft(
        "table ip s {\n chain c {\n type filter hook forward priority 1;\n \
         ip protocol tcp meta length > 600 numgen random mod 1000 < 5 drop\n }\n}\n",
    );
    let document = pair.run("-t 0.8 -M 1000");
    assert_balanced(&document);
    assert!(number(&document["summary"]["retransmits"]) > 0, "nothing was lost");
}

#[test]
fn packets_dropped_by_the_senders_shaper_are_not_network_loss() {
    let ([client, _router, server], out) = landspeed_testkit::or_skip!(routed_namespaces());
    let shape = "qdisc add dev OUT root tbf rate 5mbit burst 16kb limit 60kb".replace("OUT", &out);
    client.exec(std::iter::once("tc").chain(shape.split(' ')));
    let pair = Pair::across(PROGRAM, &client, &server, "10.2.0.2");
    for arguments in ["-u -b 40M -l 1200 -t 0.8", "-u -b 40M -l 1200 --burst 40 -t 0.8"] {
        let document = pair.run(arguments);
        let seen = packets(&document);
        let refused = number(&document["udp"]["refused_packets"]);
        assert!(seen.lost + refused > 0, "eight times the shaper's rate fits: {seen:?}");
        assert_eq!(lost_at(&document, "network"), 0, "{:#}", document["conservation"]["losses"]);
        assert_eq!(lost_at(&document, "sender-qdisc"), seen.lost, "{:#}", document["conservation"]["losses"]);
        println!("{arguments}: {seen:?}, {refused} refused");
    }
}

/// Both programs use the same lossy path: our loss must equal the filter's counter; iperf3's figures are
/// printed for comparison.
#[test]
fn udp_loss_equals_the_filter_count_next_to_iperf3() {
    const PORT: &str = "5299";
    if std::process::Command::new("iperf3").arg("--version").output().is_err() {
        skip!("iperf3 is not installed");
    }
    let ([client, router, server], _) = landspeed_testkit::or_skip!(routed_namespaces());
    router.nft(
        "table ip t {\n chain c {\n type filter hook forward priority 0;\n \
         ip protocol udp meta length > 600 numgen random mod 100 < 10 counter drop\n }\n}\n",
    );
    let dropped = || {
        let rules = router.exec(["nft", "list", "ruleset"]);
        let counted = rules.split("counter packets ").nth(1).and_then(|rest| rest.split(' ').next());
        counted.and_then(|n| n.parse::<i64>().ok()).expect("a counter")
    };
    let pair = Pair::across(PROGRAM, &client, &server, "10.2.0.2");
    let ours = packets(&pair.run("-u -b 20M -l 1200 -t 1"));
    let ours_dropped = dropped();
    let spawn = || {
        let quiet = std::process::Stdio::null;
        let mut iperf3 = std::process::Command::new("iperf3");
        iperf3.args(["-s", "-1", "-p", PORT]).stdin(quiet()).stdout(quiet()).stderr(quiet()).spawn()
    };
    let mut far = server.run(spawn).expect("an iperf3 server");
    let listens = (0..100).any(|_| {
        std::thread::park_timeout(std::time::Duration::from_millis(20));
        server.exec(["ss", "-ltn"]).contains(PORT)
    });
    let near = ["iperf3", "-J", "-c", "10.2.0.2", "-p", PORT, "-u", "-b", "20M", "-l", "1200", "-t", "1"];
    let theirs = listens.then(|| client.exec(near));
    let _ = far.kill();
    let _ = far.wait();
    let theirs: Value = serde_json::from_str(&theirs.expect("a listening iperf3")).expect("JSON");
    let sum = &theirs["end"]["sum"];
    let theirs_dropped = dropped() - ours_dropped;
    println!("landspeed: {} of {} lost, the filter dropped {ours_dropped}", ours.lost, ours.sent);
    println!("iperf3: {} of {} lost, the filter dropped {theirs_dropped}", sum["lost_packets"], sum["packets"]);
    assert_eq!(ours.lost, ours_dropped, "{ours:?}");
}

/// Runs for two seconds over loopback and stops one process (SIGSTOP) for 1.1 s. Returns the document and
/// standard output.
fn frozen(stops_server: bool, arguments: &str) -> (Value, String) {
    let pair = Pair::on_loopback(PROGRAM);
    let directory = tempfile::tempdir().expect("a place for documents");
    let (events, document) = (directory.path().join("events"), directory.path().join("run.json"));
    let client =
        pair.start_run(&format!("{arguments} -t 2 --jsonl {} --json {}", events.display(), document.display()));
    until(20, "data flows", || std::fs::read_to_string(&events).unwrap_or_default().contains("\"progress\""));
    let stopped = if stops_server { pair.server_id() } else { client.id() };
    signal(stopped, "STOP");
    clock::sleep_until(clock::monotonic_ns() + 1_100_000_000);
    signal(stopped, "CONT");
    let ended = client.end(40);
    let text = std::fs::read_to_string(&document).unwrap_or_default();
    let document = serde_json::from_str(&text).unwrap_or_else(|why| panic!("no document: {why}: {ended:?}"));
    (document, ended.stdout)
}

/// Messages of the document's warnings with this code.
fn warnings_with_code(document: &Value, code: &str) -> Vec<String> {
    let warnings = list(&document["warnings"]).iter().filter(|warning| warning["code"] == code);
    warnings.map(|warning| warning["message"].as_str().unwrap_or_default().to_owned()).collect()
}

#[test]
fn a_frozen_process_is_a_sampler_gap_and_a_stall() {
    for (stops_server, name, arguments) in
        [(false, "client", "--bidir"), (true, "server", "--bidir"), (false, "client", "-u -b 20M")]
    {
        let (document, text) = frozen(stops_server, arguments);
        assert_balanced(&document);
        let gaps = warnings_with_code(&document, "sampler-gap");
        assert_eq!(gaps.len(), 1, "{name} {arguments}: {:#}", document["warnings"]);
        assert!(gaps[0].starts_with(&format!("The {name}'s sampler did not run from ")), "{gaps:?}");
        let noted = list(&document["host_series"][name]["sampler_gaps"]);
        let longest = noted.iter().map(|gap| number(&gap["end_ns"]) - number(&gap["start_ns"])).max();
        assert!(longest.is_some_and(|ns| (1_000_000_000..2_000_000_000).contains(&ns)), "{noted:?}");
        // UDP has no acknowledgements: data for a frozen receiver is visible only as a total.
        let stalls = warnings_with_code(&document, "stall");
        let expected = if arguments.contains("--bidir") { 2 } else { 1 };
        assert_eq!(stalls.len(), expected, "{name} {arguments}: {:#}", document["warnings"]);
        let why = format!("; the {name}'s sampler did not run then");
        assert!(stalls.iter().all(|stall| stall.contains(&why)), "{stalls:?}");
        let summary = &document["summary"];
        assert!(summary["goodput_cv"].as_f64().is_some_and(|cv| cv > 0.1), "{summary:#}");
        if arguments.contains("--bidir") {
            assert!(summary["reverse_goodput_cv"].as_f64().is_some_and(|cv| cv > 0.1), "{summary:#}");
        }
        let headline = text.lines().find(|line| line.starts_with("  result")).expect("a headline");
        assert_eq!(headline.matches(" ± ").count(), expected, "{text}");
        assert!(!headline.contains("unknown"), "{text}");
    }
}

#[test]
fn missing_spread_is_explained() {
    let pair = Pair::on_loopback(PROGRAM);
    let client = pair.start_run("-v -t 0.5 --interval 1s");
    let ended = client.end(30);
    assert!(ended.stdout.contains(" ± unknown, client to server"), "{}", ended.stdout);
    let text = ended.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("spread unknown: the steady phase has only one interval"), "{}", ended.stdout);
}

#[test]
fn byte_limited_tests_measure_all_their_bytes() {
    let pair = Pair::on_loopback(PROGRAM);
    let cases = [
        "-n 2M",
        "-n 2M -R",
        "-n 2M -R --receive discard",
        "-n 2M -P 3 --bidir",
        "-k 3 -l 100k",
        "-n 300k -b 50M -R",
        "-u -n 200k -b 20M",
        "-u -n 200k -b 20M -R",
    ];
    for options in cases {
        let document = pair.run(options);
        assert_balanced(&document);
        let directions: &[&str] = match options {
            _ if options.contains("--bidir") => &["upload", "download"],
            _ if options.contains("-R") => &["download"],
            _ => &["upload"],
        };
        let rates = ["goodput_bps", "reverse_goodput_bps"].map(|name| &document["summary"][name]);
        for (direction, rate) in directions.iter().zip(rates) {
            let of = |value: &&Value| value["direction"] == **direction;
            let receivers: Vec<_> =
                list(&document["streams"]).iter().filter(of).map(|stream| &stream["receiver"]).collect();
            let received: i64 = receivers.iter().map(|end| number(&end["bytes"])).sum();
            // Streams that got no share of the bytes have no last byte.
            let last_ns = receivers.iter().filter_map(|end| end["last_byte_ns"].as_i64()).max().expect("a stream");
            let phases: Vec<_> = list(&document["phases"])
                .iter()
                .filter(of)
                .map(|phase| {
                    let [end_ns, bytes] = ["end_ns", "bytes"].map(|name| number(&phase[name]));
                    (phase["name"].as_str().expect("a name"), end_ns, bytes)
                })
                .collect();
            // No start-up is left out, and the end is the arrival of the last byte.
            assert_eq!(phases[..2], [("startup", 0, 0), ("steady", last_ns, received)], "{options}: {phases:?}");
            let expected = received as f64 * 8e9 / last_ns as f64;
            let rate = rate.as_f64().expect("a rate");
            assert!((rate / expected - 1.0).abs() < 1e-6, "{options}: {rate} is not {expected}");
        }
    }
}
