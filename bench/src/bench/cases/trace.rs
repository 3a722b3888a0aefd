//! Capture analysis, compared with tcptrace, tshark and plain reading of the same file.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::bench::Bench;
use crate::bench::case::{Case, Measure, Role};
use crate::bench::child::run_checked;
use crate::bench::conversation;
use crate::bench::row::{Better, Unit};
use crate::bench::tools::{Found, Landspeed};
use crate::machine::{self, now};

/// Time limit; a run that takes longer counts as hung. tshark takes minutes.
const LIMIT: Duration = Duration::from_mins(15);
/// Data segments of the bulk capture: 5.9 million frames with the ACKs.
const SEGMENTS: u64 = 3_400_000;
/// Connections of the capture with many flows: 5 million frames.
const FLOWS: u32 = 200_000;
/// Data segments of the capture for tshark, which keeps everything in memory: 0.35 million frames.
const TSHARK_SEGMENTS: u64 = 200_000;
/// Bytes per read.
const CHUNK: usize = 256 << 10;
/// Names of the contestants.
const ONE_CORE: &str = "landspeed, one core";
const TWO_CORES: &str = "landspeed, two cores";
const PLAIN_READ: &str = "read() of the file";

/// A capture generated for this run.
struct Capture {
    path: PathBuf,
    frames: u64,
    _directory: tempfile::TempDir,
}

fn capture(write: impl FnOnce(&Path) -> Result<u64>) -> Found<Capture> {
    let make = || {
        let directory = tempfile::tempdir()?;
        let path = directory.path().join("capture.pcap");
        let frames = write(&path)?;
        anyhow::Ok(Rc::new(Capture { path, frames, _directory: directory }))
    };
    make().map_err(|error| format!("no capture could be made: {error:#}"))
}

/// Packets per second of real time.
fn packets_per_s(capture: &Capture, started: Instant) -> f64 {
    capture.frames as f64 / started.elapsed().as_secs_f64()
}

fn ours(tool: &Found<Landspeed>, capture: &Found<Capture>, cores: &'static str) -> Found<dyn Fn() -> Result<f64>> {
    let (tool, capture) = (tool.clone()?, capture.clone()?);
    Ok(Rc::new(move || {
        let document = tempfile::NamedTempFile::new()?;
        let mut command = Command::new(&tool.0);
        command.arg("trace").arg(&capture.path).args(["--top", "1", "--cores", cores, "--json"]).arg(document.path());
        let started = now();
        run_checked(&mut command, LIMIT)?;
        let packets_per_s = packets_per_s(&capture, started);
        let document: Value = serde_json::from_str(&std::fs::read_to_string(document.path())?)?;
        ensure!(document["capture"]["frames"] == capture.frames, "it did not see every frame");
        Ok(packets_per_s)
    }))
}

fn rival(
    program: &str,
    arguments: &'static [&'static str],
    capture: &Found<Capture>,
) -> Found<dyn Fn() -> Result<f64>> {
    let capture = capture.clone()?;
    let path = machine::find(program).ok_or_else(|| format!("{program} is not installed"))?;
    Ok(Rc::new(move || {
        let mut command = Command::new(&path);
        command.args(arguments).arg(&capture.path);
        let started = now();
        run_checked(&mut command, LIMIT)?;
        Ok(packets_per_s(&capture, started))
    }))
}

/// Reads the same file without analysing it.
fn reading(capture: &Found<Capture>) -> Found<dyn Fn() -> Result<f64>> {
    let capture = capture.clone()?;
    Ok(Rc::new(move || {
        let mut file = File::open(&capture.path).context("the capture is gone")?;
        let mut chunk = vec![0; CHUNK];
        let started = now();
        while file.read(&mut chunk)? > 0 {}
        Ok(packets_per_s(&capture, started))
    }))
}

fn with(case: Case, role: Role, name: &str, tool: &Found<dyn Fn() -> Result<f64>>) -> Case {
    case.with(role, name, tool, |tool| Ok(Box::new(move || Ok(vec![tool()?])) as Measure))
}

fn speed(name: &str, target: Option<f64>) -> Case {
    Case::new(name).metric("packets", Unit::PacketsPerS, Better::Higher, target)
}

/// Compares the analysis of a capture on one core and on two cores with tcptrace and `read()`.
fn with_reference_tools(bench: &Bench, case: Case, capture: &Found<Capture>) -> Case {
    let tool = &bench.tools.landspeed;
    let case = with(case, Role::Ours, ONE_CORE, &ours(tool, capture, "1"));
    let case = with(case, Role::OursVariant, TWO_CORES, &ours(tool, capture, "2"));
    let case = with(case, Role::Rival, "tcptrace -l -r", &rival("tcptrace", &["-l", "-r", "-n"], capture));
    with(case, Role::RivalVariant, PLAIN_READ, &reading(capture)).target(TWO_CORES, ONE_CORE, 1.6)
}

/// One connection of 5.9 million frames. Targets: 8 × tcptrace, 0.45 × plain reading, two cores 1.6 × one.
pub fn bulk(bench: &Bench, name: &str) -> Case {
    let capture = capture(|path| Ok(conversation::bulk(path, None, SEGMENTS)?.frames));
    with_reference_tools(bench, speed(name, Some(8.0)), &capture).target(ONE_CORE, PLAIN_READ, 0.45)
}

/// 200,000 connections, 20,000 at a time, 5 million frames. Targets: 0.2 × plain reading, two cores 1.6 × one.
pub fn many(bench: &Bench, name: &str) -> Case {
    let capture = capture(|path| conversation::many(path, FLOWS));
    with_reference_tools(bench, speed(name, Some(8.0)), &capture).target(ONE_CORE, PLAIN_READ, 0.2).rounds(3)
}

/// A capture small enough for tshark.
pub fn tshark(bench: &Bench, name: &str) -> Case {
    let capture = capture(|path| Ok(conversation::bulk(path, None, TSHARK_SEGMENTS)?.frames));
    let case = with(speed(name, Some(100.0)), Role::Ours, ONE_CORE, &ours(&bench.tools.landspeed, &capture, "1"));
    let tshark = rival("tshark", &["-q", "-n", "-z", "conv,tcp", "-r"], &capture);
    with(case, Role::Rival, "tshark -z conv,tcp", &tshark).rounds(3)
}

/// Two taps of the bulk transfer, every packet matched between them. Target: 5 million packets per second,
/// counting both captures.
pub fn two_taps(bench: &Bench, name: &str) -> Case {
    let captures = capture(|path| Ok(conversation::bulk(path, Some(&receiver_capture(path)), SEGMENTS / 2)?.frames));
    let found: Found<(Rc<Landspeed>, Rc<Capture>)> =
        bench.tools.landspeed.clone().and_then(|tool| Ok(Rc::new((tool, captures?))));
    let target = "landspeed, target 5,000 kpkt/s";
    speed(name, None).with(Role::Ours, target, &found, |found| {
        Ok(Box::new(move || {
            let (tool, sender_capture) = &*found;
            let document = tempfile::NamedTempFile::new()?;
            let mut command = Command::new(&tool.0);
            command
                .arg("trace")
                .arg(&sender_capture.path)
                .arg(receiver_capture(&sender_capture.path))
                .arg("--json")
                .arg(document.path());
            let started = now();
            run_checked(&mut command, LIMIT)?;
            let packets_per_s = packets_per_s(sender_capture, started);
            let document: Value = serde_json::from_str(&std::fs::read_to_string(document.path())?)?;
            let placed =
                [&document["flows"][0]["lost_network"], &document["flows"][0]["forward"]["retransmits"]["fast"]];
            ensure!(
                placed[0].as_u64() > Some(0) && placed[0] == placed[1],
                "it placed {} of {} losses",
                placed[0],
                placed[1]
            );
            Ok(vec![packets_per_s])
        }) as Measure)
    })
}

/// Path of the second tap's capture.
fn receiver_capture(sender_capture: &Path) -> PathBuf {
    sender_capture.with_file_name("receiver_capture.pcap")
}

/// Memory for 200,000 concurrent flows, and for one flow of many packets. Targets: 64 MiB, plus 1 KiB per flow.
pub fn memory(bench: &Bench, name: &str) -> Case {
    let mut case = Case::new(name).rounds(1).metric("peak memory", Unit::Bytes, Better::Lower, None);
    let captures = [
        ("landspeed, 200,000 flows, target 259 MiB", capture(|path| conversation::many(path, FLOWS))),
        ("landspeed, one flow, target 64 MiB", capture(|path| Ok(conversation::bulk(path, None, SEGMENTS)?.frames))),
    ];
    for (who, capture) in captures {
        let found: Found<(Rc<Landspeed>, Rc<Capture>)> =
            bench.tools.landspeed.clone().and_then(|tool| Ok(Rc::new((tool, capture?))));
        case = case.with(Role::OursVariant, who, &found, |found| {
            Ok(Box::new(move || {
                let (tool, capture) = &*found;
                let script = "\"$@\" >/dev/null & pid=$!; peak=0; while kill -0 $pid 2>/dev/null; do \
                              now=$(sed -n 's/^VmHWM:[^0-9]*\\([0-9]*\\).*/\\1/p' /proc/$pid/status 2>/dev/null); \
                              [ \"${now:-0}\" -gt $peak ] && peak=$now; sleep 0.01; done; wait $pid && echo $peak";
                let mut command = Command::new("sh");
                command.args(["-c", script, "sh"]).arg(&tool.0).args(["trace", "--cores", "1"]).arg(&capture.path);
                let finished = run_checked(&mut command, LIMIT)?;
                let kib: f64 = finished.stdout.trim().parse().context("the kernel says a peak")?;
                Ok(vec![kib * 1024.0])
            }) as Measure)
        });
    }
    case
}
