//! Paths that change: events and traces take effect at their times, and the verdict follows them.

use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use crate::common::chosen_program;
use crate::lab::scenario::{LabRun, finish};

/// 100 Mb/s and 10 ms one way between two switches; 1 Gb/s to the hosts.
const PATH: &str = "name = \"a path that changes\"\ntime = \"4s\"\nsample = \"10ms\"\n[hosts]\nqdisc = \"fq\"\n[host.a]\n[host.b]\n\
                    [switch.s]\nqueue = { kind = \"bfifo\", limit = \"250KB\" }\n[switch.t]\n\
                    [[link]]\nbetween = [\"a\", \"s\"]\nrate = \"1G\"\n[[link]]\nbetween = [\"s\", \"t\"]\nrate = RATE\ndelay = \"10ms\"\n\
                    [[link]]\nbetween = [\"t\", \"b\"]\nrate = \"1G\"\n";
const TCP: &str = "[[flow]]\nname = \"tcp\"\nfrom = \"a\"\nto = \"b\"\n";
/// 1250 datagrams of 1000 bytes in a second.
const UDP: &str =
    "[[flow]]\nname = \"udp\"\nfrom = \"a\"\nto = \"b\"\nprotocol = \"udp\"\nrate = \"10M\"\nlen = \"1000B\"\n";

/// A directory with a scenario.
struct Place(TempDir);

impl Place {
    fn make(rate: &str, more: &str) -> Self {
        let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a temporary directory");
        std::fs::write(directory.path().join("path.toml"), PATH.replace("RATE", rate) + more).expect("writable");
        Self(directory)
    }

    fn command(&self, sets: &[&str]) -> Command {
        let mut command = Command::new(chosen_program());
        command.args(["lab", "run", "--quiet", "--yes", "--json", "-", "path.toml"]).current_dir(self.0.path());
        for set in sets {
            command.args(["--set", set]);
        }
        command
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
}

fn run(rate: &str, more: &str) -> LabRun {
    finish(Place::make(rate, more).command(&[]), None)
}

fn link<'a>(run: &'a LabRun, name: &str) -> &'a Value {
    let links = run.document["links"].as_array().expect("links");
    links.iter().find(|link| link["name"] == name).expect("the link")
}

/// Goodput of each part of the first flow, Mb/s.
fn parts(run: &LabRun) -> Vec<f64> {
    let epochs = run.document["flows"][0]["epochs"].as_array().cloned().unwrap_or_default();
    epochs.iter().map(|epoch| epoch["goodput_bps"].as_f64().expect("a rate") / 1e6).collect()
}

#[test]
fn the_verdict_follows_a_rate_that_changes() {
    landspeed_testkit::needs_lab_kernel!();
    let events = format!("{TCP}[[event]]\nat = \"2s\"\nlink = \"s->t\"\nrate = \"20M\"\n");
    let first = run("\"100M\"", &events);
    assert_eq!(first.document["events"][0]["applied_ns"], 2_000_000_000_u64);
    let rates = parts(&first);
    assert_eq!(rates.len(), 2, "{:#}", first.document["flows"][0]["epochs"]);
    // Headers and framing leave 94.1 %; the first part includes slow start, the second what waited in the queue.
    assert!((60.0..95.0).contains(&rates[0]) && (17.0..20.0).contains(&rates[1]), "{rates:?}");
    let verdict = &first.document["flows"][0]["run"]["verdict"];
    let epochs = first.document["flows"][0]["epochs"].as_array().expect("parts");
    if epochs[0]["cause"] != epochs[1]["cause"] {
        assert_eq!(verdict["confidence"], "low", "{verdict:#}");
    }
    let again = run("\"100M\"", &events);
    assert_eq!(first.digest(), again.digest());
}

#[test]
fn an_outage_loses_what_is_sent_meanwhile() {
    landspeed_testkit::needs_lab_kernel!();
    let events = "[[event]]\nat = \"1s\"\nlink = 1\ndown = true\n[[event]]\nat = \"1.1s\"\nlink = 1\ndown = false\n";
    let ran = run("\"100M\"", &format!("{UDP}{events}"));
    let lost = link(&ran, "s->t")["lost"].as_u64().expect("a count");
    assert_eq!(lost, 125, "datagrams of 100 ms");
}

#[test]
fn a_changing_link_may_lead_to_a_branch() {
    landspeed_testkit::needs_lab_kernel!();
    let branch = "[host.c]\n[[link]]\nbetween = [\"t\", \"c\"]\nrate = \"1G\"\n";
    let event = "[[event]]\nat = \"1s\"\nlink = 1\nrate = \"50M\"\n";
    let ran = run("\"100M\"", &format!("{branch}{UDP}{event}"));
    assert_eq!(link(&ran, "s->t")["lost"].as_u64(), Some(0));
}

#[test]
fn a_delay_that_shrinks_reorders_nothing() {
    landspeed_testkit::needs_lab_kernel!();
    let events =
        "[[event]]\nat = \"1s\"\nlink = 1\ndelay = \"40ms\"\n[[event]]\nat = \"2s\"\nlink = 1\ndelay = \"5ms\"\n";
    let ran = run("\"100M\"", &format!("{UDP}{events}"));
    let udp = &ran.document["flows"][0]["run"]["udp"];
    assert_eq!(udp["reordered_packets"], 0, "{udp:#}");
    assert_eq!(udp["lost_packets"], 0, "{udp:#}");
    assert_eq!(link(&ran, "s->t")["lost"], 0);
}

#[test]
fn a_trace_file_limits_what_passes() {
    landspeed_testkit::needs_lab_kernel!();
    let place = Place::make("{ mahimahi = \"cell.trace\" }", TCP);
    // 1 packet a millisecond for 1 s, then 4: 12 and 48 Mb/s.
    let slow = (1..=1000).map(|ms| format!("{ms}\n"));
    let fast = (1001..=2000).map(|ms| format!("{ms}\n").repeat(4));
    std::fs::write(place.file("cell.trace"), slow.chain(fast).collect::<String>()).expect("writable");
    let ran = finish(place.command(&["flow.0.omit=2s", "flow.0.time=2s"]), None);
    let goodput = ran.document["flows"][0]["goodput_bps"].as_f64().expect("a rate") / 1e6;
    // 30 Mb/s of IP packets in the mean.
    assert!((22.0..30.0).contains(&goodput), "{goodput}");
    assert_eq!(link(&ran, "s->t")["rate_over_time"], true);
    assert_ne!(ran.document["flows"][0]["run"]["verdict"]["confidence"], "high");
}

#[test]
fn programs_run_while_their_path_changes() {
    landspeed_testkit::needs_lab_kernel!();
    let program = "[[program]]\nhost = \"a\"\nrun = [\"sleep\", \"2\"]\n";
    let place = Place::make("\"100M\"", &format!("{program}[[event]]\nat = \"1s\"\nlink = 1\nrate = \"20M\"\n"));
    let ran = finish(place.command(&["real-time-limit=2min"]), None);
    assert_eq!(ran.document["programs"][0]["exit_status"], 0);
    assert_eq!(ran.document["events"][0]["applied_ns"], 1_000_000_000_u64);
}

#[test]
fn flows_and_sysctls_change_at_their_times() {
    landspeed_testkit::needs_lab_kernel!();
    let events = "[[event]]\nat = \"1s\"\nhost = \"a\"\nsysctl.\"net.ipv4.tcp_slow_start_after_idle\" = 0\n\
                  [[event]]\nat = \"1.5s\"\nflow = \"udp\"\nstop = true\n";
    let ran = run("\"100M\"", &format!("{TCP}{UDP}{events}"));
    let applied = ran.document["events"][0]["applied_ns"].as_u64().expect("a time");
    assert!((1_000_000_000..1_000_100_000).contains(&applied), "{applied}");
    let phases = ran.document["flows"][1]["run"]["phases"].as_array().expect("phases");
    let steady = phases.iter().find(|phase| phase["name"] == "steady").expect("a steady phase");
    let end_ns = steady["end_ns"].as_u64().expect("a time");
    assert!((1_499_000_000..1_501_000_000).contains(&end_ns), "{end_ns}");
}

/// A place with an example of `lab new`.
fn example(name: &str) -> Place {
    let place = Place::make("\"1M\"", TCP);
    let written = Command::new(chosen_program())
        .args(["lab", "new", "--example", name, "example.toml"])
        .current_dir(place.0.path())
        .status()
        .expect("the program runs");
    assert!(written.success());
    place
}

/// Runs an example with some keys overridden.
fn run_example(place: &Place, sets: &[&str]) -> LabRun {
    let mut command = Command::new(chosen_program());
    command.args(["lab", "run", "--quiet", "--yes", "--json", "-", "example.toml"]).current_dir(place.0.path());
    for set in sets {
        command.args(["--set", set]);
    }
    finish(command, None)
}

#[test]
fn satellite_hand_overs_cost_goodput() {
    landspeed_testkit::needs_lab_kernel!();
    let place = example("satellite");
    let changing = run_example(&place, &[]);
    let goodput = |run: &LabRun| run.document["flows"][0]["goodput_bps"].as_f64().expect("a rate") / 1e6;
    assert!(goodput(&changing) < 45.0, "{}", goodput(&changing));
    let epochs = changing.document["flows"][0]["epochs"].as_array().expect("parts");
    let cause_at = |at_ns: u64| {
        let around = |epoch: &&Value| {
            epoch["span_ns"][0].as_u64() <= Some(at_ns) && epoch["span_ns"][1].as_u64() > Some(at_ns)
        };
        epochs.iter().find(around).map(|epoch| epoch["cause"].clone())
    };
    assert_eq!(cause_at(4_000_000_000), Some("network-path".into()));
    assert_eq!(cause_at(8_000_000_000), Some("network-loss".into()));
    let text = std::fs::read_to_string(place.file("example.toml")).expect("readable");
    let still = text.split("# Hand-overs").next().expect("the path");
    std::fs::write(place.file("example.toml"), still).expect("writable");
    let still = run_example(&place, &["time=6s"]);
    assert!(goodput(&still) > 46.0, "{}", goodput(&still));
}

#[test]
fn a_deep_buffer_before_a_cellular_link_delays() {
    landspeed_testkit::needs_lab_kernel!();
    let place = example("cellular");
    let measure = |queue: &str| {
        let ran = run_example(&place, &["time=8s", &format!("switch.station.queue={queue}")]);
        let queues = ran.document["queues"].as_array().cloned().unwrap_or_default();
        let port = queues.iter().find(|queue| queue["name"] == "station->phone").expect("the port");
        let share = link(&ran, "station->phone")["utilisation"].as_f64().expect("a share");
        (port["sojourn_ns_p99"].as_f64().expect("a time"), share)
    };
    let (deep, deep_use) = measure("bfifo");
    let (fair, fair_use) = measure("fq_codel");
    assert!(deep > 3.0 * fair, "{deep} {fair}");
    assert!(deep_use > 0.9 && fair_use < deep_use, "{deep_use} {fair_use}");
}
