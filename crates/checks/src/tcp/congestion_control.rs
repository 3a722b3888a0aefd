use landspeed_calc::{cubic_recovery_s, reno_recovery_s, window_segments};

use crate::prelude::*;

const NAME: &str = "net.ipv4.tcp_congestion_control";

/// IP and TCP headers with timestamps, bytes.
const HEADER_BYTES: u32 = 52;

declare_check! {
    /// Congestion control of new connections.
    ///
    /// **Reads** `net.ipv4.tcp_congestion_control`, the goal's rate and RTT, the MTU.
    ///
    /// **Matters** because after a loss Reno grows by one segment per RTT: over a long fast path recovery takes
    /// hours, with CUBIC seconds to minutes. DCTCP only works where every switch marks (ECN); LP and Vegas
    /// yield to all other traffic.
    ///
    /// **Leave it alone** where a program chooses its own for each connection, and with BBR where it was
    /// compared on your path: the 2016 ESnet deck measured from 4.4 times H-TCP's rate to 39 % less, always
    /// with many more retransmits.
    code: "TCP-007",
    title: "Congestion control",
    severity: Major,
    sources: [
        "RFC 9438, CUBIC for Fast and Long-Distance Networks",
        "RFC 8257 section 1: DCTCP is for controlled data centres",
        "RFC 6297, A Survey of Lower-than-Best-Effort Transport Protocols: TCP-LP, Vegas",
        IP_SYSCTL,
    ],
    bad: |facts, _| example::sysctl(facts, NAME, "reno"),
}

fn evaluate(view: &View<'_>) -> Outcome {
    let value = known!(view.sysctl(NAME));
    let why = match value {
        "cubic" => return Outcome::pass("cubic"),
        bbr if bbr.starts_with("bbr") => {
            return Outcome::pass(format!("{bbr}: expect more retransmissions than with cubic"));
        }
        "reno" => "After a loss it grows by one segment per RTT.",
        "dctcp" => "Without marks from every switch it backs off from losses like Reno, and it is unfair to others.",
        "lp" | "vegas" | "nv" | "cdg" => {
            "It gives way to every other flow on the path: good for background copies, slow for all else."
        }
        other => return Outcome::not_applicable(format!("{other} is an algorithm of its time (OLD-014)")),
    };
    let available = view.sysctl("net.ipv4.tcp_available_congestion_control");
    let can = available.known().is_none_or(|names| names.split_whitespace().any(|name| name == "cubic"));
    let mut problem = advice::sysctl(NAME, value, "cubic", why);
    if !can {
        problem.changes.clear();
        problem.recommended = "cubic; this kernel has not loaded it: `modprobe tcp_cubic`".into();
    }
    Outcome::found(Problem {
        severity: (!is_long_path(view)).then_some(Severity::Minor),
        effect: match value {
            "reno" => recovery(view),
            "dctcp" => Effect::stated(
                "DCTCP must not be deployed over the public Internet without additional measures",
                "RFC 8257",
            ),
            _ => Effect::stated("It is less aggressive than CUBIC on the same path", "RFC 6297"),
        },
        ..problem
    })
}

/// Returns the recovery time after one loss, by the response functions.
fn recovery(view: &View<'_>) -> Effect {
    let (Fact::Known(rate), Fact::Known(port)) = (view.rate_bps(), view.port()) else { return Effect::NotMeasured };
    let mss = port.mtu_bytes.saturating_sub(HEADER_BYTES);
    if mss == 0 || !view.rtt_s().1 {
        return Effect::NotMeasured;
    }
    let rtt_s = view.rtt_s().0;
    let segments = window_segments(rate as f64, rtt_s, f64::from(mss));
    Effect::arithmetic(format!(
        "One loss at {} costs Reno {:.0} s to recover from, CUBIC {:.0} s.",
        view.path_text(),
        reno_recovery_s(segments, rtt_s),
        cubic_recovery_s(segments, rtt_s),
    ))
}
