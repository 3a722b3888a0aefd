//! The compared paths and their traffic.

use anyhow::{Result, ensure};

/// One path with its traffic, both in the lab and emulated.
pub(super) struct Case {
    /// Name, as printed above its table and matched by the filter argument.
    pub name: &'static str,
    /// Stem of its files in `bench/agreement`: `STEM.lab.toml` and `STEM.path.toml`.
    pub files: &'static str,
    /// Replacements made in both files: old and new text.
    pub both: &'static [(&'static str, &'static str)],
    /// Replacements made in the scenario only.
    pub lab: &'static [(&'static str, &'static str)],
    /// Command run under `emulate`.
    pub command: Traffic,
    /// Figures in its table, by name (see [`super::figures::shown`]).
    pub figures: &'static [&'static str],
}

/// Command at the local host; the strings are options of `landspeed run`.
pub(super) enum Traffic {
    /// One flow.
    Flow(&'static str),
    /// One flow, and a cross flow that starts half a second earlier.
    Crossed { flow: &'static str, cross: &'static str },
    /// One flow with captures at both hosts.
    Captured(&'static str),
}

const LOSS_FIGURES: &[&str] = &["goodput", "retransmits", "lost", "cwnd-mean", "rtt-min", "rtt-median"];
const BUFFER_FIGURES: &[&str] = &[
    "goodput",
    "retransmits",
    "cross-goodput",
    "cross-loss",
    "queue-drops",
    "queue-max",
    "queue-mean",
    "rtt-median",
];
const RAMP_FIGURES: &[&str] =
    &["to-90", "bytes-500", "bytes-1000", "exit-at", "exit-cwnd", "cwnd-max", "retransmits", "queue-drops"];

const CUBIC: &str = "-C cubic -O 1 -t 5";
const RENO: &str = "-C reno -O 1 -t 5";
const LAB_RENO: (&str, &str) = ("congestion = \"cubic\"", "congestion = \"reno\"");
const RTT_10: (&str, &str) = ("delay = \"25ms\"", "delay = \"5ms\"");
const RTT_100: (&str, &str) = ("delay = \"25ms\"", "delay = \"50ms\"");
const PERIODIC_LOSS: &str = "loss = { every = 1000 }";
const RANDOM_LOSS: (&str, &str) = (PERIODIC_LOSS, "loss = \"0.1%\"");
/// Loss for Reno at 50 ms on the emulated path, in the lab's frame numbers: the emulated path also carries the
/// control connection, 23 frames before the first data frame and 6.3 per second during the run.
const PERIODIC_LOSS_RENO_50MS: &str =
    "loss = { packets = [970, 1963, 2955, 3948, 4941, 5934, 6927, 7919, 8912, 9905, 10898] }";

const fn loss(name: &'static str, both: &'static [(&'static str, &'static str)], reno: bool) -> Case {
    Case {
        name,
        files: "loss",
        both,
        lab: if reno { &[LAB_RENO] } else { &[] },
        command: Traffic::Flow(if reno { RENO } else { CUBIC }),
        figures: LOSS_FIGURES,
    }
}

/// All cases.
pub(super) const CASES: &[Case] = &[
    loss("loss cubic 10ms every-1000", &[RTT_10], false),
    loss("loss cubic 50ms every-1000", &[], false),
    loss("loss cubic 100ms every-1000", &[RTT_100], false),
    loss("loss reno 10ms every-1000", &[RTT_10], true),
    loss("loss reno 50ms every-1000", &[], true),
    loss("loss reno 100ms every-1000", &[RTT_100], true),
    Case {
        lab: &[LAB_RENO, (PERIODIC_LOSS, PERIODIC_LOSS_RENO_50MS)],
        ..loss("loss reno 50ms, the same data frames", &[], true)
    },
    loss("loss cubic 10ms random-0.1%", &[RTT_10, RANDOM_LOSS], false),
    loss("loss cubic 100ms random-0.1%", &[RTT_100, RANDOM_LOSS], false),
    loss(
        "loss cubic 10ms every-10000, 200 Mb/s",
        &[RTT_10, ("rate = \"100M\"", "rate = \"200M\""), (PERIODIC_LOSS, "loss = { every = 10000 }")],
        false,
    ),
    Case {
        name: "buffer 62 kB, UDP 20 Mb/s",
        files: "buffer",
        both: &[],
        lab: &[],
        command: Traffic::Crossed { flow: CUBIC, cross: "-u -b 20M -t 7" },
        figures: BUFFER_FIGURES,
    },
    Case {
        name: "buffer 62 kB, second TCP flow",
        files: "buffer",
        both: &[],
        lab: &[("protocol = \"udp\"\nrate = \"20M\"\n", "")],
        command: Traffic::Crossed { flow: CUBIC, cross: "-C cubic -t 7 --send sendfile --receive discard" },
        figures: BUFFER_FIGURES,
    },
    Case {
        name: "ramp cubic 50ms",
        files: "ramp",
        both: &[],
        lab: &[],
        command: Traffic::Flow("-C cubic -t 3 -i 20ms"),
        figures: RAMP_FIGURES,
    },
    Case {
        name: "ramp reno 50ms",
        files: "ramp",
        both: &[],
        lab: &[LAB_RENO],
        command: Traffic::Flow("-C reno -t 3 -i 20ms"),
        figures: RAMP_FIGURES,
    },
    Case {
        name: "spacing cubic 50ms",
        files: "ramp",
        both: &[],
        lab: &[],
        command: Traffic::Captured("-C cubic -t 3"),
        figures: super::spacing::FIGURES,
    },
    Case {
        name: "spacing cubic 10ms every-1000",
        files: "loss",
        both: &[RTT_10],
        lab: &[],
        command: Traffic::Captured("-C cubic -O 1 -t 5"),
        figures: super::spacing::FIGURES,
    },
];

impl Case {
    /// Returns the scenario or path file with the replacements applied.
    pub(super) fn text(&self, file: &str, is_lab: bool) -> Result<String> {
        let mut text = file.to_owned();
        for (from, to) in self.both.iter().chain(if is_lab { self.lab } else { &[] }) {
            ensure!(text.matches(from).count() == 1, "{}: `{from}` must be in the file once", self.name);
            text = text.replace(from, to);
        }
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replaced_text_exists_in_the_files_of_every_case() {
        let directory = crate::root().join("bench/agreement");
        for case in CASES {
            for (kind, is_lab) in [("lab", true), ("path", false)] {
                let path = directory.join(format!("{}.{kind}.toml", case.files));
                let file = std::fs::read_to_string(&path).expect("the case has its files");
                case.text(&file, is_lab).expect("every replaced text is there once");
            }
            for name in case.figures {
                assert!(super::super::figures::shown(name).is_some(), "{}: no figure {name}", case.name);
            }
        }
    }
}
