//! Cases on this machine, in families; each draws its parameters.

use super::super::draw::Draw;

/// A process's share of the machine, apart from the busy loops beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Contention {
    /// Every process may use all cores.
    None,
    /// A control group with a CPU quota, per cent of one core, around one end.
    Quota(End, u32),
    /// One core for both ends.
    OneCore,
    /// A busy loop of real-time priority on the core of one end.
    RealTime(End),
}

/// End of a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The client, which sends.
    Sender,
    /// The server, which receives.
    Receiver,
}

/// What happens in the middle of a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Midway {
    /// The test runs undisturbed.
    Nothing,
    /// The router drops every packet.
    PathDown,
    /// The server is killed.
    ServerKilled,
}

/// A case with its known cause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setup {
    /// What limits the flow, as the JSON name of a cause.
    pub truth: &'static str,
    /// Other causes that an expert could name with equal justification.
    pub accept: &'static [&'static str],
    /// Arguments of `run`, separated by blanks.
    pub arguments: String,
    /// Commands in the client's namespace. `OUT` is its interface.
    pub client: Vec<String>,
    /// Commands in the router's namespace. `OUT` is its interface towards the server.
    pub router: Vec<String>,
    /// Commands in the server's namespace.
    pub server: Vec<String>,
    /// Rate at which the cause limits payload, b/s. A flow that stays far below it is limited by something else.
    pub rate_bps: Option<u64>,
    /// Contention for the CPU.
    pub contention: Contention,
    /// Event in the middle of the test.
    pub midway: Midway,
}

impl Setup {
    fn new(truth: &'static str, accept: &'static [&'static str], arguments: impl Into<String>) -> Self {
        Self {
            truth,
            accept,
            arguments: arguments.into(),
            client: Vec::new(),
            router: Vec::new(),
            server: Vec::new(),
            rate_bps: None,
            contention: Contention::None,
            midway: Midway::Nothing,
        }
    }

    fn client(mut self, command: impl Into<String>) -> Self {
        self.client.push(command.into());
        self
    }

    fn router(mut self, command: impl Into<String>) -> Self {
        self.router.push(command.into());
        self
    }

    fn server(mut self, command: impl Into<String>) -> Self {
        self.server.push(command.into());
        self
    }

    fn rate(mut self, mbps: u32) -> Self {
        self.rate_bps = Some(u64::from(mbps) * 1_000_000);
        self
    }

    fn contention(mut self, contention: Contention) -> Self {
        self.contention = contention;
        self
    }

    fn midway(mut self, midway: Midway) -> Self {
        self.midway = midway;
        self
    }
}

/// Generates a case from draws and a congestion control.
type Family = fn(&mut Draw, &str) -> Setup;

/// Congestion controls that a family uses in turn.
type Controls = &'static [&'static str];

const ALL_CONTROLS: Controls = &["cubic", "bbr", "reno"];
/// Congestion controls that reduce cwnd on every loss.
const LOSS_BASED: Controls = &["cubic", "reno"];
/// For UDP.
const NO_CONTROL: Controls = &[""];

/// The CPUs of the two hosts, which are one machine.
const CPUS: &[&str] = &["receiver-cpu", "cpu-quota"];
const CPUS_OR_BUFFER: &[&str] = &["sender-cpu", "receiver-cpu"];
const SENDER_LIMITS: &[&str] = &["receiver-cpu", "send-buffer"];
/// Causes that a full path with a deep queue may also be called.
const FULL_PATH: &[&str] = &["network-congestion"];
const SMALL_QUEUE: &[&str] = &["network-congestion", "network-path", "policer"];
const RATE_LIMITER: &[&str] = &["shallow-buffer", "network-loss"];
const OWN_LIMITER: &[&str] = &["local-qdisc", "policer"];
const RANDOM_LOSS: &[&str] = &[];
const HOST_FILTER: &[&str] = &["receiver-host-drops"];

/// All families, by name.
pub const ALL: &[(&str, Family, Controls)] = &[
    ("veth", |draw, _| Setup::new("sender-cpu", CPUS, draw.pick(&["", "-P 2", "-P 4", "--bidir"])), ALL_CONTROLS),
    ("veth-discard", |_, _| Setup::new("sender-cpu", CPUS, "--receive discard"), ALL_CONTROLS),
    ("own-tbf", own_tbf, ALL_CONTROLS),
    ("own-htb", |draw, _| own_htb(draw, ""), ALL_CONTROLS),
    ("own-htb-no-tso", |draw, _| own_htb(draw, "").client("ethtool -K OUT tso off gso off"), ALL_CONTROLS),
    ("own-htb-class", own_htb_class, ALL_CONTROLS),
    ("own-bfifo", |draw, _| own_queue(draw, "bfifo", [100_000, 200_000, 400_000]), LOSS_BASED),
    ("own-pfifo", |draw, _| own_queue(draw, "pfifo", [5, 10, 50]), LOSS_BASED),
    ("own-policer", own_policer, LOSS_BASED),
    ("router-tbf", router_tbf, ALL_CONTROLS),
    ("router-htb", router_htb, ALL_CONTROLS),
    ("router-bfifo", |draw, _| router_queue(draw, "bfifo", [80_000, 150_000, 300_000]), LOSS_BASED),
    ("router-pfifo", |draw, _| router_queue(draw, "pfifo", [3, 10, 30]), LOSS_BASED),
    ("router-policer", router_policer, LOSS_BASED),
    ("router-one-in-n", |draw, _| forward_drop(draw, "inc"), LOSS_BASED),
    ("router-random", |draw, _| forward_drop(draw, "random"), LOSS_BASED),
    ("server-input", server_input, LOSS_BASED),
    ("client-output", client_output, LOSS_BASED),
    ("slow-reader", slow_reader, ALL_CONTROLS),
    ("slow-reader-window", |draw, control| with(slow_reader(draw, control), " --window 128K"), ALL_CONTROLS),
    ("application", application, ALL_CONTROLS),
    ("pacing", pacing, ALL_CONTROLS),
    ("round-trip", |_, _| Setup::new("round-trip", &["sender-cpu", "receiver-cpu"], "--rr"), ALL_CONTROLS),
    ("window", window, ALL_CONTROLS),
    ("sender-quota", |draw, _| quota(draw, End::Sender), ALL_CONTROLS),
    ("receiver-quota", |draw, _| quota(draw, End::Receiver), ALL_CONTROLS),
    ("one-core", |_, _| Setup::new("sender-cpu", CPUS, "").contention(Contention::OneCore), ALL_CONTROLS),
    ("sender-real-time", |_, _| real_time(End::Sender), ALL_CONTROLS),
    ("receiver-real-time", |_, _| real_time(End::Receiver), ALL_CONTROLS),
    ("path-down", |_, _| Setup::new("path-down", &[], "").midway(Midway::PathDown), ALL_CONTROLS),
    ("server-killed", |_, _| killed(""), ALL_CONTROLS),
    ("udp-server-killed", |_, _| killed("-u -b 100M"), NO_CONTROL),
    ("udp-flat-out", |_, _| udp("sender-cpu", UDP_HOSTS, "-b unlimited"), NO_CONTROL),
    ("udp-small", |_, _| udp("sender-cpu", UDP_HOSTS, "-b unlimited -l 64"), NO_CONTROL),
    ("udp-paced", udp_paced, NO_CONTROL),
    ("udp-buffer", udp_buffer, NO_CONTROL),
    ("udp-own-tbf", |draw, _| udp_over(draw, "local-qdisc", &[], true), NO_CONTROL),
    ("udp-router-tbf", |draw, _| udp_over(draw, "network-congestion", UDP_FULL_PATH, false), NO_CONTROL),
    ("udp-router-random", udp_random, NO_CONTROL),
    ("udp-server-input", udp_input, NO_CONTROL),
];

/// Without the server's report a cause can be named only from the client's readings.
fn killed(arguments: &str) -> Setup {
    let accept = &["path-down", "sender-cpu", "receiver-cpu", "application"];
    Setup::new("undetermined", accept, arguments).midway(Midway::ServerKilled)
}

const UDP_HOSTS: &[&str] = &["receiver-cpu", "receive-buffer", "application"];
const UDP_FULL_PATH: &[&str] = &["network-path", "shallow-buffer", "policer", "network-loss"];

fn with(mut setup: Setup, arguments: &str) -> Setup {
    setup.arguments.push_str(arguments);
    setup
}

fn mbps(draw: &mut Draw, low: f64, high: f64) -> u32 {
    draw.within(low.ln(), high.ln()).exp().round() as u32
}

fn streams(draw: &mut Draw) -> &'static str {
    draw.pick(&["", "", "-P 2", "-P 4"])
}

fn own_tbf(draw: &mut Draw, _: &str) -> Setup {
    let rate = mbps(draw, 20.0, 800.0);
    let (burst, latency) = (draw.pick(&[32, 64, 128]), draw.pick(&[5, 20, 50]));
    Setup::new("local-qdisc", &[], streams(draw))
        .rate(rate)
        .client(format!("tc qdisc add dev OUT root tbf rate {rate}mbit burst {burst}kb latency {latency}ms"))
}

fn htb(interface: &str, rate: u32) -> String {
    format!(
        "tc qdisc add dev {interface} root handle 1: htb default 1 && tc class add dev {interface} parent 1: classid 1:1 \
         htb rate {rate}mbit"
    )
}

fn own_htb(draw: &mut Draw, arguments: &str) -> Setup {
    let rate = mbps(draw, 20.0, 800.0);
    let arguments = if arguments.is_empty() { streams(draw) } else { arguments };
    Setup::new("local-qdisc", &[], arguments).rate(rate).client(htb("OUT", rate))
}

/// A slow class carries the flow; the default class is fast.
fn own_htb_class(draw: &mut Draw, _: &str) -> Setup {
    let rate = mbps(draw, 20.0, 800.0);
    Setup::new("local-qdisc", &[], streams(draw)).rate(rate).client(format!(
        "tc qdisc add dev OUT root handle 1: htb default 2 && tc class add dev OUT parent 1: classid 1:1 htb rate \
         {rate}mbit && tc class add dev OUT parent 1: classid 1:2 htb rate 40gbit && nft 'table ip ls {{ chain out {{ \
         type filter hook postrouting priority 0; tcp dport 5210 meta priority set 0x10001; }}; }}'"
    ))
}

/// A queue limit, by bytes (`bfifo`) or packets (`pfifo`), below a shaper.
fn shaped_queue(rate: u32, kind: &str, limit: u32) -> String {
    format!("{} && tc qdisc add dev OUT parent 1:1 {kind} limit {limit}", htb("OUT", rate))
}

/// A queue limit below a shaper on the own interface.
fn own_queue(draw: &mut Draw, kind: &str, limits: [u32; 3]) -> Setup {
    let rate = mbps(draw, 20.0, 800.0);
    let limit = draw.pick(&limits);
    Setup::new("local-qdisc", &[], streams(draw)).rate(rate).client(shaped_queue(rate, kind, limit))
}

/// A token bucket without a queue, as a rule of the packet filter at `hook`.
fn police(hook: &str, rate: u32, burst_kb: u32) -> String {
    format!(
        "nft 'table ip ls {{ chain police {{ type filter hook {hook} priority 0; tcp dport 5210 limit rate over {} \
         kbytes/second burst {burst_kb} kbytes drop; }}; }}'",
        rate * 1000 / 8
    )
}

fn own_policer(draw: &mut Draw, _: &str) -> Setup {
    let (rate, burst) = (mbps(draw, 20.0, 400.0), draw.pick(&[100, 300]));
    Setup::new("firewall", OWN_LIMITER, streams(draw)).client(police("postrouting", rate, burst))
}

fn router_tbf(draw: &mut Draw, _: &str) -> Setup {
    let rate = mbps(draw, 20.0, 800.0);
    let latency = draw.pick(&[10, 30, 100]);
    Setup::new("network-path", FULL_PATH, streams(draw))
        .rate(rate)
        .router(format!("tc qdisc add dev OUT root tbf rate {rate}mbit burst 128kb latency {latency}ms"))
}

fn router_htb(draw: &mut Draw, _: &str) -> Setup {
    let rate = mbps(draw, 20.0, 800.0);
    Setup::new("network-path", FULL_PATH, streams(draw)).rate(rate).router(htb("OUT", rate))
}

/// A queue limit below a shaper on the router.
fn router_queue(draw: &mut Draw, kind: &str, limits: [u32; 3]) -> Setup {
    let rate = mbps(draw, 50.0, 800.0);
    let limit = draw.pick(&limits);
    Setup::new("shallow-buffer", SMALL_QUEUE, streams(draw)).rate(rate).router(shaped_queue(rate, kind, limit))
}

fn router_policer(draw: &mut Draw, _: &str) -> Setup {
    let (rate, burst) = (mbps(draw, 20.0, 400.0), draw.pick(&[64, 128, 300]));
    Setup::new("policer", RATE_LIMITER, streams(draw)).router(police("forward", rate, burst))
}

/// Drops one of `n` packets that match, in order (`inc`) or at random.
fn drop_one(hook: &str, what: &str, order: &str, n: u32) -> String {
    format!(
        "nft 'table ip ls {{ chain lose {{ type filter hook {hook} priority 0; {what} numgen {order} mod {n} 0 drop; }}; }}'"
    )
}

fn forward_drop(draw: &mut Draw, order: &str) -> Setup {
    let n = draw.pick(&[50, 100, 300, 1000]);
    Setup::new("network-loss", RANDOM_LOSS, streams(draw)).router(drop_one("forward", "tcp dport 5210", order, n))
}

fn server_input(draw: &mut Draw, _: &str) -> Setup {
    let (order, n) = (draw.pick(&["inc", "random"]), draw.pick(&[50, 100, 300]));
    Setup::new("firewall", HOST_FILTER, streams(draw)).server(drop_one("input", "tcp dport 5210", order, n))
}

/// TCP sends again at once what its own host's filter drops: one packet in two or three slows a flow down.
fn client_output(draw: &mut Draw, _: &str) -> Setup {
    let (order, n) = (draw.pick(&["inc", "random"]), draw.pick(&[2, 3, 10]));
    Setup::new("firewall", CPUS_OR_BUFFER, streams(draw)).client(drop_one("output", "tcp dport 5210", order, n))
}

fn slow_reader(draw: &mut Draw, _: &str) -> Setup {
    let rate = mbps(draw, 20.0, 600.0);
    Setup::new("slow-reader", &[], format!("--read-rate {rate}M")).rate(rate)
}

fn application(draw: &mut Draw, _: &str) -> Setup {
    let rate = mbps(draw, 20.0, 600.0);
    Setup::new("application", &[], format!("--rate {rate}M")).rate(rate)
}

fn pacing(draw: &mut Draw, _: &str) -> Setup {
    let rate = mbps(draw, 20.0, 600.0);
    Setup::new("pacing", &[], format!("--pace {rate}M")).rate(rate)
}

/// Windows of a few segments on a path of tens of microseconds.
fn window(draw: &mut Draw, _: &str) -> Setup {
    let window = draw.pick(&["8K", "16K", "32K"]);
    Setup::new("receiver-window", &["send-buffer", "sender-cpu", "receiver-cpu"], format!("--window {window}"))
}

fn quota(draw: &mut Draw, end: End) -> Setup {
    let percent = draw.pick(&[10, 20, 40]);
    let (truth, accept): (_, &[&str]) = match end {
        End::Sender => ("sender-cpu", &["cpu-quota"]),
        End::Receiver => ("receiver-cpu", &["cpu-quota"]),
    };
    Setup::new(truth, accept, "").contention(Contention::Quota(end, percent))
}

fn real_time(end: End) -> Setup {
    let (truth, accept): (_, &[&str]) = match end {
        End::Sender => ("sender-cpu", SENDER_LIMITS),
        End::Receiver => ("receiver-cpu", &["sender-cpu"]),
    };
    Setup::new(truth, accept, "").contention(Contention::RealTime(end))
}

fn udp(truth: &'static str, accept: &'static [&'static str], arguments: &str) -> Setup {
    Setup::new(truth, accept, format!("-u {arguments}"))
}

fn udp_paced(draw: &mut Draw, _: &str) -> Setup {
    let rate = mbps(draw, 20.0, 500.0);
    udp("application", &["pacing"], &format!("-b {rate}M")).rate(rate)
}

/// Bursts larger than the receive buffer.
fn udp_buffer(draw: &mut Draw, _: &str) -> Setup {
    let rate = mbps(draw, 100.0, 300.0);
    udp("receive-buffer", &["receiver-cpu"], &format!("-b {rate}M -l 1448 --burst 64 -w 32K"))
}

fn udp_over(draw: &mut Draw, truth: &'static str, accept: &'static [&'static str], is_own: bool) -> Setup {
    let rate = mbps(draw, 20.0, 200.0);
    let shaper = format!("tc qdisc add dev OUT root tbf rate {rate}mbit burst 32kb limit 100kb");
    let setup = udp(truth, accept, &format!("-b {}M", rate * 2)).rate(rate);
    if is_own { setup.client(shaper) } else { setup.router(shaper) }
}

fn udp_random(draw: &mut Draw, _: &str) -> Setup {
    let (rate, n) = (mbps(draw, 20.0, 200.0), draw.pick(&[20, 50, 100]));
    udp("network-loss", &[], &format!("-b {rate}M")).router(drop_one("forward", "udp dport 5210", "random", n))
}

fn udp_input(draw: &mut Draw, _: &str) -> Setup {
    let (rate, n) = (mbps(draw, 20.0, 200.0), draw.pick(&[20, 50, 100]));
    udp("firewall", HOST_FILTER, &format!("-b {rate}M")).server(drop_one("input", "udp dport 5210", "random", n))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn families_have_distinct_names_and_known_causes() {
        let names: BTreeSet<_> = ALL.iter().map(|(name, ..)| name).collect();
        assert_eq!(names.len(), ALL.len());
        for (name, family, _) in ALL {
            let setup = family(&mut Draw::new(1, name), "cubic");
            for cause in setup.accept.iter().chain([&setup.truth]) {
                assert!(landspeed_model::Cause::from_name(cause).is_some(), "{name}: {cause}");
            }
            assert!(!setup.accept.contains(&setup.truth), "{name}");
        }
    }
}
