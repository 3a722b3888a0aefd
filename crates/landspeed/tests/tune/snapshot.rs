//! Everything of a network namespace that a change could touch, as lines of text: compared byte for byte.

use std::fmt;

use landspeed_netlink::ethtool::Ethtool;

use crate::bench::Bench;

/// What the kernel counts or measures by itself, and what it will not show.
const VOLATILE: &[&str] = &["nf_conntrack_count"];

const SCRIPT: &str = r#"
tc -d qdisc show | sed -E 's/^/qdisc: /; s/direct_packets_stat [0-9]+//' | sort
ip -d address show | sed -E 's/^/link: /; s/valid_lft [0-9]+sec preferred_lft [0-9]+sec//'
ip route show table all | sed 's/^/route: /' | sort
ip -6 route show table all | sed -E 's/^/route6: /; s/expires [0-9]+sec//' | sort
cd /sys/class/net
for device in *; do
  tc -d class show dev $device | sed "s/^/class $device: /" | sort
  tc -d filter show dev $device | sed "s/^/filter $device: /"
  tc -d filter show dev $device ingress 2>/dev/null | sed "s/^/ingress $device: /" || true
done
grep -s "" */mtu */tx_queue_len */gro_flush_timeout */napi_defer_hard_irqs */threaded */flags */operstate \
  */queues/*/rps_cpus */queues/*/rps_flow_cnt */queues/*/xps_cpus */queues/*/xps_rxqs */queues/*/tx_maxrate || true
grep -rs "" /proc/sys/net || true
"#;

/// The lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    lines: Vec<String>,
}

/// Takes one.
pub fn take(bench: &Bench) -> Snapshot {
    let text = bench.shell(SCRIPT);
    let mut lines: Vec<String> =
        text.lines().filter(|line| !VOLATILE.iter().any(|name| line.contains(name))).map(ToOwned::to_owned).collect();
    let links = bench.shell("ls /sys/class/net");
    for interface in links.split_whitespace() {
        let features = bench.namespace.run(|| Ethtool::new(interface).and_then(|mut nic| nic.features()));
        for feature in features.unwrap_or_default() {
            lines.push(format!("feature {interface}: {feature:?}"));
        }
    }
    assert!(lines.len() > 100, "a namespace has more to it: {lines:#?}");
    Snapshot { lines }
}

impl Snapshot {
    /// Panics, with what differs, unless both are the same byte for byte.
    #[track_caller]
    pub fn must_equal(&self, before: &Self, when: &dyn fmt::Display) {
        let shown = || self.difference(before).join("\n");
        assert!(self == before, "{when}: the state differs (- before, + now):\n{}", shown());
    }

    /// What differs from an earlier one.
    pub fn difference(&self, before: &Self) -> Vec<String> {
        let gone = before.lines.iter().filter(|line| !self.lines.contains(line)).map(|line| format!("- {line}"));
        let new = self.lines.iter().filter(|line| !before.lines.contains(line)).map(|line| format!("+ {line}"));
        let mut difference: Vec<String> = gone.chain(new).collect();
        if difference.is_empty() && self != before {
            difference.push("the same lines in another order or number".into());
        }
        difference
    }
}
