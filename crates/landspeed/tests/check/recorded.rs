//! Checks of recorded hosts.

use std::fs;

use crate::check::{codes, document, failure};

#[test]
fn recorded_host_gives_the_live_results() {
    let directory = tempfile::tempdir().expect("a directory");
    let place = directory.path().join("here");
    let place = place.to_str().expect("plain");
    let live = document(&["--record", place, "--goal", "10G"]);
    let recorded = document(&["--host", place, "--goal", "10G"]);
    for list in ["findings", "passed", "not_applicable", "unknown"] {
        assert_eq!(live[list], recorded[list], "{list}");
    }
    // An existing record is not overwritten.
    assert!(failure(&["--record", place]).contains(place));
}

#[test]
fn redacted_record_contains_no_host_name_or_addresses() {
    let directory = tempfile::tempdir().expect("a directory");
    let place = directory.path().join("here");
    let place = place.to_str().expect("plain");
    let live = document(&["--record", place, "--redact"]);
    let recorded = document(&["--host", place]);
    assert_eq!(codes(&live, "findings"), codes(&recorded, "findings"));
    let name = fs::read_to_string("/proc/sys/kernel/hostname").expect("a name");
    let mut secrets = vec![format!("\"{}\"", name.trim())];
    for interface in document(&[])["facts"]["interfaces"].as_array().expect("a list") {
        secrets.extend(
            interface["mac"].as_str().filter(|mac| mac.len() == 17 && *mac != "00:00:00:00:00:00").map(str::to_owned),
        );
        let addresses =
            interface["addresses"].as_array().into_iter().flatten().filter_map(|address| address.as_str());
        secrets.extend(addresses.map(|address| address.split('/').next().unwrap_or(address).to_owned()));
    }
    let text = recorded.to_string();
    for secret in secrets {
        assert!(!text.contains(&secret), "{secret} is still there");
    }
}

#[test]
fn a_directory_that_is_not_a_host_is_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let place = directory.path().to_str().expect("plain").to_owned();
    assert!(failure(&["--host", &place]).contains("--record DIR"));
    fs::write(directory.path().join("kernel.json"), b"{\"not\": [").expect("written");
    let said = failure(&["--host", &place]);
    assert!(said.contains("kernel.json"), "{said}");
}
