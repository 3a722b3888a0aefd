//! An inventory with its tests: options of `run`, addresses and keys.

use std::collections::HashMap;
use std::net::IpAddr;
use std::ops::Range;
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use landspeed_experiment::hosts::command::{Refused, RunCommand, RunTest};
use landspeed_experiment::hosts::options;
use landspeed_flow::client::{DEFAULT_PORT, Request, Target};
use landspeed_mesh::{Inventory, MeshTest, Pair, RunOption, TestCost};
use landspeed_model::{Direction, ErrorEntry, Parameters};
use landspeed_problems::Problem;
use landspeed_quote::shell_path;
use landspeed_sys::file;
use landspeed_units::{Bytes, Nanos};

use crate::sweep::hosts::Run;
use crate::trust::TrustArgs;

/// Options that the inventory sets in another way, with the way.
const REPLACED: &[(&str, &str)] = &[
    ("target", "the pairs of the test name the servers"),
    ("key-file", "write it at the top of the inventory, or at its [[host]]"),
    ("iperf3", "hosts of a mesh run landspeed serve"),
];

/// An inventory whose tests can run.
#[derive(Debug)]
pub struct MeshPlan {
    /// Inventory whose tests are scheduled.
    pub inventory: Inventory,
    /// Parameters of each test.
    pub parameters: Vec<Parameters>,
    directory: PathBuf,
    trust: TrustArgs,
}

/// A test of one pair, ready to run.
#[derive(Debug)]
pub struct PairTest {
    test: Box<dyn RunTest>,
    /// The host that is the client, unless this one is.
    pub from: Option<Target>,
    /// The client of the pair is the server of the test.
    mirrored: bool,
}

impl MeshPlan {
    /// Reads an inventory and checks all of it.
    pub fn read(path: &Path, trust: TrustArgs) -> anyhow::Result<Self> {
        let name = path.display().to_string();
        let text = file::read_text(path, file::MAX_TEXT_BYTES).map_err(|why| {
            anyhow!(
                "cannot read the inventory {name}: {why}\nWrite one with `landspeed mesh --new {}`.",
                shell_path(path)
            )
        })?;
        let inventory = landspeed_mesh::read(&text, &name).map_err(|problems| anyhow!("{problems}"))?;
        let directory = path.parent().unwrap_or(Path::new("")).to_owned();
        let mut plan = Self { inventory, parameters: Vec::new(), directory, trust };
        let mut problems = plan.check_hosts();
        for number in 0..plan.inventory.tests.len() {
            match plan.check_test(number) {
                Ok(parameters) => plan.parameters.push(parameters),
                Err(found) => problems.extend(found),
            }
        }
        if problems.is_empty() {
            problems = plan.check_budgets();
        }
        if problems.is_empty() { Ok(plan) } else { Err(anyhow!("{}", plan.inventory.problems(problems))) }
    }

    /// Returns the worst case of a test of a pair.
    pub fn cost(&self, test: usize, pair: Pair) -> TestCost {
        let capacity_bps = self.inventory.capacity_of(pair);
        TestCost::of(&self.parameters[test], self.inventory.tests[test].limit_ns, capacity_bps)
    }

    /// Prepares a test of a pair.
    pub fn pair_test(&self, test: usize, pair: Pair) -> Result<PairTest, Refused> {
        let [from, to] = [pair.from, pair.to].map(|host| &self.inventory.hosts[host]);
        let mirrored = to.local;
        let server = if mirrored { from } else { to };
        let mut given: Vec<options::RunOption> =
            self.inventory.tests[test].options.iter().map(of_inventory).collect();
        let option = |name: &str, value: toml::Value| options::RunOption { name: name.to_owned(), value, span: 0..0 };
        given.push(option("target", server.address.clone().unwrap_or_default().into()));
        if let Some(key) = &server.key_file {
            given.push(option("key-file", self.directory.join(key).display().to_string().into()));
        }
        if self.trust.insecure_permissions {
            given.push(option("insecure-permissions", true.into()));
        }
        let parsed = options::parse(&Run, &given)?;
        let bad = |why: String| Refused { message: why, hint: None, option: None };
        let client = (!from.local && !to.local).then(|| from.address.clone().unwrap_or_default().parse::<Target>());
        let from = client.transpose().map_err(|why| bad(why.to_string()))?;
        Ok(PairTest { test: parsed, from, mirrored })
    }

    /// Refuses addresses that are none, and two hosts with one server: their tests could run at the same time.
    fn check_hosts(&self) -> Vec<Problem> {
        let mut servers: HashMap<(String, u16), &str> = HashMap::new();
        let hosts = self.inventory.hosts.iter().enumerate();
        let problems = hosts.filter_map(|(number, host)| {
            let problem = |why: String| self.inventory.problem(&host.span, &format!("host.{number}.address"), why);
            match host.address.as_ref()?.parse::<Target>() {
                Ok(target) => {
                    let other = servers.insert(normalized(&target), &host.name)?;
                    let message = format!("`{}` has the address of `{other}`", host.name);
                    Some(problem(message).hint("give each host once"))
                }
                Err(why) => Some(problem(why.to_string())),
            }
        });
        problems.collect()
    }

    fn check_test(&self, number: usize) -> Result<Parameters, Vec<Problem>> {
        let test = &self.inventory.tests[number];
        let at = |span: &Range<usize>, name: &str, refused: Refused| {
            let key = format!("test.{number}.run.{name}");
            self.inventory.problem(span, &key, refused.message).maybe_hint(refused.hint)
        };
        let unknown: Vec<Problem> = test
            .options
            .iter()
            .filter_map(|option| {
                let refused = check_name(&option.name).err()?;
                Some(at(&option.name_span, &option.name, refused))
            })
            .collect();
        if !unknown.is_empty() {
            return Err(unknown);
        }
        let Some(&pair) = test.pairs.first() else { return Err(Vec::new()) };
        let locate = |refused: Refused| {
            let about = test.options.iter().find(|option| refused.option.as_deref() == Some(option.name.as_str()));
            vec![if let Some(option) = about {
                at(&option.span, &option.name, refused)
            } else {
                let problem = self.inventory.problem(&test.span, &format!("test.{number}"), refused.message);
                problem.maybe_hint(refused.hint)
            }]
        };
        let parsed = self.pair_test(number, pair).map_err(locate)?;
        let (parameters, sound) = parsed.test.parameters();
        sound.map_err(|why| locate(Refused { message: why, hint: None, option: None }))?;
        self.check_keys(number, test).map(|()| parameters)
    }

    /// Refuses pairs whose hosts have different keys: the client of a third-party test uses its own key for the server.
    fn check_keys(&self, number: usize, test: &MeshTest) -> Result<(), Vec<Problem>> {
        let hosts = &self.inventory.hosts;
        let differs = |pair: &&Pair| {
            let [from, to] = [pair.from, pair.to].map(|host| &hosts[host]);
            !from.local && !to.local && from.key_file != to.key_file
        };
        let Some(pair) = test.pairs.iter().find(differs) else { return Ok(()) };
        let (from, to) = (&hosts[pair.from].name, &hosts[pair.to].name);
        let message = format!("`{from}` and `{to}` have different keys, so they cannot test with each other");
        let hint = "give both the same `key-file`, or put them into different tests";
        Err(vec![self.inventory.problem(&test.span, &format!("test.{number}"), message).hint(hint)])
    }

    /// Refuses tests without a worst case where a budget needs one, and budgets that a single test exceeds.
    fn check_budgets(&self) -> Vec<Problem> {
        let inventory = &self.inventory;
        let mut problems = Vec::new();
        for (number, test) in inventory.tests.iter().enumerate() {
            let first = test.pairs.iter().find_map(|&pair| {
                let cost = self.cost(number, pair);
                let hosts =
                    [pair.from, pair.to].map(|host| (&inventory.hosts[host].name, inventory.hosts[host].budget));
                let links = inventory.links_of(pair).into_iter();
                let links = links.map(|link| (&inventory.links[link].name, inventory.links[link].budget));
                hosts.into_iter().chain(links).find_map(|(name, budget)| {
                    let time_ns = cost.reservation().time_ns;
                    match (budget.bytes, cost.bytes) {
                        (Some(_), None) => Some((
                            format!("the test may send any number of bytes, and `{name}` has a budget"),
                            "add `rate` or `bytes` to [test.run], or `capacity` to the host",
                        )),
                        (Some(most), Some(bytes)) if bytes > most => Some((
                            format!(
                                "one test may send {}, and the budget of `{name}` is {} per day",
                                Bytes::new(bytes),
                                Bytes::new(most)
                            ),
                            "lower `rate` or `time`, or raise the budget",
                        )),
                        _ if budget.time_ns.is_some_and(|most| time_ns > most) => Some((
                            format!(
                                "one test may take {}, and the budget of `{name}` is {} per day",
                                Nanos::new(time_ns),
                                Nanos::new(budget.time_ns.unwrap_or(0))
                            ),
                            "lower `time` or `limit`, or raise the budget",
                        )),
                        _ => None,
                    }
                })
            });
            if let Some((message, hint)) = first {
                problems.push(inventory.problem(&test.span, &format!("test.{number}"), message).hint(hint));
            }
        }
        problems
    }
}

impl PairTest {
    /// Reads the key and returns the request.
    pub fn request(&self) -> Result<Request, ErrorEntry> {
        let mut request = self.test.request()?;
        if self.mirrored {
            request.parameters.direction = match request.parameters.direction {
                Direction::Upload => Direction::Download,
                Direction::Download => Direction::Upload,
                Direction::Both => Direction::Both,
            };
        }
        Ok(request)
    }

    /// Returns the test of `run`.
    pub fn test(&self) -> &dyn RunTest {
        &*self.test
    }

    /// Whether the client of the pair is the server of the test.
    pub fn is_mirrored(&self) -> bool {
        self.mirrored
    }
}

/// Returns host and port of a server in one of the ways to write them.
fn normalized(target: &Target) -> (String, u16) {
    let host = target
        .host
        .parse::<IpAddr>()
        .map_or_else(|_| target.host.trim_end_matches('.').to_ascii_lowercase(), |ip| ip.to_canonical().to_string());
    (host, target.port.unwrap_or(DEFAULT_PORT))
}

fn check_name(name: &str) -> Result<(), Refused> {
    if let Some((_, hint)) = REPLACED.iter().find(|(replaced, _)| *replaced == name) {
        let message = format!("an inventory cannot set `{name}` here");
        return Err(Refused { message, hint: Some((*hint).to_owned()), option: Some(name.to_owned()) });
    }
    if name == "from" {
        return Err(Refused {
            message: "an inventory cannot set `from` here".to_owned(),
            hint: Some("the pairs of the test name the clients".to_owned()),
            option: Some(name.to_owned()),
        });
    }
    options::check_name(&Run as &dyn RunCommand, name)
}

fn of_inventory(option: &RunOption) -> options::RunOption {
    options::RunOption { name: option.name.clone(), value: option.value.clone(), span: option.span.clone() }
}
