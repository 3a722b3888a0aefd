//! Path MTU probes as part of a run, through the server's single port.

use std::sync::atomic::{AtomicBool, Ordering};

use landspeed_flow::client::{Request, run};
use landspeed_flow::server::{Limits, Server, ServerConfig};
use landspeed_model::{Parameters, RunDocument, Status};

/// Runs a short test against a new server.
fn probed(listen: &str, host: &str) -> Option<RunDocument> {
    let config = ServerConfig {
        listen: vec![listen.parse().expect("an address")],
        limits: Limits::default(),
        allow: Vec::new(),
        key: None,
        data_from_anywhere: false,
        describe: false,
        tap: None,
        changes: None,
        third_party: None,
    };
    let server = Server::bind(config, &[], |_| {}).ok()?;
    let port = server.addresses()[0].port();
    let request = Request {
        target: format!("{host}:{port}").parse().expect("a target"),
        parameters: Parameters { time_ns: Some(200_000_000), probe_mtu: true, ..Parameters::default() },
        key: None,
        command: Vec::new(),
        data: None,
        local_port: None,
        start_ns: None,
    };
    let stop = server.stop_flag();
    Some(std::thread::scope(|scope| {
        let serving = scope.spawn(|| server.run());
        let document = run(&request, &AtomicBool::new(false), &mut |_| {});
        stop.store(true, Ordering::Relaxed);
        serving.join().expect("the server does not panic").expect("the server ran");
        document
    }))
}

fn assert_proved(document: &RunDocument, path_mtu: u32) {
    assert_eq!(document.status, Status::Complete, "{:?}", document.errors);
    let mtu = &document.path.as_ref().expect("a path").mtu;
    let found: Vec<_> = mtu.iter().map(|probe| probe.path_mtu_bytes).collect();
    assert_eq!(found, [Some(path_mtu); 2], "{mtu:?}");
    assert!(document.summary.bytes_delivered > Some(0), "the test proper follows");
}

#[test]
fn a_run_measures_the_path_mtu_in_both_directions() {
    assert_proved(&probed("127.0.0.1:0", "127.0.0.1").expect("loopback"), 65_535);
}

#[test]
fn a_wildcard_server_answers_ipv4_and_ipv6() {
    let Some(document) = probed("[::]:0", "[::1]") else { landspeed_testkit::skip!("no IPv6 loopback here") };
    assert_proved(&document, 65_536);
    assert_proved(&probed("[::]:0", "127.0.0.1").expect("bound before"), 65_535);
}
