//! `landspeed tuneup` from the command line: over loopback, and between two namespaces. The results of
//! searches are tested in virtual time (`crates/tuneup/tests/searches.rs`); here complete searches run.

use std::process::Command;

use landspeed_testkit::netns::{Namespace, veth};
use landspeed_testkit::or_skip;
use landspeed_testkit::pair::Pair;
use landspeed_testkit::process::{Ended, Process, signal, until};
use serde_json::Value;

use crate::common::{PROGRAM, assert_valid, in_namespace};

/// Timeout of the longest search, seconds.
const TIMEOUT_S: u64 = 280;

/// Short tests: the effects to find are large.
const SHORT_TESTS: [&str; 4] = ["-t", "0.2", "-O", "0.05"];
/// For a search next to other tests, in which no data may arrive for a while.
const LONG_TESTS: [&str; 4] = ["-t", "0.5", "-O", "0.1"];

fn start(pair: &Pair, namespace: Option<&Namespace>, arguments: &[&str]) -> Process {
    let mut command = match namespace {
        Some(namespace) => in_namespace(namespace, &[]),
        None => Command::new(PROGRAM),
    };
    command.args(["tuneup", pair.target()]).args(arguments);
    Process::start(command)
}

/// Runs a search to its end and returns its document.
fn search(pair: &Pair, namespace: Option<&Namespace>, arguments: &[&str]) -> (Value, Ended) {
    let scratch = tempfile::tempdir().expect("a directory");
    let path = scratch.path().join("tuneup.json");
    let all = [&["--json", path.to_str().expect("text")], arguments].concat();
    let ended = start(pair, namespace, &all).end(TIMEOUT_S);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|why| panic!("{why}: {}{}", ended.stdout, ended.stderr));
    let document: Value = serde_json::from_str(&text).expect("JSON");
    valid(&document);
    (document, ended)
}

/// Validates the document against the schema, and asserts what every search must satisfy.
fn valid(document: &Value) {
    assert_valid("tuneup", document);
    for rung in rungs(document) {
        let figures = ["low", "ratio", "high"].map(|name| rung[name].as_f64());
        if let [Some(low), Some(ratio), Some(high)] = figures {
            assert!(low <= ratio && ratio <= high, "{rung:#}");
        }
        assert_eq!(rung["kept"] == true, rung["rejected"].is_null(), "{rung:#}");
        assert!(rung["kept"] == false || figures[0].is_some_and(|low| low > 1.0), "{rung:#}");
    }
}

fn rungs(document: &Value) -> &Vec<Value> {
    document["rungs"].as_array().expect("a list")
}

fn kept(document: &Value) -> Vec<&str> {
    rungs(document).iter().filter(|rung| rung["kept"] == true).filter_map(|rung| rung["change"].as_str()).collect()
}

#[test]
#[ignore = "long: a search of 50 s"]
fn a_search_over_loopback_keeps_its_budget_and_prints_a_command() {
    let pair = Pair::on_loopback(PROGRAM);
    let arguments = [&["-w", "16K", "-l", "4K", "--budget", "50s", "--seed", "1"][..], &SHORT_TESTS].concat();
    let (document, ended) = search(&pair, None, &arguments);
    assert!([0, 1].contains(&ended.code), "{}", ended.stderr);
    // Either may be found first; both have a large effect.
    let mut kept = kept(&document).into_iter();
    assert!(kept.any(|change| change.starts_with("window") || change.starts_with("write size")), "{document:#}");
    let result = &document["final"];
    assert!(result["ratio"].as_f64().is_some_and(|ratio| ratio > 1.5), "{result:#}");
    // The printed command can be run.
    let command = result["command"].as_str().expect("a command line");
    let words: Vec<&str> = command.split(' ').collect();
    assert_eq!(words[..2], ["landspeed", "run"]);
    let again = Command::new(PROGRAM).args(&words[1..]).args(["-t", "0.2", "-q"]).status().expect("runs");
    assert!(again.success(), "{command}");
    assert!(ended.stdout.contains(command) && ended.stdout.contains("first settings"), "{}", ended.stdout);
    assert!(
        ended.stdout.lines().filter(|line| !line.contains("landspeed run")).all(|line| line.chars().count() <= 80)
    );
}

#[test]
fn dry_run_measures_once_and_lists_candidates() {
    let pair = Pair::on_loopback(PROGRAM);
    let (document, ended) = search(&pair, None, &["--dry-run", "-w", "64K"]);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert_eq!((&document["tests"], &document["ended"]), (&1.into(), &"dry-run".into()));
    assert!(
        rungs(&document)
            .iter()
            .any(|rung| rung["change"].as_str().is_some_and(|change| change.starts_with("window")))
    );
    assert!(rungs(&document).iter().all(|rung| rung["ratio"].is_null() && rung["kept"] == false));
}

/// Cells of a map: receiver core, column core and median goodput.
fn cells(document: &Value) -> Vec<(u64, u64, f64)> {
    let cells = document["map"]["cells"].as_array().expect("a map");
    let of = |cell: &Value| {
        Some((cell["receiver_core"].as_u64()?, cell["column_core"].as_u64()?, cell["goodput_bps"].as_f64()?))
    };
    cells.iter().map(|cell| of(cell).unwrap_or_else(|| panic!("{cell:#}"))).collect()
}

#[test]
#[ignore = "long: a map of the same number of tests is drawn of interrupts"]
fn core_map_has_every_pair() {
    let pair = Pair::on_loopback(PROGRAM);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let (document, ended) = search(&pair, None, &[&["--map=0,1", "--budget", "60s"][..], &SHORT_TESTS].concat());
    if cores < 2 {
        assert!(ended.code == 2 && ended.stderr.contains("core 1"), "{}", ended.stderr);
        return;
    }
    assert!([0, 1].contains(&ended.code), "{}", ended.stderr);
    assert_eq!((&document["ended"], &document["map"]["columns"]), (&"mapped".into(), &"sender".into()));
    let pairs: Vec<_> = cells(&document).iter().map(|cell| (cell.0, cell.1)).collect();
    assert_eq!(pairs, [(0, 0), (0, 1), (1, 0), (1, 1)]);
    assert!(rungs(&document).is_empty() && !document["sanity"].as_array().expect("a list").is_empty());
    assert!(ended.stdout.lines().all(|line| line.contains("landspeed run") || line.chars().count() <= 80));
}

#[test]
fn interrupt_map_moves_and_restores_rps() {
    let left = or_skip!(Namespace::new("left"));
    let right = or_skip!(Namespace::new("right"));
    let link = veth(&left, &right, "10.86.0.1/24", "10.86.0.2/24");
    let file = format!("/sys/class/net/{}/queues/rx-0/rps_cpus", link.b);
    // `ip netns exec` mounts the namespace's own sysfs.
    let rps = || {
        let output =
            Command::new("ip").args(["netns", "exec", right.name(), "cat", &file]).output().expect("ip runs");
        assert!(output.status.success(), "{output:?}");
        output.stdout
    };
    let before = rps();
    let pair = Pair::across_with(PROGRAM, &left, &right, "10.86.0.2", &["--allow-host-changes"]);
    if std::thread::available_parallelism().is_ok_and(|cores| cores.get() < 2) {
        landspeed_testkit::skip!("one core has no map");
    }
    let arguments = [&["--map=0,1", "--allow-host-changes", "--budget", "36s"][..], &LONG_TESTS].concat();
    let (document, ended) = search(&pair, Some(&left), &arguments);
    assert!([0, 1].contains(&ended.code), "{}", ended.stderr);
    assert_eq!(document["map"]["columns"], "interrupts");
    assert_eq!(cells(&document).len(), 4);
    // The kernel reports the CPU that served the flow.
    for cell in document["map"]["cells"].as_array().expect("a list") {
        assert_eq!(cell["receive_queue_cpu"], cell["column_core"], "{cell:#}");
    }
    assert_eq!(rps(), before);
}

#[test]
fn lost_server_is_an_error_with_partial_results() {
    let pair = Pair::on_loopback(PROGRAM);
    let scratch = tempfile::tempdir().expect("a directory");
    let path = scratch.path().join("tuneup.json");
    let json = ["--json", path.to_str().expect("text"), "-w", "16K"];
    let mut process = start(&pair, None, &[&json[..], &LONG_TESTS].concat());
    until(TIMEOUT_S, "a baseline", || process.has_ended() || process.stdout().contains("baseline"));
    signal(pair.server_id(), "KILL");
    let Ended { code, stdout, stderr, .. } = process.end(60);
    assert_eq!(code, 2, "{stdout}{stderr}");
    assert!(stderr.starts_with("landspeed: ") && !stderr.contains("panicked"), "{stderr}");
    let document: Value = serde_json::from_str(&std::fs::read_to_string(&path).expect("a file")).expect("JSON");
    valid(&document);
    assert_eq!((&document["status"], &document["ended"]), (&"partial".into(), &"failed".into()));
    assert!(document["baseline"]["goodput_bps"].as_f64().is_some_and(|rate| rate > 0.0));
    assert_eq!(document["errors"].as_array().map(Vec::len), Some(1), "{}", document["errors"]);
}

#[test]
#[ignore = "long: a search of 150 s"]
fn search_matches_manual_tuning_between_namespaces() {
    let left = or_skip!(Namespace::new("left"));
    let right = or_skip!(Namespace::new("right"));
    let _link = veth(&left, &right, "10.88.0.1/24", "10.88.0.2/24");
    let pair = Pair::across(PROGRAM, &left, &right, "10.88.0.2");
    let wrong = ["-w", "16K", "-l", "4K", "--cpus", "0", "--peer-cpus", "0", "--budget", "150s", "--seed", "3"];
    let (document, ended) = search(&pair, Some(&left), &[&wrong[..], &SHORT_TESTS].concat());
    assert!([0, 1].contains(&ended.code), "{}", ended.stderr);
    let found = document["final"]["goodput_bps"].as_f64().expect("a rate");
    let by_hand = (0..3).map(|_| pair.run("-t 1 -O 0.2")["summary"]["goodput_bps"].as_f64().expect("a rate"));
    let by_hand = by_hand.fold(0.0, f64::max);
    assert!(found >= 0.8 * by_hand, "{found} against {by_hand} by hand: {:?}", kept(&document));
}

/// A namespace with a slow qdisc on its interface, and one with a server that allows host changes.
struct ShapedHosts {
    left: Namespace,
    interface: String,
    pair: Pair,
    _right: Namespace,
}

impl ShapedHosts {
    fn new() -> Result<Self, String> {
        let (left, right) = (Namespace::new("left")?, Namespace::new("right")?);
        let link = veth(&left, &right, "10.87.0.1/24", "10.87.0.2/24");
        // This qdisc limits the path, so the search replaces it first and keeps the change, also on a busy host.
        let shaper = "tbf rate 100mbit burst 64kb limit 1mb";
        left.exec(["tc", "qdisc", "replace", "dev", &link.a, "root"].into_iter().chain(shaper.split(' ')));
        let pair = Pair::across_with(PROGRAM, &left, &right, "10.87.0.2", &["--allow-host-changes"]);
        Ok(Self { left, interface: link.a, pair, _right: right })
    }

    fn qdisc(&self) -> String {
        self.left.exec(["tc", "qdisc", "show", "dev", &self.interface])
    }
}

#[test]
fn host_settings_are_restored_after_a_search() {
    let shaped = or_skip!(ShapedHosts::new());
    let before = shaped.qdisc();
    // The minimum budget for these tests is 24 s; the rest is for a busy machine, so that a comparison still
    // fits.
    let arguments = ["--allow-host-changes", "--budget", "40s", "--seed", "5", "-t", "0.3", "-O", "0.05"];
    let (document, ended) = search(&shaped.pair, Some(&shaped.left), &arguments);
    // The document gives the reason for qdiscs that the kernel lacks; the search continues with the next.
    let is_of_tbf = |rung: &Value| rung["change"].as_str().is_some_and(|change| change.contains("qdisc tbf"));
    let replaced = rungs(&document).iter().find(|rung| rung["kept"] == true && is_of_tbf(rung));
    let replaced = replaced.unwrap_or_else(|| panic!("{:#}", document["rungs"]));
    assert!(replaced["ratio"].as_f64().is_some_and(|ratio| ratio > 1.5), "{replaced:#}");
    assert_eq!(shaped.qdisc(), before);
    let result = &document["final"];
    // On a busy machine the time may be over before the final comparison: then its ratio is unknown.
    let unfinished = result["ratio"].is_null() && document["ended"] == "budget";
    assert!(unfinished || result["ratio"].as_f64().is_some_and(|ratio| ratio > 1.5), "{result:#}");
    // The last test may end late on a busy machine; the restoration follows.
    let spent_ns = document["spent_ns"].as_u64().expect("a time");
    assert!(spent_ns <= document["budget_ns"].as_u64().expect("a time") + 5_000_000_000, "{spent_ns} ns");
    // The printed command can be run.
    let command = result["command"].as_str().expect("a command line");
    let arguments = command.strip_prefix("landspeed run ").expect("a run").split(' ').skip(1).collect::<Vec<_>>();
    assert_eq!(shaped.pair.run(&format!("{} -t 0.2", arguments.join(" ")))["status"], "complete", "{command}");
    assert!(ended.stdout.contains(command) && ended.stdout.contains("first settings"), "{}", ended.stdout);
    assert!(
        ended.stdout.lines().filter(|line| !line.contains("landspeed run")).all(|line| line.chars().count() <= 80)
    );
}

#[test]
fn ctrl_c_keeps_partial_results_and_restores_the_host() {
    let shaped = or_skip!(ShapedHosts::new());
    let before = shaped.qdisc();
    let scratch = tempfile::tempdir().expect("a directory");
    let path = scratch.path().join("tuneup.json");
    let json = ["--allow-host-changes", "--seed", "5", "--json", path.to_str().expect("text")];
    let mut process = start(&shaped.pair, Some(&shaped.left), &[&json[..], &LONG_TESTS].concat());
    // The search replaces the qdisc while it measures.
    until(TIMEOUT_S, "a qdisc of the search", || {
        process.has_ended() || (process.stdout().contains("kept") && shaped.qdisc() != before)
    });
    assert!(!process.has_ended(), "{}{}", process.stdout(), process.stderr());
    process.signal("INT");
    let Ended { code, stdout, stderr, .. } = process.end(60);
    assert_eq!(code, 1, "{stdout}{stderr}");
    assert!(stdout.contains("cut short") && stdout.contains("landspeed run"), "{stdout}");
    assert_eq!(shaped.qdisc(), before);
    let document: Value = serde_json::from_str(&std::fs::read_to_string(&path).expect("a file")).expect("JSON");
    valid(&document);
    assert_eq!((&document["status"], &document["ended"]), (&"partial".into(), &"interrupted".into()));
    assert!(kept(&document).iter().any(|change| change.contains("qdisc tbf")), "{:#}", document["rungs"]);
}

#[test]
fn invalid_tuneup_options_are_refused_with_advice() {
    let run = |arguments: &[&str]| {
        let output = Command::new(PROGRAM).arg("tuneup").args(arguments).output().expect("the program runs");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    for (arguments, expected) in [
        (&["127.0.0.1:1"][..], "landspeed serve"),
        (&["127.0.0.1", "--budget", "5s"], "s or more."),
        (&["127.0.0.1", "-P", "129"], "128"),
        (&["127.0.0.1", "-w", "1"], "--window: 1KiB to 1GiB"),
        (&["127.0.0.1", "--json", "-", "--report", "/nonexistent/x.html"], "there is no directory"),
    ] {
        let (code, error) = run(arguments);
        assert_eq!(code, Some(2), "{error}");
        assert!(error.contains(expected) && !error.contains("panicked"), "{arguments:?}: {error}");
    }
}
