//! The texts of advice: verdicts and warnings of all recorded documents, and the source code that contains them.
//! `crates/landspeed/tests/advice` includes this file too, to run the commands.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use landspeed_diagnose::{diagnose, diagnose_lab, warnings};
use landspeed_model::{Direction, LabDocument, RunDocument, Verdict, Warning};

/// Programs used by commands in advice.
pub const PROGRAMS: &[&str] = &[
    "cpupower",
    "echo",
    "ethtool",
    "ip",
    "landspeed",
    "modprobe",
    "nft",
    "sudo",
    "sysctl",
    "systemctl",
    "tc",
    "tuned-adm",
];

/// Crates that contain user-facing texts.
const TEXT_CRATES: &[&str] =
    &["capture", "checks", "cli", "diagnose", "flow", "host", "iperf3", "lab", "netlink", "tap", "tune"];

/// Returns all files below a folder of `crates` with this extension.
fn files(folder: &str, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|found| found == ending) {
                found.push(path);
            }
        }
    }
    assert!(!found.is_empty(), "{folder} has no .{ending}");
    found
}

fn read<T: serde::de::DeserializeOwned>(path: &Path) -> T {
    serde_json::from_str(&std::fs::read_to_string(path).expect("a file")).expect("a document")
}

pub fn recorded() -> Vec<RunDocument> {
    files("diagnose/fixtures/real", "json").iter().map(|path| read(path)).collect()
}

/// Returns the texts of verdicts and warnings for every recorded run: with both hosts, and with the sender only.
pub fn texts() -> Vec<String> {
    let mut verdicts: Vec<Verdict> = Vec::new();
    let mut warned: Vec<Warning> = Vec::new();
    let labs: Vec<LabDocument> = files("diagnose/fixtures/lab", "json").iter().map(|path| read(path)).collect();
    let mut runs = recorded();
    for lab in &labs {
        verdicts.extend(lab.flows.iter().filter_map(|flow| diagnose_lab(lab, flow, Direction::Upload)));
        runs.extend(lab.flows.iter().filter_map(|flow| flow.run.clone()));
    }
    for mut run in runs {
        for one_ended in [false, true] {
            if one_ended {
                run.streams.iter_mut().for_each(|stream| stream.receiver = None);
            }
            for direction in [Direction::Upload, Direction::Download] {
                verdicts.push(diagnose(&run, direction));
            }
            warned.extend(warnings(&run));
        }
    }
    let texts = verdicts.into_iter().flat_map(|verdict| [verdict.next_step, verdict.summary]);
    texts.chain(warned.into_iter().map(|warning| warning.message)).collect()
}

/// Returns the source files of a crate without comments, each joined into one line so that no text is split.
pub fn source(name: &str) -> Vec<String> {
    let code = files(&format!("{name}/src"), "rs").into_iter();
    let code = code.filter(|path| !path.ends_with("advice.rs") || name != "cli");
    let plain = |path: PathBuf| {
        let code = std::fs::read_to_string(path).expect("a source");
        let lines: Vec<&str> = code.lines().map(str::trim).filter(|line| !line.starts_with("//")).collect();
        lines.join(" ").replace("\\ ", "")
    };
    code.map(plain).collect()
}

/// Returns the commands in backticks in the source of all crates with user-facing texts, with `{…}` placeholders.
pub fn commands() -> BTreeSet<String> {
    let marked = |code: String| code.split('`').map(str::to_owned).collect::<Vec<_>>();
    let is_command = |text: &String| {
        let mut words = text.split(' ');
        words.next().is_some_and(|word| PROGRAMS.contains(&word)) && words.next().is_some() && text.len() < 100
    };
    TEXT_CRATES.iter().flat_map(|name| source(name)).flat_map(marked).filter(is_command).collect()
}

/// Returns the options in a text, each with its value if one follows.
pub fn options<'a>(text: &'a str) -> Vec<Vec<String>> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let mut found = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let name = word.trim_start_matches('(').trim_end_matches([',', ';', ':', '.', ')']);
        let is_option = name.starts_with("--") || (name.len() == 2 && name.starts_with('-'));
        if !is_option || !name.ends_with(|c: char| c.is_ascii_alphabetic()) {
            continue;
        }
        let bare = |word: &&'a str| word.trim_end_matches([',', ';', ':', '.', ')']);
        let value = words.get(at + 1).filter(|_| word.ends_with(name)).map(bare);
        let value = value.filter(|value| value.starts_with(|c: char| c.is_ascii_digit()));
        // A unit separated by a space would be a separate argument.
        let unit = words.get(at + 2).filter(|_| value.is_some()).map(bare);
        let unit = unit.filter(|unit| unit.ends_with("b/s") || unit.ends_with("iB") || unit.ends_with("ms"));
        found.push([Some(name), value, unit].into_iter().flatten().map(str::to_owned).collect());
    }
    found
}
