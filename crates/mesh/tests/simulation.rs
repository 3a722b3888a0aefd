//! 200 hosts for a virtual week, and small random meshes.

use std::collections::{BTreeMap, BinaryHeap, HashMap, VecDeque};

use landspeed_mesh::{DAY_NS, Inventory, Moment, Options, Outcome, Pair, Scheduler, Start, TaskId, TestCost, read};
use landspeed_stats::SplitMix64;
use proptest::prelude::*;

const S: i64 = 1_000_000_000;
const DAY: i64 = DAY_NS as i64;
const WEEK: i64 = 7 * DAY;
/// Limit of every test, nanoseconds, and the time to stop it.
const LIMIT: i64 = 40 * S;
const STOP: i64 = 10 * S;

fn cost(_: usize, _: Pair) -> TestCost {
    TestCost { limit_ns: LIMIT as u64, bytes: Some(1_000_000) }
}

fn inventory(text: &str) -> Inventory {
    read(text, "mesh.toml").unwrap_or_else(|problems| panic!("{problems}"))
}

/// An end of a test, the earliest first in a heap.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct End(std::cmp::Reverse<i64>, usize);

/// Bytes and time of a host or a link in a span of 24 h, computed apart from the scheduler.
#[derive(Default)]
struct Meter {
    tests: VecDeque<(i64, u64, u64)>,
    bytes: u64,
    time_ns: u64,
    most_bytes: u64,
    most_time_ns: u64,
}

impl Meter {
    fn add(&mut self, end_ns: i64, bytes: u64, time_ns: u64) {
        self.tests.push_back((end_ns, bytes, time_ns));
        self.bytes += bytes;
        self.time_ns += time_ns;
        while let Some(&(old_ns, bytes, time_ns)) = self.tests.front()
            && old_ns + DAY <= end_ns
        {
            self.tests.pop_front();
            self.bytes -= bytes;
            self.time_ns -= time_ns;
        }
        self.most_bytes = self.most_bytes.max(self.bytes);
        self.most_time_ns = self.most_time_ns.max(self.time_ns);
    }
}

/// What happened in a simulation.
struct World {
    /// Starts of the tests of each pair.
    starts: BTreeMap<(usize, Pair), Vec<i64>>,
    most_parallel: usize,
    scheduler: Scheduler,
}

/// Simulates until `until_ns`. Tests take up to their limit and send up to their worst case; hosts are down when `is_down`
/// says so; the wall clock steps.
fn simulate(inventory: &Inventory, seed: u64, until_ns: i64, is_down: impl Fn(usize, i64) -> bool) -> World {
    let mut random = SplitMix64::new(seed);
    let moment = |ns: i64| {
        // A day forward in the middle, and back again.
        let step_ns = if (until_ns / 3..until_ns / 2).contains(&ns) { DAY } else { 0 };
        Moment { monotonic_ns: ns, wall_ns: 1_795_694_400 * S + ns + step_ns }
    };
    let mut scheduler = Scheduler::new(inventory, cost, Options::default(), moment(0));
    let mut running: HashMap<usize, (Start, i64, u64, Outcome)> = HashMap::new();
    let mut ends: BinaryHeap<End> = BinaryHeap::new();
    let mut meters: Vec<Meter> = Vec::new();
    meters.resize_with(inventory.hosts.len() + inventory.links.len(), Meter::default);
    let mut busy = vec![false; meters.len()];
    let resources = |pair: Pair| {
        let links = inventory.links_of(pair).into_iter().map(|link| inventory.hosts.len() + link);
        [pair.from, pair.to].into_iter().chain(links).collect::<Vec<_>>()
    };
    let (mut starts, mut most_parallel) = (BTreeMap::<_, Vec<i64>>::new(), 0);
    let mut now_ns = 0;
    while now_ns < until_ns {
        while ends.peek().is_some_and(|End(at, _)| at.0 <= now_ns) {
            let Some(End(_, number)) = ends.pop() else { break };
            let (start, began_ns, bytes, outcome) = running.remove(&number).expect("it runs");
            for resource in resources(start.pair) {
                busy[resource] = false;
                meters[resource].add(now_ns, bytes, (now_ns - began_ns) as u64);
            }
            scheduler.finish(start.task, outcome, Some(bytes), moment(now_ns));
        }
        for start in scheduler.poll(moment(now_ns)) {
            for resource in resources(start.pair) {
                assert!(!busy[resource], "two tests use {resource} at {now_ns}");
                busy[resource] = true;
            }
            let down = [start.pair.from, start.pair.to].into_iter().find(|host| is_down(*host, now_ns));
            let (time_ns, bytes, outcome) = match down {
                Some(host) if host == start.pair.from => (5 * S, 0, Outcome::HostUnreachable(host)),
                Some(_) => (5 * S, 0, Outcome::ServerUnreachable),
                None => {
                    let time_ns = 10 * S + random.below((LIMIT + STOP - 10 * S) as u64) as i64;
                    (time_ns, 500_000 + random.below(500_001), Outcome::Measured)
                }
            };
            let key = (start.test, start.pair);
            if down.is_none() {
                starts.entry(key).or_default().push(now_ns);
            }
            ends.push(End(std::cmp::Reverse(now_ns + time_ns), start.task.index()));
            running.insert(start.task.index(), (start, now_ns, bytes, outcome));
        }
        most_parallel = most_parallel.max(running.len());
        assert!(running.len() <= inventory.max_tests);
        let wakes = [scheduler.wakes_at_ns(moment(now_ns)), ends.peek().map(|End(at, _)| at.0)];
        now_ns = wakes.into_iter().flatten().min().map_or(until_ns, |ns| ns.max(now_ns + 1));
    }
    let budgets = inventory.hosts.iter().map(|host| (&host.name, host.budget));
    let budgets = budgets.chain(inventory.links.iter().map(|link| (&link.name, link.budget)));
    for ((name, budget), meter) in budgets.zip(&meters) {
        assert!(budget.bytes.is_none_or(|most| meter.most_bytes <= most), "{name}: {} bytes", meter.most_bytes);
        assert!(budget.time_ns.is_none_or(|most| meter.most_time_ns <= most), "{name}: {} ns", meter.most_time_ns);
    }
    World { starts, most_parallel, scheduler }
}

/// 20 sites of 10 hosts, each behind its link. The hosts 0 of the sites test with each other, and all hosts with the host 0
/// of their site and of the next one.
fn sites() -> String {
    let mut text = "name = \"sites\"\nseed = 7\nmax-tests = 100\n".to_owned();
    for site in 0..20 {
        text += &format!("[[link]]\nname = \"uplink{site}\"\ntime-per-day = \"20h\"\n");
    }
    for host in 0..200 {
        let site = host / 10;
        text += &format!("[[host]]\nname = \"h{host}\"\naddress = \"h{host}.example\"\n");
        if host % 10 == 0 {
            text += &format!("links = [\"uplink{site}\"]\n");
        }
        if host % 50 == 13 {
            // Four hosts with a budget of 8 worst cases, for the 16 tests that they are asked for.
            text += "bytes-per-day = \"8MB\"\n";
        }
        if host == 20 {
            // 66 of the 220 tests that it is asked for.
            text += "bytes-per-day = \"66MB\"\n";
        }
    }
    let core: Vec<String> = (0..20).map(|site| format!("\"h{}\"", site * 10)).collect();
    text += &format!(
        "[[test]]\nname = \"core\"\npairs = \"mesh\"\nhosts = [{}]\ninterval = \"12h\"\njitter = \"1h\"\n",
        core.join(", ")
    );
    for site in 0..20 {
        let members: Vec<String> = (1..10).map(|host| format!("\"h{}\"", site * 10 + host)).collect();
        for (name, center) in [("near", site), ("next", (site + 1) % 20)] {
            text += &format!(
                "[[test]]\nname = \"{name}{site}\"\npairs = \"star\"\ncenter = \"h{}\"\nhosts = [{}]\ninterval = \"6h\"\njitter = \"30m\"\n",
                center * 10,
                members.join(", ")
            );
        }
    }
    text += "[[maintenance]]\nlinks = [\"uplink5\"]\nfrom = \"02:00\"\nuntil = \"04:00\"\n";
    text
}

#[test]
fn two_hundred_hosts_for_a_week_starve_no_pair() {
    let inventory = inventory(&sites());
    // Host 33 is down from the third to the fifth day.
    let down = |host: usize, ns: i64| host == 33 && (2 * DAY..4 * DAY).contains(&ns);
    let world = simulate(&inventory, 1, WEEK, down);
    let pairs: usize = inventory.tests.iter().map(|test| test.pairs.len()).sum();
    assert_eq!(world.starts.len(), pairs, "every pair is tested");
    assert!(world.most_parallel > 5, "{}", world.most_parallel);
    let numbers: HashMap<_, _> =
        world.scheduler.states().enumerate().map(|(at, state)| ((state.test, state.pair), TaskId(at))).collect();
    for (key @ (_, pair), starts) in &world.starts {
        let touches = |host: usize| pair.from == host || pair.to == host;
        // What a pair may wait beyond the bound: a window of 2 h and a test before it; the 48 h of a dead host and an hour until it
        // is asked again; as many days as its host's budget needs for all of its tests.
        let mut bound_ns = world.scheduler.wait_bound_ns(numbers[key]) + 2 * 3600 * S + LIMIT + STOP;
        if touches(33) {
            bound_ns += 2 * DAY + 3600 * S;
        }
        if [13, 63, 113, 163].into_iter().any(touches) {
            bound_ns += DAY;
        }
        if touches(20) {
            bound_ns += 3 * DAY;
        }
        let ends = [0].into_iter().chain(starts.iter().copied()).chain([WEEK]).collect::<Vec<_>>();
        let gap_ns = ends.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0);
        assert!(gap_ns <= bound_ns, "{key:?}: {} s, bound {} s", gap_ns / S, bound_ns / S);
    }
}

#[test]
fn a_full_mesh_of_200_hosts_is_tested_every_day() {
    let mut text = "name = \"full\"\nmax-tests = 100\n".to_owned();
    for host in 0..200 {
        text += &format!("[[host]]\nname = \"h{host}\"\naddress = \"h{host}.example\"\nbytes-per-day = \"1GB\"\n");
    }
    text += "[[test]]\nname = \"all\"\npairs = \"mesh\"\ninterval = \"24h\"\njitter = \"1h\"\n";
    let inventory = inventory(&text);
    let world = simulate(&inventory, 2, 2 * DAY, |_, _| false);
    assert_eq!(world.starts.len(), 200 * 199);
    let longest_ns = world.starts.values().filter_map(|starts| Some(starts.get(1)? - starts[0])).max();
    assert!(longest_ns.is_some_and(|ns| ns < DAY + 3600 * S), "{longest_ns:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn random_meshes_keep_budgets_and_exclusion(
        seed in any::<u64>(),
        hosts in 2usize..9,
        links in prop::collection::vec(prop::option::of(0usize..3), 9),
        bytes in prop::collection::vec(prop::option::of(3u64..40), 9),
        minutes in prop::collection::vec(prop::option::of(5u64..60), 3),
        interval_m in 1u64..120,
        max_tests in 1usize..5,
    ) {
        let mut text = format!("name = \"random\"\nseed = {}\nmax-tests = {max_tests}\n", seed >> 2);
        for (link, minutes) in minutes.iter().enumerate() {
            text += &format!("[[link]]\nname = \"l{link}\"\n");
            if let Some(minutes) = minutes {
                text += &format!("time-per-day = \"{minutes}m\"\n");
            }
        }
        for host in 0..hosts {
            text += &format!("[[host]]\nname = \"h{host}\"\naddress = \"h{host}\"\n");
            if let Some(link) = links[host] {
                text += &format!("links = [\"l{link}\"]\n");
            }
            if let Some(bytes) = bytes[host] {
                text += &format!("bytes-per-day = \"{bytes}MB\"\n");
            }
        }
        text += &format!("[[test]]\nname = \"t\"\npairs = \"mesh\"\ninterval = \"{interval_m}m\"\n");
        let inventory = inventory(&text);
        let world = simulate(&inventory, seed, 2 * DAY, |host, ns| {
            // Hosts die and return.
            (ns / (3 * 3600 * S) + host as i64) % 7 == 0
        });
        prop_assert!(!world.starts.is_empty());
    }
}
