//! Parser of inventories.

use std::collections::BTreeMap;
use std::ops::Range;

use landspeed_problems::{self as source, FormatTerms, Problem, Problems, Rate, Size, Time, suggest_or_list};
use serde::Deserialize;
use toml::Spanned;

use super::window::{MaintenanceWindow, WindowTable};
use super::{Host, Inventory, Link, MeshTest, Pair, RunOption};
use crate::budget::{Budget, DAY_NS};

/// Maximum length of an inventory, bytes.
pub const MAX_TEXT: usize = 1 << 20;
/// Maximum number of hosts.
const MAX_HOSTS: usize = 1000;
/// Maximum number of pairs of all tests.
const MAX_PAIRS: usize = 200_000;
/// Maximum length of a name, characters.
const MAX_NAME: usize = 80;
/// Default and largest number of tests at the same time.
const DEFAULT_TESTS: usize = 16;
const MAX_TESTS: usize = 256;
/// Shortest interval, nanoseconds.
const MIN_INTERVAL_NS: u64 = 1_000_000_000;
/// Longest interval, nanoseconds: 31 days.
const MAX_INTERVAL_NS: u64 = 31 * DAY_NS;
/// Longest limit of a test, nanoseconds: a test takes at most 30 days.
const MAX_LIMIT_NS: u64 = 31 * DAY_NS;
/// Default jitter as a part of the interval.
const JITTER_PART: u64 = 10;

const FORMAT_TERMS: FormatTerms =
    FormatTerms { arrays: &["host", "link", "test", "maintenance"], named: &[], example: key_example };

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct InventoryTable {
    name: Spanned<String>,
    #[serde(default = "one")]
    seed: u64,
    max_tests: Option<Spanned<u64>>,
    key_file: Option<String>,
    host: Option<Spanned<Vec<Spanned<HostTable>>>>,
    #[serde(default)]
    link: Vec<Spanned<LinkTable>>,
    test: Option<Spanned<Vec<Spanned<TestTable>>>>,
    #[serde(default)]
    maintenance: Vec<Spanned<WindowTable>>,
}

fn one() -> u64 {
    1
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct HostTable {
    name: Spanned<String>,
    address: Option<Spanned<String>>,
    #[serde(default)]
    local: bool,
    key_file: Option<String>,
    #[serde(default)]
    links: Vec<Spanned<String>>,
    capacity: Option<Spanned<Rate>>,
    bytes_per_day: Option<Spanned<Size>>,
    time_per_day: Option<Spanned<Time>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct LinkTable {
    name: Spanned<String>,
    capacity: Option<Spanned<Rate>>,
    bytes_per_day: Option<Spanned<Size>>,
    time_per_day: Option<Spanned<Time>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct TestTable {
    name: Spanned<String>,
    pairs: Spanned<String>,
    hosts: Option<Spanned<Vec<Spanned<String>>>>,
    to: Option<Spanned<Vec<Spanned<String>>>>,
    center: Option<Spanned<String>>,
    interval: Spanned<Time>,
    jitter: Option<Spanned<Time>>,
    limit: Option<Spanned<Time>>,
    #[serde(default)]
    run: BTreeMap<Spanned<String>, Spanned<toml::Value>>,
}

/// Parses an inventory; `file` is its name in messages. The options of `run` and the addresses are left to the caller.
///
/// # Errors
/// All problems of the inventory, each with its line and key.
pub fn read(text: &str, file: &str) -> Result<Inventory, Problems> {
    let problems = |list| Problems::new(file, list);
    if text.len() > MAX_TEXT {
        let message = format!("the inventory has {} bytes, the maximum is {MAX_TEXT}", text.len());
        return Err(problems(vec![Problem::new("", message)]));
    }
    let document = source::parse(text).map_err(|problem| problems(vec![problem]))?;
    let table: InventoryTable = source::typed(text, &document, &FORMAT_TERMS).map_err(problems)?;
    let mut reader = Reader { text, problems: Vec::new() };
    let inventory = reader.inventory(table, file);
    if reader.problems.is_empty() { Ok(inventory) } else { Err(problems(reader.problems)) }
}

/// Collects the problems of a text.
pub(super) struct Reader<'a> {
    text: &'a str,
    problems: Vec<Problem>,
}

impl Reader<'_> {
    /// Adds a problem at a position of the text.
    pub(super) fn refuse(
        &mut self,
        span: Range<usize>,
        key: &str,
        message: impl Into<String>,
        hint: impl Into<Option<String>>,
    ) {
        self.problems.push(Problem::new(key, message).at(self.text, span).maybe_hint(hint.into()));
    }

    fn inventory(&mut self, table: InventoryTable, file: &str) -> Inventory {
        self.named("name", &table.name);
        let max_tests = self.max_tests(table.max_tests);
        let links = self.links(table.link);
        let hosts = self.hosts(table.host, &links, table.key_file.as_deref());
        let tests = self.tests(table.test, &hosts);
        let windows = table.maintenance.into_iter().enumerate();
        let maintenance: Vec<MaintenanceWindow> =
            windows.filter_map(|(i, window)| self.window(i, window, &hosts, &links)).collect();
        Inventory {
            name: table.name.into_inner(),
            seed: table.seed,
            max_tests,
            hosts,
            links,
            tests,
            maintenance,
            text: self.text.to_owned(),
            file: file.to_owned(),
        }
    }

    fn named(&mut self, key: &str, name: &Spanned<String>) {
        let length = name.get_ref().chars().count();
        if name.get_ref().trim().is_empty() || length > MAX_NAME || name.get_ref().contains(char::is_control) {
            let hint = format!("use 1 to {MAX_NAME} characters");
            self.refuse(name.span(), key, "the name is empty, too long or not printable", hint);
        }
    }

    fn max_tests(&mut self, number: Option<Spanned<u64>>) -> usize {
        let Some(number) = number else { return DEFAULT_TESTS };
        let tests = usize::try_from(*number.get_ref()).unwrap_or(usize::MAX);
        if !(1..=MAX_TESTS).contains(&tests) {
            let message = format!("{tests} tests at the same time");
            self.refuse(number.span(), "max-tests", message, format!("use 1 to {MAX_TESTS}"));
        }
        tests
    }

    fn budget(&mut self, key: &str, bytes: Option<Spanned<Size>>, time: Option<Spanned<Time>>) -> Budget {
        for (name, span) in [
            ("bytes-per-day", bytes.as_ref().filter(|bytes| bytes.get_ref().0.get() == 0).map(Spanned::span)),
            ("time-per-day", time.as_ref().filter(|time| time.get_ref().0.get() == 0).map(Spanned::span)),
        ] {
            if let Some(span) = span {
                let hint = "remove the host from the tests, or the budget".to_owned();
                self.refuse(span, &format!("{key}.{name}"), "the budget must be greater than 0", hint);
            }
        }
        if let Some(time) = time.as_ref().filter(|time| time.get_ref().0.get() > DAY_NS) {
            let message = "the budget is longer than a day".to_owned();
            self.refuse(time.span(), &format!("{key}.time-per-day"), message, "write at most \"24h\"".to_owned());
        }
        Budget {
            bytes: bytes.map(|bytes| bytes.into_inner().0.get()),
            time_ns: time.map(|time| time.into_inner().0.get()),
        }
    }

    fn capacity(&mut self, key: &str, capacity: Option<Spanned<Rate>>) -> Option<u64> {
        let capacity = capacity?;
        let bps = capacity.get_ref().0.bps();
        if bps == 0 {
            let hint = "write the rate of its interface: capacity = \"10G\"".to_owned();
            self.refuse(capacity.span(), &format!("{key}.capacity"), "the capacity must be greater than 0", hint);
        }
        Some(bps).filter(|bps| *bps > 0)
    }

    fn links(&mut self, tables: Vec<Spanned<LinkTable>>) -> Vec<Link> {
        let mut links: Vec<Link> = Vec::new();
        for (i, table) in tables.into_iter().enumerate() {
            let key = format!("link.{i}");
            let LinkTable { name, capacity, bytes_per_day, time_per_day } = table.into_inner();
            self.named(&format!("{key}.name"), &name);
            self.distinct(&format!("{key}.name"), &name, "links", links.iter().map(|link| link.name.as_str()));
            let capacity_bps = self.capacity(&key, capacity);
            let budget = self.budget(&key, bytes_per_day, time_per_day);
            links.push(Link { name: name.into_inner(), capacity_bps, budget });
        }
        links
    }

    fn distinct<'n>(
        &mut self,
        key: &str,
        name: &Spanned<String>,
        what: &str,
        mut others: impl Iterator<Item = &'n str>,
    ) {
        if others.any(|other| other == name.get_ref()) {
            let message = format!("two {what} are called `{}`", name.get_ref());
            self.refuse(name.span(), key, message, "give each a different name".to_owned());
        }
    }

    fn hosts(
        &mut self,
        tables: Option<Spanned<Vec<Spanned<HostTable>>>>,
        links: &[Link],
        key_file: Option<&str>,
    ) -> Vec<Host> {
        let Some(tables) = tables else {
            let hint = "add [[host]] with `name` and `address`, one for each host";
            self.problems.push(Problem::new("host", "the inventory has no hosts").hint(hint));
            return Vec::new();
        };
        if tables.get_ref().len() > MAX_HOSTS {
            let message = format!("{} hosts, the maximum is {MAX_HOSTS}", tables.get_ref().len());
            self.refuse(tables.span(), "host", message, "make several inventories".to_owned());
        }
        let mut hosts: Vec<Host> = Vec::new();
        for (i, table) in tables.into_inner().into_iter().enumerate() {
            let key = format!("host.{i}");
            let HostTable { name, address, local, key_file: own_key, links: uses, capacity, .. } = table.get_ref();
            self.named(&format!("{key}.name"), name);
            self.distinct(&format!("{key}.name"), name, "hosts", hosts.iter().map(|host| host.name.as_str()));
            if let Some(address) = address {
                let same = hosts.iter().find(|host| host.address.as_ref() == Some(address.get_ref()));
                if let Some(other) = same {
                    let message = format!("`{}` has the address of `{}`", name.get_ref(), other.name);
                    self.refuse(address.span(), &format!("{key}.address"), message, "give each host once".to_owned());
                }
            } else if !local {
                let hint = "add the address of its server: address = \"192.0.2.1\"; or local = true for this host";
                self.refuse(name.span(), &format!("{key}.address"), "`address` is missing", hint.to_owned());
            }
            if *local && let Some(other) = hosts.iter().find(|host| host.local) {
                let message = format!("`{}` is the local host, too", other.name);
                self.refuse(name.span(), &format!("{key}.local"), message, "keep `local = true` once".to_owned());
            }
            let uses = self.find_all(&format!("{key}.links"), uses, "link", &links.iter().map(|l| l.name.as_str()));
            let capacity_bps = self.capacity(&key, capacity.clone());
            let host = Host {
                name: name.get_ref().clone(),
                address: address.as_ref().map(|address| address.get_ref().clone()),
                span: name.span(),
                local: *local,
                key_file: own_key.clone().or_else(|| key_file.map(str::to_owned)),
                links: uses,
                capacity_bps,
                budget: Budget::default(),
            };
            let table = table.into_inner();
            let budget = self.budget(&key, table.bytes_per_day, table.time_per_day);
            hosts.push(Host { budget, ..host });
        }
        hosts
    }

    /// Returns the indices of names in a list of known names; refuses unknown and repeated ones.
    pub(super) fn find_all<'n>(
        &mut self,
        key: &str,
        names: &[Spanned<String>],
        what: &str,
        known: &(impl Iterator<Item = &'n str> + Clone),
    ) -> Vec<usize> {
        let mut found = Vec::new();
        for name in names {
            let Some(at) = self.find(key, name, what, known.clone()) else { continue };
            if found.contains(&at) {
                let message = format!("`{}` is there twice", name.get_ref());
                self.refuse(name.span(), key, message, "remove one of them".to_owned());
            } else {
                found.push(at);
            }
        }
        found
    }

    fn find<'n>(
        &mut self,
        key: &str,
        name: &Spanned<String>,
        what: &str,
        known: impl Iterator<Item = &'n str> + Clone,
    ) -> Option<usize> {
        let at = known.clone().position(|known| known == name.get_ref());
        if at.is_none() {
            let hint = suggest_or_list(name.get_ref(), known.take(20));
            self.refuse(name.span(), key, format!("no {what} is called `{}`", name.get_ref()), hint);
        }
        at
    }

    fn tests(&mut self, tables: Option<Spanned<Vec<Spanned<TestTable>>>>, hosts: &[Host]) -> Vec<MeshTest> {
        let Some(tables) = tables else {
            let hint = "add [[test]] with `name`, `pairs` and `interval`";
            self.problems.push(Problem::new("test", "the inventory has no tests").hint(hint));
            return Vec::new();
        };
        let mut tests: Vec<MeshTest> = Vec::new();
        let span = tables.span();
        for (i, table) in tables.into_inner().into_iter().enumerate() {
            let key = format!("test.{i}");
            let table = table.into_inner();
            self.named(&format!("{key}.name"), &table.name);
            self.distinct(&format!("{key}.name"), &table.name, "tests", tests.iter().map(|test| test.name.as_str()));
            let pairs = self.pairs(&key, &table, hosts);
            let interval_ns = self.interval(&key, &table.interval);
            let jitter_ns = self.jitter(&key, table.jitter, interval_ns);
            let limit_ns = table.limit.and_then(|limit| {
                let limit_ns = limit.get_ref().0.get();
                let is_valid = (1..=MAX_LIMIT_NS).contains(&limit_ns);
                if !is_valid {
                    let message = format!("a limit of {}", limit.get_ref().0);
                    let hint = "use more than 0 and at most \"744h\"".to_owned();
                    self.refuse(limit.span(), &format!("{key}.limit"), message, hint);
                }
                Some(limit_ns).filter(|_| is_valid)
            });
            let mut options: Vec<RunOption> = table
                .run
                .into_iter()
                .map(|(name, value)| RunOption {
                    name_span: name.span(),
                    name: name.into_inner(),
                    span: value.span(),
                    value: value.into_inner(),
                })
                .collect();
            options.sort_by_key(|option| option.name_span.start);
            let (name, name_span) = (table.name.get_ref().clone(), table.name.span());
            tests.push(MeshTest { name, span: name_span, pairs, interval_ns, jitter_ns, limit_ns, options });
        }
        let pairs: usize = tests.iter().map(|test| test.pairs.len()).sum();
        if pairs > MAX_PAIRS {
            let message = format!("the tests have {pairs} pairs, the maximum is {MAX_PAIRS}");
            self.refuse(span, "test", message, "use `star` or `disjoint`, or several inventories".to_owned());
        }
        tests
    }

    fn interval(&mut self, key: &str, interval: &Spanned<Time>) -> u64 {
        let ns = interval.get_ref().0.get();
        if !(MIN_INTERVAL_NS..=MAX_INTERVAL_NS).contains(&ns) {
            let message = format!("an interval of {}", interval.get_ref().0);
            self.refuse(interval.span(), &format!("{key}.interval"), message, "use \"1s\" to \"744h\"".to_owned());
        }
        ns
    }

    fn jitter(&mut self, key: &str, jitter: Option<Spanned<Time>>, interval_ns: u64) -> u64 {
        let Some(jitter) = jitter else { return interval_ns / JITTER_PART };
        let ns = jitter.get_ref().0.get();
        if ns > interval_ns {
            let message = "the jitter is longer than the interval";
            let hint = "an interval is within half of the jitter around `interval`".to_owned();
            self.refuse(jitter.span(), &format!("{key}.jitter"), message, hint);
        }
        ns
    }

    fn pairs(&mut self, key: &str, table: &TestTable, hosts: &[Host]) -> Vec<Pair> {
        let names = || hosts.iter().map(|host| host.name.as_str());
        let all = || (0..hosts.len()).collect::<Vec<_>>();
        let list = |reader: &mut Self, name: &str, list: &Option<Spanned<Vec<Spanned<String>>>>| {
            list.as_ref().map(|list| {
                let key = format!("{key}.{name}");
                if list.get_ref().is_empty() {
                    reader.refuse(list.span(), &key, "the list is empty", "name at least one host".to_owned());
                }
                reader.find_all(&key, list.get_ref(), "host", &names())
            })
        };
        let members = list(self, "hosts", &table.hosts);
        let others = list(self, "to", &table.to);
        let center = table.center.as_ref().map(|center| self.find(&format!("{key}.center"), center, "host", names()));
        let kind = table.pairs.get_ref().as_str();
        let unused = [
            ("to", table.to.as_ref().map(Spanned::span), kind != "disjoint"),
            ("center", table.center.as_ref().map(Spanned::span), kind != "star"),
        ];
        for (name, span, is_unused) in unused {
            if let Some(span) = span.filter(|_| is_unused && ["mesh", "star", "disjoint"].contains(&kind)) {
                let message = format!("`{name}` has no meaning with pairs = \"{kind}\"");
                self.refuse(span, &format!("{key}.{name}"), message, "remove it".to_owned());
            }
        }
        let both = |a: usize, b: usize| [Pair { from: a, to: b }, Pair { from: b, to: a }];
        let pairs: Vec<Pair> = match kind {
            "mesh" => {
                let members = members.unwrap_or_else(all);
                let of = |&from: &usize| members.iter().map(move |&to| Pair { from, to }).collect::<Vec<_>>();
                members.iter().flat_map(of).filter(|pair| pair.from != pair.to).collect()
            }
            "star" => {
                let Some(center) = center else {
                    let hint = "name the host that tests with all others: center = \"dtn1\"".to_owned();
                    self.refuse(table.pairs.span(), &format!("{key}.center"), "`center` is missing", hint);
                    return Vec::new();
                };
                let Some(center) = center else { return Vec::new() };
                let members = members.unwrap_or_else(all);
                members.into_iter().filter(|&host| host != center).flat_map(|host| both(center, host)).collect()
            }
            "disjoint" => {
                let (Some(members), Some(others)) = (&members, &others) else {
                    let hint = "give two groups: hosts = [\"a1\", \"a2\"], to = [\"b1\"]".to_owned();
                    let message = "`disjoint` tests each host of `hosts` with each host of `to`";
                    self.refuse(table.pairs.span(), &format!("{key}.pairs"), message, hint);
                    return Vec::new();
                };
                if let Some(&shared) = members.iter().find(|host| others.contains(host)) {
                    let message = format!("`{}` is in both groups", hosts[shared].name);
                    let span = table.to.as_ref().map_or(0..0, Spanned::span);
                    self.refuse(span, &format!("{key}.to"), message, "put it in one of them".to_owned());
                }
                members.iter().flat_map(|&a| others.iter().flat_map(move |&b| both(a, b))).collect()
            }
            unknown => {
                let hint = suggest_or_list(unknown, ["mesh", "star", "disjoint"]);
                self.refuse(table.pairs.span(), &format!("{key}.pairs"), format!("unknown value `{unknown}`"), hint);
                return Vec::new();
            }
        };
        if pairs.is_empty() && self.problems.is_empty() {
            let message = "the test has no pairs: it needs two hosts";
            self.refuse(table.pairs.span(), &format!("{key}.pairs"), message, "add a [[host]]".to_owned());
        }
        pairs
    }
}

fn key_example(key: &str) -> Option<&'static str> {
    Some(match key {
        "name" => "add a name: name = \"dtn1\"",
        "pairs" => "say which hosts test with each other: pairs = \"mesh\"",
        "interval" => "say how often each pair is tested: interval = \"6h\"",
        "from" => "add the begin: from = \"02:00\"",
        "until" => "add the end: until = \"04:00\"",
        _ => return None,
    })
}
