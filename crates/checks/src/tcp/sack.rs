use landspeed_units::Nanos;

use crate::prelude::*;

declare_check! {
    /// Whether selective ACKs are on.
    ///
    /// **Reads** `net.ipv4.tcp_sack`.
    ///
    /// **Matters** because without them a sender learns of one lost segment per RTT: a burst of losses on a
    /// long path takes seconds to repair, and RACK cannot work at all. Scripts from the days when SACK
    /// processing cost CPU time (or from the 2019 SACK panic) turn it off; the kernel fixed both.
    ///
    /// **Leave it alone** when the kernel is older than the fixes for CVE-2019-11477 and cannot be replaced.
    code: "TCP-001",
    title: "SACK",
    severity: Critical,
    sources: [
        "RFC 2018, TCP Selective Acknowledgment Options",
        "RFC 8985, The RACK-TLP Loss Detection Algorithm for TCP: requires SACK",
    ],
    bad: |facts, _| example::sysctl(facts, "net.ipv4.tcp_sack", "0"),
}

fn evaluate(view: &View<'_>) -> Outcome {
    let value = known!(view.sysctl("net.ipv4.tcp_sack"));
    if value != "0" {
        return Outcome::pass("on");
    }
    Outcome::found(Problem {
        severity: None,
        observed: "net.ipv4.tcp_sack = 0".into(),
        recommended: "1".into(),
        why: "Without SACK a sender repairs one lost segment per RTT, and RACK does not work.".into(),
        effect: Effect::arithmetic(format!(
            "Repairing 100 lost segments takes 100 RTTs, {:.1} s over {}.",
            100.0 * view.rtt_s().0,
            Nanos::new((view.rtt_s().0 * 1e9) as u64)
        )),
        by_hand: "sysctl net.ipv4.tcp_sack".into(),
        applicability: Applicability::Safe,
        changes: vec![Change::sysctl("net.ipv4.tcp_sack", "1")],
    })
}
