use landspeed_calc::MAX_BUFFER_BYTES;

use super::{desired, rate_of_window, severity_of, usable, window_bytes};
use crate::prelude::*;

const NAME: &str = "net.ipv4.tcp_rmem";

declare_check! {
    /// Whether the receive buffer may grow to the BDP of the path.
    ///
    /// **Reads** the last number of `net.ipv4.tcp_rmem` (it counts for IPv6 too), the goal's rate and RTT.
    ///
    /// **Matters** because the receiver advertises no more than it can store: rate = window / RTT. About two
    /// thirds of the buffer become window at MTU 9000, the rest pays for the kernel's own structures; hence twice the
    /// bandwidth-delay product, at most 2080374784 bytes (64 MiB below 2 GiB).
    ///
    /// **Leave it alone** on a local network: autotuning takes what it needs below the default, and more only spoils
    /// caches. The maximum costs nothing until a flow needs it.
    code: "BUF-001",
    title: "Maximum TCP receive buffer",
    severity: Major,
    sources: [
        esnet_2016!("TCP Buffers"),
        "RFC 7323 section 2.3: the largest window",
        "Linux Documentation/networking/ip-sysctl.rst, tcp_rmem",
    ],
    bad: |facts, _| example::sysctl(facts, NAME, "4096 131072 33554432"),
}

fn evaluate(view: &View<'_>) -> Outcome {
    let [_, _, maximum] = known!(view.sysctl_triple(NAME));
    let needed = known!(window_bytes(view));
    let rtt_s = view.rtt_s().0;
    let window = maximum as f64 * usable(view);
    let reached = rate_of_window(window, rtt_s);
    if window >= needed || maximum as f64 >= MAX_BUFFER_BYTES {
        return Outcome::pass(format!(
            "{}: the path {} needs {}",
            bytes_text(maximum),
            view.path_text(),
            bytes_text(needed as u64)
        ));
    }
    let desired = desired(view, NAME);
    let seen = known!(view.sysctl(NAME));
    let why = format!(
        "One flow over {} needs {} of window; this buffer gives {}, so at most {reached}.",
        view.path_text(),
        bytes_text(needed as u64),
        bytes_text(window as u64),
    );
    Outcome::found(Problem {
        severity: severity_of(window / needed),
        effect: Effect::arithmetic(format!("From {reached} to what the path carries.")),
        ..advice::sysctl(NAME, seen, desired, why)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_older_kernel_needs_more_buffer_for_the_same_window() {
        let (mut facts, mut goal) = (example::facts(), example::goal());
        goal.rate_bps = Some(10_000_000_000);
        goal.rtt_ns = Some(100_000_000);
        example::sysctl(&mut facts, NAME, "4096 131072 200000000");
        let findings = |facts: &_| CHECK.audit_alone(facts, &goal).findings;
        assert!(findings(&facts).is_empty());
        facts.kernel.release = "5.14.0-503.el9".into();
        assert_eq!(findings(&facts)[0].changes[0].desired, "4096 131072 250000000");
    }

    #[test]
    fn without_an_rtt_the_check_does_not_apply() {
        let (mut facts, mut goal) = (example::facts(), example::goal());
        goal.rtt_ns = None;
        example::sysctl(&mut facts, NAME, "4096 131072 6291456");
        let audit = CHECK.audit_alone(&facts, &goal);
        assert!(audit.findings.is_empty() && audit.not_applicable.len() == 1);
    }
}
