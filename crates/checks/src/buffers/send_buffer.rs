use super::{desired, rate_of_window, severity_of, window_bytes};
use crate::prelude::*;

const NAME: &str = "net.ipv4.tcp_wmem";

declare_check! {
    /// Whether the send buffer may grow to the BDP of the path.
    ///
    /// **Reads** the last number of `net.ipv4.tcp_wmem` (it counts for IPv6 too), the goal's rate and RTT.
    ///
    /// **Matters** because a sender keeps a copy of all that is not acknowledged: rate = buffer / RTT. Linux
    /// 6.18 lets the receive buffer grow to 32 MB but the send buffer only to 4 MB, so the sender is now the first
    /// limit on a long path.
    ///
    /// **Leave it alone** on a local network: 4 MB carry 33 Gb/s over 1 ms.
    code: "BUF-002",
    title: "Maximum TCP send buffer",
    severity: Major,
    sources: [
        red_hat_2012!("Tuning – step 4"),
        red_hat_2012!("Tuning – step 3"),
        "Linux Documentation/networking/ip-sysctl.rst, tcp_wmem",
        "landspeed's own experiment on Linux 6.18: with the defaults the send buffer limits first",
    ],
    bad: |facts, _| example::sysctl(facts, NAME, "4096 16384 4194304"),
}

fn evaluate(view: &View<'_>) -> Outcome {
    let [_, _, maximum] = known!(view.sysctl_triple(NAME));
    let needed = known!(window_bytes(view));
    let rtt_s = view.rtt_s().0;
    if maximum as f64 >= needed {
        return Outcome::pass(format!(
            "{}: the path {} needs {}",
            bytes_text(maximum),
            view.path_text(),
            bytes_text(needed as u64)
        ));
    }
    let reached = rate_of_window(maximum as f64, rtt_s);
    let desired = desired(view, NAME);
    let seen = known!(view.sysctl(NAME));
    let why = format!(
        "A sender keeps what is not acknowledged, {} over {}; this buffer holds {}, so at most {reached}.",
        bytes_text(needed as u64),
        view.path_text(),
        bytes_text(maximum),
    );
    Outcome::found(Problem {
        severity: severity_of(maximum as f64 / needed),
        effect: Effect::arithmetic(format!("From {reached} to what the path carries.")),
        ..advice::sysctl(NAME, seen, desired, why)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_is_enough_for_a_local_network() {
        let (mut facts, mut goal) = (example::facts(), example::goal());
        example::sysctl(&mut facts, NAME, "4096 16384 4194304");
        goal.rtt_ns = Some(54_000);
        let audit = CHECK.audit_alone(&facts, &goal);
        assert!(audit.findings.is_empty(), "{:?}", audit.findings);
    }
}
