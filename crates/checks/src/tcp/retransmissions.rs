use crate::prelude::*;

/// Retransmission rate from which no loss-based congestion control comes near a fast path's rate: by Mathis,
/// 0.1 % over 10 ms with segments of 1460 bytes is 45 Mb/s for a Reno flow.
const HIGH_RETRANSMISSION_RATE: f64 = 0.001;

declare_check! {
    /// Share of segments that were retransmitted.
    ///
    /// **Reads** `Tcp.RetransSegs` and `Tcp.OutSegs` since boot.
    ///
    /// **Matters** because on a long path a few losses in a hundred thousand decide the rate. The figure covers
    /// all connections since boot, short and long, over all paths: it shows that there is loss, not where.
    ///
    /// **Leave it alone** with BBR, which retransmits much by design, and on hosts that serve distant, poor networks.
    code: "TCP-018",
    title: "Retransmission rate",
    severity: Note,
    sources: [
        lbnl_2015!("Impact of packet loss at different distances"),
        esnet_2014!("A small amount of packet loss makes a huge difference in TCP performance"),
        "Mathis, Semke, Mahdavi, Ott: The Macroscopic Behavior of the TCP Congestion Avoidance Algorithm, CCR 1997",
    ],
    bad: |facts, _| example::counter(facts, "Tcp.RetransSegs", 5_000_000),
}

fn evaluate(view: &View<'_>) -> Outcome {
    let repeated = known!(counted(view, &["Tcp.RetransSegs"], &SEGMENTS_SENT));
    if view.role() == Role::Router {
        return Outcome::not_applicable("a router's own connections say nothing of what it forwards");
    }
    if view.sysctl("net.ipv4.tcp_congestion_control").known().is_some_and(|name| name.starts_with("bbr")) {
        return Outcome::pass(format!("{}; BBR retransmits much by design", repeated.text));
    }
    if !repeated.exceeds(SIGNIFICANT_LOSS_RATE) {
        return Outcome::pass(repeated.text);
    }
    Outcome::found(Problem {
        severity: (repeated.share > HIGH_RETRANSMISSION_RATE).then_some(Severity::Minor),
        effect: Effect::measured(
            "The deck calls the effect of 0.0046 % packet loss huge; its graph has no figures",
            &[&source::LOSS_2014],
        ),
        ..advice::manual_problem(
            repeated.text,
            format!(
                "below {} on a path that should be fast; look for where it is lost",
                percent(SIGNIFICANT_LOSS_RATE)
            ),
            "Loss-based congestion control takes each of them for congestion.",
            "nstat -az TcpRetransSegs TcpOutSegs  # landspeed run has them for one connection",
        )
    })
}
