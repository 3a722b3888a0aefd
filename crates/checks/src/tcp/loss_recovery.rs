use crate::prelude::*;

const NAME: &str = "net.ipv4.tcp_recovery";

/// Bit of `tcp_recovery` that enables RACK.
const RACK: u64 = 1;

declare_check! {
    /// Whether losses are detected by time (RACK).
    ///
    /// **Reads** `net.ipv4.tcp_recovery`.
    ///
    /// **Matters** because RACK notices a lost retransmission and tolerates reordering, where counting duplicate
    /// ACKs ends in a timeout or in spurious retransmits.
    ///
    /// **Leave it alone** on kernels that, according to their documentation, always use RACK (6.18): the bit
    /// then has no effect.
    code: "TCP-005",
    title: "RACK loss detection",
    severity: Minor,
    sources: ["RFC 8985, The RACK-TLP Loss Detection Algorithm for TCP", IP_SYSCTL],
    bad: |facts, _| {
        facts.kernel.release = "5.14.0-503.el9.x86_64".into();
        example::sysctl(facts, NAME, "0");
    },
}

fn evaluate(view: &View<'_>) -> Outcome {
    let value = known!(view.sysctl_last(NAME));
    if value & RACK != 0 {
        return Outcome::pass("RACK");
    }
    let without_effect = view.facts.kernel.at_least(6, 18) == Some(true);
    Outcome::found(Problem {
        severity: without_effect.then_some(Severity::Note),
        effect: if without_effect {
            Effect::arithmetic("None: the kernel ignores the bit.")
        } else {
            Effect::stated(
                "Without it lost retransmissions and tail drops are repaired after an RTO only",
                "RFC 8985, The RACK-TLP Loss Detection Algorithm for TCP",
            )
        },
        ..advice::sysctl(
            NAME,
            value,
            value | RACK,
            if without_effect {
                "This kernel has no other way and ignores it; on an older one it would turn RACK off."
            } else {
                "Lost retransmissions end in timeouts, reordering in spurious retransmits."
            },
        )
    })
}
