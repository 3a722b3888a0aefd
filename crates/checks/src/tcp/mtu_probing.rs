use crate::prelude::*;

const NAME: &str = "net.ipv4.tcp_mtu_probing";

/// The MTU of Ethernet without jumbo frames, bytes.
const STANDARD_MTU: u32 = 1500;

declare_check! {
    /// Whether TCP detects by itself that large packets are lost (MTU probing).
    ///
    /// **Reads** `net.ipv4.tcp_mtu_probing` and the MTU of the interface.
    ///
    /// **Matters** with jumbo frames: if a link on the path has a smaller MTU and its "too big" messages are
    /// filtered, connections open and then hang. With 1 the kernel tries smaller segments once it sees that.
    ///
    /// **Leave it alone** at an MTU of 1500. 2 is for experiments: it begins every connection with small segments.
    code: "TCP-010",
    title: "MTU probing",
    scope: Interface,
    severity: Minor,
    sources: [
        "RFC 4821, Packetization Layer Path MTU Discovery",
        "ESnet fasterdata, Linux host tuning: 1 with jumbo frames",
        IP_SYSCTL,
    ],
    bad: |facts, _| example::sysctl(facts, NAME, "0"),
}

fn evaluate(view: &View<'_>) -> Outcome {
    let value = known!(view.sysctl_last(NAME));
    let mtu = match view.interface() {
        Fact::Known(interface) => interface.mtu_bytes,
        Fact::Absent(why) | Fact::Unknown(why) => return Outcome::not_applicable(why),
    };
    if mtu <= STANDARD_MTU {
        return Outcome::not_applicable(format!("the MTU is {mtu}"));
    }
    if value == 1 {
        return Outcome::pass(format!("on when a black hole is seen; the MTU is {mtu}"));
    }
    let why = if value == 0 {
        format!("With an MTU of {mtu} a link that takes less and does not say so hangs every connection.")
    } else {
        "2 begins every connection with small segments; 1 does so only when large ones vanish.".to_owned()
    };
    Outcome::found(advice::sysctl(NAME, value, 1, why))
}
