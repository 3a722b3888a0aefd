//! `landspeed demo`: four claims about this machine, each checked, without root or a second host.

mod claims;
pub mod text;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, UNIX_EPOCH};

use anyhow::Context as _;
use landspeed_flow::client::{Request, Target};
use landspeed_flow::server::{Limits, Server, ServerConfig};
use landspeed_model::{
    BuildInfo, DEMO_SCHEMA, DemoDocument, DemoResult, DemoScene, Parameters, Protocol, RunDocument, UdpParameters,
    Verdict,
};
use landspeed_report::Source;
use landspeed_results::Document;
use landspeed_sys::{clock, process};

use crate::CommandOutcome;
use crate::lab::demo::{self as lab, Readiness};
use crate::output::Sink;
use crate::run::{RemoteEnd, live, measure};
use claims::ClaimResult;

const EXAMPLES: &str = "\
Examples:
  landspeed demo
  landspeed demo --out /tmp/demo      where index.html, the reports and demo.json go
  landspeed demo --build-kernel       builds the lab's kernel first if there is none

Exit status: 0 every checked claim holds, 1 a claim fails or the demo was interrupted, 2 failure.";

/// Read rate of the receiver in the second scene, bits/s.
const READ_RATE_BPS: u64 = 100_000_000;

/// Options of `demo`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Directory for index.html, the reports and the documents; it is created if it does not exist
    #[arg(short, long, value_name = "DIR", default_value = "landspeed-demo")]
    out: PathBuf,
    /// Leave out the lab
    #[arg(long)]
    no_lab: bool,
    /// Build the lab's kernel if there is none: downloads Debian's kernel source and compiles it, several minutes
    #[arg(long, conflicts_with = "no_lab")]
    build_kernel: bool,
}

/// A test over loopback and the claim about it.
struct Scene {
    name: &'static str,
    title: &'static str,
    claim: &'static str,
    parameters: Parameters,
    check: fn(&RunDocument) -> ClaimResult,
}

/// Runs the scenes and checks their claims.
pub fn main(args: &Args) -> anyhow::Result<CommandOutcome> {
    landspeed_sys::file::create_directory(&args.out)
        .with_context(|| format!("cannot create {}", args.out.display()))?;
    Sink::File(args.out.join("index.html")).check()?;
    let started_ns = clock::monotonic_ns();
    let mut demo = Demo {
        out: &args.out,
        started_ns,
        interrupted: process::catch_interrupts(),
        announced: false,
        document: DemoDocument {
            schema: DEMO_SCHEMA.to_owned(),
            landspeed: BuildInfo { version: env!("CARGO_PKG_VERSION").to_owned(), server_version: None },
            started: humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_nanos(clock::realtime_ns()))
                .to_string(),
            command: process::command_line(),
            host: String::new(),
            wall_s: 0.0,
            scenes: Vec::new(),
        },
    };
    out!("{}", text::opening());
    demo.loopback()?;
    demo.lab(args)?;
    out!("{}", text::closing(&demo.document, &args.out));
    let holds = |scene: &DemoScene| scene.result != DemoResult::Fails;
    let whole = !demo.interrupted.load(Ordering::Relaxed);
    Ok(if whole && demo.document.scenes.iter().all(holds) { CommandOutcome::Clean } else { CommandOutcome::Findings })
}

/// State of a running demo.
struct Demo<'a> {
    out: &'a Path,
    started_ns: u64,
    interrupted: &'a AtomicBool,
    /// Whether the current scene's title was printed: scenes after an interrupt print nothing.
    announced: bool,
    document: DemoDocument,
}

impl Demo<'_> {
    /// Runs the loopback scenes, with client and server in this process.
    fn loopback(&mut self) -> anyhow::Result<()> {
        let server = Server::bind(server_config(), &[], |_| ()).map_err(|e| anyhow::anyhow!("{e}"))?;
        let addr = server.addresses().first().copied().context("the server has no address")?;
        let stop = server.stop_flag();
        std::thread::scope(|scope| {
            let serving = scope.spawn(|| server.run());
            let result = scenes().into_iter().try_for_each(|scene| self.test(&scene, addr));
            stop.store(true, Ordering::Relaxed);
            serving
                .join()
                .map_err(|_| anyhow::anyhow!("the server's thread panicked"))?
                .context("the server failed")?;
            result
        })
    }

    fn test(&mut self, scene: &Scene, addr: SocketAddr) -> anyhow::Result<()> {
        let mut shown = self.begin(scene.name, scene.title, scene.claim);
        if !self.interrupted.load(Ordering::Relaxed) {
            let request = Request {
                target: Target { host: addr.ip().to_string(), port: Some(addr.port()) },
                parameters: scene.parameters.clone(),
                key: None,
                command: vec!["landspeed".to_owned(), "demo".to_owned(), scene.name.to_owned()],
                data: None,
                local_port: None,
                start_ns: None,
            };
            let document =
                measure(&request, &RemoteEnd::Landspeed, false, self.interrupted, live::View::silent(), &mut |_| ());
            if let Some(host) = &document.hosts.client {
                self.document.host.clone_from(&host.hostname);
            }
            let html = landspeed_report::render(&document).context("cannot draw a report")?;
            self.keep(&mut shown, &html, &serde_json::to_vec(&document)?)?;
            if !self.interrupted.load(Ordering::Relaxed) {
                conclude(&mut shown, (scene.check)(&document));
            }
        }
        self.end(shown)
    }

    /// Runs the lab scene, in virtual time.
    fn lab(&mut self, args: &Args) -> anyhow::Result<()> {
        let claim = format!(
            "the large buffer carries at least {:.0}× as much, neither more than the link, and a repeated run is \
             identical",
            claims::MIN_BUFFER_GAIN
        );
        let mut shown =
            self.begin("lab", "Lab: one TCP stream, 1 Gb/s, 40 ms RTT, a small and a large switch buffer", &claim);
        if args.no_lab {
            shown.reason = Some("left out (--no-lab)".to_owned());
        } else if !self.interrupted.load(Ordering::Relaxed) {
            match lab::kernel(args.build_kernel)? {
                Readiness::Unavailable(why) => shown.reason = Some(why),
                Readiness::Ready => {
                    if let Some(sweep) = lab::cells()? {
                        let checked = claims::buffers(&sweep, lab::LINK_BPS);
                        let json = serde_json::to_vec(&sweep)?;
                        let source =
                            Source { name: "lab.json".to_owned(), document: Document::Sweep(Box::new(sweep)) };
                        let html =
                            landspeed_report::render_document(&source, &[]).context("cannot draw the report")?;
                        self.keep(&mut shown, &html, &json)?;
                        conclude(&mut shown, checked);
                    }
                }
            }
        }
        self.end(shown)
    }

    /// Prints title and claim. The scene counts as not checked until it is concluded.
    fn begin(&mut self, name: &str, title: &str, claim: &str) -> DemoScene {
        let shown = DemoScene {
            name: name.to_owned(),
            title: title.to_owned(),
            claim: claim.to_owned(),
            result: DemoResult::NotChecked,
            measured: String::new(),
            reason: None,
            report: None,
            document: None,
            chart: None,
        };
        self.announced = !self.interrupted.load(Ordering::Relaxed);
        if self.announced {
            out!("{}", text::before(self.document.scenes.len() + 1, &shown));
        }
        shown
    }

    /// Writes a scene's report and document.
    fn keep(&self, scene: &mut DemoScene, html: &str, json: &[u8]) -> anyhow::Result<()> {
        let (report, document) = (format!("{}.html", scene.name), format!("{}.json", scene.name));
        Sink::File(self.out.join(&report)).write(html.as_bytes())?;
        Sink::File(self.out.join(&document)).write(json)?;
        (scene.report, scene.document) = (Some(report), Some(document));
        Ok(())
    }

    /// Prints the scene's result, and writes index.html and demo.json with all scenes so far.
    fn end(&mut self, mut scene: DemoScene) -> anyhow::Result<()> {
        if scene.result == DemoResult::NotChecked && scene.reason.is_none() {
            scene.reason = Some("interrupted".to_owned());
        }
        if self.announced {
            out!("{}", text::after(&scene));
        }
        self.document.scenes.push(scene);
        self.document.wall_s = (clock::monotonic_ns() - self.started_ns) as f64 / 1e9;
        let html = landspeed_report::render_demo(&self.document).context("cannot draw index.html")?;
        Sink::File(self.out.join("index.html")).write(html.as_bytes())?;
        let mut json = serde_json::to_vec_pretty(&self.document)?;
        json.push(b'\n');
        Sink::File(self.out.join("demo.json")).write(&json)
    }
}

fn conclude(scene: &mut DemoScene, checked: ClaimResult) {
    scene.result = if checked.failures.is_empty() { DemoResult::Holds } else { DemoResult::Fails };
    scene.reason = (!checked.failures.is_empty()).then(|| checked.failures.join("; "));
    scene.measured = checked.measured;
    scene.chart = Some(checked.chart);
}

fn server_config() -> ServerConfig {
    ServerConfig {
        listen: vec![([127, 0, 0, 1], 0).into()],
        limits: Limits::default(),
        allow: Vec::new(),
        key: None,
        data_from_anywhere: false,
        describe: false,
        tap: None,
        changes: None,
        third_party: None,
    }
}

fn scenes() -> Vec<Scene> {
    let base = Parameters { time_ns: Some(4_000_000_000), omit_ns: 500_000_000, ..Parameters::default() };
    vec![
        Scene {
            name: "accounting",
            title: "Accounting: one TCP stream over loopback",
            claim: "every byte sent is received, lost or still queued, and the kernel counts the same",
            parameters: base.clone(),
            check: claims::accounting,
        },
        Scene {
            name: "fault",
            title: "A fault: the receiving application reads at 100 Mb/s only",
            claim: "the verdict is slow-reader with high confidence, and slow-reader still when diagnosis does not see --read-rate",
            parameters: Parameters { read_rate_bps: Some(READ_RATE_BPS), ..base.clone() },
            check: |document| claims::fault(document, &verdict_without_read_rate(document)),
        },
        Scene {
            name: "udp",
            title: "UDP: bursts of 64 packets into a socket buffer of 32 KiB",
            claim: "every packet is received or lost, and the kernel's drop counter confirms each loss",
            parameters: Parameters {
                protocol: Protocol::Udp,
                rate_bps: Some(200_000_000),
                window_bytes: Some(32 * 1024),
                write_bytes: 1448,
                omit_ns: 0,
                // The kernel counts a dropped GRO batch as one drop.
                udp: Some(UdpParameters { burst_packets: 64, gro: false, ..UdpParameters::default() }),
                ..base
            },
            check: claims::datagrams,
        },
    ]
}

/// Returns the verdict on the document without its `--read-rate`.
fn verdict_without_read_rate(document: &RunDocument) -> Verdict {
    let mut document = document.clone();
    document.requested.read_rate_bps = None;
    if let Some(effective) = &mut document.effective {
        effective.read_rate_bps = None;
    }
    landspeed_diagnose::diagnose(&document, document.requested.direction)
}
