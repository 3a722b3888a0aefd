use crate::buffers::{usable, window_bytes};
use crate::prelude::*;

/// Share of a cgroup's memory that socket buffers may take; the program needs the rest.
const SHARE: f64 = 0.5;

declare_check! {
    /// Whether this cgroup has enough memory for the data in flight.
    ///
    /// **Reads** the tightest `memory.max` of this cgroup and those above it, the goal's rate and RTT.
    ///
    /// **Matters** because socket buffers count towards the cgroup's memory: near the limit the kernel shrinks
    /// windows, and beyond it kills the program.
    ///
    /// **Leave it alone** on a local network.
    code: "ENV-006",
    title: "Memory limit of this cgroup",
    severity: Major,
    sources: ["Linux Documentation/admin-guide/cgroup-v2.rst, memory.max and sock in memory.stat"],
    bad: |facts, _| facts.cgroup.memory_max_bytes = Fact::Known(2 << 30),
}

fn evaluate(view: &View<'_>) -> Outcome {
    let limit = match &view.facts.cgroup.memory_max_bytes {
        Fact::Known(limit) => *limit,
        Fact::Absent(why) => return Outcome::pass(why.clone()),
        Fact::Unknown(why) => return Outcome::unknown(why.clone()),
    };
    known!(window_bytes(view));
    let needed = known!(view.bdp_bytes()) / usable(view);
    let text =
        format!("at most {}; {} needs {} in sockets", bytes_text(limit), view.path_text(), bytes_text(needed as u64));
    if needed <= limit as f64 * SHARE {
        return Outcome::pass(text);
    }
    let reached = limit as f64 * SHARE * usable(view) * 8.0 / view.rtt_s().0.max(1e-9);
    let problem = advice::manual_problem(
        text,
        format!("memory.max of {} or more", bytes_text((needed / SHARE) as u64)),
        "Socket buffers count as the group's: near the limit windows shrink, beyond it the program is killed.",
        "cd /sys/fs/cgroup/$(cut -d: -f3 /proc/self/cgroup) && cat memory.max && grep sock memory.stat",
    );
    Outcome::found(problem.with_effect(Effect::arithmetic(format!(
        "Half of the group's memory carries {} over this RTT.",
        rate_text(reached as u64)
    ))))
}
