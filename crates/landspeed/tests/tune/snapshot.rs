//! Snapshot of all state of a network namespace that a change could affect, as lines of text, compared byte
//! for byte.

use std::fmt;

use landspeed_netlink::ethtool::Ethtool;

use crate::tune::bench::Bench;

/// Sysctls that change without configuration.
const VOLATILE: &[&str] = &["nf_conntrack_count"];

/// Queueing disciplines that list a class for each flow with packets in the queue: traffic, not configuration.
const CLASS_PER_FLOW: &[&str] = &["class cake ", "class fq_codel ", "class sfq "];

/// Keywords followed by a counter or a remaining time.
const COUNTERS: &[&str] = &["direct_packets_stat", "valid_lft", "preferred_lft", "expires"];

/// Uses few processes, because thousands of snapshots are taken. Sections begin with `==`; [`take`] sorts
/// those that the kernel does not order.
const SCRIPT: &str = r#"
echo "== qdisc"
tc -d qdisc show
echo "== link"
ip -d address show
echo "== route"
ip route show table all
echo "== route6"
ip -6 route show table all
cd /sys/class/net
for device in *; do
  echo "== class $device"
  tc -d class show dev $device
  echo "== filter $device"
  tc -d filter show dev $device
  tc -d filter show dev $device ingress 2>/dev/null || true
done
echo "== files"
grep -s "" */mtu */tx_queue_len */gro_flush_timeout */napi_defer_hard_irqs */threaded */flags */operstate \
  */queues/*/rps_cpus */queues/*/rps_flow_cnt */queues/*/xps_cpus */queues/*/xps_rxqs */queues/*/tx_maxrate || true
grep -rs "" /proc/sys/net || true
"#;

/// A snapshot as lines of text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    lines: Vec<String>,
}

/// Takes a snapshot of a bench's namespace.
pub fn take(bench: &Bench) -> Snapshot {
    let text = bench.shell(SCRIPT);
    let mut lines = Vec::new();
    let mut interfaces = Vec::new();
    for section in text.split("== ").skip(1) {
        let (name, body) = section.split_once('\n').expect("a name");
        interfaces.extend(name.strip_prefix("class "));
        let changes_by_itself = |line: &&str| {
            VOLATILE.iter().any(|name| line.contains(name))
                || CLASS_PER_FLOW.iter().any(|kind| line.starts_with(kind))
        };
        let shown = body.lines().filter(|line| !changes_by_itself(line));
        let mut shown: Vec<String> = shown.map(|line| format!("{name}: {}", without_counters(line))).collect();
        if ["qdisc", "route", "class"].iter().any(|unordered| name.starts_with(unordered)) {
            shown.sort();
        }
        lines.append(&mut shown);
    }
    lines.extend(bench.namespace.run(|| {
        let features = |interface| Ethtool::new(interface).and_then(|mut nic| nic.features()).unwrap_or_default();
        let shown = interfaces.iter().flat_map(|interface| {
            features(interface).into_iter().map(move |feature| format!("feature {interface}: {feature:?}"))
        });
        shown.collect::<Vec<_>>()
    }));
    assert!(lines.len() > 100, "a namespace has more to it: {lines:#?}");
    Snapshot { lines }
}

/// Removes counters from a line.
fn without_counters(line: &str) -> String {
    if !COUNTERS.iter().any(|word| line.contains(word)) {
        return line.to_owned();
    }
    let mut counts = false;
    let words = line.split(' ').filter(|word| {
        let counted = std::mem::replace(&mut counts, COUNTERS.contains(word));
        !counted
    });
    words.collect::<Vec<_>>().join(" ")
}

impl Snapshot {
    /// Panics with the differences unless both snapshots are identical.
    #[track_caller]
    pub fn must_equal(&self, before: &Self, when: &dyn fmt::Display) {
        let shown = || self.difference(before).join("\n");
        assert!(self == before, "{when}: the state differs (- before, + now):\n{}", shown());
    }

    /// Lists the differences from an earlier snapshot.
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
