//! The tests between hosts that a plan describes.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use landspeed_flow::client::Target;
use landspeed_model::Change;
use landspeed_problems::{Problem, suggest_or_list};
use landspeed_sweep::order::Order;
use landspeed_sweep::plan::{HostsSubject, Setting, Written};
use landspeed_sweep::schedule::MIN_BLOCKS;
use landspeed_sweep::{Design, Factor, Level, Plan, id};
use landspeed_sys::file;
use landspeed_tune::{objection, parse_setting};
use serde_json::json;

use super::cell::{Cross, HostCell};
use super::command::{RunCommand, RunTest};
use super::options::{self, RunOption};
use super::survey::{Objection, Survey, check_changes};
use crate::error::Error;
use crate::setup::{CellInfo, Request, Setup};

/// Setup time per test for connections, clock synchronization and results, seconds.
const SETUP_S: f64 = 1.0;
/// Maximum number of existing runs that a dry run reads.
const MAX_READ: usize = 64;
/// Keys of the implicit factors for plans with several hosts.
const SENDER: &str = "hosts.sender";
const RECEIVER: &str = "hosts.receiver";

/// The tests of a plan.
#[derive(Debug)]
pub struct Hosts {
    command: &'static dyn RunCommand,
    subject: HostsSubject,
    build: String,
}

impl Hosts {
    /// Prepares the tests of a plan. Lists of several hosts become factors.
    pub fn open(plan: &mut Plan, subject: HostsSubject, command: &'static dyn RunCommand) -> Result<Self, Error> {
        let factor = |name: &str, key: &str, hosts: &[Written<String>]| Factor {
            name: name.to_owned(),
            keys: vec![Written { value: key.to_owned(), span: hosts.first().map_or(0..0, |host| host.span.clone()) }],
            levels: hosts
                .iter()
                .map(|host| Level {
                    label: host.value.clone().into(),
                    values: vec![host.value.clone().into()],
                    span: host.span.clone(),
                })
                .collect(),
        };
        for (at, (name, key, hosts)) in
            [("sender", SENDER, &subject.senders), ("receiver", RECEIVER, &subject.receivers)].into_iter().enumerate()
        {
            if hosts.len() > 1 {
                let at = at.min(plan.factors.iter().filter(|factor| factor.keys[0].value == SENDER).count());
                plan.factors.insert(at, factor(name, key, hosts));
            }
        }
        let path = Path::new("/proc/self/exe");
        let program = file::read(path, file::MAX_DOCUMENT_BYTES).map_err(Error::file("read", path))?;
        Ok(Self { command, subject, build: id::sha256(&program) })
    }

    /// Returns the parser of the options.
    pub fn command(&self) -> &'static dyn RunCommand {
        self.command
    }

    /// Returns the parameters of the sweep, after a short test between the hosts. A dry run contacts no hosts: it takes
    /// their facts from existing runs.
    pub fn setup(&self, plan: Plan, request: Request, interrupted: &'static AtomicBool) -> Result<Setup, Error> {
        if request.jobs.is_some_and(|jobs| jobs != 1) {
            return Err(Error::SeveralJobs);
        }
        self.check(&plan)?;
        let design = Design::of(&plan);
        let survey = if request.dry_run {
            self.survey_of_runs(&plan, &design, &request)?
        } else {
            let cells = self.host_cells(&plan, &design)?;
            let survey = Survey::take(self.command, &cells, interrupted);
            let survey = survey.and_then(|survey| check_changes(&cells, interrupted).map(|()| survey));
            survey.map_err(|objection| locate(&plan, &design, objection))?
        };
        let cells = self.cells(&plan, &design, &survey)?;
        let order = Order::new(cells.iter().map(|cell| cell.group).collect(), plan.seed, plan.seed, false);
        let Request { directory, rules, .. } = request;
        let (flow, engine, warnings, charts) = (None, "local", Vec::new(), Vec::new());
        Ok(Setup { plan, design, cells, rules, order, flow, directory, engine, jobs: 1, warnings, charts })
    }

    /// Returns the facts of the hosts with which the plan has the most of the existing runs.
    fn survey_of_runs(&self, plan: &Plan, design: &Design, request: &Request) -> Result<Survey, Error> {
        let present: BTreeSet<String> = request.directory.ids().into_iter().collect();
        let facts = Survey::recorded(&request.directory, present.iter().take(MAX_READ));
        let blocks = request.rules.blocks.unwrap_or(MIN_BLOCKS);
        let known = |survey: &Survey| -> Result<usize, Error> {
            let cells = self.cells(plan, design, survey)?;
            let order = Order::new(cells.iter().map(|cell| cell.group).collect(), plan.seed, plan.seed, false);
            let runs = (0..blocks).flat_map(|block| order.block(block));
            Ok(runs.filter(|run| present.contains(&id::run(&cells[run.cell].id, run))).count())
        };
        let (mut best, mut most) = (Survey::default(), 0);
        for pair in self.host_cells(plan, design)?.iter().map(HostCell::pair).collect::<BTreeSet<_>>() {
            for facts in &facts {
                let survey = best.with(pair.clone(), facts.clone());
                let runs = known(&survey)?;
                if runs > most {
                    (best, most) = (survey, runs);
                }
            }
        }
        Ok(best)
    }

    /// Checks options and levels before anything runs.
    fn check(&self, plan: &Plan) -> Result<(), Error> {
        let mut problems = Vec::new();
        for option in &self.subject.options {
            if let Err(refused) = options::check_name(self.command, &option.key.value) {
                problems.push(refused.problem(plan, &[], &option.key.span, &format!("run.{}", option.key.value)));
            }
        }
        for (i, cross) in self.subject.cross.iter().enumerate() {
            for option in &cross.options {
                if let Err(refused) = options::check_name(self.command, &option.key.value) {
                    problems.push(refused.problem(
                        plan,
                        &[],
                        &option.key.span,
                        &format!("cross.{i}.{}", option.key.value),
                    ));
                }
            }
        }
        for (number, factor) in plan.factors.iter().enumerate() {
            for key in &factor.keys {
                if let Some(problem) = self.check_key(plan, number, key) {
                    problems.push(problem);
                }
            }
        }
        if problems.is_empty() {
            self.check_levels(plan, &mut problems);
        }
        if problems.is_empty() { Ok(()) } else { Err(plan.problems(problems).into()) }
    }

    fn check_key(&self, plan: &Plan, number: usize, key: &Written<String>) -> Option<Problem> {
        let at = format!("factor.{number}.key");
        let name = key.value.as_str();
        if let Some(option) = name.strip_prefix("run.") {
            let refused = options::check_name(self.command, option).err()?;
            return Some(refused.problem(plan, &[], &key.span, &at));
        }
        if let Some((index, option)) = cross_key(name) {
            if index >= self.subject.cross.len() {
                let message = format!("no such key: the plan has {} [[cross]]", self.subject.cross.len());
                return Some(plan.problem(&key.span, &at, message).hint("count them from 0: cross.0.rate"));
            }
            let refused = options::check_name(self.command, option).err()?;
            return Some(refused.problem(plan, &[], &key.span, &at));
        }
        let is_known = name == SENDER || name == RECEIVER || host_key(name).is_some();
        if is_known {
            return None;
        }
        let known: Vec<String> =
            options::names(self.command).into_iter().map(|option| format!("run.{option}")).collect();
        let hint = if options::check_name(self.command, name).is_ok() {
            Some(format!("did you mean `run.{name}`?"))
        } else {
            suggest_or_list(name, known.iter().map(String::as_str)).filter(|hint| hint.starts_with("did you"))
        };
        let hint = hint.unwrap_or_else(|| "use run.OPTION, host.client.SETTING or host.server.SETTING".to_owned());
        Some(plan.problem(&key.span, &at, format!("no such key: `{name}`")).hint(hint))
    }

    /// Checks each level combined with the first levels of all other factors, so that errors refer to a place in
    /// the plan.
    fn check_levels(&self, plan: &Plan, problems: &mut Vec<Problem>) {
        let first = vec![0; plan.factors.len()];
        let base = self.cell(plan, &first);
        if let Err(problem) = base {
            problems.push(problem);
            return;
        }
        for (number, factor) in plan.factors.iter().enumerate() {
            for at in 1..factor.levels.len() {
                let mut cell = first.clone();
                cell[number] = at;
                if let Err(problem) = self.cell(plan, &cell)
                    && !problems.contains(&problem)
                {
                    problems.push(problem);
                }
            }
        }
    }

    /// Returns the cell with the given levels.
    pub fn cell(&self, plan: &Plan, levels: &[usize]) -> Result<HostCell, Problem> {
        let mut options: Vec<RunOption> = self.subject.options.iter().map(of_setting).collect();
        let mut cross: Vec<Vec<RunOption>> = self
            .subject
            .cross
            .iter()
            .map(|cross| {
                let to = RunOption {
                    name: "target".to_owned(),
                    value: cross.to.value.clone().into(),
                    span: cross.to.span.clone(),
                };
                cross.options.iter().map(of_setting).chain([to]).collect()
            })
            .collect();
        let server = |host: &Written<String>| RunOption {
            name: "target".to_owned(),
            value: host.value.clone().into(),
            span: host.span.clone(),
        };
        options.extend(self.subject.target.as_ref().map(server));
        options.extend(self.subject.receivers.first().map(server));
        let mut from = self.subject.senders.first().cloned();
        let (mut client_changes, mut server_changes) = (Vec::new(), Vec::new());
        for (number, (factor, &level)) in plan.factors.iter().zip(levels).enumerate() {
            let level = &factor.levels[level];
            for (key, value) in factor.keys.iter().zip(&level.values) {
                let option =
                    |name: &str| RunOption { name: name.to_owned(), value: value.clone(), span: level.span.clone() };
                let at = format!("factor.{number}.levels");
                if let Some(name) = key.value.strip_prefix("run.") {
                    options.push(option(name));
                } else if let Some((index, name)) = cross_key(&key.value) {
                    cross[index].push(option(name));
                } else if key.value == RECEIVER {
                    options.push(option("target"));
                } else if key.value == SENDER {
                    from = Some(Written {
                        value: value.as_str().unwrap_or_default().to_owned(),
                        span: level.span.clone(),
                    });
                } else if let Some((is_server, name)) = host_key(&key.value) {
                    let change = change(name, value).map_err(|why| plan.problem(&level.span, &at, why))?;
                    if is_server { server_changes.push(change) } else { client_changes.push(change) }
                }
            }
        }
        let test = self.parse(plan, &options, "run")?;
        let cross: Result<Vec<Cross>, Problem> = self
            .subject
            .cross
            .iter()
            .zip(&cross)
            .enumerate()
            .map(|(i, (cross, options))| {
                Ok(Cross {
                    name: format!("cross {} to {}", cross.from.value, cross.to.value),
                    from: host(plan, &cross.from)?,
                    test: self.parse(plan, options, &format!("cross.{i}"))?,
                })
            })
            .collect();
        let from = from.map(|from| host(plan, &from)).transpose()?;
        Ok(HostCell { test, from, client: client_changes, server: server_changes, cross: cross? })
    }

    /// Returns the cells, with facts of the hosts from the survey. Without a survey, the ids match no run.
    fn cells(&self, plan: &Plan, design: &Design, survey: &Survey) -> Result<Vec<CellInfo>, Error> {
        let mut groups: Vec<String> = Vec::new();
        let mut cells: Vec<CellInfo> = Vec::new();
        let mut known: HashMap<String, usize> = HashMap::new();
        for (levels, cell) in design.cells.iter().zip(self.host_cells(plan, design)?) {
            let pair = cell.pair();
            let (mut parameters, _) = cell.test.parameters();
            let seconds = (parameters.time_ns.unwrap_or(10_000_000_000) + parameters.omit_ns) as f64 / 1e9;
            parameters.title = None;
            let changes = json!({"client": cell.client, "server": cell.server});
            let cross: Vec<_> = cell
                .cross
                .iter()
                .map(|cross| {
                    json!([cross.from.to_string(), cross.test.server().to_string(), cross.test.parameters().0])
                })
                .collect();
            let content = json!({
                "kind": "hosts", "parameters": parameters, "pair": pair.to_string(), "changes": changes,
                "iperf3": cell.test.is_iperf3(), "cross": cross, "hosts": survey.hosts(&pair), "landspeed": self.build,
            });
            let held = if cell.client.is_empty() && cell.server.is_empty() {
                String::new()
            } else {
                format!("{pair}: {changes}")
            };
            let group = groups.iter().position(|known| *known == held).unwrap_or_else(|| {
                groups.push(held);
                groups.len() - 1
            });
            let id = id::cell(&content);
            if let Some(&at) = known.get(&id) {
                return Err(Error::SameCells(plan.describe(&design.cells[at]), plan.describe(levels)));
            }
            known.insert(id.clone(), cells.len());
            cells.push(CellInfo {
                id,
                kernel: None,
                group,
                span_ns: (seconds * 1e9) as u64,
                wall_s: seconds + SETUP_S,
                memory_bytes: 0,
            });
        }
        Ok(cells)
    }

    fn host_cells(&self, plan: &Plan, design: &Design) -> Result<Vec<HostCell>, Error> {
        let cells = design.cells.iter().map(|levels| self.cell(plan, levels));
        cells.collect::<Result<_, _>>().map_err(|problem| plan.problems(vec![problem]).into())
    }

    /// Parses options and checks that they are compatible.
    fn parse(&self, plan: &Plan, given: &[RunOption], key: &str) -> Result<Box<dyn RunTest>, Problem> {
        let span: Range<usize> = given.last().map_or(0..0, |option| option.span.clone());
        let test = options::parse(self.command, given).map_err(|refused| refused.problem(plan, given, &span, key))?;
        test.parameters().1.map_err(|why| plan.problem(&span, key, why))?;
        Ok(test)
    }

    /// Describes the host settings that the plan varies.
    pub fn changes(plan: &Plan) -> Vec<String> {
        let of = |factor: &Factor| -> Vec<String> {
            let named = factor.keys.iter().enumerate().filter(|(_, key)| host_key(&key.value).is_some());
            named
                .map(|(at, key)| {
                    let values: Vec<String> =
                        factor.levels.iter().filter_map(|level| options::scalar(&level.values[at])).collect();
                    format!("{}: {}", key.value, values.join(" | "))
                })
                .collect()
        };
        plan.factors.iter().flat_map(of).collect()
    }
}

/// Returns the error of a host at the level whose value it names.
fn locate(plan: &Plan, design: &Design, objection: Objection) -> Error {
    let Some(message) = &objection.message else { return *objection.error };
    let is_named = |value: &toml::Value| options::scalar(value).is_some_and(|value| has_word(message, &value));
    let levels = plan.factors.iter().zip(&design.cells[objection.cell]).enumerate();
    let mut named = levels.filter(|(_, (factor, level))| factor.levels[**level].values.iter().any(is_named));
    match (named.next(), named.next()) {
        (Some((number, (factor, &level))), None) => {
            let at = format!("factor.{number}.levels.{level}");
            plan.problems(vec![plan.problem(&factor.levels[level].span, &at, message)]).into()
        }
        _ => *objection.error,
    }
}

/// Whether a text has a word, or several, and not as a part of another word.
fn has_word(text: &str, word: &str) -> bool {
    let outside = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric() && c != '_');
    text.match_indices(word)
        .any(|(at, _)| outside(text[..at].chars().next_back()) && outside(text[at + word.len()..].chars().next()))
}

fn host(plan: &Plan, host: &Written<String>) -> Result<Target, Problem> {
    host.value.parse::<Target>().map_err(|why| plan.problem(&host.span, "hosts", why.to_string()))
}

fn of_setting(setting: &Setting) -> RunOption {
    RunOption {
        name: setting.key.value.clone(),
        value: setting.value.value.clone(),
        span: setting.value.span.clone(),
    }
}

/// Splits `cross.0.rate` into 0 and `rate`.
fn cross_key(key: &str) -> Option<(usize, &str)> {
    let (index, option) = key.strip_prefix("cross.")?.split_once('.')?;
    Some((index.parse().ok()?, option))
}

/// Splits `host.server.eth0:mtu` into whether it is the server's setting, and `eth0:mtu`.
fn host_key(key: &str) -> Option<(bool, &str)> {
    let rest = key.strip_prefix("host.")?;
    let (is_server, name) = match rest.strip_prefix("client.") {
        Some(name) => (false, name),
        None => (true, rest.strip_prefix("server.")?),
    };
    Some((is_server, name.strip_prefix("sysctl:").unwrap_or(name))).filter(|(_, name)| !name.is_empty())
}

fn change(name: &str, value: &toml::Value) -> Result<Change, String> {
    let value = options::scalar(value).ok_or("expected text or a number")?;
    let change = parse_setting(&format!("{name}={value}"))?;
    match objection(&change) {
        Some(why) => Err(why),
        None => Ok(change),
    }
}
