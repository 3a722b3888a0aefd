//! Programs that read iperf3's JSON read ours. They come from a package registry; `cargo xtask test`
//! downloads them.

use landspeed_testkit::process::run_concurrently;
use std::path::PathBuf;
use std::process::Command;

use landspeed_testkit::iperf3;
use serde_json::Value;

use super::{Server, json, landspeed, run};

/// Variable with the directory of the Python package `iperf3`, whose `TestResult` reads documents.
const VARIABLE: &str = "LANDSPEED_IPERF3_CONSUMERS";

/// Parses a document with the package, which raises an exception for missing keys, and prints the result.
const SCRIPT: &str = "
import json, sys
sys.path.insert(0, sys.argv[1])
from iperf3 import TestResult
result = TestResult(sys.stdin.read())
names = ['error', 'protocol', 'num_streams', 'blksize', 'omit', 'duration', 'local_host', 'remote_host', 'time', 'timesecs',
         'version', 'system_info', 'tcp_mss_default', 'local_cpu_total', 'remote_cpu_total', 'sent_bytes', 'received_bytes',
         'sent_bps', 'received_bps', 'retransmits', 'bytes', 'bps', 'jitter_ms', 'packets', 'lost_packets', 'lost_percent',
         'seconds']
print(json.dumps({name: getattr(result, name) for name in names if hasattr(result, name)}))
";

fn consumers() -> Option<PathBuf> {
    let named = std::env::var_os(VARIABLE).map(PathBuf::from);
    let place =
        named.unwrap_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../target/iperf3-consumers"));
    place.join("iperf3").is_dir().then_some(place)
}

fn read(place: &std::path::Path, document: &Value) -> Value {
    use std::io::Write as _;
    let mut python = Command::new("python3")
        .args(["-c", SCRIPT])
        .arg(place)
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("python3 runs");
    let mut input = python.stdin.take().expect("piped");
    input.write_all(document.to_string().as_bytes()).expect("it reads");
    drop(input);
    let out = python.wait_with_output().expect("it ends");
    assert!(out.status.success(), "{document:#}\n{}", String::from_utf8_lossy(&out.stderr));
    json(&out)
}

#[test]
fn iperf3_parsers_read_our_documents() {
    let Some(place) = consumers() else {
        landspeed_testkit::skip!("no reader of iperf3's JSON here: cargo xtask iperf3 fetches one");
    };
    let programs = iperf3::programs();
    let Some(newest) = programs.last() else {
        landspeed_testkit::skip!("no iperf3 here: cargo xtask iperf3");
    };
    let kinds = [
        &["-t", "1", "-b", "200M"][..],
        &["-t", "1", "-R", "-b", "200M"],
        &["-t", "1", "-u", "-b", "5M"],
        &["-t", "1", "-P", "2", "-b", "200M"],
    ];
    run_concurrently(kinds, |kind| {
        let client = |program: &std::path::Path, first: &[&str]| {
            let server = Server::start(&newest.path, &[]);
            let port = server.port.to_string();
            json(&run(program, &[first, &["-c", "127.0.0.1", "-p", &port, "-J"], kind].concat()))
        };
        let ours = client(&landspeed(), &["iperf3"]);
        let (found, real) = (read(&place, &ours), read(&place, &client(&newest.path, &[])));
        let (found, real) = (found.as_object().expect("an object"), real.as_object().expect("an object"));
        for (name, value) in real {
            let same_kind = |a: &Value, b: &Value| {
                a.is_number() == b.is_number() && a.is_string() == b.is_string() && a.is_null() == b.is_null()
            };
            let ours = found.get(name).unwrap_or(&Value::Null);
            assert!(same_kind(ours, value), "{kind:?}: {name} is {ours}, and {value} in the real one");
        }
        for name in ["protocol", "num_streams", "duration", "remote_host"] {
            assert_eq!(found.get(name), real.get(name), "{kind:?}: {name}");
        }
        let bytes = if kind.contains(&"-u") { "bytes" } else { "sent_bytes" };
        let sum = if kind.contains(&"-u") { "sum" } else { "sum_sent" };
        assert_eq!(found.get(bytes), ours.pointer(&format!("/end/{sum}/bytes")), "{kind:?}");
    });
}
