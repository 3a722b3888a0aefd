//! Persists sysctls in one file of sysctl.d(5), unless a later file overrides it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use landspeed_model::Target;
use landspeed_quote::shell_word;

use super::plan::{PersistPlan, PersistedSetting, banner, read};
use super::tuned::Tuned;
use crate::discipline::QdiscRequest;
use crate::error::TuneError;

const NAME: &str = "90-landspeed.conf";
/// Directories in order of precedence: of two files with the same name the first is used (sysctl.d(5)).
const DIRECTORIES: &[&str] =
    &["etc/sysctl.d", "run/sysctl.d", "usr/local/lib/sysctl.d", "usr/lib/sysctl.d", "lib/sysctl.d"];

pub(super) fn plan(
    kept: &[PersistedSetting<'_>],
    root: &Path,
    tuned: Option<&mut Tuned>,
    plan: &mut PersistPlan,
) -> Result<(), TuneError> {
    let mut wanted: BTreeMap<String, String> = BTreeMap::new();
    for setting in kept {
        match setting.target {
            Target::Sysctl { name } => {
                wanted.insert(plain(name), setting.requested.to_owned());
            }
            Target::Qdisc { interface } => qdisc(interface, setting.requested, &mut wanted, plan),
            _ => {}
        }
    }
    if wanted.is_empty() {
        return Ok(());
    }
    if let Some(tuned) = tuned
        && !tuned.reapplies
    {
        // On this host tuned's profile overrides sysctl.d.
        for (name, value) in wanted {
            if let Some(why) = tuned.unsupported_reason() {
                plan.hand(&name, format!("{why}; the value is {value}"));
            } else {
                plan.covered.push(name.clone());
                tuned.set("sysctl", name, value);
            }
        }
        return Ok(());
    }
    let ours = root.join("etc/sysctl.d").join(NAME);
    let mut lines: BTreeMap<String, String> = read(&ours)?
        .map(|text| assignments(&text).map(|(_, name, value)| (name, value)).collect())
        .unwrap_or_default();
    let later = later_files(root);
    for (name, value) in wanted {
        let winner = later.iter().find(|line| line.name == name && !same(&line.value, &value));
        if let Some(winner) = winner {
            plan.hand(
                &name,
                format!(
                    "{}, line {}, sets it to {} and comes after {NAME}, so it would win at boot: change it there",
                    winner.path.display(),
                    winner.line,
                    winner.value
                ),
            );
            continue;
        }
        plan.covered.push(name.clone());
        lines.insert(name, value);
    }
    if lines.is_empty() || plan.covered.is_empty() {
        return Ok(());
    }
    let mut text = banner("sysctls");
    for (name, value) in lines {
        let _ = writeln!(text, "{name} = {value}");
    }
    plan.file(root, &format!("etc/sysctl.d/{NAME}"), text)
}

/// Persists a qdisc kind without options as the default of all interfaces; no boot file sets options.
fn qdisc(interface: &str, requested: &str, wanted: &mut BTreeMap<String, String>, plan: &mut PersistPlan) {
    let kind = QdiscRequest::parse(requested).ok().and_then(|wanted| wanted.kind());
    match kind {
        Some(kind) if requested.split_whitespace().count() == 1 => {
            wanted.insert("net.core.default_qdisc".into(), kind.to_owned());
            plan.notes.push(format!(
                "{kind} on {interface} is kept as net.core.default_qdisc, which every interface gets that comes up afterwards"
            ));
        }
        Some(_) => plan.hand(
            &format!("{interface} qdisc"),
            format!(
                "no boot program sets the options of a queueing discipline on every queue. Write a service that runs, once \
                 {interface} is up, for each queue N: tc qdisc replace dev {} parent HANDLE:N {requested}",
                shell_word(interface)
            ),
        ),
        None => {}
    }
}

/// Converts a name to dots as separators; dots of an interface name become slashes (sysctl.d(5)).
fn plain(name: &str) -> String {
    if name.find(['.', '/']).is_some_and(|at| &name[at..=at] == "/") {
        name.chars()
            .map(|c| {
                if c == '/' {
                    '.'
                } else if c == '.' {
                    '/'
                } else {
                    c
                }
            })
            .collect()
    } else {
        name.to_owned()
    }
}

fn same(a: &str, b: &str) -> bool {
    a.split_whitespace().eq(b.split_whitespace())
}

/// Parses the assignments of a file: line number from 1, name with dots, value.
fn assignments(text: &str) -> impl Iterator<Item = (usize, String, String)> + '_ {
    text.lines().enumerate().filter_map(|(index, line)| {
        let line = line.trim();
        if line.starts_with(['#', ';']) {
            return None;
        }
        let (name, value) = line.split_once('=')?;
        Some((index + 1, plain(name.trim().trim_start_matches('-')), value.trim().to_owned()))
    })
}

struct Line {
    path: PathBuf,
    line: usize,
    name: String,
    value: String,
}

/// Assignments applied after our file: in files that sort later in any directory, and in
/// `/etc/sysctl.conf`, which `sysctl --system` reads last.
fn later_files(root: &Path) -> Vec<Line> {
    let mut files: BTreeMap<String, PathBuf> = BTreeMap::new();
    for directory in DIRECTORIES {
        for entry in std::fs::read_dir(root.join(directory)).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let is_file = Path::new(&name).extension().is_some_and(|extension| extension == "conf");
            if is_file && name.as_str() > NAME {
                files.entry(name).or_insert_with(|| entry.path());
            }
        }
    }
    let mut paths: Vec<PathBuf> = files.into_values().collect();
    paths.push(root.join("etc/sysctl.conf"));
    let mut lines = Vec::new();
    for path in paths {
        // An unreadable file is not applied at boot either.
        let Ok(Some(text)) = read(&path) else { continue };
        lines.extend(assignments(&text).map(|(line, name, value)| Line { path: path.clone(), line, name, value }));
    }
    lines
}
