//! Unmodified programs of this host in the lab: they agree with landspeed's flows and with calculated times, change nothing on
//! the host, and always end.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use landspeed_testkit::skip;
use serde_json::Value;
use tempfile::TempDir;

use crate::common::chosen_program;
use crate::lab::scenario::number;

/// Two hosts, 10 Mb/s and an RTT of 40 ms.
const PATH: &str =
    "name = \"programs\"\n[host.a]\n[host.b]\n[[link]]\nbetween = [\"a\", \"b\"]\nrate = \"10M\"\ndelay = \"20ms\"\n";

/// A directory with a scenario, outside of `/tmp`, which hosts of the lab cannot see.
struct Place(TempDir);

impl Place {
    fn make(scenario: &str) -> Self {
        Self::with_key("", scenario)
    }

    /// Like `make`, with a key of the whole scenario.
    fn with_key(key: &str, scenario: &str) -> Self {
        let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a temporary directory");
        std::fs::write(directory.path().join("scenario.toml"), format!("{key}\n{PATH}{scenario}")).expect("writable");
        Self(directory)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(chosen_program());
        command.args(["lab", "run", "--yes"]).args(arguments).current_dir(self.0.path());
        command.output().expect("the program runs")
    }

    /// Runs the scenario, and returns its document.
    fn document(&self) -> Value {
        let output = self.run(&["scenario.toml", "--quiet", "--json", "-"]);
        serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)))
    }
}

fn program(host: &str, run: &[&str], keys: &str) -> String {
    format!("[[program]]\nhost = \"{host}\"\nrun = {run:?}\n{keys}\n")
}

/// The program of this name in a document.
fn named<'a>(document: &'a Value, name: &str) -> &'a Value {
    let programs = document["programs"].as_array().expect("programs");
    programs.iter().find(|program| program["name"] == name).unwrap_or_else(|| panic!("no {name} in {programs:#?}"))
}

fn text(output: &Value) -> &str {
    output["text"].as_str().expect("text")
}

#[test]
fn iperf3_and_a_flow_of_one_path_agree() {
    landspeed_testkit::needs_lab_kernel!();
    if !Path::new("/usr/bin/iperf3").exists() {
        skip!("no /usr/bin/iperf3 here");
    }
    let scenario = "[[flow]]\nname = \"own\"\nfrom = \"a\"\nto = \"b\"\nomit = \"2s\"\ntime = \"5s\"\n".to_owned()
        + &program("b", &["iperf3", "-s", "-1"], "name = \"server\"\nstop = \"end\"")
        + &program("a", &["iperf3", "-c", "b", "-O", "2", "-t", "5", "-J"], "name = \"client\"\nat = \"10s\"");
    let document = Place::make(&scenario).document();
    assert_eq!(document["status"], "complete", "{:#} {:#}", document["checks"], document["programs"]);
    let iperf3: Value = serde_json::from_str(text(&named(&document, "client")["stdout"])).expect("iperf3's JSON");
    let theirs = number(&iperf3["end"]["sum_received"]["bits_per_second"]);
    let ours = number(&document["flows"][0]["goodput_bps"]);
    assert!((theirs / ours - 1.0).abs() < 0.01, "iperf3 {theirs}, landspeed {ours}");
    let end_ns = number(&named(&document, "client")["end_ns"]);
    assert!((17e9..18e9).contains(&end_ns), "seven seconds after 10 s, and a few round trips: {end_ns}");
}

#[test]
fn curl_takes_the_calculated_time_with_equal_digests() {
    landspeed_testkit::needs_lab_kernel!();
    if !Path::new("/usr/bin/python3").exists() || !Path::new("/usr/bin/curl").exists() {
        skip!("no /usr/bin/python3 and /usr/bin/curl here");
    }
    let fetch = ["curl", "-sS", "-o", "/tmp/got", "-w", "%{time_total}", "http://b:8000/page"];
    let scenario = program("b", &["/usr/bin/python3", "-m", "http.server", "8000"], "stop = \"end\"")
        + &program("a", &fetch, "at = \"1s\"\nkeep = [\"/tmp/got\", \"/tmp/none\"]");
    let place = Place::make(&scenario);
    let page = (0..100_000).fold(String::new(), |page, line| page + &format!("{line:09}\n"));
    std::fs::write(place.path("page"), &page).expect("writable");
    let document = place.document();
    assert_eq!(document["status"], "complete", "{:#} {:#}", document["checks"], document["programs"]);
    let curl = named(&document, "curl");
    assert_eq!(text(&curl["files"][0]["content"]), page, "the file that was fetched");
    assert_eq!(curl["files"][1]["content"], Value::Null);
    // A handshake and a request, then 1 MB in frames of 1448 bytes that take 1538 bytes of the link. Slow start may leave gaps for some
    // round trips.
    let seconds: f64 = text(&curl["stdout"]).parse().expect("a time");
    let least = 2.0 * 0.04 + 1e6 / 1448.0 * 1538.0 * 8.0 / 10e6;
    assert!((least..least + 4.0 * 0.04).contains(&seconds), "{seconds} s, at least {least}");
    let measured = (number(&curl["end_ns"]) - 1e9) / 1e9;
    assert!((measured - seconds).abs() < 0.01, "curl's own clock is the lab's: {measured} {seconds}");
    assert!(number(&document["virtual_s"]) < 3.0, "the server ended with the client");
    assert_eq!(place.document()["digest"], document["digest"]);
}

#[test]
fn programs_write_nothing_on_the_host() {
    landspeed_testkit::needs_lab_kernel!();
    // Each line is an attempt; those that succeed are printed.
    let attempts = "\
        echo x > DIR/new\necho x > DIR/victim\nrm DIR/victim\nchmod 777 DIR/victim\nmv DIR/victim DIR/other\n\
        mount -o remount,rw /\nmount -o remount,rw none /\nmount -t hostfs none /tmp -o DIR\numount /tmp\n\
        echo x > /etc/hostname\necho x > /etc/hosts\necho 5 > /proc/sys/kernel/threads-max\nls /proc/1/root/out\n\
        cat /proc/1/root/init\nls /out\nmknod /tmp/m c 1 1\nnsenter -t 1 -m true\nunshare -m true\nchrt -f 1 true\n\
        echo x > /dev/console\necho x > /dev/kmsg\nip link set lo down\nunshare -rm mount -o remount,rw /\n\
        unshare -rm mount -t hostfs none /tmp -o DIR\n";
    let place = Place::make("");
    let directory = place.path("").display().to_string();
    std::fs::write(place.path("victim"), "whole").expect("writable");
    std::fs::write(place.path("attempts"), attempts.replace("DIR", &directory)).expect("writable");
    let script = "while read -r line; do sh -c \"$line\" && echo \"done: $line\"; done < attempts; echo y > /tmp/y && echo own /tmp; \
                  rm -f /dev/console /dev/kmsg; id -u";
    let scenario = std::fs::read_to_string(place.path("scenario.toml")).expect("readable");
    std::fs::write(place.path("scenario.toml"), scenario + &program("a", &["sh", "-c", script], ""))
        .expect("writable");
    let names = |place: &Place| {
        let entries = std::fs::read_dir(place.path("")).expect("a directory");
        let mut names: Vec<_> = entries.map(|entry| entry.expect("an entry").file_name()).collect();
        names.sort();
        names
    };
    let before = names(&place);
    let document = place.document();
    assert_eq!(document["status"], "complete", "{:#} {:#}", document["checks"], document["programs"]);
    let output = text(&document["programs"][0]["stdout"]);
    let succeeded: Vec<&str> = output.lines().filter(|line| line.starts_with("done")).collect();
    // The devices are files of the host's own /dev, which is in the guest's memory.
    let harmless = ["done: echo x > /dev/console", "done: echo x > /dev/kmsg", "done: echo x > /etc/hosts"];
    assert!(succeeded.iter().all(|line| harmless.contains(line)), "{output} {}", document["programs"][0]["stderr"]);
    assert!(output.contains("own /tmp\n0\n"), "{output}");
    assert_eq!(names(&place), before);
    assert_eq!(std::fs::read_to_string(place.path("victim")).expect("readable"), "whole");
}

#[test]
fn programs_that_do_not_end_well_are_ended_and_named() {
    landspeed_testkit::needs_lab_kernel!();
    let scenario = program("a", &["sleep", "1000"], "name = \"hang\"\ntime = \"1s\"")
        + &program("a", &["sh", "-c", "trap '' TERM; sleep 1000"], "name = \"deaf\"\nstop = \"2s\"")
        + &program("a", &["yes"], "name = \"loud\"")
        + &program("a", &["sh", "-c", "kill -SEGV $$"], "name = \"crash\"")
        + &program("b", &["sh", "-c", "exit 3"], "name = \"status\"")
        + &program("b", &["sh", "-c", "exit 3"], "name = \"expected\"\nexpect = 3")
        + &program("b", &["sh", "-c", "sleep 1000 & sleep 1000 & echo left"], "name = \"forks\"")
        + &program("b", &["sh", "-c", "exec dd if=/dev/zero of=/tmp/x bs=1M"], "name = \"fills\"")
        + &program("b", &["sleep", "1000"], "name = \"server\"\nstop = \"end\"");
    let place = Place::make(&scenario);
    let document = place.document();
    assert_eq!(document["status"], "invalid", "{:#}", document["errors"]);
    for (name, end, status, signal, expected) in [
        ("hang", "time-limit", None, Some(9), false),
        ("deaf", "stopped", None, Some(9), true),
        ("loud", "output-limit", None, Some(9), false),
        ("crash", "exited", None, Some(11), false),
        ("status", "exited", Some(3), None, false),
        ("expected", "exited", Some(3), None, true),
        ("forks", "exited", Some(0), None, true),
        ("fills", "exited", Some(1), None, false),
        ("server", "stopped", None, Some(15), true),
    ] {
        let program = named(&document, name);
        let found = (program["end"].as_str(), program["exit_status"].as_i64(), program["signal"].as_i64());
        assert_eq!(found, (Some(end), status, signal), "{name}: {program:#}");
        assert_eq!(program["expected"], expected, "{name}");
    }
    assert!((1.0e9..1.01e9).contains(&number(&named(&document, "hang")["end_ns"])));
    assert!((3.0e9..3.01e9).contains(&number(&named(&document, "deaf")["end_ns"])), "a second after SIGTERM");
    assert_eq!(text(&named(&document, "forks")["stdout"]), "left\n");
    assert_eq!(text(&named(&document, "loud")["stdout"]).len(), 1 << 20);
    let check = document["checks"].as_array().and_then(|checks| checks.last()).expect("checks");
    assert_eq!(check["name"], "programs");
    let detail = check["detail"].as_str().expect("text");
    for part in [
        "hang on a: ran longer than its `time`",
        "loud on a: wrote more than 64 MiB",
        "crash on a: ended by signal 11",
        "status on b: unexpected exit status 3",
        "fills on b: unexpected exit status 1",
    ] {
        assert!(detail.contains(part), "{detail}");
    }
    assert!(document["digest"].is_string());
}

#[test]
fn programs_that_take_no_virtual_time_are_ended_and_named() {
    landspeed_testkit::needs_lab_kernel!();
    let scenario = program("a", &["true"], "name = \"short\"")
        + &program("a", &["sh", "-c", "while :; do :; done"], "name = \"spins\"\nat = \"100ms\"")
        + &program("b", &["sh", "-c", "b() { b | b & }; b; wait"], "name = \"bomb\"\nat = \"100ms\"");
    let place = Place::with_key("real-time-limit = \"5s\"", &scenario);
    let document = place.document();
    assert_eq!(document["status"], "failed");
    assert_eq!(document["errors"][0]["code"], "real-time-limit");
    let message = document["errors"][0]["message"].as_str().expect("text");
    assert!(message.starts_with("ended after 5 s of real time, at 0."), "{message}");
    assert!(message.contains("; running programs: spins (host a)") && !message.contains("short"), "{message}");
}

#[test]
fn a_fork_bomb_and_a_file_that_waits_end_with_their_program() {
    landspeed_testkit::needs_lab_kernel!();
    let bomb = "b() { b | b & }; b; sleep 1";
    let scenario = program("a", &["sh", "-c", bomb], "name = \"bomb\"\nkeep = [\"/proc/kmsg\"]");
    let document = Place::make(&scenario).document();
    assert_ne!(document["status"], "failed", "{}", document["errors"]);
    // Reading the kernel's log would wait for its next line.
    assert!(named(&document, "bomb")["files"][0]["content"].is_null(), "{}", named(&document, "bomb"));
}

#[test]
fn one_command_runs_between_the_hosts_of_a_path() {
    landspeed_testkit::needs_lab_kernel!();
    let place = Place::make("");
    let output =
        place.run(&["scenario.toml", "--", "sh", "-c", "echo to $LANDSPEED_LAB_HOST; echo note >&2; exit 7"]);
    assert_eq!(output.status.code(), Some(7), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "to a\n");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("note\n") && errors.contains("command (a): exit status 7"), "{errors}");
    // The remote command is `landspeed serve`.
    let output = place.run(&["scenario.toml", "--hosts", "b,a", "--", "/run/landspeed", "run", "a", "-t", "1"]);
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{printed} {}", String::from_utf8_lossy(&output.stderr));
    assert!(printed.contains("min RTT 40.") && printed.contains("Mb/s"), "the path: {printed}");
    let output = place.run(&["scenario.toml", "--", "no-such-program"]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2));
    assert!(errors.contains("cannot run the program command: no 'no-such-program' in /usr"), "{errors}");
}
