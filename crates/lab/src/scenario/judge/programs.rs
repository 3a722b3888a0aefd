//! Programs: hosts, command lines, times, files.

use std::collections::BTreeMap;

use landspeed_problems::{Problem, suggest_or_list};

use super::{Judgement, MAX_TIME_NS};
use crate::scenario::{Program, Scenario, Stop};

/// Maximum number of programs.
const MAX_PROGRAMS: usize = 64;
/// Maximum number of files kept, and of writable directories, of one program.
const MAX_PATHS: usize = 16;
/// Minimum and maximum of `real-time-limit`, nanoseconds.
const REAL_TIME_NS: (u64, u64) = (1_000_000_000, 7 * 86_400_000_000_000);

pub(super) fn judge(scenario: &Scenario, judgement: &mut Judgement) {
    let (least, most) = REAL_TIME_NS;
    judgement.time("real-time-limit", scenario.real_time_limit, least, most, "use 1s to 7 days");
    if scenario.real_time_limit.is_some() && scenario.program.is_empty() {
        judgement.refuse_with(
            "real-time-limit",
            "`real-time-limit` has no effect without programs",
            "remove it, or add a [[program]]",
        );
    }
    if scenario.program.len() > MAX_PROGRAMS {
        judgement.refuse(
            "program",
            format!("{} programs are too many, the maximum is {MAX_PROGRAMS}", scenario.program.len()),
        );
    }
    let mut names: BTreeMap<&str, usize> = BTreeMap::new();
    for (i, program) in scenario.program.iter().enumerate() {
        let key = format!("program.{i}");
        if let Some(name) = &program.name {
            let at = format!("{key}.name");
            if name.trim().is_empty() || name.len() > 64 || name.chars().any(char::is_control) {
                judgement.refuse_with(at, "invalid program name", "use 1 to 64 characters on one line");
            } else if let Some(first) = names.insert(name, i) {
                let message = format!("program {first} has the name `{name}`");
                judgement.refuse_with(at, message, "use a different name: results are listed by name");
            }
        }
        host(&key, program, scenario, judgement);
        command(&key, program, judgement);
        times(&key, program, judgement);
        paths(&key, program, judgement);
    }
    if scenario.flow.is_empty()
        && !scenario.program.is_empty()
        && !scenario.program.iter().any(|program| !matches!(program.stop, Some(Stop::With(_))))
    {
        judgement.refuse_with(
            "program.0.stop",
            "no program and no flow ends the scenario",
            "set a time, such as stop = \"10s\", or remove `stop` from a program that ends by itself",
        );
    }
}

fn host(key: &str, program: &Program, scenario: &Scenario, judgement: &mut Judgement) {
    let name = &program.host;
    let at = format!("{key}.host");
    if scenario.switch.contains_key(name) {
        judgement.refuse_with(at, format!("`{name}` is a switch"), "use a host: programs run on hosts");
    } else if !scenario.host.contains_key(name) {
        let known: Vec<&str> = scenario.host.keys().map(String::as_str).collect();
        let hint = suggest_or_list(name, known);
        judgement.add(Problem::new(at, format!("no such host: `{name}`")).maybe_hint(hint));
    }
}

fn command(key: &str, program: &Program, judgement: &mut Judgement) {
    let at = format!("{key}.run");
    if program.run.first().is_none_or(|word| word.trim().is_empty()) {
        judgement.refuse_with(at, "the command is empty", "name the program: run = [\"iperf3\", \"-s\"]");
    } else if program.run.iter().any(|word| word.contains('\0')) {
        judgement.refuse_with(at, "an argument contains a NUL character", "remove it");
    } else if program.run.len() == 1 && program.run[0].contains(' ') && !program.run[0].contains('/') {
        let words: Vec<String> = program.run[0].split_whitespace().map(|word| format!("\"{word}\"")).collect();
        judgement.refuse_with(
            at,
            format!("`{}` is one word", program.run[0]),
            format!("write each argument as an element: run = [{}]", words.join(", ")),
        );
    }
}

fn times(key: &str, program: &Program, judgement: &mut Judgement) {
    judgement.time(format!("{key}.at"), program.at, 0, MAX_TIME_NS, "use at most 30 days");
    judgement.time(format!("{key}.time"), program.time, 1_000_000, MAX_TIME_NS, "use 1ms to 30 days");
    if program.time.is_some() && program.stop.is_some() {
        judgement.refuse_with(
            format!("{key}.time"),
            "`time` and `stop` exclude each other",
            "remove one: `time` limits a program that ends by itself, `stop` ends one that does not",
        );
    }
    if let Some(Stop::At(stop)) = program.stop {
        let at = program.at.map_or(0, |at| at.0.get());
        judgement.time(format!("{key}.stop"), Some(stop), 0, MAX_TIME_NS, "use at most 30 days");
        if stop.0.get() <= at {
            judgement.refuse_with(
                format!("{key}.stop"),
                format!("{stop} is not after the start"),
                "times count from the start of the scenario: use a time after `at`",
            );
        }
    }
}

fn paths(key: &str, program: &Program, judgement: &mut Judgement) {
    for (name, paths) in [("keep", &program.keep), ("writable", &program.writable)] {
        let at = format!("{key}.{name}");
        if paths.len() > MAX_PATHS {
            judgement.refuse(at.clone(), format!("{} paths are too many, the maximum is {MAX_PATHS}", paths.len()));
        }
        let sound = |path: &String| {
            path.starts_with('/')
                && path.len() > 1
                && !path.contains('\0')
                && !path.split('/').any(|step| step == "..")
        };
        if let Some(path) = paths.iter().find(|path| !sound(path)) {
            judgement.refuse_with(
                at,
                format!("`{path}` is not an absolute path"),
                "write the whole path, such as /tmp/result.json",
            );
        }
    }
    // A mount over these would hide the programs themselves, or the guest's own mounts.
    const ESSENTIAL: [&str; 10] = ["bin", "dev", "etc", "lib", "lib64", "proc", "sbin", "sys", "tmp", "usr"];
    let essential = |path: &&String| {
        let mut steps = path.split('/').filter(|step| !step.is_empty());
        let first = steps.next().unwrap_or("");
        ["proc", "sys", "dev"].contains(&first) || (ESSENTIAL.contains(&first) && steps.next().is_none())
    };
    if let Some(path) = program.writable.iter().find(essential) {
        judgement.refuse_with(
            format!("{key}.writable"),
            format!("`{path}` cannot be replaced by an empty directory"),
            "name a directory that the program writes to, such as /var/lib/nginx",
        );
    }
}
