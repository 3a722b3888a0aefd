use crate::prelude::*;

const NAME: &str = "net.ipv4.tcp_fack";

declare_check! {
    /// Whether the obsolete `tcp_fack` is still set.
    ///
    /// **Reads** `net.ipv4.tcp_fack` and the kernel's version.
    ///
    /// **Matters** only as a sign: RACK replaced it, and since Linux 4.15 the setting is ignored.
    ///
    /// **Leave it alone** on older kernels.
    code: "OLD-003",
    title: "tcp_fack",
    severity: Note,
    sources: ["tcp(7), tcp_fack: ignored since Linux 4.15", IP_SYSCTL],
    bad: |facts, _| example::sysctl(facts, NAME, "1"),
}

fn evaluate(view: &View<'_>) -> Outcome {
    super::ignored(view, NAME, 0, (4, 15), "RACK (TCP-005) took its place.")
}
