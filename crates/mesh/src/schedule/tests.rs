use super::*;
use crate::budget::DAY_NS;
use crate::inventory::read;

const S: i64 = 1_000_000_000;
/// 26 November 2026, a Thursday, at noon.
const NOON: i64 = 1_795_694_400 * S;

fn inventory(rest: &str) -> Inventory {
    let hosts: String = ["a", "b", "c", "d"]
        .map(|name| format!("[[host]]\nname = \"{name}\"\naddress = \"{name}.example\"\n"))
        .concat();
    read(&format!("name = \"test\"\n{hosts}{rest}"), "mesh.toml").unwrap_or_else(|problems| panic!("{problems}"))
}

const MESH: &str = "[[test]]\nname = \"t\"\npairs = \"mesh\"\ninterval = \"1h\"\njitter = \"0s\"\n";

fn cost(bytes: u64) -> impl Fn(usize, Pair) -> TestCost {
    move |_, _| TestCost { limit_ns: 20 * S as u64, bytes: Some(bytes) }
}

fn at(seconds: i64) -> Moment {
    Moment { monotonic_ns: seconds * S, wall_ns: NOON + seconds * S }
}

fn once(inventory: &Inventory) -> Scheduler {
    Scheduler::new(inventory, cost(100), Options { once: true }, at(0))
}

/// Runs a single round in which each test takes 10 s; returns the tests in order.
fn run_round(scheduler: &mut Scheduler, outcome: impl Fn(Pair) -> Outcome) -> Vec<Start> {
    let mut all = Vec::new();
    let mut running = Vec::new();
    for step in 0..1000 {
        let now = at(step * 10);
        for start in running.drain(..) {
            let Start { task, pair, .. } = start;
            scheduler.finish(task, outcome(pair), Some(100), now);
        }
        running = scheduler.poll(now);
        all.extend(running.iter().copied());
        if scheduler.is_over() {
            return all;
        }
    }
    panic!("the round does not end");
}

#[test]
fn a_round_tests_every_pair_once() {
    let mut scheduler = once(&inventory(MESH));
    let starts = run_round(&mut scheduler, |_| Outcome::Measured);
    let mut pairs: Vec<Pair> = starts.iter().map(|start| start.pair).collect();
    pairs.sort_unstable();
    pairs.dedup();
    assert_eq!((starts.len(), pairs.len()), (12, 12));
}

#[test]
fn tests_that_share_a_link_run_one_after_the_other() {
    let text = "[[link]]\nname = \"l\"\n".to_owned() + MESH;
    let mut shared = inventory(&text);
    shared.hosts[0].links = vec![0];
    shared.hosts[2].links = vec![0];
    let mut scheduler = once(&shared);
    let starts = scheduler.poll(at(0));
    let uses = starts.iter().filter(|start| !shared.links_of(start.pair).is_empty());
    assert_eq!(uses.count(), 1, "{starts:?}");
}

#[test]
fn unreachable_hosts_are_skipped() {
    let mut scheduler = once(&inventory(MESH));
    let dead = |pair: Pair| {
        if pair.from == 1 || pair.to == 1 { Outcome::HostUnreachable(1) } else { Outcome::Measured }
    };
    let starts = run_round(&mut scheduler, dead);
    assert_eq!(starts.iter().filter(|start| start.pair.from == 1 || start.pair.to == 1).count(), 1);
    assert!(matches!(scheduler.host_state(1), HostState::Unreachable { .. }));
    assert_eq!(scheduler.states().filter(|state| state.blocked == Some(Blocked::Unreachable(1))).count(), 5);
}

#[test]
fn one_client_alone_does_not_make_a_server_unreachable() {
    let mut scheduler = once(&inventory(MESH));
    let broken = |pair: Pair| {
        if (pair.from, pair.to) == (0, 1) { Outcome::ServerUnreachable } else { Outcome::Measured }
    };
    assert_eq!(run_round(&mut scheduler, broken).len(), 12);
    assert_eq!(scheduler.host_state(1), HostState::Reachable);
    let mut scheduler = once(&inventory(MESH));
    let down = |pair: Pair| if pair.to == 1 { Outcome::ServerUnreachable } else { Outcome::Measured };
    assert!(run_round(&mut scheduler, |pair| if pair.from == 1 { Outcome::Failed } else { down(pair) }).len() < 12);
    assert!(matches!(scheduler.host_state(1), HostState::Unreachable { .. }));
}

#[test]
fn an_unreachable_host_is_asked_less_and_less_often() {
    let star = "[[test]]\nname = \"t\"\npairs = \"star\"\ncenter = \"a\"\nhosts = [\"b\"]\ninterval = \"2s\"\njitter = \"0s\"\n";
    let mut scheduler = Scheduler::new(&inventory(star), cost(1), Options::default(), at(0));
    let mut attempts = Vec::new();
    for second in 0..20_000 {
        for start in scheduler.poll(at(second)) {
            attempts.push(second);
            scheduler.finish(start.task, Outcome::HostUnreachable(1), Some(0), at(second));
        }
    }
    let gaps: Vec<i64> = attempts.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(gaps[..6], [60, 120, 240, 480, 960, 1920]);
    assert!(gaps[6..].iter().all(|gap| *gap == 3600), "{gaps:?}");
}

#[test]
fn no_test_starts_that_would_reach_into_a_window() {
    let window = "[[maintenance]]\nhosts = [\"b\"]\nfrom = \"12:01\"\nuntil = \"13:00\"\ndays = [\"thu\"]\n";
    let star = "[[test]]\nname = \"t\"\npairs = \"star\"\ncenter = \"a\"\nhosts = [\"b\"]\ninterval = \"10s\"\njitter = \"0s\"\n";
    let inventory = inventory(&format!("{star}{window}"));
    let mut scheduler = Scheduler::new(&inventory, cost(1), Options::default(), at(0));
    let mut starts = Vec::new();
    for second in 0..4000 {
        for start in scheduler.poll(at(second)) {
            starts.push(second);
            scheduler.finish(start.task, Outcome::Measured, Some(0), at(second));
        }
    }
    // A test may take 30 s: its limit, and the time to stop it.
    assert!(starts.iter().all(|second| *second <= 30 || *second >= 3600), "{starts:?}");
    assert!(starts.iter().any(|second| *second <= 30) && starts.iter().any(|second| *second >= 3600));
    assert!(scheduler.states().all(|state| state.failures == 0));
}

#[test]
fn steps_of_the_wall_clock_change_no_interval() {
    let mut scheduler = Scheduler::new(&inventory(MESH), cost(1), Options::default(), at(0));
    let mut starts: std::collections::BTreeMap<Pair, Vec<i64>> = std::collections::BTreeMap::new();
    for second in 0..20_000 {
        // The clock is set forward by a year and back by two.
        let step_s = if second < 5000 {
            0
        } else if second < 10_000 {
            31_536_000
        } else {
            -31_536_000
        };
        let now = Moment { monotonic_ns: second * S, wall_ns: NOON + (second + step_s) * S };
        for start in scheduler.poll(now) {
            starts.entry(start.pair).or_default().push(second);
            scheduler.finish(start.task, Outcome::Measured, Some(0), now);
        }
    }
    assert_eq!(starts.len(), 12);
    for times in starts.values() {
        assert!(times.windows(2).all(|pair| (3600..3660).contains(&(pair[1] - pair[0]))), "{times:?}");
    }
}

/// A test of a pair that measured.
fn past_test(from: usize, to: usize) -> PastTest {
    PastTest {
        task: None,
        pair: Pair { from, to },
        reserved: Amount { bytes: 100, time_ns: 30 * S as u64 },
        age_ns: S,
        duration_ns: Some(1),
        bytes: Some(1),
        outcome: Some(Outcome::Measured),
    }
}

#[test]
fn budgets_survive_a_restart() {
    let mut inventory = inventory(MESH);
    inventory.hosts[0].budget.bytes = Some(250);
    let mut scheduler = once(&inventory);
    let past = |task, bytes, age_ns| PastTest { task, age_ns, bytes, ..past_test(0, 1) };
    let first = Some(TaskId(0));
    let day = DAY_NS as i64;
    // One that is too old, one of a crashed process, whose bytes are not known, and one that the inventory no longer has.
    let tests = [past(first, Some(99), 2 * day), past(first, None, 60 * S), past(None, Some(40), S)];
    scheduler.restore(&tests, at(0));
    assert_eq!(scheduler.host_usage(0, at(0)).bytes, 140);
    assert_eq!(scheduler.host_usage(1, at(0)).bytes, 140);
    assert_eq!(scheduler.host_usage(2, at(0)).bytes, 0);
    let starts = run_round(&mut scheduler, |_| Outcome::Measured);
    assert_eq!(starts.iter().filter(|start| start.pair.from == 0 || start.pair.to == 0).count(), 1);
    assert!(scheduler.host_usage(0, at(10_000)).bytes <= 250);
}

#[test]
fn pairs_are_due_an_interval_after_their_last_test() {
    let mut scheduler = Scheduler::new(&inventory(MESH), cost(1), Options::default(), at(0));
    let pair = scheduler.states().nth(3).expect("a mesh").pair;
    let past = PastTest { task: Some(TaskId(3)), age_ns: 600 * S, ..past_test(pair.from, pair.to) };
    scheduler.restore(&[past], at(1000));
    let due_ns = |scheduler: &Scheduler| scheduler.states().nth(3).and_then(|state| state.due_ns);
    assert_eq!(due_ns(&scheduler), Some((1000 - 600 + 3600) * S));
    // A failed test is repeated as without the restart: 1 min after the first failure, 2 min after the second.
    let failed = |age_ns| PastTest { age_ns, outcome: Some(Outcome::Failed), ..past };
    scheduler.restore(&[failed(500 * S), failed(300 * S)], at(1000));
    assert_eq!(due_ns(&scheduler), Some((1000 - 300 + 120) * S + 1));
}

#[test]
fn small_tests_do_not_starve_a_large_one() {
    let star = |name: &str, interval: &str| {
        format!(
            "[[test]]\nname = \"{name}\"\npairs = \"star\"\ncenter = \"a\"\nhosts = [\"b\"]\ninterval = \"{interval}\"\njitter = \"0s\"\n"
        )
    };
    let mut inventory = inventory(&(star("small", "10m") + &star("large", "24h")));
    inventory.hosts[0].budget.bytes = Some(1000);
    let costs = |test: usize, _| TestCost { limit_ns: S as u64, bytes: Some(if test == 0 { 10 } else { 900 }) };
    let mut scheduler = Scheduler::new(&inventory, costs, Options::default(), at(0));
    let mut large = 0;
    for minute in 0..7 * 24 * 60 {
        let now = at(minute * 60);
        for start in scheduler.poll(now) {
            large += u32::from(start.test == 1);
            scheduler.finish(start.task, Outcome::Measured, None, now);
        }
    }
    assert!(large >= 3, "{large} large tests in a week");
}
