//! Error messages of each class: what failed, on what, why, and what to do.

use landspeed_testkit::{golden, skip};

use crate::golden::{directory, serve, transcript};

/// Command lines that fail, by class.
const ERRORS: &[(&str, &[&str])] = &[
    (
        "A wrong command line",
        &[
            "landspeed rum",
            "landspeed run",
            "landspeed run dtn.example --no-such-option",
            "landspeed run dtn.example -t soon",
            "landspeed run dtn.example --rate 1GB/s",
            "landspeed run dtn.example -u --read-rate 1G",
            "landspeed run dtn.example -P 2000",
            "landspeed -c dtn.example",
            "landspeed iperf3",
            "landspeed iperf3 -c dtn.example -f q",
            "landspeed iperf3 -c dtn.example -R --bidir",
            "landspeed calc --rate 10G",
            "landspeed check --only TCP-999",
            "landspeed check --host host --iface eth9",
            "landspeed tune plan --set rmem_max=1",
            "landspeed watch --peer banana",
            "landspeed watch --top 0",
            "landspeed watch --pid 4194305",
            "landspeed watch --cgroup /none.slice",
            "landspeed schema nothing",
        ],
    ),
    (
        "A peer that does not answer",
        &["landspeed run 127.0.0.1:1", "landspeed run 127.0.0.1:1 -u", "landspeed iperf3 -c 127.0.0.1 -p 1"],
    ),
    ("A server that refuses", &["landspeed run 127.0.0.1:PORT -t 60", "landspeed iperf3 -c 127.0.0.1 -p PORT -t 60"]),
    (
        "A file that is not what it should be, or is not there",
        &[
            "landspeed trace junk",
            "landspeed trace nothing.pcap",
            "landspeed lab run junk",
            "landspeed lab run nothing.toml",
            "landspeed check --host junk",
            "landspeed tune plan --findings junk",
            "landspeed run 127.0.0.1:1 --key-file junk",
        ],
    ),
    (
        "A full disk, or a directory that is not there",
        &[
            "landspeed calc --rate 10G --rtt 92ms --json /dev/full",
            "landspeed check --host host --json /dev/full",
            "landspeed schema run > /dev/full",
            "landspeed run 127.0.0.1:1 --json /nonexistent/run.json",
        ],
    ),
];

#[test]
fn errors_match_their_golden_file() {
    let directory = directory();
    let (_server, address) = serve();
    let port = address.port().to_string();
    let mut text = String::new();
    for (class, lines) in ERRORS {
        text.extend(["## ", class, "\n\n"]);
        for line in *lines {
            text += &transcript(directory.path(), &[], &line.replace("PORT", &port));
        }
    }
    golden::same_redacted("errors.txt", &text, &[("[PORT]", &format!(r"\b{port}\b"))]);
}

#[test]
fn missing_privilege_errors_match_their_golden_file() {
    let drop = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "--bounding-set=-all"];
    let id = transcript(std::path::Path::new("/"), &drop, "id -u");
    if !id.contains("\n65534\n") {
        skip!("privileges cannot be given up here: {id}");
    }
    let mut text = String::new();
    for line in [
        "landspeed tap -i lo",
        "landspeed tune apply --set net.core.rmem_max=1048576",
        "landspeed run 127.0.0.1:1 --tap capture",
    ] {
        text += &transcript(std::path::Path::new("/"), &drop, line);
    }
    golden::same_redacted("errors-privilege.txt", &text, &[("[LANDSPEED]", r"/\S+/landspeed\b")]);
}
