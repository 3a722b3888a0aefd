//! Queueing disciplines: settings that do not apply, and invalid sizes.

use landspeed_units::Bytes;

use crate::scenario::judgement::Judgement;
use crate::scenario::paths::Paths;
use crate::scenario::{
    DEFAULT_MTU, DEFAULT_QUEUE_BYTES, ETHERNET_HEADER, Queue, QueueKind, QueueSettings, Scenario, SysctlValue,
    Written,
};

/// Minimum limit of a host's own queue without a warning, packets: a burst of one segmentation-offload packet at
/// MTU 1500.
const HOST_PACKETS: u32 = 50;
/// Maximum time to drain a full queue without a warning, seconds.
const MAX_DRAIN_S: f64 = 10.0;

/// Position of a queue in the scenario, and the link it feeds.
struct QueueContext {
    key: String,
    host: bool,
    frame: u64,
    rate_bps: u64,
}

pub(super) fn judge(scenario: &Scenario, paths: &Paths, judgement: &mut Judgement) {
    let frame = |node: &str| {
        u64::from(paths.neighbours(node).map(|hop| hop.mtu).max().unwrap_or(DEFAULT_MTU) + ETHERNET_HEADER)
    };
    let rate = |node: &str| paths.neighbours(node).map(|hop| hop.rate_bps).min().unwrap_or(0);
    let largest = scenario.host.keys().map(|name| frame(name)).max().unwrap_or(0);
    let mut queues: Vec<(QueueContext, &Queue)> = Vec::new();
    if let Some(queue) = &scenario.hosts.qdisc {
        queues.push((QueueContext { key: "hosts.qdisc".to_owned(), host: true, frame: largest, rate_bps: 0 }, queue));
    }
    for (name, host) in &scenario.host {
        if let Some(queue) = &host.qdisc {
            queues.push((
                QueueContext {
                    key: format!("host.{name}.qdisc"),
                    host: true,
                    frame: frame(name),
                    rate_bps: rate(name),
                },
                queue,
            ));
        }
    }
    for (name, switch) in &scenario.switch {
        if let Some(queue) = &switch.queue {
            queues.push((
                QueueContext {
                    key: format!("switch.{name}.queue"),
                    host: false,
                    frame: frame(name),
                    rate_bps: rate(name),
                },
                queue,
            ));
        }
        for (port, queue) in &switch.port {
            let Some(hop) = paths.neighbours(name).find(|hop| hop.into == port) else { continue };
            let frame = u64::from(hop.mtu + ETHERNET_HEADER);
            queues.push((
                QueueContext {
                    key: format!("switch.{name}.port.{port}"),
                    host: false,
                    frame,
                    rate_bps: hop.rate_bps,
                },
                queue,
            ));
        }
    }
    let marks = negotiates_ecn(scenario);
    for (at, queue) in queues {
        let settings = match queue {
            Queue::Settings(settings) => settings,
            Queue::Kind(QueueKind::Netem) => {
                let hint = "write { kind = \"netem\", delay = \"25ms\" }; for a path, give the link a `delay`";
                judgement.refuse_with(&at.key, "netem without settings does nothing", hint);
                continue;
            }
            Queue::Kind(_) => continue,
        };
        applicable(&at, settings, judgement);
        sizes(&at, settings, judgement);
        check_netem(&at, settings, judgement);
        thresholds(&at, settings, judgement);
        if settings.ecn == Some(true) && !marks {
            let hint = "`ecn` has no effect: no host sends ECN-capable packets; set the hosts' sysctl \
                        \"net.ipv4.tcp_ecn\" = 1";
            judgement.warn("ecn-unused", &at.key, hint);
        }
    }
}

/// Returns whether some host negotiates ECN when it opens connections.
fn negotiates_ecn(scenario: &Scenario) -> bool {
    let on = |value: &SysctlValue| match value {
        SysctlValue::Number(number) => *number != 0 && *number != 2,
        SysctlValue::Text(text) => !matches!(text.trim(), "0" | "2"),
    };
    let asks =
        |sysctl: &std::collections::BTreeMap<String, SysctlValue>| sysctl.get("net.ipv4.tcp_ecn").is_some_and(on);
    let dctcp = |name: &Option<String>| matches!(name.as_deref(), Some("dctcp" | "prague"));
    let mut hosts = scenario.host.values().chain([&scenario.hosts]);
    hosts.any(|host| asks(&host.sysctl) || dctcp(&host.congestion))
        || scenario.flow.iter().any(|f| dctcp(&f.congestion))
}

fn applicable(at: &QueueContext, settings: &QueueSettings, judgement: &mut Judgement) {
    let (name, known) = (settings.kind.name(), settings.kind.settings());
    for setting in settings.inapplicable() {
        let hint = match (setting, known) {
            (_, []) => format!("{name} has no settings"),
            ("delay" | "loss", _) => "set delay and loss on a link".to_owned(),
            ("limit", _) if known.contains(&"packets") => {
                format!("use `packets`: the keys of {name} are {}", known.join(", "))
            }
            ("packets", _) if known.contains(&"limit") => {
                format!("use `limit`: the keys of {name} are {}", known.join(", "))
            }
            _ => format!("use one of {}", known.join(", ")),
        };
        judgement.refuse_with(format!("{}.{setting}", at.key), format!("`{setting}` does not apply to {name}"), hint);
    }
}

/// Validates netem on a node: refused on switches, where it belongs on a link, and always with a warning on
/// hosts.
fn check_netem(at: &QueueContext, settings: &QueueSettings, judgement: &mut Judgement) {
    if settings.kind != QueueKind::Netem {
        return;
    }
    if !at.host {
        let hint = "set `delay` and `loss` on the link after the switch";
        judgement.refuse_with(format!("{}.kind", at.key), "netem is not a queue of a switch", hint);
        return;
    }
    judgement.time(format!("{}.delay", at.key), settings.delay, 0, 60_000_000_000, "use at most 60s");
    if settings.loss.is_some_and(|share| share.0.get() >= 1.0) {
        judgement.refuse_with(format!("{}.loss", at.key), "netem loses everything", "use less than 100%");
    }
    let delay_s = settings.delay.map_or(0.0, |t| t.0.as_secs_f64());
    let packets = settings.packets.unwrap_or(1000);
    let mut message = "netem on a sender does not behave like a path: its limit includes the packets in flight, it drops whole \
                       super-packets, and TCP sees its drops as local congestion; use `delay` and `loss` of a link instead"
        .to_owned();
    if delay_s > 0.0 {
        let most = f64::from(packets) * at.frame as f64 * 8.0 / delay_s;
        if at.rate_bps > 0 && most < at.rate_bps as f64 {
            message = format!(
                "{message}; {packets} packets of {} bytes per {} limit it to {}",
                at.frame,
                settings.delay.unwrap_or_default(),
                super::links::gigabits(most)
            );
        }
    }
    judgement.warn("netem-on-host", &at.key, message);
}

fn sizes(at: &QueueContext, settings: &QueueSettings, judgement: &mut Judgement) {
    if let Some(limit) = settings.limit {
        let (bytes, key) = (limit.0.get(), format!("{}.limit", at.key));
        if bytes > u64::from(u32::MAX) {
            judgement.refuse_with(key, format!("{limit} exceeds the kernel's 32-bit counter"), "use less than 4GiB");
        } else if bytes < at.frame {
            let frame = at.frame;
            let reason = format!("use at least {frame} bytes: a full frame with its Ethernet header");
            judgement.refuse_with(key, format!("{limit} is less than one frame"), reason);
        } else if at.host && bytes < 10 * at.frame {
            judgement.warn(
                "host-queue-small",
                &key,
                format!("{limit} on a host holds only a few frames: the host drops packets before the network does"),
            );
        } else if at.rate_bps > 0 && bytes as f64 * 8.0 / at.rate_bps as f64 > MAX_DRAIN_S {
            let drain = bytes as f64 * 8.0 / at.rate_bps as f64;
            judgement.warn("queue-deep", &key, format!("{limit} takes {drain:.0} s to drain at the link's rate"));
        }
    }
    for (name, packets) in [("packets", settings.packets), ("flow-packets", settings.flow_packets)] {
        let key = format!("{}.{name}", at.key);
        match packets {
            Some(0) => judgement.refuse_with(key, "a queue of 0 packets drops everything", "use at least 1"),
            Some(n) if at.host && n < HOST_PACKETS => {
                let message = format!(
                    "{n} packets on a host overflow with a single burst: the host drops packets before the network does"
                );
                judgement.warn("host-queue-small", &key, message);
            }
            _ => {}
        }
    }
    if settings.max_rate.is_some_and(|rate| rate.0.bps() < 8_000) {
        judgement.refuse_with(format!("{}.max-rate", at.key), "too slow", "use at least 8k");
    }
}

fn thresholds(at: &QueueContext, settings: &QueueSettings, judgement: &mut Judgement) {
    let key = |name: &str| format!("{}.{name}", at.key);
    if settings.kind == QueueKind::Red {
        let limit = settings.limit.map_or(u64::from(DEFAULT_QUEUE_BYTES), |s| s.0.get());
        match (settings.min, settings.max) {
            (Some(min), Some(max)) if min >= max => {
                judgement.refuse_with(
                    key("min"),
                    format!("min ({min}) is not below max ({max})"),
                    "swap them: red starts to drop at min, and reaches `probability` at max",
                );
            }
            (Some(_), Some(max)) if max.0.get() > limit => {
                judgement.refuse_with(
                    key("max"),
                    format!("max ({}) is above the limit ({})", max, Written(Bytes::new(limit))),
                    "use min < max <= limit",
                );
            }
            (Some(min), Some(_)) if min.0.get() == 0 => judgement.refuse_with(
                key("min"),
                "with min = 0, red drops from an empty queue",
                "use at least a few frames",
            ),
            (Some(_), None) | (None, Some(_)) => {
                judgement.refuse_with(
                    key(if settings.min.is_some() { "min" } else { "max" }),
                    "min and max must be set together",
                    "set both, or neither (defaults: 1/12 and 1/4 of the limit)",
                );
            }
            _ => {}
        }
        if settings.probability.is_some_and(|p| p.0.get() <= 0.0 || p.0.get() >= 1.0) {
            judgement.refuse_with(
                key("probability"),
                "the probability is out of range",
                "use more than 0 and less than 100%",
            );
        }
    }
    judgement.time(key("target"), settings.target, 1_000, 60_000_000_000, "use 1us to 60s");
    judgement.time(key("interval"), settings.interval, 1_000, 60_000_000_000, "use 1us to 60s");
    if let (Some(target), Some(interval)) = (settings.target, settings.interval)
        && target >= interval
    {
        judgement.refuse_with(
            key("target"),
            format!("target ({target}) is not below interval ({interval})"),
            "raise interval: it is about one RTT, and target 1/20 of that",
        );
    }
}
