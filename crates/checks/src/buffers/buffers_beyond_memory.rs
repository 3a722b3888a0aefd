use super::page_bytes;
use crate::prelude::*;

declare_check! {
    /// Whether the maximum of one socket exceeds the memory limit of all TCP sockets (`tcp_mem`).
    ///
    /// **Reads** the last numbers of `net.ipv4.tcp_rmem` and `net.ipv4.tcp_wmem`, and of `net.ipv4.tcp_mem`.
    ///
    /// **Matters** because the maximum can then never be reached: TCP comes under memory pressure first,
    /// windows shrink, and one connection slows down all others of the host. It happens when the figures of a
    /// large node are copied to a small one.
    ///
    /// **Leave it alone** where there are only single flows with low delay: they never need the maximum.
    code: "BUF-011",
    title: "TCP buffers larger than tcp_mem",
    severity: Minor,
    sources: ["Linux Documentation/networking/ip-sysctl.rst, tcp_mem: pages allowed for all TCP sockets"],
    bad: |facts, _| example::sysctl(facts, "net.ipv4.tcp_mem", "95000 127000 190000"),
}

fn evaluate(view: &View<'_>) -> Outcome {
    let receive = known!(view.sysctl_last("net.ipv4.tcp_rmem"));
    let send = known!(view.sysctl_last("net.ipv4.tcp_wmem"));
    let limit = known!(view.sysctl_last("net.ipv4.tcp_mem")).saturating_mul(known!(page_bytes(view)));
    let largest = receive.max(send);
    let text = format!("one socket {}, all of TCP {}", bytes_text(largest), bytes_text(limit));
    if largest <= limit {
        return Outcome::pass(text);
    }
    Outcome::found(Problem {
        effect: Effect::arithmetic(format!(
            "One socket may take {:.1} times what all of TCP may.",
            largest as f64 / limit.max(1) as f64
        )),
        ..advice::manual_problem(
            text,
            format!("maxima below {}, or more memory", bytes_text(limit)),
            "One slow reader can bring every connection of the host under memory pressure.",
            "sysctl net.ipv4.tcp_rmem net.ipv4.tcp_wmem net.ipv4.tcp_mem",
        )
    })
}
