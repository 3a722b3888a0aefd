//! Other local users at the names of an emulation's sockets.

use std::process::Command;

use landspeed_sys::rendezvous;
use landspeed_testkit::pair::Pair;
use landspeed_testkit::process::{Process, until};
use serde_json::Value;

use super::peers::Hosts;
use super::{TIMEOUT_S, landspeed, path_file, stop};
use crate::common::PROGRAM;

/// Binds the names of the status and the lock of interface N as another user, and answers each connection with one byte
/// after the other.
const SQUATTER: &str = "
import socket, sys, threading, time
index = sys.argv[1]
def serve(listener):
    while True:
        stream, _ = listener.accept()
        def drip(stream=stream):
            try:
                while True: stream.sendall(b' '); time.sleep(.05)
            except OSError: pass
        threading.Thread(target=drip, daemon=True).start()
names = ['landspeed-emulate-status-' + index, 'landspeed-emulate-' + index]
names += [name + '-' + '0' * 16 for name in names] + [name + '-' + 'f' * 16 for name in names]
for name in names:
    listener = socket.socket(socket.AF_UNIX)
    listener.bind('\\0' + name)
    listener.listen(8)
    threading.Thread(target=serve, args=(listener,), daemon=True).start()
print('bound', flush=True)
time.sleep(600)
";

fn squatter(hosts: &Hosts, index: &str) -> Result<Process, String> {
    let as_nobody = |words: &[&str]| {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "python3"]).args(words);
        // Other users may not start what root installed for itself.
        command.env("PATH", "/usr/bin:/bin");
        command
    };
    if !as_nobody(&["-V"]).output().is_ok_and(|output| output.status.success()) {
        return Err("no setpriv or no python3 for another user here".to_owned());
    }
    let process = hosts.host.run(|| Process::start(as_nobody(&["-c", SQUATTER, index])));
    until(TIMEOUT_S, "the names are taken", || process.stdout().contains("bound"));
    Ok(process)
}

#[test]
fn names_taken_by_another_user_have_no_effect() {
    let hosts = landspeed_testkit::or_skip!(Hosts::new());
    let index = hosts.host.exec(["ip", "-o", "link", "show", "dev", "h0"]);
    let index = index.split(':').next().expect("its number").to_owned();
    let mut squatter = landspeed_testkit::or_skip!(squatter(&hosts, &index));
    let (directory, file) = path_file(super::peers::LINK);
    let json = directory.path().join("run.json");
    let pair = Pair::across(PROGRAM, &hosts.host, &hosts.remote, super::peers::PEER);
    let measure = || {
        let mut command = landspeed();
        command.args(["run", pair.target(), "-t", "0.3s", "-b", "10M", "--json"]).arg(&json);
        let ended = hosts.host.run(|| Process::start(command)).end(TIMEOUT_S);
        assert!(ended.code < 2, "{}", ended.stderr);
        let text = std::fs::read_to_string(&json).expect("a document");
        serde_json::from_str::<Value>(&text).expect("JSON")
    };
    let run = measure();
    assert_eq!(run["emulation"], Value::Null, "the status of another user is ignored");
    assert!(!run["warnings"].to_string().contains("emulation"), "{}", run["warnings"]);

    let emulation = landspeed_testkit::or_skip!(hosts.emulate(&file, &[]));
    assert!(emulation.stderr().contains("(uid 65534) claims to emulate on h0"), "{}", emulation.stderr());
    let listening =
        hosts.host.run(|| rendezvous::names(&format!("landspeed-emulate-status-{index}-"))).expect("a table");
    assert_eq!(listening.len(), 3, "two of the other user and the emulation's: {listening:?}");
    let run = measure();
    assert_eq!(run["emulation"]["path"]["name"], "a test", "{}", run["warnings"]);
    assert_eq!(run["emulation"]["source"], "local");
    stop(emulation);
    squatter.kill();
}
