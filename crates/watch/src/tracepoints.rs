//! Counts of retransmits and drops from the kernel's tracepoints. They cover the whole host, in every network
//! namespace.

use std::collections::BTreeMap;

use landspeed_model::WatchEvents;
use landspeed_tap::{Event, Events};

const WANTED: &[&str] = &["tcp/tcp_retransmit_skb", "skb/kfree_skb"];
/// Size of the trace buffer of each CPU, KiB: about a thousand events, read once a second.
const BUFFER_KIB: u32 = 256;
/// Maximum number of drop reasons counted separately; the kernel has about a hundred.
const MAX_REASONS: usize = 256;

/// Tracepoints, enabled as long as this exists.
pub(crate) struct Tracepoints {
    events: Events,
    taken: Vec<Event>,
    counted: WatchEvents,
}

impl Tracepoints {
    /// Enables the tracepoints; an error describes what is needed.
    pub(crate) fn open() -> Result<Self, String> {
        let events = Events::open(WANTED, BUFFER_KIB).map_err(|why| why.to_string())?;
        Ok(Self { events, taken: Vec::new(), counted: WatchEvents::default() })
    }

    /// Counts the events since the last call.
    pub(crate) fn take(&mut self) {
        self.taken.clear();
        self.events.take(&mut self.taken);
        for event in &self.taken {
            count(event, &mut self.counted);
        }
        self.counted.lost = self.events.summary().lost;
    }

    /// Counts so far.
    pub(crate) fn counted(&self) -> &WatchEvents {
        &self.counted
    }

    /// Packets dropped by packet filters so far.
    pub(crate) fn filtered(&self) -> FilterDrops {
        filtered(&self.counted)
    }
}

/// Packets dropped by packet filters, by a tracepoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FilterDrops {
    /// Drops with the reason `NETFILTER_DROP`.
    pub(crate) count: u64,
    /// Events that may have been such drops: lost ones, and those without a reason (before Linux 5.17).
    pub(crate) uncertain: u64,
}

impl FilterDrops {
    /// Returns the drops since `before`; `None` if other events since then may have been drops too.
    pub(crate) fn since(self, before: Self) -> Option<u64> {
        (self.uncertain == before.uncertain).then(|| self.count.checked_sub(before.count)).flatten()
    }
}

fn filtered(counted: &WatchEvents) -> FilterDrops {
    let of = |reason: &str| counted.drops.get(reason).copied().unwrap_or(0);
    FilterDrops { count: of("NETFILTER_DROP"), uncertain: counted.lost + of(NO_REASON) }
}

/// Reason of an event whose text does not have one.
const NO_REASON: &str = "not said";

fn count(event: &Event, into: &mut WatchEvents) {
    match event.name.as_str() {
        "kfree_skb" => add(&mut into.drops, word_after(&event.text, "reason: ")),
        "tcp_retransmit_skb" => add(&mut into.retransmits, word_after(&event.text, "state=")),
        _ => {}
    }
}

fn add(counts: &mut BTreeMap<String, u64>, reason: &str) {
    if let Some(count) = counts.get_mut(reason) {
        *count += 1;
    } else if counts.len() < MAX_REASONS {
        counts.insert(reason.to_owned(), 1);
    }
}

/// The value after `name`, or [`NO_REASON`] on kernels without that field: drop reasons exist since 5.17.
fn word_after<'a>(text: &'a str, name: &str) -> &'a str {
    let word = text.split_once(name).and_then(|(_, rest)| rest.split_whitespace().next());
    word.unwrap_or(NO_REASON)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drops_and_retransmits_are_counted_by_reason() {
        let mut counted = WatchEvents::default();
        for (name, text) in [
            ("kfree_skb", "skbaddr=00 rx_sk=00 protocol=2048 location=nf_hook_slow+0xa0/0xb0 reason: NETFILTER_DROP"),
            ("kfree_skb", "skbaddr=00 rx_sk=00 protocol=2048 location=nf_hook_slow+0xa0/0xb0 reason: NETFILTER_DROP"),
            ("kfree_skb", "skbaddr=00 protocol=2048 location=00"),
            (
                "tcp_retransmit_skb",
                "family=AF_INET sport=1 dport=2 saddr=10.0.0.1 daddr=10.0.0.2 state=TCP_ESTABLISHED",
            ),
            ("other", "reason: X"),
        ] {
            count(&Event { time_ns: 0, name: name.to_owned(), text: text.to_owned() }, &mut counted);
        }
        let of = |counts: &BTreeMap<String, u64>| counts.clone().into_iter().collect::<Vec<_>>();
        assert_eq!(of(&counted.drops), [("NETFILTER_DROP".to_owned(), 2), ("not said".to_owned(), 1)]);
        let drops = filtered(&counted);
        assert_eq!(drops, FilterDrops { count: 2, uncertain: 1 });
        assert_eq!(
            (drops.since(FilterDrops { count: 1, ..drops }), drops.since(FilterDrops { count: 1, uncertain: 0 })),
            (Some(1), None)
        );
        counted.lost = 3;
        assert_eq!(filtered(&counted).since(drops), None, "a lost event may have been such a drop");
        assert_eq!(of(&counted.retransmits), [("TCP_ESTABLISHED".to_owned(), 1)]);
    }
}
