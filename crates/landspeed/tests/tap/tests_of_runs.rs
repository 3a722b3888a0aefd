//! Captures during tests, kernel events, and the effect of a tap on traffic.

use std::net::SocketAddr;
use std::path::Path;

use landspeed_netlink::ethtool::Ethtool;
use landspeed_testkit::process::Process;
use serde_json::Value;

use crate::tap::{NamespacePair, TIMEOUT_S, directory, document, landspeed, read, spawn, start, stop};

/// Starts a server that a run's client reaches at 10.91.0.2.
fn serve(net: &NamespacePair, options: &[&str]) -> Process {
    let address = ["--listen", "10.91.0.2:5210"];
    crate::tap::serve(net, SocketAddr::from(([10, 91, 0, 2], 5210)), &[&address[..], options].concat())
}

fn run(net: &NamespacePair, arguments: &[&str]) -> (Option<i32>, String) {
    let mut command = landspeed();
    command.args(["run", "10.91.0.2"]).args(arguments);
    let output = net.left.run(|| command.output()).expect("the program runs");
    // Undo line wrapping.
    let said = String::from_utf8_lossy(&output.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
    (output.status.code(), said)
}

#[test]
fn a_run_captures_and_compares_both_ends() {
    let net = landspeed_testkit::or_skip!(NamespacePair::new());
    disable_segmentation_offloads(&net);
    let server = serve(&net, &["--allow-tap=16M"]);
    let directory = directory();
    let name = directory.path().join("both");
    let name = name.to_str().expect("plain");
    let (code, said) = run(&net, &["-t", "1", "-b", "20M", "--tap", name]);
    assert!(matches!(code, Some(0 | 1)), "{said}");
    let [at_client, at_server] = ["client", "server"].map(|end| read(Path::new(&format!("{name}.{end}.pcapng"))).0);
    // 20 Mb/s for a second, similar on both hosts.
    let bytes = |frames: &[crate::tap::Frame]| frames.iter().map(|frame| u64::from(frame.original)).sum::<u64>();
    for (end, frames) in [("client", &at_client), ("server", &at_server)] {
        assert!((2_000_000..6_000_000).contains(&bytes(frames)), "{end}: {}", bytes(frames));
    }
    assert!(said.contains("packets matched") && said.contains("0 lost between taps"), "{said}");
    // Neither capture contains the control connection, which transferred the server's capture: there is only
    // one flow.
    assert_eq!(said.matches("lost between taps").count(), 1, "{said}");
    let left: Vec<_> = std::fs::read_dir(std::env::temp_dir())
        .expect("it is there")
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(&format!("landspeed-tap-{}-", server.id())))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

/// Disables TSO, GSO and GRO: larger frames cannot be matched between captures.
fn disable_segmentation_offloads(net: &NamespacePair) {
    const OFFLOADS: &[&str] = &["tx-tcp-segmentation", "tx-tcp6-segmentation", "tx-generic-segmentation", "rx-gro"];
    for (namespace, interface) in [(&net.left, &net.link.a), (&net.right, &net.link.b)] {
        let switched =
            namespace.run(|| Ethtool::new(interface).and_then(|mut ethtool| ethtool.set_features(OFFLOADS, false)));
        switched.expect("a virtual link lets them be switched");
    }
}

#[test]
fn loss_after_the_server_tap_is_attributed_to_the_receiver() {
    let net = landspeed_testkit::or_skip!(NamespacePair::new());
    disable_segmentation_offloads(&net);
    // The tap captures before the firewall, so it sees the dropped packets.
    net.right.nft(
        "table inet f { counter lost { }; chain c { type filter hook prerouting priority -300; \
         tcp dport 5210 meta length > 1000 numgen random mod 100 0 counter name lost drop; }; }\n",
    );
    let _server = serve(&net, &["--allow-tap"]);
    let directory = directory();
    let name = directory.path().join("fault");
    let name = name.to_str().expect("plain");
    let (code, said) = run(&net, &["-t", "1", "-b", "50M", "--tap", name]);
    assert!(matches!(code, Some(0 | 1)), "{said}");
    let counted = net.right.exec(["nft", "list", "counter", "inet", "f", "lost"]);
    let counted = counted.split_whitespace().skip_while(|word| *word != "packets").nth(1);
    let lost: u64 = counted.and_then(|word| word.parse().ok()).expect("a count");
    assert!(lost > 5, "no fault, no test: {lost}");
    let files = [format!("{name}.client.pcapng"), format!("{name}.server.pcapng")];
    let output = landspeed().arg("trace").args(&files).args(["--json", "-"]).output().expect("the program runs");
    let document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let flow = &document["flows"][0];
    assert_eq!((flow["lost_network"].as_u64(), flow["lost_receiver"].as_u64()), (Some(0), Some(lost)), "{said}");
    assert_eq!(document["path"][0]["forward"]["lost_data"], 0);
}

#[test]
fn a_refused_server_capture_does_not_fail_the_run() {
    let net = landspeed_testkit::or_skip!(NamespacePair::new());
    let _server = serve(&net, &[]);
    let directory = directory();
    let name = directory.path().join("one.pcapng");
    let json = directory.path().join("run.json");
    let [name, json] = [&name, &json].map(|path| path.to_str().expect("plain"));
    let (code, said) = run(&net, &["-t", "0.3", "-b", "5M", "--tap", name, "--json", json]);
    assert!(matches!(code, Some(0 | 1)), "{said}");
    assert!(said.contains("--allow-tap") && said.contains("one.client.pcapng"), "{said}");
    assert!(!Path::new(&name.replace(".pcapng", ".server.pcapng")).exists());
    let document: Value = serde_json::from_slice(&std::fs::read(json).expect("written")).expect("JSON");
    assert!(document["warnings"].to_string().contains("no-server-capture"), "{}", document["warnings"]);
}

#[test]
fn kernel_events_are_captured_and_cleaned_up() {
    let net = landspeed_testkit::or_skip!(NamespacePair::new());
    let instances = Path::new("/sys/kernel/tracing/instances");
    if !instances.is_dir() {
        landspeed_testkit::in_lab_kernel!("no tracefs here");
    }
    let _server = serve(&net, &[]);
    let directory = directory();
    let path = directory.path().join("x.pcapng");
    let name = path.to_str().expect("plain");
    let options = ["-i", &net.link.a, "-w", name, "--events", "--json", "-", "tcp port 5210"];
    let mine = |id: u32| instances.join(format!("landspeed-tap-{id}-{}", start_ticks(id)));
    // A killed tap leaves its tracefs instance, which the next tap removes.
    let killed = start(&net.left, &options);
    let left = mine(killed.id());
    assert!(left.is_dir(), "{}", left.display());
    drop(killed);
    let tap = start(&net.left, &options);
    let instance = mine(tap.id());
    assert!(instance.is_dir() && !left.is_dir());
    run(&net, &["-t", "0.3", "-b", "5M"]);
    let document = document(&stop(tap));
    assert!(!instance.is_dir());
    assert!(document["events"]["taken"].as_u64() > Some(0), "{document}");
    let bytes = std::fs::read(&path).expect("it is there");
    let text = String::from_utf8_lossy(&bytes);
    assert!(text.contains("LANDSPEED_EVENT=tcp_probe"), "no tcp_probe among the blocks");
    assert!(!read(&path).0.is_empty(), "and the packets can be read");
}

fn start_ticks(id: u32) -> u64 {
    landspeed_sys::process::start_ticks(id).expect("it runs")
}

#[test]
fn tap_perturbation_has_a_confidence_interval() {
    let net = landspeed_testkit::or_skip!(NamespacePair::new());
    let options = ["-i", &net.link.a, "--measure-perturbation=4s", "-t", "0.1", "--json", "-"];
    let tap = spawn(&net.left, landspeed().arg("tap").args(options));
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                net.send(200, 20);
            }
        });
        let ended = tap.end(TIMEOUT_S);
        done.store(true, std::sync::atomic::Ordering::Relaxed);
        let slices = &document(&ended)["perturbation"]["slices"];
        assert!(slices["pairs"].as_u64() >= Some(6), "{slices}");
        let ratio = slices["rate_ratio"].as_f64().expect("packets passed");
        let (low, high) = (slices["rate_ratio_ci"][0].as_f64(), slices["rate_ratio_ci"][1].as_f64());
        assert!(ratio > 0.0 && low <= Some(ratio) && Some(ratio) <= high, "{slices}");
    });
}
