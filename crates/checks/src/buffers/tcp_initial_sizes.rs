use super::{HIGH_INITIAL_BYTES, KERNEL_DEFAULTS, desired, triple};
use crate::prelude::*;

declare_check! {
    /// Whether every TCP connection begins with a large buffer.
    ///
    /// **Reads** the middle numbers of `net.ipv4.tcp_rmem` and `net.ipv4.tcp_wmem`.
    ///
    /// **Matters** because autotuning begins there and only grows: a web request takes as much as a transfer, and a
    /// hundred idle connections may bring TCP under memory pressure. The maximum is the third number.
    ///
    /// **Leave it alone** on a host that does one kind of short, fast transfer and was measured with it.
    code: "BUF-008",
    title: "Initial TCP buffers",
    severity: Minor,
    sources: [
        "Linux Documentation/networking/ip-sysctl.rst, tcp_rmem and tcp_wmem: the second number is the initial size",
    ],
    bad: |facts, _| example::sysctl(facts, "net.ipv4.tcp_rmem", "4096 16777216 2147483647"),
}

fn evaluate(view: &View<'_>) -> Outcome {
    let (mut seen, mut changes, mut passed) = (Vec::new(), Vec::new(), Vec::new());
    for (name, _) in KERNEL_DEFAULTS {
        let [minimum, initial, maximum] = known!(view.sysctl_triple(name));
        passed.push(format!("{name} begins at {initial}"));
        if initial > HIGH_INITIAL_BYTES {
            seen.push(format!("{name} = {}{}", triple([minimum, initial, maximum]), origin(view, name)));
            changes.push(Change::sysctl(name, desired(view, name)));
        }
    }
    let Some(first) = changes.first() else { return Outcome::pass(passed.join(", ")) };
    Outcome::found(Problem {
        observed: seen.join(", "),
        recommended: first.desired.clone(),
        by_hand: "sysctl net.ipv4.tcp_rmem net.ipv4.tcp_wmem".into(),
        applicability: Applicability::NeedsCare,
        changes: changes.clone(),
        ..advice::sysctl("", "", "", "Each connection begins with it, however little it will carry.")
    })
}
