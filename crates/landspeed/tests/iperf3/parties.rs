//! Servers and clients of landspeed and iperf3.

use std::net::SocketAddr;
use std::process::{Command, Stdio};

use landspeed_testkit::iperf3::Iperf3;
use landspeed_testkit::process::{Process, free_port, until};
use serde_json::Value;

/// Timeout of every run of these tests, seconds; allows for a busy machine.
pub const TIMEOUT_S: u64 = 60;

/// The program under test.
pub fn landspeed(arguments: &[&str]) -> Command {
    let mut command = crate::common::landspeed();
    command.args(arguments);
    command
}

/// Starts `iperf3 -s` and returns it with its address.
pub fn iperf3_server(iperf3: &Iperf3, arguments: &[&str]) -> (Process, String) {
    let mut said = String::new();
    for _ in 0..5 {
        let port = free_port().to_string();
        // Old releases do not flush the line that reports it.
        let mut command = Command::new("stdbuf");
        command.arg("-oL").arg(&iperf3.path).args(["-s", "-p", &port]).args(arguments).stdin(Stdio::null());
        let mut process = Process::start(command);
        let listens = |process: &Process| process.stdout().contains("Server listening");
        until(TIMEOUT_S, &format!("{iperf3} to listen"), || listens(&process) || process.has_ended());
        if listens(&process) && !process.has_ended() {
            return (process, format!("127.0.0.1:{port}"));
        }
        // Another test's connection may have taken the port.
        said = process.end(TIMEOUT_S).stderr;
    }
    panic!("{iperf3} does not listen: {said}");
}

/// Waits until an `iperf3 -s` listens for its `number`th test, from 1: between two tests its port is closed.
pub fn wait_for_listener(server: &Process, number: usize) {
    until(TIMEOUT_S, "iperf3 to listen again", || server.stdout().matches("Server listening").count() >= number);
}

/// Starts `landspeed serve` and returns it with its address for iperf3 clients.
pub fn landspeed_server(arguments: &[&str]) -> (Process, SocketAddr) {
    landspeed_server_at("127.0.0.1:0", arguments)
}

/// As [`landspeed_server`], on another address.
pub fn landspeed_server_at(listen: &str, arguments: &[&str]) -> (Process, SocketAddr) {
    let mut command = landspeed(&["serve", "--listen", listen, "--iperf3-port", "0"]);
    command.args(arguments);
    let process = Process::start(command);
    let address = process.address_in("iperf3 clients");
    (process, address)
}

/// Runs `landspeed run --iperf3` to its end; returns the exit status and the document.
pub fn landspeed_client(target: &str, arguments: &str) -> (i32, Value) {
    landspeed_client_with(target, arguments, &[])
}

/// As [`landspeed_client`], with environment variables.
pub fn landspeed_client_with(target: &str, arguments: &str, environment: &[(&str, &str)]) -> (i32, Value) {
    let mut command = landspeed(&["run", target, "--iperf3", "--json", "-"]);
    command.args(arguments.split_whitespace()).envs(environment.iter().copied());
    let ended = Process::start(command).end(TIMEOUT_S);
    let document = serde_json::from_str(&ended.stdout)
        .unwrap_or_else(|why| panic!("`{arguments}` left no document: {why}\n{}{}", ended.stdout, ended.stderr));
    (ended.code, document)
}

/// Runs an iperf3 client against `target` to its end; returns its JSON.
pub fn iperf3_client(iperf3: &Iperf3, target: SocketAddr, arguments: &str) -> Value {
    start_iperf3_client(iperf3, target, arguments).0()
}

/// Starts an iperf3 client; returns a function that waits for its JSON, and its process id.
pub fn start_iperf3_client(
    iperf3: &Iperf3,
    target: SocketAddr,
    arguments: &str,
) -> (Box<dyn FnOnce() -> Value + Send>, u32) {
    let mut command = Command::new(&iperf3.path);
    command.args(["-c", &target.ip().to_string(), "-p", &target.port().to_string(), "-J"]);
    command.args(arguments.split_whitespace()).stdin(Stdio::null());
    let (what, process) = (format!("{iperf3} {arguments}"), Process::start(command));
    let number = process.id();
    let finish = move || {
        let ended = process.end(TIMEOUT_S);
        // Some releases print a warning before the document.
        let json = ended.stdout.find('{').map_or("", |at| &ended.stdout[at..]);
        serde_json::from_str(json).unwrap_or_else(|why| panic!("{what}: {why}\n{}{}", ended.stdout, ended.stderr))
    };
    (Box::new(finish), number)
}

/// A case: options, and the first release (3.x) that has them.
pub type Case = (&'static str, u32);

/// Distributes the cases over the releases: each case occurs, and each release is tested with each protocol
/// in each direction. The full matrix is for the long tests.
pub fn cover(cases: &[Case], programs: &[Iperf3]) -> Vec<(Iperf3, Vec<&'static str>)> {
    let mut plan: Vec<_> = programs.iter().map(|program| (program.clone(), Vec::new())).collect();
    let direction = |options: &str| ["--bidir", "-R"].map(|word| options.contains(word));
    let class = |options: &str| (options.contains("-u"), direction(options));
    let mut classes: Vec<_> = cases.iter().map(|(options, _)| class(options)).collect();
    classes.sort_unstable();
    classes.dedup();
    for kind in classes {
        let alike: Vec<&Case> = cases.iter().filter(|(options, _)| class(options) == kind).collect();
        for number in 0..alike.len().max(programs.len()) {
            let (options, first) = *alike[number % alike.len()];
            let mut turn = (0..programs.len()).map(|more| (number + more) % programs.len());
            let has_it = |release: &usize| programs[*release].version >= (3, first);
            if let Some(release) = turn.find(has_it) {
                plan[release].1.push(options);
            }
        }
    }
    plan
}

/// Returns every release with all cases that it supports.
pub fn matrix(cases: &[Case], programs: &[Iperf3]) -> Vec<(Iperf3, Vec<&'static str>)> {
    let of = |program: &Iperf3| {
        cases.iter().filter(|(_, first)| program.version >= (3, *first)).map(|(o, _)| *o).collect()
    };
    programs.iter().map(|program| (program.clone(), of(program))).collect()
}

/// Returns an integer of a document.
#[track_caller]
pub fn number(value: &Value) -> i64 {
    value.as_i64().or_else(|| value.as_f64().map(|n| n as i64)).unwrap_or_else(|| panic!("{value} is not a number"))
}
