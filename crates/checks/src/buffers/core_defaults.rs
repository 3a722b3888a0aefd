use crate::prelude::*;

const NAMES: [&str; 2] = ["net.core.rmem_default", "net.core.wmem_default"];

/// Linux default on 64-bit machines, bytes: 256 packets of 256 bytes with overhead.
const KERNEL_DEFAULT: &str = "212992";

/// Values from here on were meant for TCP, bytes: no distribution ships so large a default.
const HIGH_DEFAULT_BYTES: u64 = 1 << 20;

declare_check! {
    /// Whether the initial buffer of every socket was raised.
    ///
    /// **Reads** `net.core.rmem_default` and `net.core.wmem_default`.
    ///
    /// **Matters** because they do nothing for TCP, which has its own initial sizes, but apply to each UDP, raw
    /// and Unix socket on the host: a name server or a logger may then queue megabytes of stale messages.
    ///
    /// **Leave it alone** where a UDP program that cannot set its own buffer needs it.
    code: "BUF-007",
    title: "Default socket buffers",
    severity: Minor,
    sources: [
        "Linux Documentation/networking/ip-sysctl.rst, tcp_rmem: overrides net.core.rmem_default, which other \
         protocols use",
        "socket(7), rmem_default",
    ],
    bad: |facts, _| example::sysctl(facts, NAMES[0], "16777216"),
}

fn evaluate(view: &View<'_>) -> Outcome {
    let values = [known!(view.sysctl_last(NAMES[0])), known!(view.sysctl_last(NAMES[1]))];
    let raised: Vec<_> = NAMES.iter().zip(values).filter(|&(_, value)| value > HIGH_DEFAULT_BYTES).collect();
    if raised.is_empty() {
        return Outcome::pass(format!("{} to receive, {} to send", values[0], values[1]));
    }
    let seen: Vec<_> = raised.iter().map(|(name, value)| format!("{name} = {value}{}", origin(view, name))).collect();
    Outcome::found(Problem {
        observed: seen.join(", "),
        by_hand: format!("sysctl {}", NAMES.join(" ")),
        applicability: Applicability::NeedsCare,
        effect: Effect::arithmetic(format!(
            "Each UDP or Unix socket may queue {:.0} times the default.",
            values[0].max(values[1]) as f64 / 212_992.0
        )),
        changes: raised.iter().map(|(name, _)| Change::sysctl(**name, KERNEL_DEFAULT)).collect(),
        ..advice::sysctl(NAMES[0], "", KERNEL_DEFAULT, "TCP does not use them; every UDP and Unix socket does.")
    })
}
