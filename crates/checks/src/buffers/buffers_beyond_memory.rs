use super::page_bytes;
use crate::prelude::*;

declare_check! {
    /// Whether one socket may take more than all of TCP (`tcp_mem`).
    ///
    /// **Reads** the last numbers of `net.ipv4.tcp_rmem` and `net.ipv4.tcp_wmem`, and of `net.ipv4.tcp_mem`.
    ///
    /// **Matters** because the maximum is then never reached: before it, TCP is under memory pressure, windows shrink
    /// and all connections of the host suffer from one. It happens when the figures of a large node are copied to a
    /// small one.
    ///
    /// **Leave it alone** where single flows with little delay are all there is: the maximum is then never asked for.
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
        ..advice::by_person(
            text,
            format!("maxima below {}, or more memory", bytes_text(limit)),
            "One slow reader can bring every connection of the host under memory pressure.",
            "sysctl net.ipv4.tcp_rmem net.ipv4.tcp_wmem net.ipv4.tcp_mem",
        )
    })
}
