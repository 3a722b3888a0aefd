//! Multipath TCP of real kernels: subflows joined in a capture, checked against the kernel's counters.

use std::net::SocketAddr;

use landspeed_testkit::netns::{Namespace, address};
use serde_json::Value;

use crate::tap::{NamespacePair, TIMEOUT_S, directory, landspeed, serve, spawn, start, stop};

/// Reads a counter of `MPTcpExt` in a namespace.
fn counter(namespace: &Namespace, name: &str) -> u64 {
    let text = namespace.run(|| std::fs::read_to_string("/proc/thread-self/net/netstat")).expect("counters");
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("MPTcpExt:"));
    let (names, values) = lines.next().zip(lines.next()).expect("multipath counters");
    let value = names.split_whitespace().zip(values.split_whitespace()).find(|(known, _)| *known == name);
    value.unwrap_or_else(|| panic!("no counter {name}")).1.parse().expect("a number")
}

#[test]
fn subflows_of_real_kernels_are_joined() {
    let net = landspeed_testkit::or_skip!(NamespacePair::new());
    let limits = ["ip", "mptcp", "limits", "set", "subflow", "2"];
    if net.left.run(|| std::fs::read("/proc/sys/net/mptcp/enabled")).is_err() {
        landspeed_testkit::in_lab_kernel!("this kernel has no multipath TCP");
    }
    net.left.exec(limits);
    net.right.exec(limits);
    for second in ["10.91.0.3", "10.91.0.4"] {
        address(&net.left, &net.link.a, &format!("{second}/24"));
        net.left.exec(["ip", "mptcp", "endpoint", "add", second, "dev", &net.link.a, "subflow"]);
    }
    let at = SocketAddr::from(([10, 91, 0, 2], 5210));
    let _server = serve(&net, at, &["--listen", "10.91.0.2:5210"]);
    let directory = directory();
    let file = directory.path().join("x.pcapng");
    let file = file.to_str().expect("plain");
    // Slow enough that the ring keeps every packet on a busy machine.
    let tap = start(&net.left, &["-i", &net.link.a, "-w", file, "tcp"]);
    let run = ["run", "10.91.0.2", "--mptcp", "-t", "1", "-b", "50M", "--json", "-"];
    let ended = spawn(&net.left, landspeed().args(run)).end(TIMEOUT_S);
    let run: Value = serde_json::from_str(&ended.stdout).unwrap_or_else(|why| panic!("{why}: {}", ended.stderr));
    let captured = stop(tap);
    assert_eq!(captured.code, 0, "{}", captured.stderr);
    let output = landspeed().args(["trace", file, "--json", "-"]).output().expect("the program runs");
    let trace: Value = serde_json::from_slice(&output.stdout).expect("a document");
    let connections = trace["multipath"].as_array().expect("multipath connections");
    let data = &connections[0];
    let subflows = data["subflows"].as_array().expect("subflows");
    assert_eq!(subflows.iter().filter(|subflow| subflow["initial"] == false).count(), 2, "{data:#}");
    assert!(subflows.iter().all(|subflow| subflow["established"] == true), "{data:#}");
    let joined = |connection: &Value| connection["subflows"].as_array().map_or(0, Vec::len) - 1;
    let all: usize = connections.iter().map(joined).sum();
    assert_eq!(all as u64, counter(&net.right, "MPJoinAckRx"), "{connections:#?}");
    // The connection also carries the proof of its stream.
    let sent = run["totals"]["client"]["bytes_sent"].as_u64().expect("bytes");
    let bytes = data["client_bytes"].as_u64().expect("keys and acknowledgements are in the capture");
    assert!((sent..sent + 4096).contains(&bytes), "{bytes} acknowledged of {sent}");
    let reinjected = data["reinjected_bytes"].as_u64().expect("the end of the data is in the capture");
    let carried: u64 = subflows.iter().filter_map(|subflow| subflow["client_payload_bytes"].as_u64()).sum();
    let answered = data["server_bytes"].as_u64().expect("acknowledged");
    let server: u64 = subflows.iter().filter_map(|subflow| subflow["server_payload_bytes"].as_u64()).sum();
    assert_eq!(carried + server, bytes + answered + reinjected);
    let text =
        String::from_utf8_lossy(&landspeed().args(["trace", file]).output().expect("it runs").stdout).into_owned();
    assert!(text.contains("mptcp") && text.contains("3 subflows") && text.contains("10.91.0.4"), "{text}");
}
