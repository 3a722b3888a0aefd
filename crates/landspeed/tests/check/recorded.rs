//! Hosts recorded elsewhere.

use std::fs;

use crate::check::{codes, document, failure};

#[test]
fn a_recorded_host_is_judged_as_it_was() {
    let directory = tempfile::tempdir().expect("a directory");
    let place = directory.path().join("here");
    let place = place.to_str().expect("plain");
    let live = document(&["--record", place, "--goal", "10G"]);
    let recorded = document(&["--host", place, "--goal", "10G"]);
    for list in ["findings", "passed", "not_applicable", "unknown"] {
        assert_eq!(live[list], recorded[list], "{list}");
    }
    // A record is never mixed with another.
    assert!(failure(&["--record", place]).contains(place));
}

#[test]
fn a_redacted_record_names_neither_host_nor_addresses() {
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
