use crate::prelude::*;

const NAME: &str = "net.ipv4.tcp_notsent_lowat";

/// No limit: the largest 32-bit number.
const UNLIMITED: u64 = u32::MAX as u64;

/// Below this, bytes, a bulk sender is woken for every few segments. Guides for web servers set 16 to 128 KiB.
const MIN_LIMIT_BYTES: u64 = 1 << 20;

declare_check! {
    /// Whether bulk senders may buffer enough unsent data.
    ///
    /// **Reads** `net.ipv4.tcp_notsent_lowat` and the role.
    ///
    /// **Matters** because with a low limit a program is woken for every few segments and cannot keep the socket full
    /// while it waits for the disk. It is a setting for web servers that want to decide late what to send.
    ///
    /// **Leave it alone** on a host of small messages, and where a program sets it for its own sockets.
    code: "TCP-013",
    title: "tcp_notsent_lowat",
    severity: Note,
    sources: [IP_SYSCTL],
    bad: |facts, _| example::sysctl(facts, NAME, "16384"),
}

fn evaluate(view: &View<'_>) -> Outcome {
    let value = known!(view.sysctl_last(NAME));
    if value >= UNLIMITED {
        return Outcome::pass("none");
    }
    if matches!(view.role(), Role::Latency | Role::Router) {
        return Outcome::not_applicable("it slows down bulk senders, not small messages");
    }
    if value >= MIN_LIMIT_BYTES {
        return Outcome::pass(bytes_text(value));
    }
    Outcome::found(Problem {
        observed: format!("{NAME} = {value}{}", origin(view, NAME)),
        ..advice::sysctl(NAME, value, UNLIMITED, "Every bulk sender is woken for a few segments at a time.")
    })
}
