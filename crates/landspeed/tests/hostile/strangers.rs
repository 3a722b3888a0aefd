//! Many unauthenticated connections while tests run.

use std::io::Write as _;
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};

use landspeed_flow::control::preface::{self, Purpose};
use landspeed_sys::{clock, process};
use landspeed_testkit::drip::State;

use crate::common::PROGRAM;
use crate::hostile::common::{Run, Server, TIMEOUT_S, finish, until};
use crate::hostile::raw;

/// Opens `n` connections with incomplete or invalid requests of all kinds.
fn crowd(server: SocketAddr, n: usize) -> Vec<TcpStream> {
    let shown = preface::encode(Purpose::Control { keyed: false });
    (0..n)
        .map(|i| {
            let mut stream = raw::connect(server);
            let _ = match i % 5 {
                0 => stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"),
                1 => stream.write_all(&shown[..=i % 40]),
                2 => Ok(()),
                3 => stream.write_all(&[0xff; 4096]),
                _ => stream.write_all(&[&shown[..], &[0, 0, 0, 99, b'{']].concat()),
            };
            stream
        })
        .collect()
}

fn goodput(run: &Run) -> f64 {
    run.document["summary"]["goodput_bps"].as_f64().expect("a rate")
}

#[test]
fn a_thousand_idle_connections_do_not_disturb_a_test() {
    process::raise_open_files_limit();
    let server = Server::start(&[]);
    let idle = server.baseline();
    let alone = server.run(&["-t", "1"]);
    alone.assert_clean();
    let test = server.begin(&["-t", "2"]);
    until(TIMEOUT_S, "the test to start", || server.process.stdout().matches("start").count() == 3);
    let mut strangers = crowd(server.addr, 1000);
    // Every fifth connection sends another byte now and then, for as long as the test runs.
    let over = AtomicBool::new(false);
    let crowded = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                for stranger in strangers.iter_mut().skip(1).step_by(5) {
                    let _ = stranger.write_all(b"L");
                }
                clock::sleep_until(clock::monotonic_ns() + 100_000_000);
            }
        });
        let run = finish(test.end(TIMEOUT_S));
        over.store(true, Ordering::Relaxed);
        run
    });
    crowded.assert_clean();
    let ratio = goodput(&crowded) / goodput(&alone);
    assert!(ratio > 0.2, "with strangers {ratio:.2} of the speed without");
    server.run(&["-t", "0.2"]).assert_clean();
    drop(strangers);
    server.wait_for_resources(idle);
}

/// Many clients that are silent after their prefaces do not block others, and are disconnected.
pub fn idle_prefaces() -> State {
    let hold = |_| {
        process::raise_open_files_limit();
        let server = Server::start(&[]);
        let idle = server.baseline();
        let begun_ns = clock::monotonic_ns();
        let _dripping = crowd(server.addr, 100);
        let shown = preface::encode(Purpose::Control { keyed: false });
        let idle_ones: Vec<_> = (0..600)
            .map(|_| {
                let mut stream = raw::connect(server.addr);
                stream.write_all(&shown).unwrap();
                stream
            })
            .collect();
        let (_, threads) = server.process.resources();
        assert!(threads < 400, "{threads} threads for 600 strangers");
        server.run(&["-t", "0.2"]).assert_clean();
        assert!(idle_ones.into_iter().all(raw::is_closed), "all are sent away");
        server.wait_for_resources(idle);
        (clock::monotonic_ns() - begun_ns) as f64 / 1e9
    };
    ("a crowd of idle prefaces", 10.0, Box::new(hold))
}

#[test]
fn descriptors_running_out_is_survived() {
    let mut command = std::process::Command::new("sh");
    command.args(["-c", &format!("ulimit -n 64; exec {PROGRAM} serve --listen 127.0.0.1:0")]);
    let server = Server::of(command);
    let strangers: Vec<_> = (0..300).filter_map(|_| TcpStream::connect(server.addr).ok()).collect();
    until(TIMEOUT_S, "a test to get through", || server.run(&["-t", "0.1"]).ended.code == 0);
    drop(strangers);
    server.run(&["-t", "0.2"]).assert_clean();
}
