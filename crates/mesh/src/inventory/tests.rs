use super::*;
use crate::budget::DAY_NS;

const HOSTS: &str = "name = \"site\"\n[[host]]\nname = \"dtn1\"\naddress = \"192.0.2.1\"\n[[host]]\nname = \"dtn2\"\naddress = \"192.0.2.2\"\n\
[[host]]\nname = \"dtn3\"\naddress = \"192.0.2.3\"\n";
const TEST: &str = "[[test]]\nname = \"t\"\npairs = \"mesh\"\ninterval = \"6h\"\n";

fn problem(text: &str) -> String {
    read(text, "mesh.toml").expect_err("it has a mistake").to_string()
}

#[test]
fn template_is_a_valid_inventory() {
    let inventory = read(TEMPLATE, "mesh.toml").unwrap_or_else(|problems| panic!("{problems}"));
    assert_eq!((inventory.hosts.len(), inventory.links.len(), inventory.maintenance.len()), (3, 1, 1));
    assert_eq!(inventory.tests[0].pairs.len(), 6);
    assert_eq!(inventory.hosts[0].budget, Budget { bytes: Some(2_000_000_000_000), time_ns: Some(DAY_NS / 12) });
    assert_eq!(inventory.tests[0].options[0].name, "time");
    assert_eq!(inventory.links_of(Pair { from: 1, to: 0 }), [0]);
    assert_eq!(inventory.capacity_of(Pair { from: 1, to: 2 }), Some(10_000_000_000));
}

#[test]
fn typos_are_located_and_get_a_suggestion() {
    let text = format!("{HOSTS}{TEST}").replace("interval", "intervall");
    let message = problem(&text);
    assert!(message.contains("mesh.toml:14:1: test.0.intervall: unknown key `intervall`"), "{message}");
    assert!(message.contains("did you mean `interval`?"), "{message}");
    let message = problem(&format!("{HOSTS}{TEST}hosts = [\"dtn1\", \"dnt2\"]\n"));
    assert!(message.contains("no host is called `dnt2`") && message.contains("did you mean `dtn2`?"), "{message}");
    let message = problem(&format!("{HOSTS}{TEST}").replace("\"mesh\"", "\"messh\""));
    assert!(message.contains("did you mean `mesh`?"), "{message}");
}

#[test]
fn duplicates_are_refused() {
    for (text, says) in [
        (format!("{HOSTS}{TEST}").replace("dtn2", "dtn1"), "two hosts are called `dtn1`"),
        (format!("{HOSTS}{TEST}").replace("192.0.2.2", "192.0.2.1"), "`dtn2` has the address of `dtn1`"),
        (format!("{HOSTS}{TEST}{TEST}"), "two tests are called `t`"),
        (format!("{HOSTS}{TEST}hosts = [\"dtn1\", \"dtn1\"]\n"), "`dtn1` is there twice"),
        (format!("{HOSTS}[[link]]\nname = \"l\"\n[[link]]\nname = \"l\"\n{TEST}"), "two links are called `l`"),
    ] {
        let message = problem(&text);
        assert!(message.contains(says), "{message}");
    }
}

#[test]
fn all_mistakes_are_listed_at_once() {
    let message = problem(
        "name = \"\"\nmax-tests = 0\n[[host]]\nname = \"a\"\nlinks = [\"l\"]\nbytes-per-day = \"0B\"\n[[test]]\nname = \"t\"\n\
         pairs = \"star\"\ninterval = \"1ms\"\nlimit = \"300000h\"\n[[maintenance]]\nfrom = \"2:00\"\nuntil = \"04:00\"\n",
    );
    for says in [
        "the name is empty",
        "0 tests at the same time",
        "`address` is missing",
        "no link is called `l`",
        "the budget must be greater than 0",
        "`center` is missing",
        "an interval of 1",
        "a limit of",
        "one of the times has a date",
    ] {
        assert!(message.contains(says), "{says}: {message}");
    }
}

#[test]
fn groups_make_different_pairs() {
    let pairs = |rest: &str| {
        let text = format!("{HOSTS}[[test]]\nname = \"t\"\ninterval = \"1h\"\n{rest}");
        read(&text, "mesh.toml").unwrap_or_else(|problems| panic!("{problems}")).tests[0].pairs.len()
    };
    assert_eq!(pairs("pairs = \"mesh\"\n"), 6);
    assert_eq!(pairs("pairs = \"star\"\ncenter = \"dtn2\"\n"), 4);
    assert_eq!(pairs("pairs = \"disjoint\"\nhosts = [\"dtn1\"]\nto = [\"dtn2\", \"dtn3\"]\n"), 4);
    assert_eq!(pairs("pairs = \"mesh\"\nhosts = [\"dtn1\", \"dtn3\"]\n"), 2);
}

#[test]
fn a_daily_window_may_pass_midnight() {
    let text = format!("{HOSTS}{TEST}[[maintenance]]\nfrom = \"23:00\"\nuntil = \"01:00\"\ndays = [\"fri\"]\n");
    let inventory = read(&text, "mesh.toml").unwrap_or_else(|problems| panic!("{problems}"));
    let window = &inventory.maintenance[0];
    let ends = |text: &str| {
        let at = rfc3339(text).expect("a time");
        window.overlap_end_ns(&(at..at + 1))
    };
    // 27 November 2026 is a Friday.
    assert_eq!(ends("2026-11-27T22:59:59Z"), None);
    assert_eq!(ends("2026-11-27T23:30:00Z"), rfc3339("2026-11-28T01:00:00Z"));
    assert_eq!(ends("2026-11-28T00:59:00Z"), rfc3339("2026-11-28T01:00:00Z"));
    assert_eq!(ends("2026-11-28T01:00:00Z"), None);
    assert_eq!(ends("2026-11-28T23:30:00Z"), None);
}
