//! Invalid tap command lines, and their errors.

use std::process::Command;

use crate::tap::{NamespacePair, TIMEOUT_S, landspeed, spawn};

/// Returns the exit status and standard error of a tap that cannot start.
fn refused(net: &NamespacePair, arguments: &[&str]) -> (i32, String) {
    let ended = spawn(&net.left, landspeed().arg("tap").args(arguments)).end(TIMEOUT_S);
    (ended.code, ended.stderr)
}

#[test]
fn invalid_options_are_refused_with_advice() {
    let net = landspeed_testkit::or_skip!(NamespacePair::new());
    net.left.exec(["ip", "link", "add", "dark0", "type", "veth", "peer", "name", "dark1"]);
    let name = net.link.a.as_str();
    let nearly = format!("{name}x");
    let cases: &[(&[&str], &str)] = &[
        (&["-i", &nearly], &format!("did you mean '{name}'?")),
        (&["-i", "dark0"], "ip link set dark0 up"),
        (&["-i", name, "-i", name], "named twice"),
        (&["-i", name, "tcp port"], "syntax error"),
        (&["-i", name, "host", "1.2.3.4", "and", "ip", "and", "arp"], "rejects all packets"),
        (&["-i", name, "-w", "/nonexistent/x"], "cannot write /nonexistent/x"),
        (&["-i", name, "-w", "/dev/null", "--files", "3"], "--file-size or --file-time"),
        (&["-i", name, "--events"], "--write"),
        (&["-i", name, "--ring", "1"], "128K"),
        (&["-i", name, "-s", "3"], "14"),
    ];
    for (arguments, words) in cases {
        let (code, said) = refused(&net, arguments);
        assert_eq!(code, 2, "{arguments:?}: {said}");
        assert!(said.contains(words), "{arguments:?}: {said}");
    }
}

#[test]
fn a_missing_capability_is_named_with_advice() {
    let net = landspeed_testkit::or_skip!(NamespacePair::new());
    let program = landspeed().get_program().to_owned();
    let mut command = Command::new("setpriv");
    command.arg("--bounding-set=-net_raw").arg(program).args(["tap", "-i", &net.link.a]);
    let ended = spawn(&net.left, &mut command).end(TIMEOUT_S);
    if ended.stderr.contains("setpriv:") {
        landspeed_testkit::skip!("no capability can be given up here: {}", ended.stderr);
    }
    assert_eq!(ended.code, 2, "{}", ended.stderr);
    assert!(
        ended.stderr.contains("CAP_NET_RAW") && ended.stderr.contains("setcap cap_net_raw+ep /"),
        "{}",
        ended.stderr
    );
}
