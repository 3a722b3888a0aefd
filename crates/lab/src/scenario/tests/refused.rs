//! Refused scenarios and warnings, with their texts.

use std::fmt::Write as _;

use super::super::*;
use super::BASE;

/// Returns the base scenario with the first `from` replaced by `to`.
fn with(from: &str, to: &str) -> String {
    assert!(BASE.contains(from), "{from}");
    BASE.replacen(from, to, 1)
}

fn plus(more: &str) -> String {
    format!("{BASE}{more}\n")
}

fn link(more: &str) -> String {
    with("delay = \"25ms\"", &format!("delay = \"25ms\"\n{more}"))
}

fn queue(queue: &str) -> String {
    with("{ kind = \"bfifo\", limit = \"1MB\" }", queue)
}

fn vary(key: &str, values: &str) -> String {
    plus(&format!("[[vary]]\nkey = \"{key}\"\nvalues = {values}"))
}

/// Returns the base scenario with a program that has further keys.
fn program(keys: &str) -> String {
    plus(&format!("[[program]]\nhost = \"a\"\nrun = [\"iperf3\", \"-s\"]\n{keys}"))
}

/// An event with further keys.
const EVENT: &str = "[[event]]\nat = \"5s\"\nKEYS\n";

/// Returns the base scenario with an event that has further keys.
fn event(keys: &str) -> String {
    events(&[keys])
}

/// Returns the base scenario with events at one time.
fn events(keys: &[&str]) -> String {
    keys.iter().fold(BASE.to_owned(), |text, keys| text + &EVENT.replace("KEYS", keys))
}

/// Returns the base scenario with a reported figure, and with the buffer varied.
fn figure(keys: &str) -> String {
    format!(
        "{BASE}\n[reference]\nsource = \"a deck\"\nreported = \"fast\"\n[[reference.figures]]\nname = \"sum\"\nvalue = 2.83\n{keys}\n\
         [[vary]]\nkey = \"switch.s.queue.limit\"\nlabel = \"buffer\"\nvalues = [\"1MB\", \"4MB\"]\n"
    )
}

/// Returns invalid scenarios, each with a description.
fn bad() -> Vec<(&'static str, String)> {
    vec![
        ("not TOML", with("rate = \"10G\"", "rate = 10G")),
        ("a key that is none", with("rate =", "rte = \"1G\"\nrate =")),
        ("a renamed key", link("back = { rate = \"1G\" }")),
        ("two independent mistakes", with("rate = \"10G\"", "rate = \"10 parsecs\"\ndelay-ms = 3")),
        ("a number without a unit", with("\"25ms\"", "25")),
        ("bytes where bits are meant", with("\"10G\"", "\"10GB/s\"")),
        ("a missing rate", with("rate = \"10G\"\n", "")),
        ("no name", with("name = \"two hosts\"", "")),
        ("one bracket", with("[[flow]]", "[flow]")),
        ("two brackets", with("[host.b]", "").replace("[host.a]", "[[host]]")),
        ("an unknown kind of queue", queue("\"fifo\"")),
        ("a queue that is a number", queue("3")),
        ("an unknown congestion", with("[host.a]", "[host.a]\ncongestion = \"cubic of course\"")),
        ("a section without a target", with("[[flow]]", "[[flow]]\nprotocol = \"qualify\"")),
        ("a target of another protocol", with("[[flow]]", "[[flow]]\ntarget = \"1G\"")),
        (
            "a section longer than its path",
            with("[[flow]]", "[[flow]]\nprotocol = \"qualify\"\ntarget = \"1G\"\ntarget-rtt = \"1ms\"\nstreams = 2"),
        ),
        ("unknown buffers", with("[host.a]", "[host.a]\nbuffers = \"stok\"")),
        ("two kinds of loss", link("loss = { every = 3, random = \"1%\" }")),
        ("an unknown kind of loss", link("loss = { evry = 3 }")),
        ("unquoted sysctl", with("[host.a]", "[host.a]\nsysctl.net.ipv4.tcp_sack = 1")),
        ("a sysctl of the machine", with("[host.a]", "[host.a]\nsysctl.\"vm.swappiness\" = 1")),
        ("three ends", with("[\"a\", \"s\"]", "[\"a\", \"s\", \"b\"]")),
        ("an unknown node", with("[\"a\", \"s\"]", "[\"a\", \"t\"]")),
        ("a link to itself", with("[\"a\", \"s\"]", "[\"a\", \"a\"]")),
        ("a second link", plus("[[link]]\nbetween = [\"s\", \"a\"]\nrate = \"1G\"")),
        (
            "a loop",
            plus(
                "[switch.t]\n[switch.u]\n[[link]]\nbetween = [\"s\", \"t\"]\nrate = \"1G\"\n[[link]]\nbetween = [\"t\", \"u\"]\nrate = \"1G\"\n[[link]]\nbetween = [\"u\", \"s\"]\nrate = \"1G\"",
            ),
        ),
        ("a host with two links", plus("[switch.t]\n[[link]]\nbetween = [\"t\", \"a\"]\nrate = \"1G\"")),
        ("a host without a link", plus("[host.c]")),
        ("a name too long", plus("[host.the-second-receiver]")),
        ("a host and a switch of one name", plus("[switch.a]")),
        ("a port to nobody", with("[switch.s]", "[switch.s]\nport.c = \"fq\"")),
        ("a rate of zero", with("\"10G\"", "0")),
        ("a delay to the moon and back, often", with("25ms", "61s")),
        (
            "IPv6 over small packets",
            with("rate =", "mtu = 1000\nrate =").replacen(
                "rate = \"10G\"\n[[flow]]",
                "mtu = 1000\nrate = \"10G\"\n[[flow]]\nipv6 = true",
                1,
            ),
        ),
        ("two MTUs on a path", link("mtu = 9000")),
        ("everything lost", link("loss = \"100%\"")),
        ("jitter beyond the delay", link("jitter = { spread = \"30ms\" }")),
        (
            "reordering without a delay",
            plus("").replacen("rate = \"10G\"\n[[flow]]", "rate = \"10G\"\nreorder = \"1%\"\n[[flow]]", 1),
        ),
        ("a trace that descends", link("[link.reverse]\nrate = { opportunities = [5, 4] }")),
        ("a trace that is empty", link("[link.reverse]\nrate = { opportunities = [] }")),
        ("a trace file that was not read", link("[link.reverse]\nrate = { mahimahi = \"down.trace\" }")),
        (
            "steps without a rate",
            link("[link.reverse]\nrate = { steps = [{ for = \"1s\", rate = 0 }], repeat = true }"),
        ),
        ("a policer below a frame", link("policer = { rate = \"1G\", burst = \"1KB\" }")),
        ("outages that overlap", link("down = [{ at = \"1s\", for = \"1s\" }, { at = \"1s\", for = \"1s\" }]")),
        ("a queue on a link", link("queue = \"codel\"")),
        ("a queue below a frame", queue("{ kind = \"bfifo\", limit = \"1KiB\" }")),
        ("a setting of another kind", queue("{ kind = \"codel\", limit = \"1MB\" }")),
        ("netem on a switch", queue("{ kind = \"netem\", delay = \"25ms\" }")),
        ("netem without settings", with("[host.a]", "[host.a]\nqdisc = \"netem\"")),
        ("a delay on another kind", queue("{ kind = \"bfifo\", delay = \"25ms\" }")),
        ("thresholds upside down", queue("{ kind = \"red\", limit = \"1MB\", min = \"500KB\", max = \"100KB\" }")),
        ("a CPU without costs", with("[host.a]", "[host.a]\ncpu = { cores = 1 }")),
        ("a cost below zero", with("[host.a]", "[host.a]\ncpu = { receive = { packet-ns = -1 } }")),
        ("a cost that is none", with("[host.a]", "[host.a]\ncpu = { receive = { packets-ns = 1 } }")),
        ("a ring without descriptors", with("[host.a]", "[host.a]\ncpu = { receive = { ring = 0 } }")),
        ("three cores", with("[host.a]", "[host.a]\ncpu = { cores = 3, read = { byte-ns = 1 } }")),
        ("two ways to gather", with("[host.a]", "[host.a]\ngro = \"50us\"\ncpu = { receive = { byte-ns = 1 } }")),
        ("UDP without a rate", plus("protocol = \"udp\"")),
        ("burst on TCP", plus("burst = 3")),
        ("rate on request/response", plus("protocol = \"tcp-rr\"\nrate = \"1G\"")),
        ("both directions twice", plus("reverse = true\nbidir = true")),
        ("a flow to nobody", with("to = \"b\"", "to = \"bb\"")),
        ("a flow to a switch", with("to = \"b\"", "to = \"s\"")),
        ("a DSCP above 63", plus("dscp = 64")),
        ("a DSCP above 255", plus("dscp = 256")),
        ("too fine a sample", format!("sample = \"1us\"\n{BASE}")),
        ("a program on an unknown host", program("").replace("host = \"a\"\nrun", "host = \"aa\"\nrun")),
        ("a program on a switch", program("").replace("host = \"a\"\nrun", "host = \"s\"\nrun")),
        ("a program without a host", program("").replace("host = \"a\"\n", "")),
        ("a program without a command", program("").replace("run = [\"iperf3\", \"-s\"]\n", "")),
        ("an empty command", program("").replace("[\"iperf3\", \"-s\"]", "[]")),
        ("a command line in one word", program("").replace("[\"iperf3\", \"-s\"]", "[\"iperf3 -s\"]")),
        (
            "two programs of one name",
            format!("{}[[program]]\nname = \"x\"\nhost = \"b\"\nrun = [\"true\"]\n", program("name = \"x\"\n")),
        ),
        ("an invalid stop", program("stop = \"never\"\n")),
        ("a stop before the start", program("at = \"2s\"\nstop = \"1s\"\n")),
        ("a stop and a time", program("stop = \"5s\"\ntime = \"5s\"\n")),
        ("an exit status above 255", program("expect = 256\n")),
        ("a relative file to keep", program("keep = [\"result.json\"]\n")),
        ("an essential directory", program("writable = [\"/usr\"]\n")),
        (
            "only programs that are stopped at the end",
            program("stop = \"end\"\n").replace("[[flow]]\nfrom = \"a\"\nto = \"b\"\n", ""),
        ),
        (
            "a varied scenario of programs",
            format!("repeats = 2\n{}", program("").replace("[[flow]]\nfrom = \"a\"\nto = \"b\"\n", "")),
        ),
        ("a real-time limit without programs", format!("real-time-limit = \"1min\"\n{BASE}")),
        ("too short a real-time limit", format!("real-time-limit = \"1ms\"\n{}", program(""))),
        ("an event of an unknown key", event("link = 1\nrtae = \"1G\"")),
        ("corruption of another emulator", link("corrupt = \"1%\"")),
        ("correlation of another emulator", link("jitter = { spread = \"1ms\", correlation = \"25%\" }")),
        ("cells of another emulator", link("cell-size = 53")),
        ("CE marks of a link", link("ecn = true")),
        ("an event of an unknown link", event("link = 2\nrate = \"1G\"")),
        ("an event of an unknown direction of a link", event("link = \"s->c\"\nrate = \"1G\"")),
        ("an event with two directions", event("link = \"s->b\"\ndirection = \"reverse\"\nrate = \"1G\"")),
        ("an event of nothing", event("rate = \"1G\"")),
        ("an event of two objects", event("link = 1\nhost = \"a\"\nrate = \"1G\"")),
        ("an event without a change", event("link = 1")),
        ("a sysctl of a link", event("link = 1\nsysctl.\"net.ipv4.tcp_sack\" = 0")),
        ("an event of an unknown host", event("host = \"c\"\nsysctl.\"net.ipv4.tcp_sack\" = 0")),
        ("an event of an unknown flow", event("flow = \"a-c\"\nstop = true")),
        ("an event after the end", event("link = 1\nrate = \"1G\"").replace("\"5s\"", "\"10s\"")),
        ("an event without a time", event("link = 1\nrate = \"1G\"").replace("at = \"5s\"\n", "")),
        (
            "two events that contradict each other",
            events(&["link = 1\nrate = \"1G\"", "link = \"s->b\"\nrate = \"2G\""]),
        ),
        (
            "a link that goes down twice",
            events(&["link = 1\ndown = true", "link = 1\ndown = true"]).replacen("5s", "4s", 1),
        ),
        ("a link that is up already", event("link = 1\ndown = false")),
        ("a rate of zero from an event", event("link = 1\nrate = 0")),
        (
            "jitter beyond a delay that shrank",
            link("jitter = { spread = \"9ms\" }") + &EVENT.replace("KEYS", "link = 0\ndelay = \"5ms\""),
        ),
        ("a flow that stops twice", events(&["flow = \"a-b\"\nstop = true", "flow = \"a-b\"\nstop = true"])),
        ("cake before a link that changes", queue("\"cake\"") + &EVENT.replace("KEYS", "link = 1\nrate = \"1G\"")),
        ("slots on a link that changes", link("slot = \"1ms\"") + &EVENT.replace("KEYS", "link = 0\nrate = \"1G\"")),
        ("no flow", BASE.split("[[flow]]").next().expect("some").to_owned()),
        ("vary leads nowhere", vary("swich.s.queue.limit", "[1]")),
        ("vary leads to no node", vary("switch.west.queue.limit", "[1]")),
        ("vary leads to no position", vary("link.7.rate", "[\"1G\"]")),
        ("vary of a renamed key", vary("link.0.back.rate", "[\"1G\"]")),
        ("vary leads to no key", vary("link.*.rat", "[\"1G\"]")),
        ("vary with one bad value of three", vary("link.0.rate", "[\"1G\", \"10 Gs\", \"2G\"]")),
        ("vary with one value that is refused", vary("link.0.rate", "[\"1G\", 0]")),
        ("vary without values", vary("link.0.rate", "[]")),
        ("vary of the seed", vary("seed", "[1, 2]")),
        ("a figure of no flow", figure("unit = \"Gb/s\"\nflow = \"bulk\"")),
        ("a figure in another unit", figure("unit = \"MB\"")),
        ("a figure in an unknown unit", figure("unit = \"Gbps\"")),
        ("a figure with an unknown key", figure("unit = \"Gb/s\"\nreasn = \"CPU\"")),
        ("a figure of a key that is not varied", figure("unit = \"Gb/s\"\ncell = { bufer = \"1MB\" }")),
        (
            "a figure of a scenario that varies nothing",
            figure("unit = \"Gb/s\"\ncell = { buffer = \"1MB\" }").split("[[vary]]").next().expect("some").to_owned(),
        ),
        (
            "a figure that is difference and ratio",
            figure("unit = \"ratio\"\nminus = { buffer = \"1MB\" }\nover = { buffer = \"1MB\" }"),
        ),
        ("a figure at no time", figure("unit = \"Gb/s\"\nfrom_s = 3\nuntil_s = 2")),
        ("a chart over time of what has none", format!("charts = [{{ figure = \"rtt\", over = \"time\" }}]\n{BASE}")),
        ("a chart of the balance", format!("charts = [{{ figure = \"balance\" }}]\n{BASE}")),
        ("too many cells", format!("repeats = 10001\n{BASE}")),
    ]
}

#[test]
fn problems_are_those_of_the_golden_file() {
    let mut messages = String::new();
    for (what, text) in bad() {
        let problems = load(&text).map(|_| ()).expect_err(what).named("scenario.toml");
        let _ = write!(messages, "## {what}\n{problems}\n\n");
    }
    landspeed_testkit::golden::same("lab-scenario-errors.txt", &messages);
}

#[test]
fn warnings_do_not_prevent_a_run() {
    for (code, text) in [
        ("jitter-reorders", link("jitter = { spread = \"1ms\" }")),
        ("host-queue-small", with("[host.a]", "[host.a]\nqdisc = { kind = \"pfifo\", packets = 5 }")),
        ("buffers-below-bdp", with("[host.b]", "[host.b]\nbuffers = \"stock\"")),
        ("buffers-below-bdp", plus("window = \"1MiB\"")),
        ("udp-fragments", plus("protocol = \"udp\"\nrate = \"1G\"\nlen = 8972")),
        ("udp-above-path", plus("protocol = \"udp\"\nrate = \"10G\"")),
        ("sysctl-shared", with("[host.a]", "[host.a]\nsysctl.\"net.ipv4.tcp_mem\" = \"1 2 3\"")),
        ("congestion-unknown", with("[host.a]", "[host.a]\ncongestion = \"cubik\"")),
        (
            "netem-on-host",
            with("[host.a]", "[host.a]\nqdisc = { kind = \"netem\", delay = \"25ms\", loss = \"1%\" }"),
        ),
        ("ecn-unused", queue("{ kind = \"fq_codel\", ecn = true }")),
        ("coarse-sample", format!("sample = \"2s\"\n{BASE}")),
        ("memory-small", format!("memory = \"100MiB\"\n{BASE}")),
        ("unused-node", plus("[switch.t]")),
        ("pace-above-path", plus("pace = \"20G\"")),
    ] {
        let loaded = load(&text).unwrap_or_else(|problems| panic!("{code}: {problems}"));
        let codes: Vec<&str> = loaded.warnings.iter().map(|w| w.code.as_str()).collect();
        assert_eq!(codes, [code], "{:?}", loaded.warnings);
    }
    let quiet = load(BASE).unwrap_or_else(|problems| panic!("{problems}"));
    assert_eq!(quiet.warnings, []);
}

/// Returns the warnings about two senders, where the first sender's link has the rate `own` and the port that
/// they share the rate `port`.
fn two_senders(own: &str, port: &str) -> Vec<String> {
    let text = format!(
        "name = \"two senders\"\n[host.a]\n[host.b]\n[host.x]\n[switch.s]\n\
         [[link]]\nbetween = [\"a\", \"s\"]\nrate = \"{own}\"\n[[link]]\nbetween = [\"x\", \"s\"]\nrate = \"100G\"\n\
         [[link]]\nbetween = [\"s\", \"b\"]\nrate = \"{port}\"\ndelay = \"5ms\"\n\
         [[flow]]\nfrom = \"a\"\nto = \"b\"\n[[flow]]\nfrom = \"x\"\nto = \"b\"\nprotocol = \"udp\"\nrate = \"2G\"\n"
    );
    let loaded = load(&text).unwrap_or_else(|problems| panic!("{problems}"));
    loaded.warnings.into_iter().filter(|warning| warning.code == "same-rate-link").map(|w| w.message).collect()
}

#[test]
fn a_sender_link_at_port_rate_causes_a_warning() {
    for own in ["10G", "9.98G", "10.02G"] {
        let said = two_senders(own, "10G");
        assert_eq!(said.len(), 1, "{own}: {said:?}");
        assert!(said[0].starts_with("link.0.rate: the sender's link (link.0) has the rate of the port from s to b"));
    }
    for (own, port) in [("40G", "10G"), ("100G", "9.97G"), ("10G", "40G")] {
        assert_eq!(two_senders(own, port), [""; 0], "{own} into {port}");
    }
    // No other flow uses the port, so nothing competes for a slot.
    let alone = load(BASE).unwrap_or_else(|problems| panic!("{problems}"));
    assert_eq!(alone.warnings, []);
}
