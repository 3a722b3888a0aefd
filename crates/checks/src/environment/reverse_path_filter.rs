use super::{conf, effective};
use crate::advice::{MIN_EVENTS, counter};
use crate::prelude::*;

/// Strict mode: drop packets whose source is not reached through the interface they arrived on (RFC 3704).
const STRICT: u64 = 1;

/// Loose mode: drop packets whose source is not reachable through any interface.
const LOOSE: u64 = 2;

declare_check! {
    /// Whether reverse path filtering drops packets.
    ///
    /// **Reads** `rp_filter` of the interface and of `all`, and `TcpExt.IPReversePathFilter` since boot.
    ///
    /// **Matters** on hosts with several interfaces: strict filtering silently drops packets that arrive on one
    /// while the route back uses another, as with a second path for bulk data.
    ///
    /// **Leave it alone** while nothing is dropped, or where the dropped packets are spoofed.
    code: "ENV-019",
    title: "Reverse path filter drops",
    scope: Interface,
    severity: Minor,
    sources: [
        "Linux Documentation/networking/ip-sysctl.rst, rp_filter: the larger of all and the interface's counts",
        "RFC 3704 section 2.4, loose reverse path forwarding",
    ],
    bad: |facts, _| {
        example::sysctl(facts, "net.ipv4.conf.all.rp_filter", "1");
        example::counter(facts, "TcpExt.IPReversePathFilter", 48_000);
    },
}

fn evaluate(view: &View<'_>) -> Outcome {
    let interface = known!(view.interface());
    let filter = known!(effective(view, &interface.name, "rp_filter"));
    if filter != STRICT {
        return Outcome::pass(if filter == LOOSE { "loose" } else { "off" });
    }
    let dropped = known!(counter(view, "TcpExt.IPReversePathFilter"));
    if dropped < MIN_EVENTS {
        return Outcome::pass(format!("strict, {dropped} dropped since boot"));
    }
    let name = conf(&interface.name, "rp_filter");
    Outcome::found(Problem {
        observed: format!("strict; {dropped} packets dropped since boot, on all interfaces together"),
        recommended: format!("{LOOSE} (loose), if the packets are legitimate"),
        by_hand: "nstat -az TcpExtIPReversePathFilter; sysctl -a | grep '\\.rp_filter'".into(),
        applicability: Applicability::NeedsCare,
        effect: Effect::stated(
            "A packet that fails strict filtering is dropped",
            "Linux Documentation/networking/ip-sysctl.rst, rp_filter",
        ),
        changes: vec![Change::sysctl(&name, LOOSE.to_string())],
        ..advice::sysctl(
            &name,
            filter,
            LOOSE,
            "What arrives here while the route back is another interface is dropped silently.",
        )
    })
}
