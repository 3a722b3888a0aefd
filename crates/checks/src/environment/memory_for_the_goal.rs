use crate::buffers::{usable, window_bytes};
use crate::prelude::*;

/// Share of a machine's memory that TCP may take; more starves programs and the page cache.
const SHARE: f64 = 0.25;

declare_check! {
    /// Whether the machine has enough memory for the data in flight.
    ///
    /// **Reads** the memory, the goal's rate and RTT.
    ///
    /// **Matters** because data in flight is buffered on both hosts, and the kernel's structures add half as
    /// much again: no setting replaces memory.
    ///
    /// **Leave it alone** on a local network.
    code: "ENV-022",
    title: "Memory for the goal",
    severity: Major,
    sources: [
        "RFC 7323 section 1.1: bandwidth times delay is what must be stored",
        "Linux net/ipv4/tcp.c, tcp_init_mem: by default 6.25 % of memory before pressure",
    ],
    bad: |facts, _| facts.memory_bytes = Fact::Known(4 << 30),
}

fn evaluate(view: &View<'_>) -> Outcome {
    let memory = *known!(&view.facts.memory_bytes);
    known!(window_bytes(view));
    let needed = known!(view.bdp_bytes()) / usable(view);
    let text = format!("{}; {} needs {} in sockets", bytes_text(memory), view.path_text(), bytes_text(needed as u64));
    if needed <= memory as f64 * SHARE {
        return Outcome::pass(text);
    }
    let reached = memory as f64 * SHARE * usable(view) * 8.0 / view.rtt_s().0.max(1e-9);
    let problem = advice::manual_problem(
        text,
        format!("{} or more", bytes_text((needed / SHARE) as u64)),
        "What is in flight is stored at both ends; TCP would take more than a quarter of the memory.",
        "free -h",
    );
    Outcome::found(problem.with_effect(Effect::arithmetic(format!(
        "A quarter of the memory carries {} over this RTT.",
        rate_text(reached as u64)
    ))))
}
