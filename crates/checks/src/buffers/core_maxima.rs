use super::{buffer_bytes, rate_of_window, window_bytes};
use crate::prelude::*;

const NAMES: [&str; 2] = ["net.core.rmem_max", "net.core.wmem_max"];

declare_check! {
    /// Whether programs that set their own socket buffers can set them large enough.
    ///
    /// **Reads** `net.core.rmem_max` and `net.core.wmem_max`, the goal's rate and RTT.
    ///
    /// **Matters** because `SO_RCVBUF` and `SO_SNDBUF` are silently limited to these values: `iperf3 -w`,
    /// `nuttcp -w`, GridFTP and UDP programs get less than they requested. They do not limit autotuned TCP,
    /// contrary to many guides: `tcp_rmem` and `tcp_wmem` do.
    ///
    /// **Leave it alone** if no program sets its buffers: setting them turns autotuning off for that socket.
    code: "BUF-004",
    title: "Maximum socket buffers (SO_RCVBUF, SO_SNDBUF)",
    severity: Minor,
    sources: [esnet_2016!("TCP Buffers"), "socket(7), SO_RCVBUF and SO_SNDBUF"],
    bad: |facts, _| example::sysctl(facts, "net.core.rmem_max", "212992"),
}

fn evaluate(view: &View<'_>) -> Outcome {
    let values = [known!(view.sysctl_last(NAMES[0])), known!(view.sysctl_last(NAMES[1]))];
    let needed = known!(window_bytes(view));
    let desired = known!(buffer_bytes(view)).to_string();
    let short: Vec<_> = NAMES.iter().zip(values).filter(|&(_, value)| (value as f64) < needed).collect();
    if short.is_empty() {
        return Outcome::pass(values.map(bytes_text).join(" to receive, ") + " to send");
    }
    let seen: Vec<_> = short.iter().map(|(name, value)| format!("{name} = {value}")).collect();
    Outcome::found(Problem {
        observed: seen.join(", "),
        by_hand: format!("sysctl {}", NAMES.join(" ")),
        effect: Effect::arithmetic(format!(
            "A program that sets its buffer gets at most {} for one flow.",
            rate_of_window(values[0].min(values[1]) as f64, view.rtt_s().0)
        )),
        changes: short.iter().map(|(name, _)| Change::sysctl(**name, desired.clone())).collect(),
        ..advice::sysctl(
            NAMES[0],
            "",
            &desired,
            format!(
                "A program that asks for the {} this path needs gets less, and no error.",
                bytes_text(needed as u64)
            ),
        )
    })
}
