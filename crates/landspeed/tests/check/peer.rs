//! Checks of a local and a remote host.

use crate::check::{document, failure, landspeed, serve};

#[test]
fn permitted_peer_is_checked_and_compared() {
    let (_server, address) = serve(&["--describe"]);
    let document = document(&["--peer", &address, "--goal", "10G"]);
    assert_eq!(document["peer"]["hostname"], document["hostname"]);
    assert_eq!(document["peer"]["goal"]["rate_bps"], 10_000_000_000_u64);
    // Both hosts are this one: same results, no differences.
    assert_eq!(document["peer"]["passed"].as_array().map(Vec::len), document["passed"].as_array().map(Vec::len));
    assert_eq!(document["differences"].as_array().map(Vec::len), Some(0));
}

#[test]
fn a_server_describes_its_host_only_when_allowed() {
    let (_server, address) = serve(&[]);
    let said = failure(&["--peer", &address]);
    assert!(said.contains("only to holders of a key") && said.contains("--describe"), "{said}");
}

#[test]
fn key_holder_may_request_a_description() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("key");
    let key = path.to_str().expect("plain");
    assert!(landspeed().args(["serve", "--new-key", key]).output().expect("started").status.success());
    let (_server, address) = serve(&["--key-file", key]);
    let document = document(&["--peer", &address, "--key-file", key]);
    assert!(document["peer"]["facts"]["kernel"]["release"].as_str().is_some_and(|text| !text.is_empty()));
    assert!(failure(&["--peer", &address]).contains("--key-file"));
}

#[test]
fn an_absent_peer_is_an_error_within_seconds() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("bound");
    let address = listener.local_addr().expect("bound").to_string();
    drop(listener);
    assert!(failure(&["--peer", &address]).contains(&address));
}
