//! What is asked of the lab: one setting each, with the value that a check finds and the one it recommends.

use landspeed_checks::{Figure, Verdict};

/// A setting to try.
pub struct Question {
    /// The checks that recommend it.
    pub codes: &'static [&'static str],
    /// What varies, as a person calls it.
    pub setting: &'static str,
    /// The scenario, in docs/checks/lab.
    pub scenario: &'static str,
    /// What is measured.
    pub figure: Figure,
    /// `--set` for all values.
    pub always: &'static [&'static str],
    /// The values and what each sets: first what the check finds, last what it recommends.
    pub values: &'static [(&'static str, &'static [&'static str])],
    /// What `because` explains.
    pub expected: Verdict,
    /// Why it is so, and what the lab does not show.
    pub because: &'static str,
}

/// Questions that were changed and not measured since, by their first code: `cargo xtask gains --missing` measures them, then
/// they leave this list.
#[cfg(test)]
pub const PENDING: &[&str] = &["TCP-001", "TCP-006", "TCP-017", "QDISC-001"];

/// All of them, in the order of the file of figures.
pub const QUESTIONS: &[Question] = &[
    Question {
        codes: &["BUF-001"],
        setting: "Maximum of tcp_rmem",
        scenario: "path.toml",
        figure: Figure::Goodput,
        always: &[],
        values: &[
            ("6 MiB", &[r#"hosts.sysctl."net.ipv4.tcp_rmem"="4096 131072 6291456""#]),
            ("32 MiB", &[r#"hosts.sysctl."net.ipv4.tcp_rmem"="4096 131072 33554432""#]),
            ("250 MB", &[r#"hosts.sysctl."net.ipv4.tcp_rmem"="4096 131072 250000000""#]),
        ],
        expected: Verdict::Helps,
        because: "The window cannot outgrow the buffer: rate = window / RTT.",
    },
    Question {
        codes: &["BUF-002"],
        setting: "Maximum of tcp_wmem",
        scenario: "path.toml",
        figure: Figure::Goodput,
        always: &[],
        values: &[
            ("4 MiB", &[r#"hosts.sysctl."net.ipv4.tcp_wmem"="4096 16384 4194304""#]),
            ("250 MB", &[r#"hosts.sysctl."net.ipv4.tcp_wmem"="4096 16384 250000000""#]),
        ],
        expected: Verdict::Helps,
        because: "What is not yet acknowledged has to stay in the send buffer.",
    },
    Question {
        codes: &["BUF-008"],
        setting: "Initial sizes (second numbers) of tcp_rmem and tcp_wmem",
        scenario: "path.toml",
        figure: Figure::Goodput,
        always: &[r#"flow.bulk.bytes="100MB""#, r#"flow.bulk.omit="0s""#, r#"flow.bulk.time="10s""#],
        values: &[
            (
                "16 MiB",
                &[
                    r#"hosts.sysctl."net.ipv4.tcp_rmem"="4096 16777216 250000000""#,
                    r#"hosts.sysctl."net.ipv4.tcp_wmem"="4096 16777216 250000000""#,
                ],
            ),
            (
                "stock",
                &[
                    r#"hosts.sysctl."net.ipv4.tcp_rmem"="4096 131072 250000000""#,
                    r#"hosts.sysctl."net.ipv4.tcp_wmem"="4096 16384 250000000""#,
                ],
            ),
        ],
        expected: Verdict::Helps,
        because: "A transfer of 100 MB. The advice is about memory; it costs a short transfer nothing here.",
    },
    Question {
        codes: &["BUF-009"],
        setting: "net.ipv4.tcp_moderate_rcvbuf",
        scenario: "path.toml",
        figure: Figure::Goodput,
        always: &[],
        values: &[
            ("`0`", &[r#"hosts.sysctl."net.ipv4.tcp_moderate_rcvbuf"=0"#]),
            ("`1`", &[r#"hosts.sysctl."net.ipv4.tcp_moderate_rcvbuf"=1"#]),
        ],
        expected: Verdict::Helps,
        because: "Without it the receive buffer stays at its initial size.",
    },
    Question {
        codes: &["TCP-001"],
        setting: "net.ipv4.tcp_sack",
        scenario: "losses.toml",
        figure: Figure::Goodput,
        // The whole life of the flow, with a sender's link that lets slow start overrun the port.
        always: &["link.1.forward={}", r#"link.0.rate="10G""#, r#"flow.bulk.omit="0s""#, r#"flow.bulk.time="30s""#],
        values: &[
            ("`0`", &[r#"hosts.sysctl."net.ipv4.tcp_sack"=0"#]),
            ("`1`", &[r#"hosts.sysctl."net.ipv4.tcp_sack"=1"#]),
        ],
        expected: Verdict::Helps,
        because: "Slow start overruns the port by hundreds of segments at once; without SACK they are repaired one per RTT. The figure is of the whole 30 s, recovery included; where losses come one at a time SACK makes no difference.",
    },
    Question {
        codes: &["TCP-002"],
        setting: "net.ipv4.tcp_timestamps",
        scenario: "path.toml",
        figure: Figure::Goodput,
        always: &[],
        values: &[
            ("`0`", &[r#"hosts.sysctl."net.ipv4.tcp_timestamps"=0"#]),
            ("`1`", &[r#"hosts.sysctl."net.ipv4.tcp_timestamps"=1"#]),
        ],
        expected: Verdict::Same,
        because: "They cost 12 bytes of each segment. What they protect against (old duplicates of wrapped sequence numbers) does not happen here.",
    },
    Question {
        codes: &["TCP-003"],
        setting: "net.ipv4.tcp_window_scaling",
        scenario: "path.toml",
        figure: Figure::Goodput,
        always: &[],
        values: &[
            ("`0`", &[r#"hosts.sysctl."net.ipv4.tcp_window_scaling"=0"#]),
            ("`1`", &[r#"hosts.sysctl."net.ipv4.tcp_window_scaling"=1"#]),
        ],
        expected: Verdict::Helps,
        because: "Without it no window is larger than 64 KiB.",
    },
    Question {
        codes: &["TCP-004"],
        setting: "net.ipv4.tcp_dsack",
        scenario: "reordering.toml",
        figure: Figure::Goodput,
        always: &[],
        values: &[
            ("`0`", &[r#"hosts.sysctl."net.ipv4.tcp_dsack"=0"#]),
            ("`1`", &[r#"hosts.sysctl."net.ipv4.tcp_dsack"=1"#]),
        ],
        expected: Verdict::Unclear,
        because: "It tells a sender which of its retransmits were spurious.",
    },
    Question {
        codes: &["TCP-005"],
        setting: "net.ipv4.tcp_recovery",
        scenario: "reordering.toml",
        figure: Figure::Goodput,
        always: &[],
        values: &[
            ("`0`", &[r#"hosts.sysctl."net.ipv4.tcp_recovery"=0"#]),
            ("`1`", &[r#"hosts.sysctl."net.ipv4.tcp_recovery"=1"#]),
        ],
        expected: Verdict::Same,
        because: "This kernel detects losses by time whatever the setting says; older ones differ.",
    },
    Question {
        codes: &["TCP-006"],
        setting: "net.ipv4.tcp_early_retrans",
        scenario: "tails.toml",
        figure: Figure::P99,
        always: &[],
        values: &[
            ("`0`", &[r#"hosts.sysctl."net.ipv4.tcp_early_retrans"=0"#]),
            ("`3`", &[r#"hosts.sysctl."net.ipv4.tcp_early_retrans"=3"#]),
        ],
        expected: Verdict::Helps,
        because: "Nothing follows the last packet of a request until the response: a probe after two RTTs reveals its loss, else the retransmission timer does.",
    },
    Question {
        codes: &["TCP-007"],
        setting: "net.ipv4.tcp_congestion_control",
        scenario: "losses.toml",
        figure: Figure::Goodput,
        always: &[],
        values: &[("`reno`", &[r#"hosts.congestion="reno""#]), ("`cubic`", &[r#"hosts.congestion="cubic""#])],
        expected: Verdict::Helps,
        because: "After a loss Reno grows by one segment per RTT, CUBIC with the time that has passed.",
    },
    Question {
        codes: &["TCP-008"],
        setting: "net.ipv4.tcp_congestion_control",
        scenario: "losses.toml",
        figure: Figure::Goodput,
        always: &[],
        values: &[("`cubic`", &[r#"hosts.congestion="cubic""#]), ("`bbr`", &[r#"hosts.congestion="bbr""#])],
        expected: Verdict::Helps,
        because: "BBR does not take these losses for congestion. It is alone on the path here: what it does to others is not shown.",
    },
    Question {
        codes: &["OLD-014"],
        setting: "net.ipv4.tcp_congestion_control",
        scenario: "losses.toml",
        figure: Figure::Goodput,
        always: &[],
        values: &[("`htcp`", &[r#"hosts.congestion="htcp""#]), ("`cubic`", &[r#"hosts.congestion="cubic""#])],
        expected: Verdict::Costs,
        because: "H-TCP grows back faster from lone losses like these. The advice is about maintenance and tests, not rate: compare both on your path.",
    },
    Question {
        codes: &["TCP-010"],
        setting: "net.ipv4.tcp_mtu_probing",
        scenario: "smaller-hop.toml",
        figure: Figure::Goodput,
        always: &[],
        values: &[
            ("`0`", &[r#"hosts.sysctl."net.ipv4.tcp_mtu_probing"=0"#]),
            ("`1`", &[r#"hosts.sysctl."net.ipv4.tcp_mtu_probing"=1"#]),
        ],
        expected: Verdict::Helps,
        because: "Every full packet vanishes; the kernel tries smaller ones after a few timeouts, or never.",
    },
    Question {
        codes: &["TCP-011"],
        setting: "net.ipv4.tcp_no_metrics_save",
        scenario: "again.toml",
        figure: Figure::Goodput,
        always: &[],
        values: &[
            ("`0`", &[r#"hosts.sysctl."net.ipv4.tcp_no_metrics_save"=0"#]),
            ("`1`", &[r#"hosts.sysctl."net.ipv4.tcp_no_metrics_save"=1"#]),
        ],
        expected: Verdict::Same,
        because: "The second connection is the one measured. The ssthresh that used to slow it down is no longer kept.",
    },
    Question {
        codes: &["OLD-010"],
        setting: "net.ipv4.tcp_no_metrics_save",
        scenario: "again.toml",
        figure: Figure::Goodput,
        always: &[],
        values: &[
            ("`1`", &[r#"hosts.sysctl."net.ipv4.tcp_no_metrics_save"=1"#]),
            ("`0`", &[r#"hosts.sysctl."net.ipv4.tcp_no_metrics_save"=0"#]),
        ],
        expected: Verdict::Same,
        because: "The second connection is the one measured. What is kept (RTT, reordering) makes no difference to it.",
    },
    Question {
        codes: &["TCP-012"],
        setting: "net.ipv4.tcp_slow_start_after_idle",
        scenario: "pauses.toml",
        figure: Figure::Median,
        always: &[],
        values: &[
            ("`1`", &[r#"hosts.sysctl."net.ipv4.tcp_slow_start_after_idle"=1"#]),
            ("`0`", &[r#"hosts.sysctl."net.ipv4.tcp_slow_start_after_idle"=0"#]),
        ],
        expected: Verdict::Helps,
        because: "A window that outlives the pause carries the request in one RTT.",
    },
    Question {
        codes: &["TCP-013"],
        setting: "net.ipv4.tcp_notsent_lowat",
        scenario: "path.toml",
        figure: Figure::Goodput,
        always: &[],
        values: &[
            ("`16384`", &[r#"hosts.sysctl."net.ipv4.tcp_notsent_lowat"=16384"#]),
            ("`131072`", &[r#"hosts.sysctl."net.ipv4.tcp_notsent_lowat"=131072"#]),
            ("`4294967295`", &[r#"hosts.sysctl."net.ipv4.tcp_notsent_lowat"=4294967295"#]),
        ],
        expected: Verdict::Same,
        because: "The lab's program is woken at once and never waits for a disk: what a limit costs where it does is not visible.",
    },
    Question {
        codes: &["TCP-014"],
        setting: "net.ipv4.tcp_limit_output_bytes",
        scenario: "path.toml",
        figure: Figure::Goodput,
        always: &[],
        values: &[
            ("`131072`", &[r#"hosts.sysctl."net.ipv4.tcp_limit_output_bytes"=131072"#]),
            ("`4194304`", &[r#"hosts.sysctl."net.ipv4.tcp_limit_output_bytes"=4194304"#]),
        ],
        expected: Verdict::Same,
        because: "The lab's devices report at once what has left. What a late completion costs at 100 Gb/s is not visible here.",
    },
    Question {
        codes: &["TCP-015"],
        setting: "net.ipv4.tcp_ecn of the receiver",
        scenario: "small-port.toml",
        figure: Figure::Goodput,
        always: &[
            r#"host.sender.sysctl."net.ipv4.tcp_ecn"=1"#,
            r#"switch.west.queue.kind="red""#,
            r#"switch.west.queue.min="100KB""#,
            r#"switch.west.queue.max="300KB""#,
            "switch.west.queue.ecn=true",
        ],
        values: &[
            ("`0`", &[r#"host.receiver.sysctl."net.ipv4.tcp_ecn"=0"#]),
            ("`2`", &[r#"host.receiver.sysctl."net.ipv4.tcp_ecn"=2"#]),
        ],
        expected: Verdict::Same,
        because: "The sender asks for it and the port marks (RED from 100 KB): a mark slows CUBIC down as a loss does.",
    },
    Question {
        codes: &["TCP-017"],
        setting: "net.ipv4.tcp_rto_min_us",
        scenario: "tails.toml",
        figure: Figure::P99,
        // Without tail loss probes only the timer repairs a lost tail.
        always: &[r#"hosts.sysctl."net.ipv4.tcp_early_retrans"=0"#],
        values: &[
            ("`1000000`", &[r#"hosts.sysctl."net.ipv4.tcp_rto_min_us"=1000000"#]),
            ("`200000`", &[r#"hosts.sysctl."net.ipv4.tcp_rto_min_us"=200000"#]),
        ],
        expected: Verdict::Helps,
        because: "The last packet of a request is lost, nothing follows it, and tail loss probes are off: the timer decides.",
    },
    Question {
        codes: &["TCP-018", "NIC-014", "NIC-015", "TCP-019", "TCP-020", "QDISC-007", "IRQ-013"],
        setting: "Share of frames lost",
        scenario: "losses.toml",
        figure: Figure::Goodput,
        always: &[],
        values: &[
            ("0.0046 % (one in 22 000)", &["link.1.forward.loss.every=22000"]),
            ("none", &["link.1.forward={}"]),
        ],
        expected: Verdict::Helps,
        because: "0.0046 % is the loss of the 2015 deck. CUBIC needs many RTTs to grow back after each loss. Where the frame is lost, on the path or in a host, makes no difference to TCP.",
    },
    Question {
        codes: &["TCP-027"],
        setting: "net.ipv4.tcp_pacing_ca_ratio (fq, 1 MB port)",
        scenario: "small-port.toml",
        figure: Figure::Goodput,
        always: &[r#"host.sender.qdisc="fq""#],
        values: &[
            ("`80`", &[r#"hosts.sysctl."net.ipv4.tcp_pacing_ca_ratio"=80"#]),
            ("`120`", &[r#"hosts.sysctl."net.ipv4.tcp_pacing_ca_ratio"=120"#]),
        ],
        expected: Verdict::Helps,
        because: "A flow that leaves no faster than its ACKs come back cannot grow.",
    },
    Question {
        codes: &["QDISC-001"],
        setting: "Qdisc of the sender",
        scenario: "small-port.toml",
        figure: Figure::Goodput,
        // As long as the deck's test: `iperf3 -t30 -O5`.
        always: &[r#"flow.bulk.time="30s""#, r#"flow.bulk.omit="5s""#, r#"flow.cross.time="35.2s""#],
        values: &[
            ("`pfifo_fast`", &[r#"host.sender.qdisc="pfifo_fast""#]),
            ("`fq_codel`", &[r#"host.sender.qdisc="fq_codel""#]),
            ("`fq`", &[r#"host.sender.qdisc="fq""#]),
        ],
        expected: Verdict::Helps,
        because: "fq spreads each window over the RTT; a burst that does not fit into the port is lost.",
    },
    Question {
        codes: &["NIC-004"],
        setting: "MTU of all links",
        scenario: "losses.toml",
        figure: Figure::Goodput,
        always: &[],
        values: &[("1500", &["link.*.mtu=1500"]), ("9000", &["link.*.mtu=9000"])],
        expected: Verdict::Helps,
        because: "A window grows by segments, and one frame in 50 000 is lost whatever its size. The CPU time per packet, the usual reason, is not in the lab.",
    },
    Question {
        codes: &["NIC-007"],
        setting: "TCP segmentation offload",
        scenario: "path.toml",
        figure: Figure::Goodput,
        always: &[],
        values: &[("off", &["hosts.tso=false"]), ("on", &["hosts.tso=true"])],
        expected: Verdict::Same,
        because: "The lab's CPUs cost nothing: what offload saves them, the reason for the advice, is not visible here.",
    },
    Question {
        codes: &["OLD-001"],
        setting: "net.ipv4.tcp_adv_win_scale",
        scenario: "path.toml",
        figure: Figure::Goodput,
        always: &[],
        values: &[
            ("`2`", &[r#"hosts.sysctl."net.ipv4.tcp_adv_win_scale"=2"#]),
            ("`1`", &[r#"hosts.sysctl."net.ipv4.tcp_adv_win_scale"=1"#]),
        ],
        expected: Verdict::Same,
        because: "The kernel ignores it since 6.6.",
    },
    Question {
        codes: &["OLD-012"],
        setting: "net.ipv4.udp_rmem_min and udp_wmem_min",
        scenario: "datagrams.toml",
        figure: Figure::Goodput,
        always: &[],
        values: &[
            (
                "`131072`",
                &[r#"hosts.sysctl."net.ipv4.udp_rmem_min"=131072"#, r#"hosts.sysctl."net.ipv4.udp_wmem_min"=131072"#],
            ),
            (
                "`4096`",
                &[r#"hosts.sysctl."net.ipv4.udp_rmem_min"=4096"#, r#"hosts.sysctl."net.ipv4.udp_wmem_min"=4096"#],
            ),
        ],
        expected: Verdict::Same,
        because: "It is what a socket may take when memory is short.",
    },
    Question {
        codes: &["OLD-013"],
        setting: "net.ipv4.tcp_app_win",
        scenario: "path.toml",
        figure: Figure::Goodput,
        always: &[],
        values: &[
            ("`1`", &[r#"hosts.sysctl."net.ipv4.tcp_app_win"=1"#]),
            ("`31`", &[r#"hosts.sysctl."net.ipv4.tcp_app_win"=31"#]),
        ],
        expected: Verdict::Helps,
        because: "What is held back cannot be in flight.",
    },
    Question {
        codes: &["OLD-015"],
        setting: "Maximum of tcp_rmem",
        scenario: "path.toml",
        figure: Figure::Goodput,
        always: &[],
        values: &[
            ("4 MB", &[r#"hosts.sysctl."net.ipv4.tcp_rmem"="4096 131072 4000000""#]),
            ("16 MiB", &[r#"hosts.sysctl."net.ipv4.tcp_rmem"="4096 131072 16777216""#]),
            ("32 MiB (the default)", &[r#"hosts.sysctl."net.ipv4.tcp_rmem"="4096 131072 33554432""#]),
        ],
        expected: Verdict::Helps,
        because: "It was much in 2012; the kernel's own maximum has outgrown it.",
    },
    Question {
        codes: &["OLD-016"],
        setting: "net.ipv4.tcp_tso_win_divisor",
        scenario: "small-port.toml",
        figure: Figure::Goodput,
        always: &[],
        values: &[
            ("`1`", &[r#"hosts.sysctl."net.ipv4.tcp_tso_win_divisor"=1"#]),
            ("`3`", &[r#"hosts.sysctl."net.ipv4.tcp_tso_win_divisor"=3"#]),
        ],
        expected: Verdict::Same,
        because: "A segment for the card is small against the window of a fast path.",
    },
    Question {
        codes: &["OLD-018"],
        setting: "net.ipv4.tcp_reordering",
        scenario: "reordering.toml",
        figure: Figure::Goodput,
        always: &[],
        values: &[
            ("`127`", &[r#"hosts.sysctl."net.ipv4.tcp_reordering"=127"#]),
            ("`3`", &[r#"hosts.sysctl."net.ipv4.tcp_reordering"=3"#]),
        ],
        expected: Verdict::Same,
        because: "Losses are detected by time: how many segments may overtake hardly matters.",
    },
];
