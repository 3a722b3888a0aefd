//! Cells that are lab scenarios in virtual time.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use landspeed_lab::cell::{self, PreparedCell, SharedSettings};
use landspeed_lab::kernel::{self, Kernel};
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
        file::read_text(&path, file::MAX_TEXT_BYTES).map_err(|why| {
            one(
                plan,
                plan.problem(&named.span, "lab.scenario", format!("cannot read {}: {why}", path.display()))
                    .hint("name a scenario file beside the plan, or gallery:EXHIBIT"),
            )
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
                for (place, level) in factor.levels.iter().enumerate() {
                    match scenario::load(&set(level)) {
                        Ok(loaded) => {
                            // Of the default kernel, the congestion controls are those of mainline Linux.
                            let unknown = loaded.warnings.iter().filter(|warning| {
                                warning.code == "congestion-unknown" && loaded.cells[0].scenario.kernel.is_none()
                            });
                            for warning in unknown.filter(|_| key.value.ends_with("congestion")) {
                                let (message, hint) =
                                    warning.message.split_once("; ").unwrap_or((&warning.message, ""));
                                let at = format!("factor.{number}.levels.{place}");
                                problems.push(plan.problem(&level.span, &at, message).hint(hint));
                            }
                        }
                        Err(found) => {
                            let about_key = found.list.into_iter().find(is_about_key);
                            if let Some(problem) = about_key {
                                let at = format!("factor.{number}.key");
                                problems.push(plan.problem(&key.span, &at, problem.message).maybe_hint(problem.hint));
                                break;
                            }
                        }
                    }
                }
            }
        }
    }

    /// Checks each level combined with the first levels of all other factors, so that errors refer to a place in
    /// the plan.
    fn check_levels(&self, plan: &Plan, problems: &mut Vec<Problem>) {
        for (number, factor) in plan.factors.iter().enumerate() {
            for (at, level) in factor.levels.iter().enumerate() {
                let mut cell = vec![0; plan.factors.len()];
                cell[number] = at;
                let found = match self.cell(plan, &cell, plan.seed) {
                    Ok(cell) => {
                        let named = factor.keys.iter().any(|key| key.value == "kernel");
                        if named && let Err(error) = self.kernel(cell.scenario.kernel.as_deref()) {
                            let text = error.to_string();
                            let (message, hint) = text.split_once('\n').unwrap_or((&text, ""));
                            let problem = plan.problem(&level.span, &format!("factor.{number}.levels.{at}"), message);
                            problems.push(problem.hint(hint));
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
        let mut sets: Vec<(&str, &str, toml_edit::Value)> =
            self.set.iter().map(|(key, value)| (key.as_str(), key.as_str(), value.clone())).collect();
        for (factor, &level) in plan.factors.iter().zip(levels) {
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
