//! Invalid plans, and the output before anything runs.

use std::fmt::Write as _;

use landspeed_testkit::golden;

use crate::sweep::Sweep;

const LAB: &str = "name = \"n\"\n[lab]\nscenario = \"gallery:buffer-size\"\n";
const RUN: &str = "name = \"n\"\n[run]\ntarget = \"dtn2\"\n";

fn factor(key: &str, levels: &str) -> String {
    format!("[[factor]]\nkey = \"{key}\"\nlevels = {levels}\n")
}

#[test]
fn plan_errors_name_line_and_key() {
    let limit = "switch.west.queue.limit";
    let plans = [
        ("a key of the plan", format!("{LAB}metrc = \"goodput\"\n")),
        ("a metric", format!("metric = \"gootput\"\n{LAB}")),
        ("a rule to stop", format!("until = \"2%\"\nbudget = \"soon\"\n{LAB}")),
        ("an exhibit", LAB.replace("buffer-size", "bufer-size")),
        ("a scenario that is not there", LAB.replace("gallery:buffer-size", "nothing.toml")),
        ("a flow", format!("{LAB}flow = \"tpc\"\n")),
        ("a key of the scenario", format!("{LAB}{}", factor("switch.west.queue.limt", "[\"64KB\"]"))),
        ("a node of the scenario", format!("{LAB}{}", factor("switch.wets.queue.limit", "[\"64KB\"]"))),
        ("levels that are no sizes", format!("{LAB}{}", factor(limit, "[\"64KB\", \"fish\", \"-3\"]"))),
        ("a level twice", format!("{LAB}{}", factor(limit, "[\"64KB\", \"64KB\"]"))),
        ("two factors of one key", format!("{LAB}{}{}", factor(limit, "[\"64KB\"]"), factor(limit, "[\"1MB\"]"))),
        ("no levels", format!("{LAB}{}", factor(limit, "[]"))),
        ("options of run", format!("{RUN}windw = \"1M\"\n{}", factor("run.congestoin", "[\"cubic\"]"))),
        ("a value of an option", format!("{RUN}window = \"fish\"\n")),
        ("a level of an option", format!("{RUN}{}", factor("run.parallel", "[1, \"x\"]"))),
        ("an option without its table", format!("{RUN}{}", factor("congestion", "[\"cubic\", \"bbr\"]"))),
        ("an option of another kind", format!("{RUN}json = \"x.json\"\n")),
        ("a setting of a host", format!("{RUN}{}", factor("host.server.nonsense", "[1]"))),
    ];
    let mut text = String::new();
    for (what, plan) in plans {
        let ended = Sweep::new(&plan).run(&["--dry-run"]);
        assert_eq!(ended.code, 2, "{what}: {}", ended.stdout);
        let _ = writeln!(text, "## {what}\n\n{plan}\n{}\n", ended.stderr.trim_end());
    }
    golden::same("sweep-plan-errors.txt", &text);
}

#[test]
fn mistakes_are_reported_at_the_line_of_their_factor() {
    let limit = factor("switch.west.queue.limit", "[\"64KB\", \"1MB\"]");
    let plans = [
        (factor("hosts.congestoin", "[\"cubic\", \"htcp\"]"), "plan.toml:8:7: factor.1.key"),
        (factor("hosts.congestion", "[\"cubic\", \"htpc\"]"), "plan.toml:9:20: factor.1.levels.1"),
        (factor("hosts.congestion", "[\"htpc\"]"), "plan.toml:9:11: factor.1.levels.0"),
    ];
    for (second, place) in plans {
        let ended = Sweep::new(&format!("{LAB}{limit}{second}")).run(&["--dry-run"]);
        assert_eq!(ended.code, 2, "{second}: {}", ended.stdout);
        assert!(ended.stderr.contains(place) && !ended.stderr.contains("factor.0"), "{second}: {}", ended.stderr);
    }
    // The kernel is asked, whatever sets the name.
    let set = "set = { \"hosts.congestion\" = \"htpc\" }\n";
    let ended = Sweep::new(&format!("{LAB}{set}{limit}")).run(&["--dry-run"]);
    let wanted = ["plan.toml:4:30: lab.set.hosts.congestion", "CONFIG_TCP_CONG_HTPC", "did you mean 'htcp'?"];
    assert!(wanted.iter().all(|text| ended.stderr.contains(text)), "{}", ended.stderr);
    assert!(!ended.stderr.contains("factor"), "{}", ended.stderr);
    let all = factor("hosts.congestion", "[\"highspeed\", \"reno\", \"bbr\"]");
    let ended = Sweep::new(&format!("{LAB}{set}{all}").replace(set, "")).run(&["--dry-run"]);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
}

#[test]
fn dry_run_opens_no_connection_and_writes_nothing() {
    let sweep = Sweep::new(&format!("{RUN}{}", factor("host.server.net.ipv4.tcp_rmem", "[\"4096 131072 6291456\"]")));
    let ended = sweep.run(&["--dry-run"]);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert!(ended.stdout.contains("host.server.net.ipv4.tcp_rmem: 4096 131072 6291456"), "{}", ended.stdout);
    assert!(ended.stdout.contains("--allow-host-changes"), "{}", ended.stdout);
    assert!(!sweep.path().join("plan.sweep").exists());
}

#[test]
fn a_new_plan_can_be_run() {
    let sweep = Sweep::new("");
    let new = |name: &str| {
        let mut command = std::process::Command::new(crate::common::PROGRAM);
        command.args(["sweep", "--new", name]).current_dir(sweep.path()).output().expect("the program runs")
    };
    assert!(new("mine.toml").status.success());
    assert!(String::from_utf8_lossy(&new("mine.toml").stderr).contains("it exists"));
    let text = std::fs::read_to_string(sweep.path().join("mine.toml")).expect("a plan");
    assert!(text.contains("gallery:buffer-size"));
}
