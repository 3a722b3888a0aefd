//! Pre-shared keys, and peers without the right key.

use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use landspeed_flow::control::preface::{Purpose, Status};

use crate::hostile::common::{Process, Server, TIMEOUT_S, landspeed, run, scratch};
use crate::hostile::proxy::{self, Tampering, Target};
use crate::hostile::raw;

pub fn new_key(directory: &Path, name: &str) -> PathBuf {
    let path = directory.join(name);
    let mut command = landspeed();
    command.args(["serve", "--new-key"]).arg(&path);
    assert_eq!(Process::start(command).end(TIMEOUT_S).code, 0);
    path
}

pub fn text(path: &Path) -> &str {
    path.to_str().expect("a plain path")
}

#[test]
fn a_key_file_is_private_and_never_overwritten() {
    let directory = scratch();
    let path = new_key(directory.path(), "site.key");
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let before = std::fs::read(&path).unwrap();
    let mut command = landspeed();
    command.args(["serve", "--new-key"]).arg(&path);
    let again = Process::start(command).end(TIMEOUT_S);
    assert!(again.code == 2 && again.stderr.contains("never overwritten"), "{again:?}");
    assert_eq!(std::fs::read(&path).unwrap(), before);
}

#[test]
fn server_accepts_only_its_own_key() {
    let directory = scratch();
    let (right, wrong) = (new_key(directory.path(), "right"), new_key(directory.path(), "wrong"));
    let server = Server::start(&["--key-file", text(&right)]);
    let idle = server.baseline_with(&["--key-file", text(&right)]);
    server.run(&["--key-file", text(&wrong)]).assert_failed("wrong-key");
    let without = server.run(&[]);
    without.assert_failed("key-required");
    assert!(without.ended.stderr.contains("--key-file"), "{:?}", without.ended);
    let run = server.run(&["-t", "0.2", "--key-file", text(&right)]);
    run.assert_clean();
    assert_eq!(run.document["path"]["authenticated"], true);
    server.wait_for_resources(idle);
}

#[test]
fn key_is_not_sent_to_a_keyless_server() {
    let directory = scratch();
    let key = new_key(directory.path(), "key");
    let server = Server::start(&[]);
    let run = server.run(&["--key-file", text(&key)]);
    run.assert_failed("key-unexpected");
    assert!(run.ended.stderr.contains("Drop --key-file"), "{:?}", run.ended);
}

#[test]
fn tampered_messages_end_the_test() {
    let directory = scratch();
    let key = new_key(directory.path(), "key");
    let server = Server::start(&["--key-file", text(&key)]);
    let honest = proxy::start(server.addr, None);
    run(&honest.to_string(), &["-t", "0.2", "--key-file", text(&key)]).assert_clean();
    // Messages 0, 4 and 13: greeting or acceptance, ping or its answer, keep-alive or live figures. Most cases
    // only wait.
    std::thread::scope(|scope| {
        for from_client in [true, false] {
            for number in [0, 4, 13] {
                for tampering in [Tampering::FlipBit, Tampering::Drop, Tampering::Repeat, Tampering::SwapWithNext] {
                    let target = Target { from_client, number, tampering };
                    let addr = proxy::start(server.addr, Some(target)).to_string();
                    let key = text(&key);
                    scope.spawn(move || {
                        let run = run(&addr, &["-t", "1.2", "-b", "10m", "--key-file", key]);
                        assert_ne!(run.status(), "complete", "{target:?}");
                        assert_ne!(run.ended.code, 0, "{target:?}");
                    });
                }
            }
        }
    });
    server.run(&["-t", "0.2", "--key-file", text(&key)]).assert_clean();
}

#[test]
fn garbage_in_the_handshake_is_refused() {
    let directory = scratch();
    let key = new_key(directory.path(), "key");
    let server = Server::start(&["--key-file", text(&key)]);
    let idle = server.baseline_with(&["--key-file", text(&key)]);
    let garbage: &[&[u8]] =
        &[&[0, 0], &[0xff, 0xff], &[0, 48], &[&[0, 48][..], &[7; 48]].concat(), &[&[1, 0][..], &[0; 256]].concat()];
    for bytes in garbage {
        let (mut stream, status) = raw::run_handshake(server.addr, Purpose::Control { keyed: true });
        assert_eq!(status, Some(Status::Welcome));
        stream.write_all(bytes).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        assert!(raw::is_closed(stream), "{bytes:?}");
    }
    server.wait_for_resources(idle);
}
