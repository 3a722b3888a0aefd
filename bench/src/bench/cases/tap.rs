//! Packet capture: cost for the sender, drops, and CPU time of the tap itself. One thread sends small datagrams
//! over a virtual link as fast as it can; every tool keeps the same bytes of each. The kernel copies a packet for
//! a tap in the context of its sender, so that cost appears in the sender's CPU time. The sender's rate shows it
//! too, but also depends on other load on this machine.

use std::net::UdpSocket;
use std::path::PathBuf;
use std::process::Command;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use nix::sys::signal::Signal;

use crate::bench::Bench;
use crate::bench::case::{Case, Measure, Role};
use crate::bench::child::{Finished, Running, children_cpu_s, run_checked, thread_cpu_s};
use crate::bench::row::{Better, Unit};
use crate::bench::tools::Found;
use crate::machine;

const INTERFACE: &str = "lstap0";
const PEER: &str = "lstap1";
const TARGET: &str = "10.94.0.2:9";
const FILTER: &[&str] = &["udp", "dst", "port", "9"];
/// Payload of a datagram, bytes.
const PAYLOAD: usize = 18;
/// Snapshot length, bytes.
const SNAP: &str = "96";

/// A virtual link, removed when the last contestant is dropped.
struct VethPair;

impl VethPair {
    fn make() -> Result<Self> {
        let ip = machine::find("ip").context("iproute2 is not installed")?;
        let run = |words: &str| run_checked(Command::new(&ip).args(words.split(' ')), Duration::from_secs(5));
        run(&format!("link add {INTERFACE} type veth peer name {PEER}"))?;
        let link = Self;
        run(&format!("address add 10.94.0.1/24 dev {INTERFACE}"))?;
        for interface in [INTERFACE, PEER] {
            run(&format!("link set {interface} up"))?;
        }
        // No host has this address: the frames cross the link and are dropped by the peer.
        run(&format!("neighbour add 10.94.0.2 lladdr 02:00:00:00:00:99 dev {INTERFACE}"))?;
        Ok(link)
    }
}

impl Drop for VethPair {
    fn drop(&mut self) {
        if let Some(ip) = machine::find("ip") {
            let _ = run_checked(Command::new(ip).args(["link", "delete", INTERFACE]), Duration::from_secs(5));
        }
    }
}

/// A capture tool.
enum Tool {
    NoCapture,
    Landspeed(PathBuf),
    Tcpdump(PathBuf, &'static [&'static str]),
    Dumpcap(PathBuf),
}

/// Measures the sender's rate, the share dropped, and the tap's CPU time per packet.
pub fn case(bench: &Bench, name: &str) -> Case {
    let case = Case::new(name)
        .metric("time of sender and tap, each packet", Unit::Ns, Better::Lower, Some(1.0))
        .metric("sender's time, each packet", Unit::Ns, Better::Lower, None)
        .metric("sender", Unit::PacketsPerS, Better::Higher, None)
        .metric("dropped", Unit::Ratio, Better::Lower, None)
        .metric("tap's own time, each packet", Unit::Ns, Better::Lower, None);
    let link = match VethPair::make() {
        Ok(link) => Rc::new(link),
        Err(why) => return case.without("all tools", &format!("no virtual link: {why:#}")),
    };
    let found = |program: &str, tool: fn(PathBuf) -> Tool| -> Found<Tool> {
        machine::find(program).map(|path| Rc::new(tool(path))).ok_or_else(|| format!("{program} is not installed"))
    };
    let ours = bench.tools.landspeed.clone().map(|ours| Rc::new(Tool::Landspeed(ours.0.clone())));
    let seconds = bench.seconds;
    let measured = |link: &Rc<VethPair>| {
        let link = Rc::clone(link);
        move |tool: Rc<Tool>| -> Result<Measure> {
            Ok(Box::new(move || {
                let _there = &link;
                measure(&tool, seconds)
            }))
        }
    };
    case.with(Role::Ours, "landspeed", &ours, measured(&link))
        .with(Role::Rival, "tcpdump", &found("tcpdump", |path| Tool::Tcpdump(path, &[])), measured(&link))
        .with(
            Role::RivalVariant,
            "tcpdump -B 32768",
            &found("tcpdump", |path| Tool::Tcpdump(path, &["-B", "32768"])),
            measured(&link),
        )
        .with(Role::RivalVariant, "dumpcap", &found("dumpcap", Tool::Dumpcap), measured(&link))
        .with(Role::RivalVariant, "no capture", &Ok(Rc::new(Tool::NoCapture)), measured(&link))
}

fn measure(tool: &Tool, seconds: u32) -> Result<Vec<f64>> {
    let directory = tempfile::tempdir()?;
    let file = directory.path().join("x.pcap");
    let json = directory.path().join("x.json");
    let before_s = children_cpu_s()?;
    let running = start(tool, &file, &json)?;
    let SendResult { packets: sent, cpu_s: sender_s } = send(seconds)?;
    let sender = [sender_s * 1e9 / sent as f64, sent as f64 / f64::from(seconds)];
    let Some(running) = running else { return Ok(vec![sender[0], sender[0], sender[1], 0.0, 0.0]) };
    let finished = running.stop(Signal::SIGINT)?;
    let cpu_s = children_cpu_s()? - before_s;
    let dropped = dropped(tool, &finished, &json)?;
    let captured = (sent as f64 - dropped).max(1.0);
    let own_ns = cpu_s * 1e9 / captured;
    Ok(vec![sender[0] + own_ns, sender[0], sender[1], dropped / sent as f64, own_ns])
}

fn start(tool: &Tool, file: &std::path::Path, json: &std::path::Path) -> Result<Option<Running>> {
    let (mut command, ready) = match tool {
        Tool::NoCapture => return Ok(None),
        Tool::Landspeed(path) => {
            let mut command = Command::new(path);
            command.args(["tap", "-i", INTERFACE, "-s", SNAP, "-w"]).arg(file).arg("--json").arg(json).args(FILTER);
            (command, "capturing on")
        }
        Tool::Tcpdump(path, extra) => {
            let mut command = Command::new(path);
            // Without `-Z root`, tcpdump drops privileges and cannot write the file.
            command
                .args(["-i", INTERFACE, "-n", "-s", SNAP, "-Z", "root"])
                .args(*extra)
                .arg("-w")
                .arg(file)
                .args(FILTER);
            (command, "listening on")
        }
        Tool::Dumpcap(path) => {
            let mut command = Command::new(path);
            command.args(["-i", INTERFACE, "-s", SNAP, "-f", &FILTER.join(" "), "-w"]).arg(file);
            (command, "File:")
        }
    };
    Running::start(&mut command)?.until("capturing", |said| said.contains(ready)).map(Some)
}

/// Result of the sender.
struct SendResult {
    packets: u64,
    /// CPU time of the sending thread, including softirqs that ran in its context.
    cpu_s: f64,
}

/// Sends as fast as one thread can, for this many seconds.
fn send(seconds: u32) -> Result<SendResult> {
    let socket = UdpSocket::bind("10.94.0.1:0").context("the link has no address")?;
    socket.connect(TARGET)?;
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let sender = scope.spawn(|| {
            let (mut sent, before_s) = (0_u64, thread_cpu_s());
            while !stop.load(Ordering::Relaxed) {
                for _ in 0..64 {
                    sent += u64::from(socket.send(&[7; PAYLOAD]).is_ok());
                }
            }
            SendResult { packets: sent, cpu_s: thread_cpu_s() - before_s }
        });
        wait(seconds);
        stop.store(true, Ordering::Relaxed);
        let sent = sender.join().map_err(|_| anyhow::anyhow!("the sender panicked"))?;
        ensure!(sent.packets > 0, "nothing was sent");
        Ok(sent)
    })
}

#[expect(clippy::disallowed_methods, reason = "parking ends early here: a scope's threads unpark who waits for them")]
fn wait(seconds: u32) {
    thread::sleep(Duration::from_secs(u64::from(seconds)));
}

/// Returns the drops that the tool reports.
fn dropped(tool: &Tool, finished: &Finished, json: &std::path::Path) -> Result<f64> {
    let number_before = |words: &str| -> Option<f64> {
        let before = finished.stderr.split(words).next().filter(|before| before.len() < finished.stderr.len())?;
        before.split_whitespace().next_back()?.trim_matches(|char: char| !char.is_ascii_digit()).parse().ok()
    };
    match tool {
        Tool::NoCapture => Ok(0.0),
        Tool::Landspeed(_) => {
            let document: serde_json::Value = serde_json::from_slice(&std::fs::read(json)?)?;
            document["dropped"].as_f64().context("no count of drops")
        }
        Tool::Tcpdump(..) => number_before(" packets dropped by kernel").context("no count of drops"),
        // dumpcap prints "Packets received/dropped on interface 'x': 10/0 (pcap:0/dumpcap:0/flushed:0/ps_ifdrop:0)
        // (100.0%)".
        Tool::Dumpcap(_) => {
            let counts = finished.stderr.rsplit_once("': ").context("no count of drops")?.1;
            counts.split(['/', ' ']).nth(1).and_then(|word| word.parse().ok()).context("no count of drops")
        }
    }
}
