use crate::prelude::*;

const NAME: &str = "net.ipv4.tcp_tso_win_divisor";

declare_check! {
    /// Whether one TSO frame may be a whole window.
    ///
    /// **Reads** `net.ipv4.tcp_tso_win_divisor`.
    ///
    /// **Matters** because lower numbers let one large segment take more of the window: longer bursts for
    /// hardly any CPU time. On a fast path the segment is small compared with the window, regardless of this
    /// setting.
    ///
    /// **Leave it alone** at 3.
    code: "OLD-016",
    title: "tcp_tso_win_divisor",
    severity: Note,
    sources: [IP_SYSCTL],
    bad: |facts, _| example::sysctl(facts, NAME, "1"),
}

fn evaluate(view: &View<'_>) -> Outcome {
    super::changed_without_gain(
        view,
        NAME,
        3,
        "Lower, it makes bursts longer; on a fast path it changes nothing else.",
    )
}
