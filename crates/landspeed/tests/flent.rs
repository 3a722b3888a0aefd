//! flent measures against `landspeed serve` with the netperf front: Debian's release and that of PyPI.

use std::path::{Path, PathBuf};
use std::process::Command;

use landspeed_testkit::process::{Process, free_port, run_concurrently};
use serde_json::Value;

use crate::common::{PROGRAM, landspeed, list};

/// Timeout of a run of flent, seconds; allows for a busy machine.
const TIMEOUT_S: &str = "120";
/// Variable with the directory of the Python package `flent`.
const VARIABLE: &str = "LANDSPEED_FLENT";
/// Rate limit of each stream, so that the load leaves room for the other tests.
const STREAM_RATE: &str = "40M";

/// A release of flent.
#[derive(Clone)]
struct Flent {
    words: Vec<String>,
    package: Option<PathBuf>,
}

/// Returns the releases of flent here: Debian's, and that of PyPI.
fn releases() -> Result<Vec<Flent>, String> {
    let runs =
        |program: &str, word: &str| Command::new(program).arg(word).output().is_ok_and(|out| out.status.success());
    if !runs("ping", "-V") {
        return Err("flent needs ping".to_owned());
    }
    let mut found = Vec::new();
    if runs("flent", "--version") {
        found.push(Flent { words: vec!["flent".to_owned()], package: None });
    }
    let named = std::env::var_os(VARIABLE).map(PathBuf::from);
    let place = named.unwrap_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../target/flent"));
    if place.join("flent").is_dir() {
        let words = ["python3", "-m", "flent"].map(str::to_owned).to_vec();
        found.push(Flent { words, package: Some(place) });
    }
    if found.is_empty() {
        return Err("no flent here: apt install flent, or cargo xtask test, which downloads it".to_owned());
    }
    Ok(found)
}

impl Flent {
    /// Returns a command of flent in `directory`, in which `netperf` is the program under test.
    fn command(&self, directory: &Path) -> Command {
        let programs = directory.join("bin");
        std::fs::create_dir_all(&programs).expect("a directory");
        let netperf = programs.join("netperf");
        if !netperf.exists() {
            std::os::unix::fs::symlink(PROGRAM, &netperf).expect("a link");
        }
        let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap_or_default());
        let mut command = Command::new("timeout");
        command.arg(TIMEOUT_S).args(&self.words).env("PATH", path).env("HOME", directory).current_dir(directory);
        if let Some(package) = &self.package {
            command.env("PYTHONPATH", package);
        }
        command
    }

    /// Runs a test of 3 s and returns its data file.
    fn run(&self, test: &str, options: &[&str]) -> Value {
        let directory = tempfile::tempdir().expect("a directory");
        let port = free_port().to_string();
        let mut serve = landspeed();
        serve.args(["serve", "--no-iperf3", "--max-rate", STREAM_RATE, "--listen", &format!("127.0.0.1:{port}")]);
        let server = Process::start(serve);
        server.address_in("listening");
        let mut command = self.command(directory.path());
        command.args([test, "-4", "-H", "127.0.0.1", "-l", "3", "-d", "1", "--netperf-control-port", &port]);
        let output = command.args(["-D", "."]).args(options).output().expect("coreutils' timeout runs");
        let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{test}: {said}");
        // flent's own complaints: programs that failed, keys that are missing.
        assert!(!said.contains("non-zero") && !said.contains("Missing"), "{test}: {said}");
        let mut files = std::fs::read_dir(directory.path()).expect("readable").flatten().map(|entry| entry.path());
        let file = files.find(|path| path.to_string_lossy().ends_with(".flent.gz"));
        read(&file.unwrap_or_else(|| panic!("{test} left no data file: {said}")))
    }
}

/// Reads a data file.
fn read(file: &Path) -> Value {
    let text = Command::new("gzip").arg("-dc").arg(file).output().expect("gzip runs");
    serde_json::from_slice(&text.stdout).expect("a data file is JSON")
}

/// Returns the series whose name begins so, without those that flent computes.
fn series<'a>(file: &'a Value, begin: &str) -> Vec<(&'a str, Vec<f64>)> {
    let computed = |name: &str| ["sum", "avg", "totals", "fairness"].iter().any(|word| name.ends_with(word));
    let results = file["results"].as_object().expect("results");
    let found = results.iter().filter(|(name, _)| name.starts_with(begin) && !computed(name));
    found.map(|(name, values)| (name.as_str(), list(values).iter().filter_map(Value::as_f64).collect())).collect()
}

/// Asserts that each flow of a direction was measured, and that its samples add up to the bytes that arrived.
#[track_caller]
fn assert_flows(file: &Value, begin: &str, flows: usize) {
    let found = series(file, begin);
    assert_eq!(found.len(), flows, "{begin}: {:?}", file["results"]);
    for (name, values) in found {
        assert!(values.len() >= 5 && values.iter().any(|mbps| *mbps > 1.0), "{name}: {values:?}");
        let received = file["metadata"]["SERIES_META"][name]["BYTES_RECVD"].as_f64().expect("bytes");
        let samples = list(&file["raw_values"][name]).iter();
        let bytes = |sample: &Value| Some(sample["val"].as_f64()? * 1e6 / 8.0 * sample["dur"].as_f64()?);
        let sum: f64 = samples.map(|sample| bytes(sample).expect("a sample")).sum();
        // flent drops the last sample if it is short: less than a tenth of the others.
        assert!((0.93..=1.01).contains(&(sum / received)), "{name}: {sum} of {received} bytes");
    }
}

/// Asserts that a series of round trips is plausible for loopback, in milliseconds.
#[track_caller]
fn assert_round_trips(file: &Value, name: &str) {
    let values: Vec<f64> = list(&file["results"][name]).iter().filter_map(Value::as_f64).collect();
    assert!(values.len() >= 5, "{name}: {values:?}");
    assert!(values.iter().all(|ms| *ms > 0.0 && *ms < 1000.0), "{name}: {values:?}");
}

#[test]
fn rrul_of_flent_has_every_series() {
    let releases = landspeed_testkit::or_skip!(releases());
    run_concurrently(releases, |flent| {
        let file = flent.run("rrul", &[]);
        assert_flows(&file, "TCP upload", 4);
        assert_flows(&file, "TCP download", 4);
        for class in ["EF", "BK", "BE"] {
            assert_round_trips(&file, &format!("Ping (ms) UDP {class}"));
        }
        let marks = |name: &str| file["metadata"]["SERIES_META"][name]["DATA_TOS"].clone();
        assert_eq!((marks("TCP upload EF"), marks("TCP download BK")), (0xb8.into(), 0x20.into()));
    });
}

#[test]
fn flows_of_flent_add_up_to_the_bytes_received() {
    let releases = landspeed_testkit::or_skip!(releases());
    run_concurrently(releases, |flent| {
        let file = flent.run("tcp_nup", &["--test-parameter", "upload_streams=2"]);
        assert_flows(&file, "TCP upload::", 2);
        let file = flent.run("tcp_ndown", &["--test-parameter", "download_streams=2"]);
        assert_flows(&file, "TCP download::", 2);
    });
}

#[test]
fn flent_reads_our_runs() {
    let releases = landspeed_testkit::or_skip!(releases());
    let directory = tempfile::tempdir().expect("a directory");
    let archive = directory.path().join("archive");
    let port = free_port().to_string();
    let mut serve = landspeed();
    serve.args(["serve", "--no-iperf3", "--listen", &format!("127.0.0.1:{port}")]);
    let server = Process::start(serve);
    server.address_in("listening");
    let ours = |words: &[&str]| {
        let output = landspeed().args(words).env("LANDSPEED_ARCHIVE", &archive).output().expect("it runs");
        let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        (output.status.code(), said)
    };
    for options in [
        &["-t", "2", "--rrul", "--title", "marked"][..],
        &["-t", "2", "-P", "2", "--title", "up"],
        &["-n", "4M", "--title", "bytes"],
        &["-t", "1", "-u", "--title", "datagrams"],
    ] {
        let (status, said) = ours(&[&["run", "127.0.0.1", "-p", &port, "-b", "20m"], options].concat());
        assert_eq!(status, Some(0), "{options:?}: {said}");
    }
    let exported = directory.path().join("plots");
    std::fs::create_dir(&exported).expect("a directory");
    let to = exported.to_string_lossy().into_owned();
    let (status, said) = ours(&["archive", "export", "--format", "flent", "-o", &to]);
    // The run of UDP is named and not written.
    assert!(status == Some(1) && said.contains("UDP") && said.contains("3 data files"), "{said}");
    for (title, wanted) in [
        ("marked", &["TCP upload EF", "TCP download BK", "TCP upload sum", "Ping (ms) UDP BE"][..]),
        ("up", &["TCP upload::2", "TCP upload sum"]),
        ("bytes", &["TCP upload::1"]),
    ] {
        let file = directory.path().join(format!("{title}.flent.gz")).to_string_lossy().into_owned();
        let (status, said) = ours(&["archive", "export", "--format", "flent", "--title", title, "-o", &file]);
        assert_eq!(status, Some(0), "{said}");
        for flent in &releases {
            let mut command = flent.command(directory.path());
            let output = command.args(["-i", &file, "-f", "summary"]).output().expect("it runs");
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            let err = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(output.status.success(), "{text}{err}");
            for series in wanted {
                let line = text.lines().find(|line| line.trim_start().starts_with(series));
                let line = line.unwrap_or_else(|| panic!("{series}: {text}{err}"));
                let mean = line.split(':').next_back().and_then(|figures| figures.split_whitespace().next());
                let mean: f64 = mean.and_then(|mean| mean.parse().ok()).unwrap_or_else(|| panic!("{line}"));
                // Loopback is faster than 0.01 ms, which flent prints.
                assert!(mean > 0.0 || series.starts_with("Ping"), "{line}");
            }
        }
    }
}

#[test]
fn udp_round_trips_of_flent_are_milliseconds() {
    let releases = landspeed_testkit::or_skip!(releases());
    run_concurrently(releases, |flent| {
        let file = flent.run("ping", &[]);
        assert_round_trips(&file, "Ping (ms) UDP");
    });
}
