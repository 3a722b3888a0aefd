use crate::advice::counter;
use crate::prelude::*;

declare_check! {
    /// Whether TCP ran short of memory.
    ///
    /// **Reads** `TcpExt.TCPMemoryPressures` and `TcpExt.TCPAbortOnMemory` since boot.
    ///
    /// **Matters** because under pressure the kernel shrinks the windows of all connections, and at the limit
    /// it resets some. A single event is enough to spoil a day's measurements.
    ///
    /// **Leave it alone** if it happened once, in an experiment you know of.
    code: "TCP-022",
    title: "TCP memory pressure",
    severity: Minor,
    sources: [
        "Linux Documentation/networking/ip-sysctl.rst, tcp_mem",
        "Linux Documentation/networking/snmp_counter.rst, TCPAbortOnMemory",
        "Linux net/ipv4/tcp.c, tcp_enter_memory_pressure: LINUX_MIB_TCPMEMORYPRESSURES",
    ],
    bad: |facts, _| example::counter(facts, "TcpExt.TCPMemoryPressures", 3),
}

fn evaluate(view: &View<'_>) -> Outcome {
    let times = known!(counter(view, "TcpExt.TCPMemoryPressures"));
    let aborted = counter(view, "TcpExt.TCPAbortOnMemory").known().copied().unwrap_or(0);
    let text =
        format!("{times} times under pressure, {aborted} orphaned connections reset for lack of memory, since boot");
    if times == 0 && aborted == 0 {
        return Outcome::pass(text);
    }
    Outcome::found(Problem {
        severity: (aborted > 0).then_some(Severity::Major),
        effect: Effect::stated(
            "Above the pressure threshold TCP moderates its memory use until it falls below the minimum",
            "Linux Documentation/networking/ip-sysctl.rst, tcp_mem",
        ),
        ..advice::manual_problem(
            text,
            "0: check tcp_mem (BUF-005, BUF-006) and the buffers' maxima (BUF-011)",
            "All connections of the host lose window at once.",
            "nstat -az TcpExtTCPMemoryPressures TcpExtTCPAbortOnMemory; cat /proc/net/sockstat",
        )
    })
}
