//! `landspeed lab run`.

use std::path::PathBuf;

use anyhow::Context as _;
use landspeed_lab::boot::{self, Boot};
use landspeed_lab::{outcome, plan, scenario};

use crate::Outcome;
use crate::output::Sink;

/// Options of `lab run`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The scenario's file
    scenario: PathBuf,
    /// Write the document here (`-`: standard output)
    #[arg(long, value_name = "FILE")]
    json: Option<Sink>,
    /// Capture at NODE:NEIGHBOUR
    #[arg(long, value_name = "NODE:IFACE")]
    pcap: Vec<String>,
}

/// Runs it.
pub fn main(args: &Args) -> anyhow::Result<Outcome> {
    let text = std::fs::read_to_string(&args.scenario).context("scenario")?;
    let scenario: scenario::Scenario = toml::from_str(&text)?;
    let plan = plan::plan(&scenario, &args.pcap)?;
    let kernel = PathBuf::from(std::env::var("LANDSPEED_KERNEL")?);
    let program = std::fs::read("/proc/self/exe")?;
    let memory = scenario.memory.map_or(2 << 30, |m| m.0.get());
    let boot = Boot {
        kernel: &kernel,
        program: &program,
        arguments: &["lab", "guest"],
        plan: &plan,
        memory_bytes: memory,
        keep: Some(std::path::Path::new(".")),
    };
    let interrupted = landspeed_sys::process::catch_interrupts();
    let booted = boot::run(&boot, interrupted, &mut |progress, wall| {
        let _ = (progress, wall);
    })?;
    eprintln!();
    let frame = outcome::Frame {
        started: String::new(),
        command: vec![],
        seed: scenario.seed,
        memory_bytes: memory,
        warnings: vec![],
        kernel: Default::default(),
        scenario: landspeed_model::ScenarioInfo {
            name: scenario.name.clone(),
            description: None,
            hash: String::new(),
            text,
            cell: Default::default(),
            reference: None,
        },
    };
    let document = outcome::document(frame, &plan, booted);
    if let Some(sink) = &args.json {
        sink.write(&serde_json::to_vec(&document)?)?;
    }
    for f in &document.flows {
        println!("{} {:?} Gb/s, {:?} retransmits", f.name, f.goodput_bps.map(|b| b / 1e9), f.retransmits);
    }
    for q in &document.queues {
        println!("{} {} drops {} peak {} bytes {}", q.name, q.kind, q.drops, q.peak_bytes, q.bytes);
    }
    for c in &document.checks {
        println!("{} {} {}", if c.passed { "ok  " } else { "FAIL" }, c.name, c.detail);
    }
    println!(
        "{:?} wall {:.2} boot {:.2} virtual {:.3} mem {:?} digest {:?}",
        document.status,
        document.wall_s,
        document.boot_s,
        document.virtual_s,
        document.memory_peak_bytes,
        document.digest
    );
    Ok(Outcome::Clean)
}
