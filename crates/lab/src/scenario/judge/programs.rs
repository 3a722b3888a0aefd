//! Programs: hosts, command lines, times, files.

use std::collections::BTreeMap;

use landspeed_problems::{Problem, Time, suggest_or_list};
use landspeed_settings::MAX_TIME_NS;

use crate::scenario::{Program, Scenario, Stop};

/// Maximum number of programs.
const MAX_PROGRAMS: usize = 64;
/// Maximum number of files kept, and of writable directories, of one program.
const MAX_PATHS: usize = 16;
/// Minimum and maximum of `real-time-limit`, nanoseconds.
const REAL_TIME_NS: (u64, u64) = (1_000_000_000, 7 * 86_400_000_000_000);
/// Directories of the host that hold the programs themselves: a mount over one would hide them.
const ESSENTIAL: [&str; 8] = ["bin", "etc", "lib", "lib64", "sbin", "tmp", "usr", "run"];
/// Directories that are the guest's own.
const GUEST: [&str; 3] = ["dev", "proc", "sys"];

/// Returns the reasons why the programs of a scenario cannot be run.
pub(super) fn problems(scenario: &Scenario) -> Vec<Problem> {
    let mut problems = Vec::new();
    if scenario.real_time_limit.is_some() && scenario.program.is_empty() {
        let message = "`real-time-limit` has no effect without programs";
        problems.push(Problem::new("real-time-limit", message).hint("remove it, or add a [[program]]"));
    }
    problems.extend(range("real-time-limit", scenario.real_time_limit, REAL_TIME_NS, "use 1s to 7 days"));
    if scenario.program.len() > MAX_PROGRAMS {
        let message = format!("{} programs are too many, the maximum is {MAX_PROGRAMS}", scenario.program.len());
        problems.push(Problem::new("program", message));
    }
    let mut names: BTreeMap<&str, usize> = BTreeMap::new();
    for (i, program) in scenario.program.iter().enumerate() {
        let key = format!("program.{i}");
        if let Some(name) = &program.name {
            let at = format!("{key}.name");
            if name.trim().is_empty() || name.len() > 64 || name.chars().any(char::is_control) {
                problems.push(Problem::new(at, "invalid program name").hint("use 1 to 64 characters on one line"));
            } else if let Some(first) = names.insert(name, i) {
                let message = format!("program {first} has the name `{name}`");
                problems.push(Problem::new(at, message).hint("use a different name: results are listed by name"));
            }
        }
        problems.extend(host(&key, program, scenario));
        problems.extend(command(&key, program));
        problems.extend(times(&key, program));
        problems.extend(paths(&key, program));
    }
    let with_the_others = |program: &Program| matches!(program.stop, Some(Stop::With(_)));
    if scenario.flow.is_empty() && !scenario.program.is_empty() && scenario.program.iter().all(with_the_others) {
        let hint = "set a time, such as stop = \"10s\", or remove `stop` from a program that ends by itself";
        problems.push(Problem::new("program.0.stop", "no program and no flow ends the scenario").hint(hint));
    }
    problems
}

fn range(key: impl Into<String>, time: Option<Time>, (least, most): (u64, u64), hint: &str) -> Option<Problem> {
    let time = time.filter(|time| !(least..=most).contains(&time.0.get()))?;
    Some(Problem::new(key, format!("{time} is out of range")).hint(hint))
}

fn host(key: &str, program: &Program, scenario: &Scenario) -> Option<Problem> {
    let name = &program.host;
    let at = format!("{key}.host");
    if scenario.switch.contains_key(name) {
        return Some(Problem::new(at, format!("`{name}` is a switch")).hint("use a host: programs run on hosts"));
    }
    let known: Vec<&str> = scenario.host.keys().map(String::as_str).collect();
    let unknown = !scenario.host.contains_key(name);
    unknown.then(|| Problem::new(at, format!("no such host: `{name}`")).maybe_hint(suggest_or_list(name, known)))
}

fn command(key: &str, program: &Program) -> Option<Problem> {
    let at = format!("{key}.run");
    let first = program.run.first().map_or("", String::as_str);
    if first.trim().is_empty() {
        return Some(Problem::new(at, "the command is empty").hint("name the program: run = [\"iperf3\", \"-s\"]"));
    }
    if program.run.iter().any(|word| word.contains('\0')) {
        return Some(Problem::new(at, "an argument contains a NUL character").hint("remove it"));
    }
    let one_word = program.run.len() == 1 && first.contains(' ') && !first.contains('/');
    one_word.then(|| {
        let words: Vec<String> = first.split_whitespace().map(|word| format!("\"{word}\"")).collect();
        let hint = format!("write each argument as an element: run = [{}]", words.join(", "));
        Problem::new(at, format!("`{first}` is a single argument")).hint(hint)
    })
}

fn times(key: &str, program: &Program) -> Vec<Problem> {
    let mut problems = Vec::new();
    problems.extend(range(format!("{key}.at"), program.at, (0, MAX_TIME_NS), "use at most 30 days"));
    problems.extend(range(format!("{key}.time"), program.time, (1_000_000, MAX_TIME_NS), "use 1ms to 30 days"));
    if program.time.is_some() && program.stop.is_some() {
        let hint = "remove one: `time` limits a program that ends by itself, `stop` ends one that does not";
        problems.push(Problem::new(format!("{key}.time"), "`time` and `stop` exclude each other").hint(hint));
    }
    if let Some(Stop::At(stop)) = program.stop {
        let key = format!("{key}.stop");
        problems.extend(range(key.clone(), Some(stop), (0, MAX_TIME_NS), "use at most 30 days"));
        if stop.0.get() <= program.at.map_or(0, |at| at.0.get()) {
            let hint = "times count from the start of the scenario: use a time after `at`";
            problems.push(Problem::new(key, format!("{stop} is not after the start")).hint(hint));
        }
    }
    problems
}

fn paths(key: &str, program: &Program) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (name, paths) in [("keep", &program.keep), ("writable", &program.writable)] {
        let at = format!("{key}.{name}");
        if paths.len() > MAX_PATHS {
            let message = format!("{} paths are too many, the maximum is {MAX_PATHS}", paths.len());
            problems.push(Problem::new(at.clone(), message));
        }
        if let Some(path) = paths.iter().find(|path| !is_absolute(path)) {
            let hint = "write an absolute path, such as /tmp/result.json";
            problems.push(Problem::new(at, format!("`{path}` is not an absolute path")).hint(hint));
        }
    }
    let essential = |path: &&String| {
        let mut steps = path.split('/').filter(|step| !step.is_empty());
        let first = steps.next().unwrap_or("");
        GUEST.contains(&first) || (ESSENTIAL.contains(&first) && steps.next().is_none())
    };
    if let Some(path) = program.writable.iter().find(essential) {
        let hint = "name a directory that the program writes to, such as /var/lib/nginx";
        let message = format!("`{path}` cannot be replaced by an empty directory");
        problems.push(Problem::new(format!("{key}.writable"), message).hint(hint));
    }
    problems
}

fn is_absolute(path: &str) -> bool {
    let up = path.split('/').any(|step| step == "..");
    path.starts_with('/') && path.len() > 1 && !path.contains('\0') && !up
}
