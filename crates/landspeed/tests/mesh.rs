//! `landspeed mesh`: rounds among hosts, hosts that die and return, budgets over a restart, bad inventories.

use std::path::{Path, PathBuf};
use std::process::Command;

use landspeed_sys::clock;
use landspeed_testkit::netns::{Namespace, veth};
use landspeed_testkit::process::{Ended, Process, free_port, until};
use landspeed_testkit::{or_skip, skip};
use serde_json::Value;

use crate::common::{PROGRAM, assert_valid, landspeed, list};

/// Timeout of a command, seconds.
const TIMEOUT_S: u64 = 300;

/// A directory with an inventory and an archive.
struct Mesh {
    directory: tempfile::TempDir,
}

impl Mesh {
    fn new(inventory: &str) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        std::fs::write(directory.path().join("site.toml"), inventory).expect("space");
        Self { directory }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = landspeed();
        command.arg("mesh").arg(self.path("site.toml")).args(arguments).arg("--json").arg(self.path("matrix.json"));
        command.env("LANDSPEED_ARCHIVE", self.path("archive"));
        command
    }

    fn run(&self, arguments: &[&str]) -> Ended {
        Process::start(self.command(arguments)).end(TIMEOUT_S)
    }

    fn document(&self) -> Value {
        let text = std::fs::read_to_string(self.path("matrix.json")).expect("the document");
        let document = serde_json::from_str(&text).expect("JSON");
        assert_valid("mesh", &document);
        document
    }
}

/// Inventory of hosts with these addresses, with `rest` behind them.
fn inventory(addresses: &[String], rest: &str) -> String {
    let mut text = "name = \"site\"\nmax-tests = 4\n".to_owned();
    for (at, address) in addresses.iter().enumerate() {
        text += &format!("[[host]]\nname = \"h{}\"\naddress = \"{address}\"\n", at + 1);
    }
    text + rest
}

/// A test that costs little: 200 ms of UDP at 2 Mb/s.
fn test(pairs: &str) -> String {
    format!(
        "[[test]]\nname = \"udp\"\n{pairs}\ninterval = \"1h\"\n[test.run]\nudp = true\nrate = \"2M\"\ntime = \"200ms\"\n"
    )
}

/// Starts a server on loopback.
fn serve(program: &Path, address: &str) -> Process {
    let mut command = Command::new(program);
    command.args(["serve", "--no-iperf3", "--listen", address, "--allow-third-party", "127.0.0.0/8"]);
    let server = Process::start(command);
    server.address_in("listening");
    server
}

/// Servers on loopback that test against each other.
fn servers(count: usize) -> (Vec<Process>, Vec<String>) {
    let addresses: Vec<String> = (0..count).map(|_| format!("127.0.0.1:{}", free_port())).collect();
    (addresses.iter().map(|address| serve(Path::new(PROGRAM), address)).collect(), addresses)
}

/// Number of tests that a server has started.
fn starts(server: &Process) -> usize {
    server.stdout().matches("  start  ").count()
}

fn cells<'a>(document: &'a Value, matches: impl Fn(&Value) -> bool + 'a) -> impl Iterator<Item = &'a Value> {
    list(&document["cells"]).iter().filter(move |cell| matches(cell))
}

fn touches(cell: &Value, host: &str) -> bool {
    cell["from"] == host || cell["to"] == host
}

fn host<'a>(document: &'a Value, name: &str) -> &'a Value {
    list(&document["hosts"]).iter().find(|host| host["name"] == name).expect("a host")
}

/// Writes a copy of the program whose version differs; `None` if this build does not have the version as text.
fn other_version(directory: &Path) -> Option<PathBuf> {
    let version = env!("CARGO_PKG_VERSION").as_bytes();
    let mut other = version.to_vec();
    other[0] = b'9';
    let mut program = std::fs::read(PROGRAM).expect("the program");
    let mut at = 0;
    while at + version.len() <= program.len() {
        if program[at..].starts_with(version) {
            program[at..at + version.len()].copy_from_slice(&other);
            at += version.len();
        }
        at += 1;
    }
    let path = directory.join("landspeed-other");
    std::fs::write(&path, program).expect("space");
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("own file");
    let says = Command::new(&path).arg("--version").output().ok()?.stdout;
    String::from_utf8(says).ok()?.contains(std::str::from_utf8(&other).ok()?).then_some(path)
}

#[test]
fn eight_hosts_are_tested_although_some_die() {
    let hub = or_skip!(Namespace::new("hub"));
    hub.forward();
    let mut hosts = Vec::new();
    for number in 1..=8 {
        let namespace = or_skip!(Namespace::new("host"));
        veth(&hub, &namespace, &format!("10.77.{number}.1/24"), &format!("10.77.{number}.2/24"));
        namespace.exec(["ip", "route", "add", "default", "via", &format!("10.77.{number}.1")]);
        hosts.push(namespace);
    }
    let addresses: Vec<String> = (1..=8).map(|number| format!("10.77.{number}.2")).collect();
    let serve = |at: usize, program: &Path| {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", hosts[at].name()]).arg(program).args(["serve", "--no-iperf3", "--listen"]);
        command.arg(format!("{}:5210", addresses[at])).args(["--allow-third-party", "10.77.0.0/16"]);
        let server = Process::start(command);
        server.address_in("listening");
        server
    };
    let mut servers: Vec<Process> = (0..7).map(|at| serve(at, Path::new(PROGRAM))).collect();
    let pairs =
        "pairs = \"disjoint\"\nhosts = [\"h1\", \"h2\", \"h3\", \"h4\"]\nto = [\"h5\", \"h6\", \"h7\", \"h8\"]";
    let mesh = Mesh::new(&inventory(&addresses, &test(pairs)));
    // h8 does not run yet, and h4 dies in the round.
    let round = hub.run(|| {
        let round = Process::start(mesh.command(&["--once"]));
        until(TIMEOUT_S, "the first results", || round.stdout().lines().count() >= 3);
        servers.remove(3).kill();
        round.end(TIMEOUT_S)
    });
    let document = mesh.document();
    assert_eq!((round.code, document["status"].as_str()), (1, Some("partial")), "{}{}", round.stdout, round.stderr);
    assert_eq!(list(&document["cells"]).len(), 32);
    for cell in cells(&document, |cell| !touches(cell, "h8") && !touches(cell, "h4")) {
        assert_eq!(
            (cell["latest"]["status"].as_str(), cell["failures"].as_u64()),
            (Some("complete"), Some(0)),
            "{cell:#}"
        );
        assert!(cell["latest"]["goodput_bps"].as_f64().is_some_and(|bps| bps > 0.0), "{cell:#}");
        assert!(cell["latest"]["rtt_ns"].is_u64() && cell["change"].is_null(), "{cell:#}");
    }
    assert_eq!(host(&document, "h8")["state"], "unreachable", "{document:#}");
    assert!(round.stdout.contains("h8 does not answer"), "{}", round.stdout);
    assert!(cells(&document, |cell| touches(cell, "h8")).all(|cell| cell["measured"] == 0));
    // h8 starts with another version, and h4 is back.
    let Some(other) = other_version(mesh.directory.path()) else {
        skip!("the version is not in the program as text");
    };
    let _back = [serve(3, Path::new(PROGRAM)), serve(7, &other)];
    let round = hub.run(|| mesh.run(&["--once"]));
    let document = mesh.document();
    assert_eq!((round.code, document["status"].as_str()), (0, Some("complete")), "{}{}", round.stdout, round.stderr);
    assert!(round.stdout.contains("h8 runs landspeed 9"), "{}", round.stdout);
    assert_eq!(list(&document["warnings"]).len(), 1, "{document:#}");
    assert!(
        cells(&document, |cell| touches(cell, "h1") && !touches(cell, "h8")).all(|cell| cell["measured"] == 2),
        "the journal has both rounds"
    );
    let mut archive = landspeed();
    archive.args(["archive", "find", "kind=run", "--json", "-"]).env("LANDSPEED_ARCHIVE", mesh.path("archive"));
    let listed = Process::start(archive).end(TIMEOUT_S);
    let listed: Value = serde_json::from_str(&listed.stdout).expect("JSON");
    let measured: u64 = list(&document["cells"]).iter().filter_map(|cell| cell["measured"].as_u64()).sum();
    assert!(measured >= 50, "{measured}");
    // A test that broke off is kept, too.
    assert!(listed["total"].as_u64().is_some_and(|total| total >= measured), "{listed:#}");
}

#[test]
fn the_local_host_needs_no_server() {
    let (_servers, addresses) = servers(1);
    let text =
        inventory(&addresses, &format!("[[host]]\nname = \"here\"\nlocal = true\n{}", test("pairs = \"mesh\"")));
    let mesh = Mesh::new(&text);
    let round = mesh.run(&["--once"]);
    assert_eq!(round.code, 0, "{}{}", round.stdout, round.stderr);
    let document = mesh.document();
    assert_eq!(cells(&document, |cell| cell["latest"]["goodput_bps"].is_f64()).count(), 2, "{document:#}");
    assert_eq!(host(&document, "h1")["state"], "reachable");
    let shown = mesh.run(&["--show"]);
    assert_eq!(shown.code, 0, "{}", shown.stderr);
    assert!(
        shown.stdout.contains("2 of 2 pairs measured") && shown.stdout.contains("throughput"),
        "{}",
        shown.stdout
    );
}

#[test]
fn a_restart_does_not_renew_a_budget() {
    let (_servers, addresses) = servers(3);
    // One test may send 50 kB, a datagram and 2 %: two of them do not fit.
    let limits = "bytes-per-day = \"60kB\"\n";
    let text = inventory(&addresses, &test("pairs = \"star\"\ncenter = \"h3\""))
        .replace(&format!("address = \"{}\"\n", addresses[0]), &format!("address = \"{}\"\n{limits}", addresses[0]));
    let mesh = Mesh::new(&text);
    let round = mesh.run(&["--once"]);
    let document = mesh.document();
    assert_eq!((round.code, list(&document["cells"]).len()), (1, 4), "{}{}", round.stdout, round.stderr);
    let used = host(&document, "h1")["bytes_24h"].as_u64().expect("a count");
    assert!(used > 0 && used <= 60_000, "{used}");
    let measured = |document: &Value| -> u64 {
        cells(document, |cell| touches(cell, "h1")).filter_map(|cell| cell["measured"].as_u64()).sum()
    };
    assert_eq!(measured(&document), 1, "{document:#}");
    let again = mesh.run(&["--once"]);
    let document = mesh.document();
    assert_eq!((again.code, measured(&document)), (1, 1), "{}{}", again.stdout, again.stderr);
    assert!(again.stdout.contains("the budget of h1 is spent"), "{}", again.stdout);
    assert_eq!(host(&document, "h1")["bytes_24h"].as_u64(), Some(used));
    assert!(cells(&document, |cell| !touches(cell, "h1")).all(|cell| cell["measured"] == 2), "{document:#}");
    // Nor does a new name of the test.
    let renamed = text.replace("name = \"udp\"", "name = \"renamed\"");
    std::fs::write(mesh.path("site.toml"), renamed).expect("space");
    let again = mesh.run(&["--once"]);
    let document = mesh.document();
    assert_eq!((again.code, measured(&document)), (1, 0), "{}{}", again.stdout, again.stderr);
    assert_eq!(host(&document, "h1")["bytes_24h"].as_u64(), Some(used));
}

#[test]
fn a_mesh_runs_until_interrupted_and_continues() {
    let (_servers, addresses) = servers(2);
    let text = inventory(&addresses, &test("pairs = \"mesh\"").replace("\"1h\"", "\"2s\""));
    let mesh = Mesh::new(&text);
    let running = Process::start(mesh.command(&[]));
    until(TIMEOUT_S, "five tests", || running.stdout().lines().count() >= 5);
    let second = mesh.run(&[]);
    assert_eq!(second.code, 2, "one mesh at a time");
    assert!(second.stderr.contains("another landspeed mesh runs with it"), "{}", second.stderr);
    running.signal("INT");
    let ended = running.end(TIMEOUT_S);
    assert_eq!(ended.code, 0, "{}{}", ended.stdout, ended.stderr);
    let before: u64 = list(&mesh.document()["cells"]).iter().filter_map(|cell| cell["measured"].as_u64()).sum();
    let running = Process::start(mesh.command(&[]));
    until(TIMEOUT_S, "two tests", || running.stdout().lines().count() >= 2);
    running.signal("INT");
    assert_eq!(running.end(TIMEOUT_S).code, 0);
    let after: u64 = list(&mesh.document()["cells"]).iter().filter_map(|cell| cell["measured"].as_u64()).sum();
    assert!(before >= 5 && after >= before + 2, "{before}, {after}");
}

#[test]
fn an_upgrade_during_a_test_fails_it_and_the_pair_is_tried_again() {
    // Signal, whether h2 is the client of the test, and the reason of the failure.
    let cases = [
        ("TERM", false, "the server was stopped during the test"),
        ("TERM", true, "one of its servers was stopped during the test"),
        ("KILL", false, "lost the connection to the peer"),
    ];
    for (signal, is_client, reason) in cases {
        let (mut servers, addresses) = servers(2);
        let rounds = test("pairs = \"mesh\"").replace("\"1h\"", "\"5s\"").replace("\"200ms\"", "\"3s\"");
        let mesh = Mesh::new(&inventory(&addresses, &rounds));
        let program = other_version(mesh.directory.path()).unwrap_or_else(|| PathBuf::from(PROGRAM));
        let running = Process::start(mesh.command(&[]));
        until(TIMEOUT_S, "a test", || {
            let log = servers[1].stdout();
            let last = log.lines().last().unwrap_or_default();
            last.contains("  start  ") && last.contains("third-party") == is_client
        });
        // Data flows, and the test lasts 3 s.
        clock::sleep_until(clock::monotonic_ns() + 1_000_000_000);
        let old = servers.remove(1);
        old.signal(signal);
        old.end(TIMEOUT_S);
        let _upgraded = serve(&program, &addresses[1]);
        until(TIMEOUT_S, "the failure", || running.stdout().contains("failed: "));
        until(TIMEOUT_S, "both directions", || {
            let text = running.stdout();
            let after = text.split("failed: ").last().unwrap_or_default();
            ["h1 to h2  ", "h2 to h1  "].iter().all(|pair| after.contains(pair))
        });
        running.signal("INT");
        let ended = running.end(TIMEOUT_S);
        assert_eq!(ended.code, 0, "{signal}: {}{}", ended.stdout, ended.stderr);
        let document = mesh.document();
        assert!(cells(&document, |_| true).all(|cell| cell["failures"] == 0), "{document:#}");
        let failed = ended.stdout.lines().find(|line| line.contains("failed: ")).expect("a failure");
        assert!(failed.contains(reason), "{signal}: {failed}");
    }
}

#[test]
fn bytes_of_a_client_that_died_are_not_zero() {
    let (mut servers, addresses) = servers(2);
    let round = test("pairs = \"star\"\ncenter = \"h1\"").replace("\"200ms\"", "\"20s\"");
    let mesh = Mesh::new(&inventory(&addresses, &round));
    let running = Process::start(mesh.command(&["--once"]));
    until(TIMEOUT_S, "a test from h1 to h2", || starts(&servers[1]) > 0);
    // The mesh has heard of it from h1 meanwhile.
    clock::sleep_until(clock::monotonic_ns() + 1_000_000_000);
    servers.remove(0).kill();
    let ended = running.end(TIMEOUT_S);
    assert_eq!(ended.code, 2, "{}{}", ended.stdout, ended.stderr);
    let used = host(&mesh.document(), "h2")["bytes_24h"].as_u64().expect("a count");
    // 20 s of 2 Mb/s: its worst case.
    assert!((5_000_000..6_000_000).contains(&used), "{used}");
}

#[test]
fn an_interrupted_round_is_not_complete() {
    let (servers, addresses) = servers(2);
    let round = test("pairs = \"mesh\"").replace("\"200ms\"", "\"2s\"");
    let mesh = Mesh::new(&inventory(&addresses, &round));
    let first = mesh.run(&["--once"]);
    assert_eq!(first.code, 0, "{}{}", first.stdout, first.stderr);
    let before = starts(&servers[0]);
    let running = Process::start(mesh.command(&["--once"]));
    until(TIMEOUT_S, "a test", || starts(&servers[0]) > before);
    running.signal("INT");
    let ended = running.end(TIMEOUT_S);
    assert_eq!(ended.code, 2, "{}{}", ended.stdout, ended.stderr);
    assert!(ended.stdout.contains("0 of 2 pairs measured") && ended.stdout.contains(" ("), "{}", ended.stdout);
    let document = mesh.document();
    assert!(cells(&document, |cell| cell["skipped"] == true).count() == 2, "{document:#}");
    assert_eq!(mesh.run(&["--show"]).code, 0, "the latest test of each pair measured");
}

#[test]
fn results_of_a_dead_host_are_not_current() {
    let (mut servers, addresses) = servers(3);
    let mesh = Mesh::new(&inventory(&addresses, &test("pairs = \"mesh\"").replace("\"1h\"", "\"2s\"")));
    let running = Process::start(mesh.command(&[]));
    let document =
        || -> Option<Value> { serde_json::from_str(&std::fs::read_to_string(mesh.path("matrix.json")).ok()?).ok() };
    until(TIMEOUT_S, "all pairs", || document().is_some_and(|document| document["status"] == "complete"));
    servers.remove(2).kill();
    until(TIMEOUT_S, "a pair that is skipped although its latest test measured", || {
        let is_stale = |cell: &Value| cell["skipped"] == true && cell["failures"] == 0;
        document().is_some_and(|document| cells(&document, is_stale).any(|cell| touches(cell, "h3")))
    });
    running.signal("INT");
    let ended = running.end(TIMEOUT_S);
    assert_eq!(ended.code, 1, "{}{}", ended.stdout, ended.stderr);
    assert!(ended.stdout.contains("2 of 6 pairs measured"), "{}", ended.stdout);
    assert!(ended.stdout.contains("in brackets: an earlier test"), "{}", ended.stdout);
    assert!(ended.stdout.contains("h3 does not answer; the latest test was at"), "{}", ended.stdout);
}

#[test]
fn results_wait_in_the_spool_for_a_full_archive() {
    let (_servers, addresses) = servers(2);
    let mesh = Mesh::new(&inventory(&addresses, &test("pairs = \"mesh\"")));
    // Root may write anywhere, but not below a file.
    std::fs::write(mesh.path("archive"), "").expect("space");
    let round = mesh.run(&["--once"]);
    assert_eq!(round.code, 2, "{}{}", round.stdout, round.stderr);
    assert!(
        round.stderr.contains("they wait in") && round.stdout.contains("2 of 2 pairs measured"),
        "{}",
        round.stderr
    );
    let spooled = || std::fs::read_dir(mesh.path("site.mesh/spool")).map_or(0, Iterator::count);
    assert_eq!(spooled(), 2, "nothing is lost");
    std::fs::remove_file(mesh.path("archive")).expect("it is there");
    let round = mesh.run(&["--once"]);
    assert_eq!((round.code, spooled()), (0, 0), "{}{}", round.stdout, round.stderr);
    let mut archive = landspeed();
    archive.args(["archive", "list"]).env("LANDSPEED_ARCHIVE", mesh.path("archive"));
    let listed = Process::start(archive).end(TIMEOUT_S).stdout;
    assert_eq!(listed.lines().filter(|line| line.contains("  run   ")).count(), 4, "{listed}");
}

#[test]
fn mistakes_in_an_inventory_are_located() {
    let hosts = inventory(&["192.0.2.1".to_owned(), "192.0.2.2".to_owned()], "");
    let good = format!("{hosts}{}", test("pairs = \"mesh\""));
    let says = |text: &str| {
        let mesh = Mesh::new(text);
        let ended = mesh.run(&["--once"]);
        assert_eq!(ended.code, 2, "{}", ended.stdout);
        assert!(!mesh.path("site.mesh").exists(), "nothing is written");
        ended.stderr
    };
    for (from, to, message) in [
        ("rate =", "rat =", "did you mean 'rate'?"),
        ("\"h2\"", "\"h1\"", "two hosts are called 'h1'"),
        ("192.0.2.2", "192.0.2.1", "'h2' has the address of 'h1'"),
        ("192.0.2.2", "192.0.2.1:5210", "'h2' has the address of 'h1'"),
        ("192.0.2.2", "[::ffff:192.0.2.1]", "'h2' has the address of 'h1'"),
        ("192.0.2.2", "192.0.2.2:99999", "the port must be 1 to 65535"),
        ("\"2M\"", "\"2 pigeons\"", "2 pigeons"),
        ("udp = true", "target = \"h1\"", "the pairs of the test name the servers"),
        ("max-tests", "max-test", "did you mean 'max-tests'?"),
    ] {
        let stderr = says(&good.replacen(from, to, 1));
        assert!(stderr.contains(message), "{message}: {stderr}");
        assert!(stderr.contains("site.toml:"), "{stderr}");
    }
    let unlimited = good.replace("udp = true\nrate = \"2M\"\n", "").replacen(
        "name = \"h1\"",
        "name = \"h1\"\nbytes-per-day = \"1GB\"",
        1,
    );
    assert!(says(&unlimited).contains("the test may send any number of bytes, and 'h1' has a budget"));
    let small = good.replacen("name = \"h1\"", "name = \"h1\"\nbytes-per-day = \"1kB\"", 1);
    assert!(says(&small).contains("and the budget of 'h1' is 1"), "{}", says(&small));
}

#[test]
fn a_dry_run_prints_load_and_first_tests() {
    let hosts = inventory(&["192.0.2.1".to_owned(), "192.0.2.2".to_owned()], "");
    let mesh = Mesh::new(&format!("{hosts}{}", test("pairs = \"mesh\"")));
    let ended = mesh.run(&["--dry-run"]);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    for words in ["2 hosts, 2 pairs in 1 test", "48.0 tests per day", "h1 to h2", "h2 to h1"] {
        assert!(ended.stdout.contains(words), "{words}: {}", ended.stdout);
    }
    assert!(!mesh.path("site.mesh").exists());
    // A listed test takes its own time and no more of the budget: each hour of the list has both pairs.
    let budget = hosts.replacen("name = \"h1\"", "name = \"h1\"\ntime-per-day = \"30m\"", 1);
    let ended = Mesh::new(&format!("{budget}{}", test("pairs = \"mesh\""))).run(&["--dry-run"]);
    let first: Vec<&str> = ended.stdout.lines().filter(|line| line.trim_start().starts_with("first")).collect();
    assert!(first.len() >= 20 && first.iter().all(|line| !line.contains(" d:")), "{}", ended.stdout);
    let ended = mesh.run(&["--show"]);
    assert_eq!(ended.code, 2, "no result");
}

#[test]
fn state_that_another_user_could_have_written_is_refused() {
    let mesh = Mesh::new(&inventory(
        &["127.0.0.1:9".to_owned()],
        &("[[host]]\nname = \"here\"\nlocal = true\n".to_owned() + &test("pairs = \"mesh\"")),
    ));
    let state = mesh.path("state");
    let round = |options: &[&str]| mesh.run(&[&["--out", state.to_str().expect("plain")], options].concat());
    assert_ne!(round(&["--once"]).code, 0, "no host answers");
    let mode =
        |path: &Path| std::os::unix::fs::MetadataExt::mode(&std::fs::metadata(path).expect("it exists")) & 0o777;
    assert_eq!((mode(&state), mode(&state.join("lock"))), (0o700, 0o600), "others could hold the lock");
    std::fs::set_permissions(&state, std::os::unix::fs::PermissionsExt::from_mode(0o777)).expect("own directory");
    for options in [&["--once"][..], &["--show"]] {
        let ended = round(options);
        assert_eq!(ended.code, 2, "{options:?}: {}", ended.stdout);
        assert!(ended.stderr.contains("is writable by others (mode 0777)"), "{}", ended.stderr);
    }
    let ended = round(&["--show", "--insecure-permissions"]);
    assert!(ended.stderr.contains("used in spite of its permissions") && ended.stdout.contains("mesh"), "{ended:?}");
}
