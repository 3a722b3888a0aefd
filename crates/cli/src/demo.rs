//! `landspeed demo`: the whole story on one machine, without root.

use std::path::PathBuf;
use std::sync::atomic::Ordering;

use anyhow::Context as _;
use landspeed_flow::client::{Request, Target};
use landspeed_flow::server::{Iperf3Config, Limits, Server, ServerConfig};
use landspeed_model::{
    Parameters, Protocol, ReceiveMode, RrMode, RrParameters, RrSize, RunDocument, SendMode, Status, UdpParameters,
};
use landspeed_units::BitRate;

use crate::output::Sink;
use crate::run::{FarEnd, live, measure};
use crate::{Outcome, text};

const EXAMPLES: &str = "\
Examples:
  landspeed demo
  landspeed demo --out /tmp/demo      reports and documents go there";

/// Options of `demo`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Directory for the reports; it is made if need be
    #[arg(short, long, default_value = "landspeed-demo")]
    out: PathBuf,
}

struct Scene {
    name: &'static str,
    headline: &'static str,
    why: &'static str,
    parameters: Parameters,
}

/// Measures this machine against itself, both ends shown.
pub fn main(args: &Args) -> anyhow::Result<Outcome> {
    std::fs::create_dir_all(&args.out).with_context(|| format!("cannot make {}", args.out.display()))?;
    let interrupted = landspeed_sys::process::catch_interrupts();
    let config = ServerConfig {
        listen: vec![([127, 0, 0, 1], 0).into()],
        limits: Limits::default(),
        allow: Vec::new(),
        key: None,
        data_from_anywhere: false,
        describe: false,
        iperf3: Iperf3Config::default(),
        tap: None,
    };
    let server = Server::bind(config, |_| ()).map_err(|e| anyhow::anyhow!("{e}"))?;
    let addr = server.addresses().first().copied().context("the server has no address")?;
    let stop = server.stop_flag();
    crate::check::demo::main(&args.out)?;
    println!("Both ends on this machine, over the loopback interface: no network limits anything here, so the");
    println!("verdicts are about processors and programs. No privilege is used.\n");
    let (mut outcome, mut documents) = (Outcome::Clean, Vec::new());
    std::thread::scope(|scope| {
        let serving = scope.spawn(|| server.run());
        for scene in scenes() {
            if interrupted.load(Ordering::Relaxed) {
                break;
            }
            println!("── {} ──\n{}\n", scene.headline, scene.why);
            let request = Request {
                target: Target { host: addr.ip().to_string(), port: Some(addr.port()) },
                parameters: scene.parameters,
                key: None,
                command: vec!["landspeed".to_owned(), "demo".to_owned(), scene.name.to_owned()],
                data: None,
                start_ns: None,
            };
            let view = live::View::new(&request);
            let document = measure(&request, &FarEnd::Landspeed, interrupted, view, &mut |_| ());
            println!("{}", text::summary(&document));
            if document.status != Status::Complete || !document.conservation.holds {
                outcome = Outcome::Findings;
            }
            documents.push((scene.name, document));
        }
        stop.store(true, Ordering::Relaxed);
        serving.join().map_err(|_| anyhow::anyhow!("the server's thread panicked"))?.context("the server failed")
    })?;
    story(&documents);
    for (name, document) in &documents {
        let path = args.out.join(format!("{name}.html"));
        let html = landspeed_report::render(document).context("cannot draw a report")?;
        Sink::File(path.clone()).write(html.as_bytes())?;
        Sink::File(args.out.join(format!("{name}.json"))).write(serde_json::to_string(document)?.as_bytes())?;
        println!("report  {}", path.display());
    }
    let lab = if interrupted.load(Ordering::Relaxed) { Outcome::Clean } else { crate::lab::demo::main(&args.out)? };
    Ok(if lab == Outcome::Clean { outcome } else { Outcome::Findings })
}

/// What the scenes say together.
fn story(documents: &[(&str, RunDocument)]) {
    let rate = |name: &str| {
        documents.iter().find(|(n, _)| *n == name).and_then(|(_, d)| d.summary.goodput_bps).filter(|r| *r > 0.0)
    };
    if let (Some(copy), Some(zero)) = (rate("copy"), rate("zerocopy")) {
        println!(
            "copy {} → without copies {}: {:.2}×\n",
            BitRate::from_bps(copy as u64),
            BitRate::from_bps(zero as u64),
            zero / copy
        );
    }
}

fn scenes() -> Vec<Scene> {
    let seconds = |s: f64| Some((s * 1e9) as u64);
    let bulk = Parameters { time_ns: seconds(6.0), omit_ns: 500_000_000, ..Parameters::default() };
    vec![
        Scene {
            name: "copy",
            headline: "One TCP stream, copied",
            why: "What a plain program gets: every byte is copied into the kernel and out again.",
            parameters: bulk.clone(),
        },
        Scene {
            name: "zerocopy",
            headline: "One TCP stream, without copies",
            why: "The sender lends its pages (splice), the receiver counts and drops (MSG_TRUNC).",
            parameters: Parameters { send: SendMode::Splice, receive: ReceiveMode::Discard, ..bulk.clone() },
        },
        Scene {
            name: "udp",
            headline: "UDP at 1 Gb/s, every packet accounted for",
            why: "1448-byte packets on a schedule; a bitmap at the receiver tells lost, duplicate, reordered and late.",
            parameters: Parameters {
                protocol: Protocol::Udp,
                rate_bps: Some(1_000_000_000),
                udp: Some(UdpParameters::default()),
                omit_ns: 0,
                write_bytes: 1448,
                ..bulk.clone()
            },
        },
        Scene {
            name: "latency",
            headline: "Request/response on a schedule",
            why: "2000 requests a second, latency counted from when each was due (no coordinated omission).",
            parameters: Parameters {
                protocol: Protocol::TcpRr,
                rr: Some(RrParameters {
                    mode: RrMode::OpenLoop,
                    rate_per_s: Some(2000.0),
                    sizes: vec![RrSize { request_bytes: 64, response_bytes: 64 }],
                }),
                time_ns: seconds(4.0),
                omit_ns: 0,
                ..Parameters::default()
            },
        },
        Scene {
            name: "loaded-latency",
            headline: "Latency beside two bulk streams",
            why: "The same path, probed a hundred times a second before and while it is full.",
            parameters: Parameters { streams: 2, probe_rate_per_s: Some(100.0), ..bulk.clone() },
        },
        Scene {
            name: "window",
            headline: "A deliberate fault: a small window",
            why: "Both buffers locked at 32 KiB, as old tuning advice does. The verdict should say so.",
            parameters: Parameters { window_bytes: Some(32 * 1024), ..bulk },
        },
    ]
}
