//! `cargo xtask pictures`: makes the pictures of `docs/trace-gallery.md` from lab captures.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

/// Maximum size of a committed picture, bytes.
const MAX_PICTURE_BYTES: u64 = 200_000;

/// Options of the task.
#[derive(clap::Args)]
pub struct Options {
    /// Path of a landspeed binary; by default a release build is made
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// Only exhibits whose name contains this
    filter: Option<String>,
}

/// A lab run: the scenario, its `--set` option, and the name of its capture.
struct Run {
    scenario: &'static str,
    set: Option<&'static str>,
    capture: &'static str,
}

/// A picture: file name, CSS selector of the chart, and view parameters.
type Picture = (&'static str, &'static str, &'static [&'static str]);

/// A trace report and the pictures made of it.
struct Exhibit {
    name: &'static str,
    tap: &'static str,
    runs: &'static [Run],
    pictures: &'static [Picture],
}

const EXHIBITS: &[Exhibit] = &[
    Exhibit {
        name: "loss",
        tap: "sender:west",
        runs: &[Run { scenario: "loss", set: None, capture: "loss" }],
        pictures: &[
            ("loss", "#chart-sequence", &["from=1.68", "to=1.745"]),
            ("loss-whole", ".stack", &["from=1.5", "to=6.5"]),
        ],
    },
    Exhibit {
        name: "ack-framing",
        tap: "sender:west",
        runs: &[
            Run { scenario: "ack-framing", set: None, capture: "framed" },
            Run { scenario: "ack-framing", set: Some("link.0.reverse.slot=0us"), capture: "pseudo" },
        ],
        pictures: &[
            ("ack-framing-gaps", "#chart-gaps-acks", &["width=1400"]),
            ("ack-framing-sequence", ".chartrow.two", &["from=2.2", "to=2.202", "fit=acks"]),
        ],
    },
    Exhibit {
        name: "fq-spacing",
        tap: "west:sender",
        runs: &[
            Run { scenario: "fq-spacing", set: None, capture: "fq" },
            Run { scenario: "fq-spacing", set: Some("host.sender.qdisc=pfifo_fast"), capture: "pfifo_fast" },
        ],
        pictures: &[
            ("fq-spacing-gaps", "#chart-gaps-data", &["width=1400"]),
            ("fq-spacing-sequence", ".chartrow.two", &["from=3", "to=3.0006", "fit=data"]),
        ],
    },
    Exhibit {
        name: "congestion-1ms",
        tap: "west:sender",
        runs: &[Run { scenario: "congestion-1ms", set: None, capture: "congestion" }],
        pictures: &[("congestion-1ms", "#chart-rate", &["from=1.5", "to=4.5"])],
    },
    Exhibit {
        name: "window-growth",
        tap: "sender:west",
        runs: &[
            Run { scenario: "window-growth", set: None, capture: "every-segment" },
            Run { scenario: "window-growth", set: Some("host.receiver.delayed-ack=true"), capture: "delayed" },
        ],
        pictures: &[
            ("window-growth", ".chartrow:has(#chart-flight-a)", &["from=1.9", "to=3.2", "on=window"]),
            ("window-growth-sequence", ".chartrow.two", &["from=1.9", "to=2.9"]),
        ],
    },
];

/// Runs the scenarios, renders the reports, and takes the pictures.
pub fn run(options: &Options) -> Result<()> {
    let root = crate::root();
    let program = match &options.program {
        Some(program) => program.canonicalize().with_context(|| format!("no {}", program.display()))?,
        None => crate::validate::program(&root)?,
    };
    let work = root.join("target/pictures");
    std::fs::create_dir_all(&work).with_context(|| format!("cannot make {}", work.display()))?;
    for exhibit in EXHIBITS.iter().filter(|e| options.filter.as_ref().is_none_or(|text| e.name.contains(text))) {
        picture(&root, &program, &work, exhibit).with_context(|| format!("exhibit {}", exhibit.name))?;
    }
    Ok(())
}

fn picture(root: &Path, program: &Path, work: &Path, exhibit: &Exhibit) -> Result<()> {
    let gallery = root.join("docs/trace-gallery");
    for run in exhibit.runs {
        let mut lab = Command::new(program);
        lab.current_dir(work).args(["lab", "run"]).arg(gallery.join(format!("{}.toml", run.scenario)));
        lab.args(run.set.iter().flat_map(|set| ["--set", set])).args(["--pcap", exhibit.tap]);
        finish(&mut lab)?;
        let written = format!("{}.pcap", exhibit.tap.replace(':', "."));
        std::fs::rename(work.join(written), work.join(format!("{}.pcap", run.capture))).context("the capture")?;
    }
    let report = format!("{}.html", exhibit.name);
    let mut trace = Command::new(program);
    trace.current_dir(work).arg("trace").arg(format!("{}.pcap", exhibit.runs[0].capture));
    if let Some(second) = exhibit.runs.get(1) {
        trace.arg("--against").arg(format!("{}.pcap", second.capture));
    }
    finish(trace.args(["--report", &report]))?;
    for (name, selector, how) in exhibit.pictures {
        let file = gallery.join(format!("{name}.png"));
        let mut node = Command::new("node");
        node.current_dir(root).arg("web/test/picture.mjs").arg(work.join(&report)).arg(&file).arg(selector);
        finish(node.args(*how))?;
        let bytes = file.metadata().with_context(|| format!("no {}", file.display()))?.len();
        ensure!(bytes <= MAX_PICTURE_BYTES, "{} has {bytes} bytes", file.display());
        println!("{} ({bytes} bytes)", file.display());
    }
    Ok(())
}

fn finish(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot run {}", command.get_program().display()))?;
    ensure!(status.success(), "{} failed: {status}", command.get_program().display());
    Ok(())
}
