//! Invalid iperf3 servers: our client ends in time, reports the reason in one line, and does not panic.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use landspeed_sys::clock;
use landspeed_testkit::process::Process;
use landspeed_testkit::random::Random;
use serde_json::{Value, json};

use crate::iperf3::parties::{TIMEOUT_S, landspeed, landspeed_client};
use landspeed_testkit::process::run_concurrently;

/// One step of a server's script.
#[derive(Debug, Clone)]
enum Step {
    SendBytes(Vec<u8>),
    /// Sends a text with its length.
    Text(String),
    /// Reads the cookie.
    Cookie,
    /// Reads a text with its length.
    Request,
    /// Accepts a data connection and does not read it.
    Stream,
    /// Accepts a data connection and reads it in the background.
    Reader,
    /// Waits for one byte.
    ReadByte,
    /// Sends nothing for this time, milliseconds.
    Pause(u64),
    /// Announces a text of 1 MB and sends a byte of it now and then, for at most a minute.
    Drip,
}
use Step::{Cookie, Drip, Pause, ReadByte, Reader, Request, SendBytes, Stream, Text};

/// Runs `options` against a server that follows the script and then closes the connection.
fn against(script: Vec<Step>, options: &str) -> (i32, Value) {
    let (target, server) = serve(script);
    let outcome = landspeed_client(&target, options);
    let _ = server.join().expect("the script does not panic");
    outcome
}

/// Starts a server that follows the script and then closes the connection; returns its address.
fn serve(script: Vec<Step>) -> (String, std::thread::JoinHandle<std::io::Result<Vec<TcpStream>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let target = listener.local_addr().expect("an address").to_string();
    let server = std::thread::spawn(move || {
        let (mut control, _) = listener.accept()?;
        control.set_read_timeout(Some(Duration::from_secs(20)))?;
        let mut kept = Vec::new();
        for step in script {
            match step {
                SendBytes(bytes) => control.write_all(&bytes)?,
                Text(text) => {
                    control.write_all(&(text.len() as u32).to_be_bytes())?;
                    control.write_all(text.as_bytes())?;
                }
                Cookie => control.read_exact(&mut [0; 37])?,
                Request => {
                    let mut length = [0; 4];
                    control.read_exact(&mut length)?;
                    control.read_exact(&mut vec![0; u32::from_be_bytes(length) as usize])?;
                }
                Stream => kept.push(listener.accept()?.0),
                Reader => {
                    let (stream, _) = listener.accept()?;
                    std::thread::spawn(move || drain(stream));
                }
                ReadByte => control.read_exact(&mut [0; 1])?,
                Pause(ms) => clock::sleep_until(clock::monotonic_ns() + ms * 1_000_000),
                Drip => {
                    control.write_all(&1_000_000_u32.to_be_bytes())?;
                    let end_ns = clock::monotonic_ns() + 60_000_000_000;
                    while clock::monotonic_ns() < end_ns {
                        control.write_all(b" ")?;
                        clock::sleep_until(clock::monotonic_ns() + 8_000_000);
                    }
                }
            }
        }
        Ok::<_, std::io::Error>(kept)
    });
    (target, server)
}

fn drain(mut stream: TcpStream) {
    let _ = stream.set_read_timeout(Some(Duration::from_secs(20)));
    let mut buffer = vec![0; 1 << 20];
    while matches!(stream.read(&mut buffer), Ok(1..)) {}
}

/// The script of a valid server, up to the start of the test.
fn started() -> Vec<Step> {
    vec![Cookie, SendBytes(vec![9]), Request, SendBytes(vec![10]), Reader, SendBytes(vec![1]), SendBytes(vec![2])]
}

fn results(bytes: &Value) -> Value {
    let stream = json!({"id": 1, "bytes": bytes, "retransmits": -1, "jitter": 0, "errors": 0, "packets": 0});
    json!({"cpu_util_total": 1, "cpu_util_user": 1, "cpu_util_system": 1, "sender_has_retransmits": -1, "streams": [stream]})
}

#[test]
fn errors_before_the_test_are_reported_plainly() {
    let number = |n: i32| [&[0xFE][..], &n.to_be_bytes(), &[0; 4]].concat();
    for (script, code, message) in [
        (vec![], "not-iperf3", "is not an iperf3 server"),
        (
            vec![Cookie, SendBytes(b"HTTP/1.1 400 Bad Request\r\n".to_vec()), Pause(200)],
            "not-iperf3",
            "is not an iperf3",
        ),
        (vec![Cookie, SendBytes(vec![0xFF])], "server-busy", "busy"),
        (vec![Cookie, SendBytes(vec![9]), Request, SendBytes(number(142))], "iperf3-error", "authorization failed"),
        (vec![Cookie, SendBytes(vec![9]), Request, SendBytes(number(9999))], "iperf3-error", "iperf3's error 9999"),
        (vec![Cookie, SendBytes(vec![9]), Request, SendBytes(vec![0xFE])], "iperf3-error", "iperf3's error 0"),
        (vec![Cookie, SendBytes(vec![9]), Request, SendBytes(vec![11])], "server-stopped", "stopped"),
        (vec![Cookie, SendBytes(vec![9]), Request], "iperf3-error", "hung up"),
        (vec![Cookie, SendBytes(vec![9]), Request, SendBytes(vec![2])], "protocol", "out of turn"),
        (vec![Cookie, SendBytes(vec![9]), Request, SendBytes(vec![77])], "protocol", "not a state of iperf3"),
        (vec![Cookie, SendBytes(vec![9]), Request, SendBytes(vec![10]), Stream], "peer-lost", "lost the connection"),
    ] {
        let what = format!("{script:?}");
        let (status, document) = against(script, "-t 0.2");
        let error = &document["errors"][0];
        assert_eq!((status, &error["code"]), (2, &Value::from(code)), "{what}: {error}");
        assert!(error["message"].to_string().contains(message), "{what}: {error}");
    }
}

#[test]
fn silent_servers_time_out() {
    let clients: Vec<_> = [
        vec![Cookie, Pause(18_000)],
        vec![Cookie, SendBytes(vec![9]), Pause(18_000)],
        vec![Cookie, SendBytes(vec![9]), Request, SendBytes(vec![10]), Stream, Pause(18_000)],
        [started(), vec![ReadByte, Pause(18_000)]].concat(),
        [started(), vec![ReadByte, SendBytes(vec![13]), Pause(18_000)]].concat(),
        [started(), vec![ReadByte, SendBytes(vec![13]), Request, Drip]].concat(),
    ]
    .into_iter()
    .map(|script| std::thread::spawn(|| against(script, "-t 0.5")))
    .collect();
    for client in clients {
        let (status, document) = client.join().expect("a document");
        assert!(status == 1 || status == 2, "{document:#}");
        let code = document["errors"][0]["code"].as_str().unwrap_or_default();
        assert!(["timeout", "peer-lost"].contains(&code), "{:#}", document["errors"]);
    }
}

#[test]
fn ctrl_c_ends_a_client_of_a_silent_server() {
    let clients: Vec<_> = [
        vec![Cookie, Pause(30_000)],
        vec![Cookie, SendBytes(vec![9]), Pause(30_000)],
        vec![Cookie, SendBytes(vec![9]), Request, SendBytes(vec![0xFE, 0]), Pause(30_000)],
        vec![Cookie, SendBytes(vec![9]), Request, SendBytes(vec![10]), Stream, Pause(30_000)],
        [started(), vec![ReadByte, Pause(30_000)]].concat(),
        [started(), vec![ReadByte, SendBytes(vec![13]), Pause(30_000)]].concat(),
        [started(), vec![ReadByte, SendBytes(vec![13]), Request, Drip]].concat(),
        // The server does not read, so sent data is never fully acknowledged.
        vec![
            Cookie,
            SendBytes(vec![9]),
            Request,
            SendBytes(vec![10]),
            Stream,
            SendBytes(vec![1]),
            SendBytes(vec![2]),
            Pause(30_000),
        ],
    ]
    .into_iter()
    .map(|script| {
        std::thread::spawn(move || {
            let what = format!("{script:?}");
            let (target, _server) = serve(script);
            let client = Process::start(landspeed(&["run", &target, "--iperf3", "--json", "-", "-t", "0.5"]));
            clock::sleep_until(clock::monotonic_ns() + 3_000_000_000);
            client.signal("INT");
            let asked_ns = clock::monotonic_ns();
            let ended = client.end(TIMEOUT_S);
            let took_s = (clock::monotonic_ns() - asked_ns) as f64 / 1e9;
            // Documented is one second; the bound allows for a busy machine and is below every step's deadline.
            assert!(took_s < 4.0, "{what}: {took_s:.1} s after SIGINT");
            assert_ne!(ended.code, 0, "{what}: {ended:?}");
        })
    })
    .collect();
    for client in clients {
        client.join().expect("ended in time");
    }
}

#[test]
fn results_before_a_server_failure_are_kept() {
    for (more, code) in [
        (vec![Pause(300)], "peer-lost"),
        (vec![Pause(300), SendBytes(vec![11])], "server-stopped"),
        (vec![Pause(300), SendBytes(vec![13])], "protocol"),
        (vec![ReadByte, SendBytes(vec![13]), Request, Text("no JSON".to_owned())], "protocol"),
        (vec![ReadByte, SendBytes(vec![13]), Request, SendBytes(u32::MAX.to_be_bytes().to_vec())], "protocol"),
        (vec![ReadByte, SendBytes(vec![13]), Request, Text(json!({"streams": []}).to_string())], "protocol"),
        (vec![ReadByte, SendBytes(vec![13]), Request, Text(results(&json!(-5)).to_string())], "protocol"),
        (vec![ReadByte, SendBytes(vec![13]), Request, Text(results(&json!(u64::MAX)).to_string())], "protocol"),
        (vec![ReadByte, SendBytes(vec![13]), Request], "peer-lost"),
    ] {
        let what = format!("{more:?}");
        let (status, document) = against([started(), more].concat(), "-t 1");
        assert_eq!((status, &document["status"]), (1, &Value::from("partial")), "{what}: {:#}", document["errors"]);
        assert_eq!(document["errors"][0]["code"], code, "{what}: {:#}", document["errors"]);
        assert!(document["totals"]["client"]["bytes_sent"].as_u64() > Some(0), "{what}");
        assert_eq!(document["conservation"]["holds"], false, "{what}: half of the accounting is missing");
    }
}

#[test]
fn false_server_totals_unbalance_the_accounting() {
    let script = [
        started(),
        vec![
            ReadByte,
            SendBytes(vec![13]),
            Request,
            Text(results(&json!(7)).to_string()),
            SendBytes(vec![14]),
            ReadByte,
        ],
    ];
    let (status, document) = against(script.concat(), "-n 1M");
    assert_eq!(status, 1, "{:#}", document["conservation"]);
    assert_eq!(document["conservation"]["unaccounted_bytes"], (1 << 20) - 7, "{:#}", document["conservation"]);
}

#[test]
fn escape_sequences_of_servers_are_removed() {
    let mut text = results(&json!(1 << 20));
    text["congestion_used"] = json!("\u{1b}[2Jcubic");
    text["server_output_text"] = json!("one\n\u{1b}]0;owned\u{7}two");
    let script = [
        started(),
        vec![ReadByte, SendBytes(vec![13]), Request, Text(text.to_string()), SendBytes(vec![14]), ReadByte],
    ];
    let (_, document) = against(script.concat(), "-n 1M --server-output");
    assert!(!document.to_string().contains("\\u001b"), "{:#}", document["iperf3"]);
    assert!(document["iperf3"]["output"].to_string().contains("two"), "{:#}", document["iperf3"]);
}

#[test]
fn corrupt_messages_do_not_stop_the_client() {
    let mut random = Random::new(0x1_9e3f);
    let scripts: Vec<Vec<Step>> = (0..40).map(|_| corrupt_script(&mut random)).collect();
    run_concurrently(scripts.chunks(10), |scripts| {
        for script in scripts {
            let (status, _) = against(script.clone(), "-n 1M");
            assert!((0..=2).contains(&status), "{status}: {script:?}");
        }
    });
}

fn corrupt_script(random: &mut Random) -> Vec<Step> {
    let mut text = results(&json!(1 << 20)).to_string().into_bytes();
    for _ in 0..=random.below(4) {
        let at = random.below(text.len() as u64) as usize;
        match random.below(3) {
            0 => text[at] = random.below(256) as u8,
            1 => text.extend_from_within(at..),
            _ => text.insert(at, b'9'),
        }
    }
    let text = String::from_utf8_lossy(&text).into_owned();
    let mut script =
        [started(), vec![ReadByte, SendBytes(vec![13]), Request, Text(text), SendBytes(vec![14])]].concat();
    if random.random_bool(0.5) {
        let at = random.below(script.len() as u64) as usize;
        script[at] = SendBytes(vec![random.below(256) as u8]);
    }
    script
}
