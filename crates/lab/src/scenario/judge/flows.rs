//! Flows: endpoints, settings that do not apply to their protocol, ranges, and limits of the path.

use std::collections::BTreeMap;

use landspeed_units::{Bytes, Nanos};

use super::links::gigabits;
use super::{hosts, sections};
use crate::scenario::judgement::Judgement;
use crate::scenario::paths::{Paths, Route};
use crate::scenario::{BufferPolicy, Buffers, Flow, FlowProtocol, Scenario};
use landspeed_model::Protocol;
use landspeed_problems::{Problem, suggest_or_list};
use landspeed_settings::{MAX_BUFFERS, MAX_TIME_NS, MAX_UDP_PAYLOAD, Reason, Setting};

const MAX_FLOWS: usize = 128;
/// Header by which losses are counted, bytes (crates/flow/src/udp/header.rs, which the lab does not depend on).
const UDP_HEADER: u64 = 24;
/// Default maximum of `tcp_rmem`, bytes: it is the receiver's buffer that limits.
const DEFAULT_MAX_WINDOW: u64 = 6_291_456;

pub(super) fn judge(scenario: &Scenario, paths: &Paths, judgement: &mut Judgement) {
    if scenario.flow.len() > MAX_FLOWS {
        judgement.refuse(
            "flow",
            format!(
                "{} flows are too many, the maximum is {MAX_FLOWS}; use `streams` for parallel connections",
                scenario.flow.len()
            ),
        );
    }
    let mut names: BTreeMap<&str, usize> = BTreeMap::new();
    for (i, flow) in scenario.flow.iter().enumerate() {
        let key = format!("flow.{i}");
        if let Some(name) = &flow.name {
            if name.trim().is_empty() || name.len() > 64 || name.chars().any(char::is_control) {
                judgement.refuse_with(
                    format!("{key}.name"),
                    "invalid flow name",
                    "use 1 to 64 characters on one line",
                );
            } else if let Some(first) = names.insert(name, i) {
                judgement.refuse_with(
                    format!("{key}.name"),
                    format!("flow {first} has the name `{name}`"),
                    "use a different name: results are listed by name",
                );
            }
        }
        let route = ends(&key, flow, scenario, paths, judgement);
        sections::judge(&key, flow, judgement);
        settings(&key, flow, judgement);
        together(&key, flow, scenario, judgement);
        if let Some(route) = route {
            on_path(&key, flow, &route, scenario, judgement);
        }
    }
}

pub(super) fn protocol(flow: &Flow) -> FlowProtocol {
    flow.protocol.unwrap_or(FlowProtocol::Tcp)
}

/// Returns the senders and receivers of a flow, by direction.
pub(super) fn flow_directions(flow: &Flow) -> Vec<(&str, &str)> {
    match (flow.bidir, flow.reverse) {
        (true, _) => vec![(&flow.from, &flow.to), (&flow.to, &flow.from)],
        (_, true) => vec![(&flow.to, &flow.from)],
        _ => vec![(&flow.from, &flow.to)],
    }
}

fn ends<'a>(
    key: &str,
    flow: &'a Flow,
    scenario: &Scenario,
    paths: &Paths<'a>,
    judgement: &mut Judgement,
) -> Option<Route<'a>> {
    let mut sound = true;
    for (end, name) in [("from", &flow.from), ("to", &flow.to)] {
        if scenario.host.contains_key(name) {
            continue;
        }
        sound = false;
        let key = format!("{key}.{end}");
        if scenario.switch.contains_key(name) {
            judgement.refuse_with(key, format!("`{name}` is a switch"), "use a host: flows run between hosts");
        } else {
            let known: Vec<&str> = scenario.host.keys().map(String::as_str).collect();
            judgement
                .add(Problem::new(key, format!("no such host: `{name}`")).maybe_hint(suggest_or_list(name, known)));
        }
    }
    if sound && flow.from == flow.to {
        judgement.refuse_with(
            format!("{key}.to"),
            format!("source and destination are both `{}`", flow.to),
            "name two different hosts",
        );
        return None;
    }
    if !sound {
        return None;
    }
    let route = paths.route(&flow.from, &flow.to);
    let broken = judgement.problems.iter().any(|problem| problem.key.starts_with("link."));
    if route.is_none() && !broken {
        judgement.refuse_with(
            format!("{key}.to"),
            format!("no path from `{}` to `{}`", flow.from, flow.to),
            "add the missing link",
        );
    }
    route
}

/// Judges each setting by its declaration.
fn settings(key: &str, flow: &Flow, judgement: &mut Judgement) {
    for landspeed_settings::Problem { setting, reason } in landspeed_settings::problems(&flow.parameters()) {
        let name = scenario_key(setting, flow);
        let key = format!("{key}.{name}");
        match reason {
            Reason::Range => judgement.refuse_with(key, "out of range", format!("use {}", setting.range.text())),
            Reason::Protocol(_) => {
                let hint = match setting.field {
                    "rate_bps" => "use `requests-per-s`".to_owned(),
                    "write_bytes" => "use `request` and `response`".to_owned(),
                    "direction" => "request/response always uses both directions".to_owned(),
                    _ => {
                        let names: Vec<&str> = setting.protocols.iter().map(|&p| kind_name(p)).collect();
                        format!("use it with {}", names.join(" and "))
                    }
                };
                let message = format!("`{name}` does not apply to {}", protocol_name(protocol(flow)));
                judgement.refuse_with(key, message, hint);
            }
            Reason::Needs(other) => judgement.refuse_with(
                key,
                format!("`{name}` has no effect without `{other}`"),
                format!("add `{other}`, or remove `{name}`"),
            ),
        }
    }
}

/// Key of a setting in a flow of a scenario.
fn scenario_key(setting: &Setting, flow: &Flow) -> &'static str {
    match setting.field {
        "streams" => "streams",
        "pace_scope" => "pace-scope",
        "rr.rate_per_s" => "requests-per-s",
        "rr.sizes" if flow.request.is_none() => "response",
        "rr.sizes" => "request",
        _ => setting.name,
    }
}

/// Judges what several settings limit together, and the settings of the lab alone.
fn together(key: &str, flow: &Flow, scenario: &Scenario, judgement: &mut Judgement) {
    let at = |name: &str| format!("{key}.{name}");
    if protocol(flow) == FlowProtocol::Udp && flow.rate.is_none() {
        let hint = "set one, such as rate = \"2G\": UDP has no congestion control";
        judgement.refuse_with(key, "a UDP flow needs a rate", hint);
    }
    if flow.reverse && flow.bidir {
        judgement.refuse_with(
            at("reverse"),
            "`reverse` and `bidir` exclude each other",
            "remove one: with `bidir`, both hosts send",
        );
    }
    if flow.time.is_some() && flow.bytes.is_some() {
        judgement.warn(
            "time-and-bytes",
            key,
            "`time` and `bytes` are both set: the flow ends at whichever comes first",
        );
    }
    let largest = if protocol(flow) == FlowProtocol::UdpRr { MAX_UDP_PAYLOAD } else { 1 << 20 };
    for (name, size) in [("request", flow.request), ("response", flow.response)] {
        if size.is_some_and(|size| !(1..=largest).contains(&size)) {
            let range = "use 1 byte to 1MiB over TCP, 1 to 65507 bytes over UDP";
            judgement.refuse_with(at(name), "out of range", range);
        }
    }
    if let Some(len) = flow.len.map(|len| len.0.get()) {
        let streams = u64::from(flow.streams.unwrap_or(1)) * if flow.bidir { 2 } else { 1 };
        if protocol(flow) == FlowProtocol::Udp && len < UDP_HEADER {
            let range = "use 24 bytes (the sequence header) to 65507 bytes of UDP payload";
            judgement.refuse_with(at("len"), "out of range", range);
        } else if len.saturating_mul(streams) > MAX_BUFFERS {
            let range = "use less: `len` times `streams` is at most 1GiB over both directions";
            judgement.refuse_with(at("len"), "out of range", range);
        }
    }
    judgement.time(at("start"), flow.start, 0, MAX_TIME_NS, "use at most 30 days");
    judgement.time(at("start-spread"), flow.start_spread, 0, MAX_TIME_NS, "use at most 30 days");
    if let Some(interval) = flow.interval
        && flow.bytes.is_none()
        && interval > flow.time.unwrap_or(scenario.time)
    {
        judgement.warn("long-interval", &at("interval"), format!("{interval} is longer than the flow itself"));
    }
    if let Some(name) = &flow.congestion {
        hosts::congestion(&at("congestion"), name, judgement);
    }
}

fn protocol_name(protocol: FlowProtocol) -> &'static str {
    match protocol {
        FlowProtocol::Tcp => kind_name(Protocol::Tcp),
        FlowProtocol::Udp => kind_name(Protocol::Udp),
        FlowProtocol::Qualify => "qualify",
        FlowProtocol::TcpRr => kind_name(Protocol::TcpRr),
        FlowProtocol::UdpRr => kind_name(Protocol::UdpRr),
    }
}

/// Name of a protocol in scenarios.
fn kind_name(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Tcp => "tcp",
        Protocol::Udp => "udp",
        Protocol::TcpRr => "tcp-rr",
        Protocol::UdpRr => "udp-rr",
    }
}

fn on_path(key: &str, flow: &Flow, route: &Route, scenario: &Scenario, judgement: &mut Judgement) {
    let mtu = route.mtu();
    if let Some(hop) = route.hops.iter().find(|hop| hop.mtu != route.hops[0].mtu) {
        let first = route.hops[0];
        let reason = format!(
            "use one MTU on a path: switches drop frames that are too long for the next link, without an ICMP message; from {} to {}, \
             link {} has {}",
            flow.from, flow.to, first.link, first.mtu
        );
        judgement.refuse_with(
            format!("link.{}.mtu", hop.link),
            format!("MTU {} differs from that of the previous links", hop.mtu),
            reason,
        );
    }
    if flow.ipv6 && mtu < 1280 {
        judgement.refuse_with(
            format!("{key}.ipv6"),
            format!("IPv6 needs an MTU of at least 1280, and link {} has {mtu}", bottleneck(route)),
            "raise the MTU, or remove `ipv6` (RFC 8200, section 5)",
        );
    }
    let headers = if flow.ipv6 { 48 } else { 28 };
    if protocol(flow) == FlowProtocol::Udp
        && let Some(len) = flow.len.map(|l| l.0.get())
        && len + headers > u64::from(mtu)
    {
        let fits = u64::from(mtu).saturating_sub(headers);
        judgement.warn(
            "udp-fragments",
            &format!("{key}.len"),
            format!("{len} bytes exceed one packet ({fits} bytes) and are fragmented: one lost fragment loses the datagram"),
        );
    }
    if let Some(mss) = flow.mss
        && u64::from(mss) + headers + 12 - 20 > u64::from(mtu)
    {
        judgement.warn(
            "mss-above-mtu",
            &format!("{key}.mss"),
            format!("{mss} is too large for the MTU of {mtu}, and has no effect"),
        );
    }
    let streams = f64::from(flow.streams.unwrap_or(1));
    if let Some(pace) = flow.pace {
        let scope = if flow.pace_scope == Some(landspeed_model::PaceScope::Total) { 1.0 } else { streams };
        if pace.0.bps() as f64 * scope > route.rate_bps() as f64 {
            let message = format!(
                "{} in total is above the path's {}",
                gigabits(pace.0.bps() as f64 * scope),
                gigabits(route.rate_bps() as f64)
            );
            judgement.warn("pace-above-path", &format!("{key}.pace"), message);
        }
    }
    if protocol(flow) == FlowProtocol::Qualify {
        sections::judge_path(key, flow, route, judgement);
    }
    if protocol(flow) == FlowProtocol::Tcp {
        windows(key, flow, route, scenario, judgement);
    }
}

fn bottleneck(route: &Route) -> usize {
    route.hops.iter().min_by_key(|hop| hop.mtu).map_or(0, |hop| hop.link)
}

/// Warns if a buffer is smaller than the BDP: a stream moves about one buffer in an RTT.
fn windows(key: &str, flow: &Flow, route: &Route, scenario: &Scenario, judgement: &mut Judgement) {
    let rtt = route.rtt_ns();
    let bdp = route.bdp_bytes();
    let per_stream = bdp / u64::from(flow.streams.unwrap_or(1).max(1));
    let receiver = if flow.reverse { &flow.from } else { &flow.to };
    let buffers =
        |name: &String| scenario.host.get(name).and_then(|h| h.buffers.as_ref()).or(scenario.hosts.buffers.as_ref());
    let (at, size) = match (flow.window, buffers(receiver)) {
        (Some(window), _) => (format!("{key}.window"), window.0.get()),
        (None, Some(Buffers::UpTo(size))) => (key.to_owned(), size.0.get()),
        (None, Some(Buffers::Named(BufferPolicy::Stock))) => (key.to_owned(), DEFAULT_MAX_WINDOW),
        _ => return,
    };
    if rtt > 0 && size < per_stream {
        let cap = |share: f64| gigabits(size as f64 * share * 8e9 / rtt as f64);
        let gets = if flow.window.is_some() {
            // SO_RCVBUF is twice the size; half to two thirds of it hold data.
            format!("about {} to {}", cap(1.0), cap(4.0 / 3.0))
        } else {
            format!("at most {}", cap(1.0))
        };
        let message = format!(
            "buffers of {} are smaller than a stream's share of the BDP ({}): with an RTT of {} a stream gets {gets}",
            Bytes::new(size),
            Bytes::new(per_stream),
            Nanos::new(rtt)
        );
        judgement.warn("buffers-below-bdp", &at, message);
    }
}

/// Warns if UDP flows together offer more than a link carries.
pub(super) fn load(scenario: &Scenario, paths: &Paths, judgement: &mut Judgement) {
    // Start, end (nanoseconds) and bits/s of every flow over each direction of a link.
    type Offered = Vec<(u64, u64, f64)>;
    let mut offered: BTreeMap<(usize, bool), Offered> = BTreeMap::new();
    for flow in scenario.flow.iter().filter(|flow| protocol(flow) == FlowProtocol::Udp) {
        let (Some(rate), start) = (flow.rate, flow.start.map_or(0, |t| t.0.get())) else { continue };
        let end = start
            .saturating_add(flow.time.unwrap_or(scenario.time).0.get())
            .saturating_add(flow.omit.map_or(0, |t| t.0.get()));
        for (from, to) in flow_directions(flow) {
            let Some(route) = paths.route(from, to) else { continue };
            let headers = if flow.ipv6 { 48 } else { 28 };
            let payload = flow.len.map_or(u64::from(route.mtu()).saturating_sub(headers), |l| l.0.get()).max(1);
            for hop in &route.hops {
                let framed = (payload + headers + hop.overhead) as f64 / payload as f64;
                let bps = rate.0.bps() as f64 * f64::from(flow.streams.unwrap_or(1)) * framed;
                offered.entry((hop.link, hop.forward)).or_default().push((start, end, bps));
            }
        }
    }
    // Packets lost on one link do not reach the next, so only the worst link is reported.
    let mut worst: Option<(f64, String, String)> = None;
    for ((link, forward), flows) in offered {
        let at_once =
            |moment: u64| flows.iter().filter(|(s, e, _)| (*s..*e).contains(&moment)).map(|f| f.2).sum::<f64>();
        let most = flows.iter().map(|(start, ..)| at_once(*start)).fold(0.0, f64::max);
        let [a, b] = &scenario.link[link].between;
        let (from, to) = if forward { (a, b) } else { (b, a) };
        let Some(hop) = paths.neighbours(from).find(|hop| hop.into == to) else { continue };
        let excess = most / hop.rate_bps as f64;
        if excess > worst.as_ref().map_or(1.0, |worst| worst.0) {
            let rate = gigabits(hop.rate_bps as f64);
            let message = format!(
                "UDP flows send {} with headers from {from} to {to}, which carries {rate}: the excess is lost",
                gigabits(most)
            );
            worst = Some((excess, format!("link.{link}"), message));
        }
    }
    if let Some((_, key, message)) = worst {
        judgement.warn("udp-above-path", &key, message);
    }
}
