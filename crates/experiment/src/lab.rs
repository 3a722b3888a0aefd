//! Cells that are lab scenarios in virtual time.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use landspeed_lab::cell::{self, PreparedCell, SharedSettings};
use landspeed_lab::kernel::{self, Features, Kernel};
use landspeed_lab::{gallery, scenario};
use landspeed_model::{LabChart, Warning};
use landspeed_problems::{Problem, Problems, suggest_or_list};
use landspeed_sweep::order::Order;
use landspeed_sweep::plan::{LabSubject, Setting, Written};
use landspeed_sweep::{Design, Factor, Level, Plan, id};
use landspeed_sys::file;
use landspeed_sys::process::available_memory;
use landspeed_units::Bytes;
use serde_json::json;

use crate::cells::Kernels;
use crate::edit;
use crate::error::Error;
use crate::origin::now;
use crate::setup::{CellInfo, Request, Setup};
use crate::traces;

/// Maximum number of refused cells that are listed.
const MAX_LISTED: usize = 5;

/// The scenario of a plan, with its kernels and build.
pub struct Lab {
    subject: LabSubject,
    /// The scenario's text without the plan's settings.
    pub text: String,
    /// Keys with the same value in all cells.
    set: Vec<(String, toml_edit::Value)>,
    kernels: Mutex<Kernels>,
    /// Kernel of all cells; `None` if the scenario chooses it.
    pub(crate) only_kernel: Option<String>,
    /// Charts of the scenario.
    charts: Vec<LabChart>,
    /// landspeed's executable, for the guest.
    pub program: Vec<u8>,
    build: String,
    started: String,
    command: Vec<String>,
    /// Number of blocks, for the warning about single runs.
    repeats: u32,
}

impl Lab {
    /// Reads the scenario that the plan names: a gallery exhibit, or a path relative to `beside`.
    pub fn scenario(subject: &LabSubject, plan: &Plan, beside: &Path) -> Result<String, Error> {
        let named = &subject.scenario;
        if let Some(name) = named.value.strip_prefix("gallery:") {
            let exhibit = gallery::find(name);
            return exhibit.map(|exhibit| exhibit.text.to_owned()).map_err(|message: String| {
                let mut lines = message.lines();
                let first = lines.next().unwrap_or_default().to_owned();
                let hint = lines.next().map(str::to_owned);
                one(plan, plan.problem(&named.span, "lab.scenario", first).maybe_hint(hint))
            });
        }
        let path = beside.join(&named.value);
        let text = file::read_text(&path, file::MAX_TEXT_BYTES).map_err(|why| {
            one(
                plan,
                plan.problem(&named.span, "lab.scenario", format!("cannot read {}: {why}", path.display()))
                    .hint("name a scenario file beside the plan, or gallery:EXHIBIT"),
            )
        })?;
        let directory = path.parent().unwrap_or(beside);
        let mut read =
            |trace: &str| file::read_text(&directory.join(trace), traces::MAX_BYTES).map_err(|why| why.to_string());
        traces::inline(&text, &mut read).map_err(|why| {
            let problem = plan.problem(&named.span, "lab.scenario", why);
            one(plan, problem.hint("put trace files next to the scenario file"))
        })
    }

    /// Prepares the cells of a plan. Keys that the scenario itself varies become factors.
    pub fn open(
        plan: &mut Plan,
        subject: LabSubject,
        text: String,
        cache: Option<&Path>,
        repeats: u32,
    ) -> Result<Self, Error> {
        let program = file::read(Path::new("/proc/self/exe"), file::MAX_DOCUMENT_BYTES).map_err(Error::Program)?;
        let of = |setting: &Setting| (setting.key.value.clone(), to_edit(&setting.value.value));
        let set: Vec<_> = subject.set.iter().map(of).collect();
        add_factors_of_scenario(plan, &text, &set);
        let mut charts = Vec::new();
        if let Ok(loaded) = scenario::load(&edit::fix(&text, &[])) {
            let scenario = &loaded.cells[0].scenario;
            plan.reference = plan.reference.take().or_else(|| scenario.reference.clone());
            plan.description = plan.description.take().or_else(|| scenario.description.clone());
            charts.clone_from(&scenario.charts);
        }
        Ok(Self {
            subject,
            set,
            kernels: Mutex::new(Kernels::open(cache)?),
            only_kernel: None,
            charts,
            build: id::sha256(&program),
            program,
            started: now(),
            command: landspeed_sys::process::command_line(),
            repeats,
            text,
        })
    }

    /// Checks scenario, settings and levels before anything runs. Returns the flow of the plan's metric, and
    /// warnings.
    pub fn check(&self, plan: &Plan) -> Result<(Option<String>, Vec<Warning>), Error> {
        let subject = &self.subject;
        let base = edit::fix(&self.text, &[]);
        // With two repeats, the scenario warns if seeds make no difference.
        let base = base.replacen("repeats = 1", "repeats = 2", 1);
        let loaded = scenario::load(&base).map_err(|problems| problems.named(&subject.scenario.value))?;
        let flows: Vec<&str> = loaded.cells[0].scenario.flow.iter().filter_map(|flow| flow.name.as_deref()).collect();
        let mut problems = Vec::new();
        if let Some(flow) = subject.flow.as_ref().filter(|flow| !flows.contains(&flow.value.as_str())) {
            let message = format!("the scenario has no flow `{}`", flow.value);
            problems.push(
                plan.problem(&flow.span, "lab.flow", message)
                    .maybe_hint(suggest_or_list(&flow.value, flows.iter().copied())),
            );
        }
        for (setting, (key, value)) in subject.set.iter().zip(&self.set) {
            let text = edit::fix(&self.text, &[(key, key, value.clone())]);
            if let Err(found) = scenario::load(&text) {
                for problem in found.list {
                    let span = if is_about_key(&problem) { &setting.key.span } else { &setting.value.span };
                    problems.push(
                        plan.problem(span, &format!("lab.set.{key}"), problem.message).maybe_hint(problem.hint),
                    );
                }
            }
        }
        if problems.is_empty() {
            self.check_factors(plan, &mut problems);
        }
        if problems.is_empty() {
            self.check_levels(plan, &mut problems);
        }
        if !problems.is_empty() {
            return Err(plan.problems(problems).into());
        }
        let warnings = loaded.warnings.into_iter().map(|warning| match warning.code.as_str() {
            "seeds-alike" => Warning {
                message: "nothing in the scenario is random, so every block gives the same result: set start-spread for the flows"
                    .to_owned(),
                ..warning
            },
            _ => warning,
        });
        let flow = subject.flow.as_ref().map(|flow| flow.value.clone());
        Ok((flow, warnings.collect()))
    }

    /// Checks each factor without the others, so that an error refers to its own line. A level that the scenario
    /// accepts only together with other factors is left to [`Lab::check_levels`].
    fn check_factors(&self, plan: &Plan, problems: &mut Vec<Problem>) {
        for (number, factor) in plan.factors.iter().enumerate() {
            for (at, key) in factor.keys.iter().enumerate() {
                let set = |level: &Level| {
                    let mut sets: Vec<_> =
                        self.set.iter().map(|(key, value)| (key.as_str(), key.as_str(), value.clone())).collect();
                    sets.push((key.value.as_str(), key.value.as_str(), to_edit(&level.values[at])));
                    edit::fix(&self.text, &sets)
                };
                for level in &factor.levels {
                    if let Err(found) = scenario::load(&set(level))
                        && let Some(problem) = found.list.into_iter().find(is_about_key)
                    {
                        let at = format!("factor.{number}.key");
                        problems.push(plan.problem(&key.span, &at, problem.message).maybe_hint(problem.hint));
                        break;
                    }
                }
            }
        }
    }

    /// Checks each level combined with the first levels of all other factors, so that errors refer to a place in
    /// the plan.
    fn check_levels(&self, plan: &Plan, problems: &mut Vec<Problem>) {
        let first = vec![0; plan.factors.len()];
        let of_first = self.kernel_problem(&self.text_of(plan, &first));
        problems.extend(of_first.as_ref().map(|found| self.locate(plan, &first, found)));
        for (number, factor) in plan.factors.iter().enumerate() {
            for (at, level) in factor.levels.iter().enumerate() {
                let mut levels = first.clone();
                levels[number] = at;
                let found = match self.cell(plan, &levels, plan.seed) {
                    Ok(cell) => {
                        let named = factor.keys.iter().any(|key| key.value == "kernel");
                        let not_found = self.kernel(cell.scenario.kernel.as_deref()).err().filter(|_| named);
                        let found = match not_found {
                            Some(error) => Some(message_and_hint(&error.to_string())),
                            None => self.kernel_problem(&self.text_of(plan, &levels)),
                        };
                        if let Some((message, hint)) = found.filter(|found| Some(found) != of_first.as_ref()) {
                            let at = format!("factor.{number}.levels.{at}");
                            problems.push(plan.problem(&level.span, &at, message).maybe_hint(hint));
                        }
                        continue;
                    }
                    Err(found) => found,
                };
                for problem in found.list {
                    let about_key = is_about_key(&problem);
                    let span = if about_key { &factor.keys[0].span } else { &level.span };
                    let name = if about_key {
                        format!("factor.{number}.key")
                    } else {
                        format!("factor.{number}.levels.{at}")
                    };
                    // The same message for other levels concerns the scenario or another factor; it is reported once.
                    let problem = plan.problem(span, &name, problem.message).maybe_hint(problem.hint);
                    let known = |other: &Problem| {
                        other.message == problem.message && (about_key || other.place == problem.place)
                    };
                    if !problems.iter().any(known) {
                        problems.push(problem);
                    }
                }
            }
        }
    }

    /// Returns what the kernel of a scenario lacks, with a hint. `None` also if there is no such kernel, or if the scenario
    /// is refused.
    fn kernel_problem(&self, text: &str) -> Option<(String, Option<String>)> {
        let loaded = scenario::load(text).ok()?;
        let scenario = &loaded.cells[0].scenario;
        let kernel = self.kernel(self.only_kernel.as_deref().or(scenario.kernel.as_deref())).ok()?;
        let (message, hint) =
            message_and_hint(&cell::check_kernel(scenario, &kernel, &kernel.features().ok()?).err()?);
        let unknown = loaded.warnings.iter().find(|warning| warning.code == "congestion-unknown");
        let suggestion = unknown.and_then(|warning| Some(warning.message.split_once("; ")?.1.to_owned()));
        Some((message, suggestion.or(hint)))
    }

    /// Returns the problem of a cell at the place in the plan without which it does not occur.
    fn locate(&self, plan: &Plan, levels: &[usize], found: &(String, Option<String>)) -> Problem {
        let causes = |part| {
            let text = self.text_without(plan, levels, Some(part));
            scenario::load(&text).is_ok() && self.kernel_problem(&text).as_ref() != Some(found)
        };
        let factor = (0..plan.factors.len()).find(|number| causes(Part::Factor(*number)));
        let set = || (0..self.set.len()).find(|number| causes(Part::Set(*number)));
        let (span, at) = if let Some(number) = factor {
            let level = levels[number];
            (&plan.factors[number].levels[level].span, format!("factor.{number}.levels.{level}"))
        } else if let Some(number) = set() {
            (&self.subject.set[number].value.span, format!("lab.set.{}", self.set[number].0))
        } else {
            (&self.subject.scenario.span, "lab.scenario".to_owned())
        };
        plan.problem(span, &at, &found.0).maybe_hint(found.1.clone())
    }

    /// Returns the parameters of the sweep, with the flow and the warnings from [`Lab::check`].
    pub fn setup(
        &self,
        plan: Plan,
        (flow, warnings): (Option<String>, Vec<Warning>),
        request: Request,
    ) -> Result<Setup, Error> {
        let design = Design::of(&plan);
        let cells = self.cells(&plan, &design)?;
        let memory = cells.iter().map(|cell| cell.memory_bytes).max().unwrap_or(0);
        let available = available_memory().unwrap_or(u64::MAX);
        if memory > available && !request.dry_run {
            return Err(Error::Memory { needed: Bytes::new(memory), available: Bytes::new(available) });
        }
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let fit = usize::try_from(available / memory.max(1)).unwrap_or(usize::MAX).max(1);
        let jobs = request.jobs.map_or(cores, usize::from).min(fit).max(1);
        let order = Order::new(cells.iter().map(|cell| cell.group).collect(), plan.seed, plan.seed, true);
        let Request { directory, rules, .. } = request;
        let charts = self.charts.clone();
        Ok(Setup { plan, design, cells, rules, order, flow, directory, engine: "local", jobs, warnings, charts })
    }

    /// Returns the cells. Combinations that the scenario refuses are an error that lists their levels.
    fn cells(&self, plan: &Plan, design: &Design) -> Result<Vec<CellInfo>, Error> {
        let mut refused = Vec::new();
        let mut cells: Vec<CellInfo> = Vec::with_capacity(design.cells.len());
        let mut known: HashMap<String, usize> = HashMap::new();
        let mut features: HashMap<String, Features> = HashMap::new();
        for levels in &design.cells {
            let cell = match self.cell(plan, levels, plan.seed) {
                Ok(cell) => cell,
                Err(problems) => {
                    let messages: Vec<String> = problems
                        .list
                        .into_iter()
                        .map(|problem| format!("{}: {}", problem.key, problem.message))
                        .collect();
                    refused.push(format!("  {}: {}", plan.describe(levels), messages.join("; ")));
                    continue;
                }
            };
            let kernel = self.kernel(self.only_kernel.as_deref().or(cell.scenario.kernel.as_deref()))?;
            let features = match features.entry(kernel.id.clone()) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(unknown) => unknown.insert(kernel.features()?),
            };
            if let Err(why) = cell::check_kernel(&cell.scenario, &kernel, features) {
                refused.push(format!("  {}: {}", plan.describe(levels), message_and_hint(&why).0));
                continue;
            }
            let need = scenario::estimate(&cell.scenario);
            let id = self.id_of(&cell, &kernel);
            if let Some(&at) = known.get(&id) {
                return Err(Error::SameCells(plan.describe(&design.cells[at]), plan.describe(levels)));
            }
            known.insert(id.clone(), cells.len());
            cells.push(CellInfo {
                id,
                kernel: Some(kernel.id),
                group: 0,
                span_ns: (need.virtual_s * 1e9) as u64,
                wall_s: need.wall_s,
                memory_bytes: need.memory_bytes,
            });
        }
        if !refused.is_empty() {
            let count = refused.len();
            refused.truncate(MAX_LISTED);
            return Err(Error::Refused { refused: count, cells: design.cells.len(), list: refused.join("\n") });
        }
        Ok(cells)
    }

    /// Returns the id of a cell; `kernel` overrides the scenario's kernel.
    pub fn id(&self, plan: &Plan, levels: &[usize], kernel: Option<&str>) -> Result<String, Error> {
        let cell = self.cell(plan, levels, plan.seed)?;
        let kernel = self.kernel(kernel.or(cell.scenario.kernel.as_deref()))?;
        Ok(self.id_of(&cell, &kernel))
    }

    fn id_of(&self, cell: &scenario::Cell, kernel: &Kernel) -> String {
        id::cell(&json!({
            "kind": "lab", "scenario": cell.hash, "kernel": kernel.id, "landspeed": self.build,
        }))
    }

    /// Prepares a cell for booting.
    pub fn prepare(
        &self,
        plan: &Plan,
        levels: &[usize],
        seed: u64,
        kernel: Option<&str>,
    ) -> Result<PreparedCell, Error> {
        let text = self.text_of(plan, levels);
        let cell = self.cell(plan, levels, seed)?;
        let kernel = self.kernel(kernel.or(cell.scenario.kernel.as_deref()))?;
        let setting = SharedSettings { text: &text, ..self.setting() };
        cell::prepare(&cell, &kernel, &setting).map_err(Error::Cell)
    }

    /// Returns the settings common to all runs.
    pub fn setting(&self) -> SharedSettings<'_> {
        SharedSettings {
            program: &self.program,
            arguments: &["lab", "guest"],
            captures: &[],
            keep: Path::new("."),
            text: "",
            warnings: &[],
            started: &self.started,
            command: &self.command,
        }
    }

    fn kernel(&self, name: Option<&str>) -> Result<Kernel, kernel::Error> {
        self.kernels.lock().unwrap_or_else(PoisonError::into_inner).find(name)
    }

    fn cell(&self, plan: &Plan, levels: &[usize], seed: u64) -> Result<scenario::Cell, Problems> {
        let mut loaded = scenario::load(&self.text_of(plan, levels))?;
        let mut cell = loaded.cells.swap_remove(0);
        cell.seed = seed;
        cell.scenario.seed = seed;
        cell.repeats = self.repeats;
        Ok(cell)
    }

    /// Returns the scenario's text with the values of a cell.
    fn text_of(&self, plan: &Plan, levels: &[usize]) -> String {
        self.text_without(plan, levels, None)
    }

    fn text_without(&self, plan: &Plan, levels: &[usize], without: Option<Part>) -> String {
        let set = self.set.iter().enumerate().filter(|(number, _)| without != Some(Part::Set(*number)));
        let mut sets: Vec<(&str, &str, toml_edit::Value)> =
            set.map(|(_, (key, value))| (key.as_str(), key.as_str(), value.clone())).collect();
        let factors = plan.factors.iter().zip(levels).enumerate();
        for (_, (factor, &level)) in factors.filter(|(number, _)| without != Some(Part::Factor(*number))) {
            for (key, value) in factor.keys.iter().zip(&factor.levels[level].values) {
                let label = if factor.keys.len() == 1 { factor.name.as_str() } else { key.value.as_str() };
                sets.push((label, key.value.as_str(), to_edit(value)));
            }
        }
        edit::fix(&self.text, &sets)
    }
}

/// Adds the keys that the scenario varies and the plan does not set as factors.
fn add_factors_of_scenario(plan: &mut Plan, text: &str, set: &[(String, toml_edit::Value)]) {
    for varied in edit::varied(text) {
        let name = varied.label.clone().unwrap_or_else(|| varied.key.clone());
        let is_set = set.iter().any(|(key, _)| *key == varied.key || *key == name);
        let is_varied = plan.factors.iter().any(|factor| {
            factor.name == name || factor.keys.iter().any(|key| key.value == varied.key || key.value == name)
        });
        if is_set || is_varied {
            continue;
        }
        let levels = varied.values.iter().filter_map(|value| {
            let value = toml::from_str::<toml::Table>(&format!("v = {value}")).ok()?.remove("v")?;
            let label = serde_json::to_value(&value).ok()?;
            Some(Level { label, values: vec![value], span: 0..0 })
        });
        let levels = levels.collect();
        plan.factors.push(Factor { name, keys: vec![Written { value: varied.key, span: 0..0 }], levels });
    }
}

/// A part of a plan that sets keys of the scenario, by its number.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Set(usize),
    Factor(usize),
}

/// Splits an error into its first line and the advice on the second.
fn message_and_hint(text: &str) -> (String, Option<String>) {
    let (message, hint) = text.split_once('\n').map_or((text, None), |(message, hint)| (message, Some(hint)));
    (message.to_owned(), hint.map(str::to_owned))
}

/// Whether the scenario's problem concerns the key and not its value.
fn is_about_key(problem: &Problem) -> bool {
    ["no such key", "cannot be varied", "is varied twice", "unknown key"]
        .iter()
        .any(|words| problem.message.contains(words))
}

fn one(plan: &Plan, problem: Problem) -> Error {
    plan.problems(vec![problem]).into()
}

fn to_edit(value: &toml::Value) -> toml_edit::Value {
    match value {
        toml::Value::String(text) => text.as_str().into(),
        toml::Value::Integer(number) => (*number).into(),
        toml::Value::Float(number) => (*number).into(),
        toml::Value::Boolean(value) => (*value).into(),
        toml::Value::Datetime(time) => time.to_string().into(),
        toml::Value::Array(items) => toml_edit::Value::Array(items.iter().map(to_edit).collect()),
        toml::Value::Table(table) => toml_edit::Value::InlineTable(
            table.iter().map(|(key, value)| (toml_edit::Key::new(key), to_edit(value))).collect(),
        ),
    }
}
