//! Parser of plans.

use std::collections::BTreeMap;
use std::ops::Range;

use landspeed_model::{Metric, Reference};
use landspeed_problems::{self as source, FormatTerms, Problem, Problems, suggest_or_list};
use landspeed_units::Nanos;
use serde::Deserialize;
use toml::Spanned;

use super::{CrossTraffic, Factor, HostsSubject, LabSubject, Level, Plan, Setting, Subject, Written};
use crate::{PrecisionTarget, Rules};

/// Maximum number of cells of a plan.
pub const MAX_CELLS: usize = 10_000;
/// Maximum length of a plan, bytes.
pub const MAX_TEXT: usize = 256 << 10;
/// Maximum number of blocks.
const MAX_BLOCKS: u32 = 10_000;
/// Number of blocks if no stopping rule is given: enough for intervals of several metrics at once.
const DEFAULT_BLOCKS: u32 = 10;
/// Maximum number of levels of a factor.
const MAX_LEVELS: usize = 1000;
/// Maximum length of the name of a plan, a factor or a level, characters.
const MAX_NAME: usize = 80;

const FORMAT_TERMS: FormatTerms = FormatTerms { arrays: &["factor", "cross"], named: &[], example: key_example };

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct PlanTable {
    name: Spanned<String>,
    description: Option<String>,
    reference: Option<Reference>,
    metric: Option<Spanned<String>>,
    blocks: Option<Spanned<u32>>,
    until: Option<Spanned<String>>,
    budget: Option<Spanned<String>>,
    #[serde(default = "one")]
    seed: u64,
    fraction: Option<Spanned<String>>,
    lab: Option<Spanned<LabTable>>,
    run: Option<Spanned<BTreeMap<Spanned<String>, Spanned<toml::Value>>>>,
    hosts: Option<Spanned<HostsTable>>,
    #[serde(default)]
    cross: Vec<Spanned<BTreeMap<Spanned<String>, Spanned<toml::Value>>>>,
    #[serde(default)]
    factor: Vec<FactorTable>,
}

fn one() -> u64 {
    1
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct LabTable {
    scenario: Spanned<String>,
    flow: Option<Spanned<String>>,
    #[serde(default)]
    set: BTreeMap<Spanned<String>, Spanned<toml::Value>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct HostsTable {
    senders: Spanned<Vec<Spanned<String>>>,
    receivers: Spanned<Vec<Spanned<String>>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct FactorTable {
    name: Option<Spanned<String>>,
    key: Option<Spanned<String>>,
    keys: Option<Spanned<Vec<Spanned<String>>>>,
    levels: Spanned<Vec<Spanned<toml::Value>>>,
    labels: Option<Spanned<Vec<String>>>,
}

/// Parses a plan; `file` is its name in messages. Checks that need a scenario, the options of `run` or a host
/// are left to the caller.
///
/// # Errors
/// All problems of the plan, each with its line and key.
pub fn read(text: &str, file: &str) -> Result<Plan, Problems> {
    let problems = |list| Problems::new(file, list);
    if text.len() > MAX_TEXT {
        let message = format!("the plan has {} bytes, the maximum is {MAX_TEXT}", text.len());
        return Err(problems(vec![Problem::new("", message)]));
    }
    let document = source::parse(text).map_err(|problem| problems(vec![problem]))?;
    let table: PlanTable = source::typed(text, &document, &FORMAT_TERMS).map_err(problems)?;
    let mut reader = Reader { text, file, problems: Vec::new() };
    let plan = reader.plan(table);
    match plan {
        Some(plan) if reader.problems.is_empty() => Ok(plan),
        _ => Err(problems(reader.problems)),
    }
}

struct Reader<'a> {
    text: &'a str,
    file: &'a str,
    problems: Vec<Problem>,
}

impl Reader<'_> {
    fn refuse(&mut self, span: Range<usize>, key: &str, message: impl Into<String>, hint: impl Into<Option<String>>) {
        self.problems.push(Problem::new(key, message).at(self.text, span).maybe_hint(hint.into()));
    }

    fn plan(&mut self, table: PlanTable) -> Option<Plan> {
        self.named("name", &table.name);
        let metric = self.metric(table.metric);
        let rules = self.rules(table.blocks, table.until, table.budget);
        let factors: Vec<Factor> =
            table.factor.into_iter().enumerate().filter_map(|(i, factor)| self.factor(i, factor)).collect();
        self.distinct(&factors);
        let fraction = table.fraction.map_or(0, |fraction| self.fraction(&fraction, &factors));
        self.check_cell_count(&factors, fraction);
        let subject = self.subject(table.lab, table.run, table.hosts, table.cross)?;
        self.conflicts(&subject, &factors);
        Some(Plan {
            name: table.name.into_inner(),
            description: table.description,
            reference: table.reference,
            metric,
            rules,
            seed: table.seed,
            fraction,
            subject,
            factors,
            text: self.text.to_owned(),
            file: self.file.to_owned(),
        })
    }

    fn named(&mut self, key: &str, name: &Spanned<String>) {
        let length = name.get_ref().chars().count();
        if name.get_ref().trim().is_empty() || length > MAX_NAME || name.get_ref().contains(char::is_control) {
            self.refuse(
                name.span(),
                key,
                "the name is empty, too long or not printable",
                format!("use 1 to {MAX_NAME} characters"),
            );
        }
    }

    fn metric(&mut self, metric: Option<Spanned<String>>) -> Metric {
        let Some(name) = metric else { return Metric::Goodput };
        Metric::find(name.get_ref()).unwrap_or_else(|| {
            let hint = suggest_or_list(name.get_ref(), Metric::ALL.iter().map(|metric| metric.name()));
            self.refuse(name.span(), "metric", format!("unknown metric `{}`", name.get_ref()), hint);
            Metric::Goodput
        })
    }

    fn rules(
        &mut self,
        blocks: Option<Spanned<u32>>,
        until: Option<Spanned<String>>,
        budget: Option<Spanned<String>>,
    ) -> Rules {
        if let Some(blocks) = blocks.as_ref().filter(|blocks| !(1..=MAX_BLOCKS).contains(blocks.get_ref())) {
            let message = format!("{} blocks", blocks.get_ref());
            self.refuse(blocks.span(), "blocks", message, format!("use 1 to {MAX_BLOCKS}"));
        }
        let until = until.and_then(|until| match until.get_ref().parse::<PrecisionTarget>() {
            Ok(rule) => Some(rule),
            Err(why) => {
                self.refuse(until.span(), "until", why.to_string(), "write \"ci<2%\"".to_owned());
                None
            }
        });
        let budget_ns = budget.and_then(|budget| match budget.get_ref().parse::<Nanos>() {
            Ok(time) if time.get() > 0 => Some(time.get()),
            Ok(_) => {
                self.refuse(budget.span(), "budget", "no time is no budget", "write \"30m\"".to_owned());
                None
            }
            Err(why) => {
                self.refuse(budget.span(), "budget", why.to_string(), "write \"30m\"".to_owned());
                None
            }
        });
        let blocks = blocks.map(Spanned::into_inner);
        Rules {
            blocks: blocks.or((until.is_none() && budget_ns.is_none()).then_some(DEFAULT_BLOCKS)),
            until,
            budget_ns,
        }
    }

    fn factor(&mut self, number: usize, table: FactorTable) -> Option<Factor> {
        let at = |name: &str| format!("factor.{number}.{name}");
        let keys = match (table.key, table.keys) {
            (Some(key), None) => vec![written(key)],
            (None, Some(keys)) if !keys.get_ref().is_empty() => {
                keys.into_inner().into_iter().map(written).collect::<Vec<_>>()
            }
            (Some(key), Some(_)) => {
                self.refuse(key.span(), &at("key"), "the factor has `key` and `keys`", "give one of them".to_owned());
                return None;
            }
            (None, _) => {
                let hint = "name what it sets: key = \"switch.west.queue.limit\"".to_owned();
                self.refuse(table.levels.span(), &at("key"), "the factor has no key", hint);
                return None;
            }
        };
        if let Some(name) = &table.name {
            self.named(&at("name"), name);
        }
        let name = table.name.map_or_else(|| keys[0].value.clone(), Spanned::into_inner);
        let span = table.levels.span();
        let levels: Vec<Level> = table
            .levels
            .into_inner()
            .into_iter()
            .enumerate()
            .filter_map(|(i, level)| self.level(&at(&format!("levels.{i}")), level, keys.len()))
            .collect();
        if levels.is_empty() && self.problems.is_empty() {
            let hint = "list its levels: levels = [\"64KB\", \"1MB\"]".to_owned();
            self.refuse(span.clone(), &at("levels"), "the list is empty, so there is no cell to run", hint);
        }
        if levels.len() > MAX_LEVELS {
            let message = format!("{} levels, the maximum is {MAX_LEVELS}", levels.len());
            self.refuse(span, &at("levels"), message, None);
            return None;
        }
        let mut factor = Factor { name, keys, levels };
        self.label(&at("labels"), &mut factor, table.labels);
        Some(factor)
    }

    fn level(&mut self, key: &str, level: Spanned<toml::Value>, keys: usize) -> Option<Level> {
        let span = level.span();
        let value = level.into_inner();
        let label = serde_json::to_value(&value).unwrap_or_default();
        if keys == 1 {
            return Some(Level { label, values: vec![value], span });
        }
        match value {
            toml::Value::Array(values) if values.len() == keys => {
                let names: Vec<String> = label.as_array().into_iter().flatten().map(super::plain).collect();
                Some(Level { label: names.join(" ").into(), values, span })
            }
            _ => {
                let message = format!("a level of {keys} keys is an array of {keys} values");
                self.refuse(span, key, message, None);
                None
            }
        }
    }

    fn label(&mut self, key: &str, factor: &mut Factor, labels: Option<Spanned<Vec<String>>>) {
        if let Some(labels) = labels {
            if labels.get_ref().len() == factor.levels.len() {
                for (level, label) in factor.levels.iter_mut().zip(labels.into_inner()) {
                    level.label = label.into();
                }
            } else {
                let message = format!("{} labels for {} levels", labels.get_ref().len(), factor.levels.len());
                self.refuse(labels.span(), key, message, "give each level its label".to_owned());
            }
        }
        for (i, level) in factor.levels.iter().enumerate() {
            let double = |other: &Level| other.label == level.label || other.values == level.values;
            if factor.levels[..i].iter().any(double) {
                let message = format!("the level {} is there twice", level.label);
                self.refuse(level.span.clone(), key, message, "remove one of them".to_owned());
            }
        }
    }

    fn distinct(&mut self, factors: &[Factor]) {
        for (i, factor) in factors.iter().enumerate() {
            let all = || factors[..i].iter().flat_map(|other| &other.keys);
            for (n, key) in factor.keys.iter().enumerate() {
                let other = all().chain(&factor.keys[..n]).find(|other| sets_the_same(&other.value, &key.value));
                if let Some(other) = other {
                    let message = match &other.value {
                        same if *same == key.value => format!("two factors set `{same}`"),
                        other => format!("`{}` sets what `{other}` of another factor sets", key.value),
                    };
                    self.refuse(key.span.clone(), &format!("factor.{i}.key"), message, "keep one of them".to_owned());
                }
            }
            if factors[..i].iter().any(|other| other.name == factor.name) {
                let message = format!("two factors are called `{}`", factor.name);
                let hint = "give each its `name`".to_owned();
                self.refuse(factor.keys[0].span.clone(), &format!("factor.{i}.name"), message, hint);
            }
        }
    }

    /// Refuses settings of all cells that a factor sets too: one of them would have no effect.
    fn conflicts(&mut self, subject: &Subject, factors: &[Factor]) {
        let named = |table: &str, key: &str, settings: &[Setting]| -> Vec<(String, String, Range<usize>)> {
            let of = |setting: &Setting| {
                let name = &setting.key.value;
                (format!("{table}.{name}"), format!("{key}{name}"), setting.key.span.clone())
            };
            settings.iter().map(of).collect()
        };
        let fixed = match subject {
            Subject::Lab(lab) => named("lab.set", "", &lab.set),
            Subject::Hosts(hosts) => {
                let cross = hosts.cross.iter().enumerate().flat_map(|(i, cross)| {
                    let table = format!("cross.{i}");
                    named(&table, &format!("{table}."), &cross.options)
                });
                named("run", "run.", &hosts.options).into_iter().chain(cross).collect()
            }
        };
        for (place, key, span) in fixed {
            for factor in
                factors.iter().filter(|factor| factor.keys.iter().any(|own| sets_the_same(&own.value, &key)))
            {
                let message = format!("the factor `{}` sets this too", factor.name);
                self.refuse(span.clone(), &place, message, "remove it, or the factor".to_owned());
            }
        }
    }

    fn check_cell_count(&mut self, factors: &[Factor], fraction: u32) {
        let all = factors.iter().fold(1_usize, |cells, factor| cells.saturating_mul(factor.levels.len()));
        let cells = all >> fraction;
        if cells > MAX_CELLS {
            let message = format!("the levels make {cells} cells, the maximum is {MAX_CELLS}");
            self.problems.push(Problem::new("factor", message).hint("give fewer levels, or split the plan"));
        }
    }

    /// Parses a fraction: `1/4` gives 2.
    fn fraction(&mut self, text: &Spanned<String>, factors: &[Factor]) -> u32 {
        let count = factors.len();
        let denominator = text.get_ref().strip_prefix("1/").and_then(|n| n.trim().parse::<u64>().ok());
        let Some(denominator) = denominator.filter(|n| n.is_power_of_two() && *n > 1) else {
            let message = format!("`{}` is not a fraction of a two-level design", text.get_ref());
            self.refuse(text.span(), "fraction", message, "write \"1/2\", \"1/4\" or \"1/8\"".to_owned());
            return 0;
        };
        let power = denominator.trailing_zeros();
        if let Some(factor) = factors.iter().find(|factor| factor.levels.len() != 2) {
            let message = format!(
                "a fractional design has two levels of each factor, `{}` has {}",
                factor.name,
                factor.levels.len()
            );
            self.refuse(
                text.span(),
                "fraction",
                message,
                "remove `fraction`, or give each factor two levels".to_owned(),
            );
            return 0;
        }
        if let Err(why) = crate::Design::fraction(count, power) {
            self.refuse(text.span(), "fraction", why.to_string(), "use a larger fraction".to_owned());
            return 0;
        }
        power
    }

    fn subject(
        &mut self,
        lab: Option<Spanned<LabTable>>,
        run: Option<Spanned<BTreeMap<Spanned<String>, Spanned<toml::Value>>>>,
        hosts: Option<Spanned<HostsTable>>,
        cross: Vec<Spanned<BTreeMap<Spanned<String>, Spanned<toml::Value>>>>,
    ) -> Option<Subject> {
        if let Some(lab) = lab {
            let others = [
                run.as_ref().map(|run| ("run", run.span())),
                hosts.as_ref().map(|hosts| ("hosts", hosts.span())),
                cross.first().map(|cross| ("cross", cross.span())),
            ];
            for (name, span) in others.into_iter().flatten() {
                let hint = "make two plans".to_owned();
                self.refuse(
                    span,
                    name,
                    format!("a plan measures a scenario or hosts: it has [lab] and `{name}`"),
                    hint,
                );
            }
            let lab = lab.into_inner();
            return Some(Subject::Lab(LabSubject {
                scenario: written(lab.scenario),
                flow: lab.flow.map(written),
                set: settings(lab.set),
            }));
        }
        if run.is_none() && hosts.is_none() {
            let hint = "add [lab] with `scenario`, or [run] with `target`";
            self.problems.push(Problem::new("", "the plan does not say what it measures").hint(hint));
            return None;
        }
        let span = run.as_ref().map_or(0..0, Spanned::span);
        let mut options = run.map(|run| settings(run.into_inner())).unwrap_or_default();
        let target = self.take_text("run", &mut options, "target");
        let (senders, receivers) = hosts.map(|hosts| self.hosts(hosts.into_inner())).unwrap_or_default();
        match (&target, receivers.is_empty()) {
            (Some(target), false) => {
                let hint = "remove one of them".to_owned();
                self.refuse(target.span.clone(), "run.target", "the plan has `target` and [hosts]", hint);
            }
            (None, true) if self.problems.is_empty() => {
                self.refuse(span, "run", "`target` is missing", "name the server: target = \"dtn2\"".to_owned());
            }
            _ => {}
        }
        let cross = cross.into_iter().enumerate().filter_map(|(i, table)| self.cross(i, table)).collect();
        Some(Subject::Hosts(HostsSubject { target, options, senders, receivers, cross }))
    }

    fn hosts(&mut self, hosts: HostsTable) -> (Vec<Written<String>>, Vec<Written<String>>) {
        let mut list = |key: &str, hosts: Spanned<Vec<Spanned<String>>>| -> Vec<Written<String>> {
            let span = hosts.span();
            let hosts: Vec<_> = hosts.into_inner().into_iter().map(written).collect();
            if hosts.is_empty() {
                let key = format!("hosts.{key}");
                self.refuse(span, &key, "the list is empty", "name at least one host".to_owned());
            }
            for (i, host) in hosts.iter().enumerate() {
                if hosts[..i].iter().any(|other| other.value == host.value) {
                    let message = format!("`{}` is there twice", host.value);
                    self.refuse(host.span.clone(), &format!("hosts.{key}"), message, "remove one of them".to_owned());
                }
            }
            hosts
        };
        (list("senders", hosts.senders), list("receivers", hosts.receivers))
    }

    fn cross(
        &mut self,
        i: usize,
        table: Spanned<BTreeMap<Spanned<String>, Spanned<toml::Value>>>,
    ) -> Option<CrossTraffic> {
        let span = table.span();
        let mut options = settings(table.into_inner());
        let key = format!("cross.{i}");
        let from = self.take_text(&key, &mut options, "from");
        let to = self.take_text(&key, &mut options, "to");
        if let (Some(from), Some(to)) = (from, to) {
            Some(CrossTraffic { from, to, options })
        } else {
            self.refuse(span, &key, "cross traffic goes from one host to another", "give `from` and `to`".to_owned());
            None
        }
    }

    /// Removes a string setting from `options` and returns it.
    fn take_text(&mut self, table: &str, options: &mut Vec<Setting>, key: &str) -> Option<Written<String>> {
        let at = options.iter().position(|setting| setting.key.value == key)?;
        let setting = options.remove(at);
        match setting.value.value {
            toml::Value::String(value) if !value.trim().is_empty() => {
                Some(Written { value, span: setting.value.span })
            }
            _ => {
                self.refuse(setting.value.span, &format!("{table}.{key}"), "expected text in quotes", None);
                None
            }
        }
    }
}

/// Whether two keys set the same value: `host.*.congestion` includes every host, and `hosts.congestion` is their
/// default.
fn sets_the_same(a: &str, b: &str) -> bool {
    let parts = |key: &str| -> Vec<String> {
        let key = key.strip_prefix("hosts.").map_or_else(|| key.to_owned(), |rest| format!("host.*.{rest}"));
        key.split('.').map(str::to_owned).collect()
    };
    // The default of all hosts and the value of one host are different settings.
    let of_one_host = |key: &str| key.strip_prefix("host.").is_some_and(|rest| !rest.starts_with("*."));
    if a.starts_with("hosts.") && of_one_host(b) || b.starts_with("hosts.") && of_one_host(a) {
        return false;
    }
    let (a, b) = (parts(a), parts(b));
    a.len() == b.len() && a.iter().zip(&b).all(|(a, b)| a == b || a == "*" || b == "*")
}

fn written<T>(value: Spanned<T>) -> Written<T> {
    let span = value.span();
    Written { value: value.into_inner(), span }
}

/// Settings in the order of the text.
fn settings(table: BTreeMap<Spanned<String>, Spanned<toml::Value>>) -> Vec<Setting> {
    let mut settings: Vec<Setting> =
        table.into_iter().map(|(key, value)| Setting { key: written(key), value: written(value) }).collect();
    settings.sort_by_key(|setting| setting.key.span.start);
    settings
}

fn key_example(key: &str) -> Option<&'static str> {
    Some(match key {
        "name" => "add a name: name = \"Throughput over buffer size\"",
        "scenario" => "name a scenario file or an exhibit: scenario = \"gallery:buffer-size\"",
        "levels" => "list the levels: levels = [\"64KB\", \"1MB\"]",
        "senders" => "name the hosts that send: senders = [\"dtn1\"]",
        "receivers" => "name the hosts that receive: receivers = [\"dtn2\"]",
        _ => return None,
    })
}
