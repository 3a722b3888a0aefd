use super::is_short_path;
use crate::prelude::*;

/// Sysctl with the RTT below which the kernel slows the growth of receive buffers, microseconds (Linux 6.18).
const LOW_RTT: &str = "net.ipv4.tcp_rcvbuf_low_rtt";

/// The deck's window for its LAN (`nuttcp -w1m`), bytes, and the BDP it gives for that LAN: 12.5 GB/s × 54 µs.
const DECK_WINDOW: f64 = (1 << 20) as f64;
const DECK_BDP: f64 = 675_000.0;

declare_check! {
    /// Whether receive autotuning overshoots on a short, fast path.
    ///
    /// **Reads** `net.ipv4.tcp_rcvbuf_low_rtt`, the goal's rate and RTT.
    ///
    /// **Matters** at 100 Gb/s on a LAN: autotuning grew the window to 2 to 9 MB where the BDP was 675 KB, and the data left
    /// the CPU cache. The remedy of the 2016 deck was a fixed window in the program (`nuttcp -w1m`). A lower maximum in
    /// `tcp_rmem` does not help: the size that autotuning reached is far below any maximum in use.
    ///
    /// **Leave it alone** below 100 Gb/s, and where `tcp_rcvbuf_low_rtt` is larger than the RTT: the kernel then grows
    /// receive buffers slowly by itself.
    code: "BUF-015",
    title: "Receive autotuning on a short path",
    severity: Note,
    sources: [
        esnet_2016!("TCP Buffers"),
        esnet_2016!("Our Current Best Single Flow Results"),
        "Linux Documentation/networking/ip-sysctl.rst, tcp_rcvbuf_low_rtt",
    ],
    good: |facts, goal| {
        goal.rtt_ns = Some(54_000);
        example::sysctl(facts, LOW_RTT, "1000");
    },
    bad: |facts, goal| {
        goal.rtt_ns = Some(54_000);
        facts.sysctls.insert(LOW_RTT.into(), Fact::Absent("this kernel has no tcp_rcvbuf_low_rtt".into()));
    },
}

fn evaluate(view: &View<'_>) -> Outcome {
    if !is_short_path(view) {
        return Outcome::not_applicable("the goal is not a short path");
    }
    if view.role() == Role::Router {
        return Outcome::not_applicable("a router does not receive what it forwards");
    }
    let rate = known!(view.rate_bps());
    if rate < FAST_BPS {
        return Outcome::not_applicable("the deck measured it at 100 Gb/s");
    }
    let rtt_us = view.rtt_s().0 * 1e6;
    let observed = match view.sysctl_last(LOW_RTT) {
        Fact::Known(us) if us as f64 >= rtt_us => {
            return Outcome::pass(format!("receive buffers grow slowly below {us} µs of RTT"));
        }
        Fact::Known(us) => format!("{LOW_RTT} = {us}, the RTT is {rtt_us:.0} µs"),
        Fact::Absent(_) => "this kernel grows receive buffers at one speed for all RTTs".into(),
        Fact::Unknown(why) => return Outcome::unknown(why),
    };
    let window = known!(view.bdp_bytes()) * (DECK_WINDOW / DECK_BDP);
    Outcome::found(Problem {
        effect: Effect::measured(
            "On a LAN 50 to 60 Gb/s with autotuning, which reached 2 to 9 MB, and 79 Gb/s with a window fixed by the program \
             (-w1m)",
            &[&source::LAN_BUFFERS, &source::LAN_COMMAND],
        ),
        ..advice::manual_problem(
            observed,
            format!(
                "for a single fast flow a fixed window of about {} in the program (nuttcp -w, iperf3 -w, SO_RCVBUF); compare \
                 it with autotuning",
                bytes_text(window as u64)
            ),
            "Autotuning overshoots the BDP of a short path, and the data leaves the CPU cache.",
            "ss -tmi  # rcv_space, rb",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fixed_window_is_recommended_instead_of_a_lower_maximum() {
        let (mut facts, goal) = crate::failing_example(&CHECK);
        let findings = CHECK.audit_alone(&facts, &goal).findings;
        assert!(findings[0].changes.is_empty(), "{findings:?}");
        assert!(findings[0].recommended.contains("1.00 MiB"), "{}", findings[0].recommended);
        // The maximum of tcp_rmem makes no difference.
        example::sysctl(&mut facts, "net.ipv4.tcp_rmem", "4096 131072 33554432");
        assert_eq!(CHECK.audit_alone(&facts, &goal).findings, findings);
    }

    #[test]
    fn a_kernel_that_grows_buffers_slowly_passes() {
        for (value, findings) in [("1000", 0), ("54", 0), ("53", 1), ("0", 1)] {
            let (mut facts, mut goal) = (example::facts(), example::goal());
            goal.rtt_ns = Some(54_000);
            facts.sysctls.insert(LOW_RTT.into(), Fact::Known(value.into()));
            assert_eq!(CHECK.audit_alone(&facts, &goal).findings.len(), findings, "{value}");
        }
    }
}
