use crate::prelude::*;

const NAME: &str = "net.ipv4.tcp_limit_output_bytes";

/// Linux's default since May 2025, bytes.
const DEFAULT_SINCE_2025: u64 = 4 << 20;

/// Linux's default before May 2025, bytes.
const DEFAULT_BEFORE_2025: u64 = 1 << 20;

/// Rate from which the larger limit helps, bits/s: 1 MiB leaves the host in 84 µs at 100 Gb/s, less than the
/// completion may take.
const FAST_BPS: u64 = 100_000_000_000;

declare_check! {
    /// Limit of one flow's bytes in qdisc and device (TCP small queues).
    ///
    /// **Reads** `net.ipv4.tcp_limit_output_bytes` and the goal's rate.
    ///
    /// **Matters** because TCP stops sending when this many bytes of a flow wait in queue and ring, and
    /// continues when the device reports that they were sent. At 100 Gb/s 1 MiB lasts 84 µs: less than
    /// completions may take. The default went from 1 to 4 MB in May 2025.
    ///
    /// **Leave it alone** below 100 Gb/s and on a host of small messages: queued bytes add delay.
    code: "TCP-014",
    title: "TCP small queue limit",
    severity: Note,
    sources: [
        "Linux commit \"tcp: increase tcp_limit_output_bytes default value to 4MB\", Dumazet, May 2025",
        IP_SYSCTL,
    ],
    bad: |facts, _| example::sysctl(facts, NAME, "1048576"),
}

fn evaluate(view: &View<'_>) -> Outcome {
    let value = known!(view.sysctl_last(NAME));
    let rate = known!(view.rate_bps());
    let wanted = if rate >= FAST_BPS { DEFAULT_SINCE_2025 } else { DEFAULT_BEFORE_2025 };
    if value >= wanted {
        return Outcome::pass(bytes_text(value));
    }
    let why = format!(
        "At {} a flow's share is on the wire in {:.0} us; then it waits for the device to say so.",
        rate_text(rate),
        value as f64 * 8e6 / rate.max(1) as f64
    );
    Outcome::found(advice::sysctl(NAME, value, wanted, why))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_older_default_is_enough_below_100_gigabits() {
        let (mut facts, mut goal) = (example::facts(), example::goal());
        example::sysctl(&mut facts, NAME, "1048576");
        goal.rate_bps = Some(40_000_000_000);
        assert!(CHECK.audit_alone(&facts, &goal).findings.is_empty());
        example::sysctl(&mut facts, NAME, "131072");
        let findings = CHECK.audit_alone(&facts, &goal).findings;
        assert_eq!(findings[0].changes[0].desired, "1048576");
    }
}
