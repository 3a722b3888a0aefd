use landspeed_model::Applicability;

use super::{FAR, STOCK, buffer_bytes, desired, short_path};
use crate::advice::{self, ESNET_2016};
use crate::check::{Outcome, Problem};
use crate::example;
use crate::view::{View, bytes_text};

const NAME: &str = "net.ipv4.tcp_rmem";

declare_check! {
    /// Whether a host of a local network has the buffers of a long path.
    ///
    /// **Reads** the last number of `net.ipv4.tcp_rmem`, the goal's rate and round trip.
    ///
    /// **Matters** because receive autotuning overshoots on short round trips: data then waits in memory where it could
    /// have stayed in the processor's cache. Newer kernels grow more slowly there (`tcp_rcvbuf_low_rtt`).
    ///
    /// **Leave it alone** where the host also serves a long path: state the longest round trip as the goal.
    code: "BUF-015",
    name: "wan-buffers-on-a-lan",
    group: Buffers,
    title: "Buffers of a long path on a short one",
    scope: Host,
    severity: Note,
    since: "0.1",
    sources: [
        "Linux Documentation/networking/ip-sysctl.rst, tcp_rcvbuf_low_rtt: too large buffers spoil caches",
        ESNET_2016,
    ],
    example: {
        good: |facts, goal| {
            goal.rtt_ns = Some(54_000);
            example::sysctl(facts, NAME, "4096 131072 33554432");
        },
        bad: |_, goal| goal.rtt_ns = Some(54_000),
    },
}

fn evaluate(view: &View<'_>) -> Outcome {
    let maximum = known!(view.sysctl_last(NAME));
    if !short_path(view) {
        return Outcome::not_applicable("the goal is no short path");
    }
    let needed = known!(buffer_bytes(view));
    if maximum <= needed.max(STOCK[0].1[2]).saturating_mul(FAR) {
        return Outcome::pass(format!("{}; {} needs {}", bytes_text(maximum), view.path_text(), bytes_text(needed)));
    }
    let desired = desired(view, NAME);
    Outcome::found(Problem {
        observed: format!(
            "{NAME} ends at {}; {} needs {}",
            bytes_text(maximum),
            view.path_text(),
            bytes_text(needed)
        ),
        // Somebody raised it, perhaps for a longer path than this goal's: lowered only when asked for by name.
        applicability: Applicability::NeedsCare,
        effect: "The 2016 deck went from 50 to 60 Gb/s to 79 Gb/s on its LAN with buffers fixed by hand.".into(),
        ..advice::sysctl(
            NAME,
            maximum,
            desired,
            "Autotuning overshoots on a short path, and the data leaves the cache.",
        )
    })
}
