//! Tests: what verdicts and warnings advise can be pasted, and a summary is short.

use std::path::{Path, PathBuf};
use std::process::Command;

use clap::CommandFactory as _;
use landspeed_diagnose::{diagnose, diagnose_lab, warnings};
use landspeed_model::{Direction, LabDocument, RunDocument, Verdict, Warning};

use crate::run::judge;
use crate::{Cli, manual, text};

fn diagnose_crate() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../diagnose")
}

fn files(folder: &str, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![diagnose_crate().join(folder)];
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

fn recorded() -> Vec<RunDocument> {
    files("fixtures/real", "json").iter().map(|path| read(path)).collect()
}

/// Every recorded run as two hosts, as the sender alone and over loopback would judge it.
fn texts() -> Vec<String> {
    let mut verdicts: Vec<Verdict> = Vec::new();
    let mut warned: Vec<Warning> = Vec::new();
    let labs: Vec<LabDocument> = files("fixtures/lab", "json").iter().map(|path| read(path)).collect();
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

/// The string literals of the crate that hold backticks: texts that no recorded run has.
fn literals() -> Vec<String> {
    let code = files("src", "rs").into_iter().map(|path| std::fs::read_to_string(path).expect("a source"));
    let plain = |code: String| {
        let lines: Vec<&str> = code.lines().map(str::trim).filter(|line| !line.starts_with("//")).collect();
        lines.join(" ").replace("\\ ", "")
    };
    code.map(plain).collect()
}

/// What an option is written as, and its value where one follows.
fn options<'a>(text: &'a str) -> Vec<Vec<String>> {
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
        // A unit after a blank would be a separate argument.
        let unit = words.get(at + 2).filter(|_| value.is_some()).map(bare);
        let unit = unit.filter(|unit| unit.ends_with("b/s") || unit.ends_with("iB") || unit.ends_with("ms"));
        found.push([Some(name), value, unit].into_iter().flatten().map(str::to_owned).collect());
    }
    found
}

/// Parses a command line as the program does; an option without its value only has to exist.
fn parse(words: &[String]) -> Result<(), String> {
    match Cli::command().try_get_matches_from(words) {
        Ok(_) => Ok(()),
        Err(error)
            if error.kind() == clap::error::ErrorKind::InvalidValue
                && error.to_string().contains("a value is required") =>
        {
            Ok(())
        }
        Err(error) => Err(format!("{words:?}: {error}")),
    }
}

fn of_run(options: &[String]) -> Vec<String> {
    ["landspeed", "run", "host.example"].map(str::to_owned).into_iter().chain(options.iter().cloned()).collect()
}

/// `Err` where something in the text cannot be pasted.
fn check(text: &str) -> Result<usize, String> {
    let mut checked = 0;
    for (at, part) in text.split('`').enumerate() {
        if at.is_multiple_of(2) {
            for option in options(part) {
                parse(&of_run(&option)).map_err(|why| format!("{text}\n{why}"))?;
                checked += 1;
            }
            continue;
        }
        if part.contains('{') {
            continue;
        }
        let words: Vec<String> = part.split_whitespace().map(str::to_owned).collect();
        match words.first().map(String::as_str) {
            Some("landspeed") => parse(&words)?,
            Some(first) if first.starts_with('-') => parse(&of_run(&words))?,
            _ => {
                let shell = Command::new("bash").args(["-n", "-c", part]).output().map_err(|why| why.to_string())?;
                if !shell.status.success() {
                    return Err(format!("{text}\n{part}: {}", String::from_utf8_lossy(&shell.stderr)));
                }
            }
        }
        checked += 1;
    }
    Ok(checked)
}

#[test]
fn every_option_and_command_in_advice_can_be_pasted() {
    let texts = texts();
    let checked: usize = texts.iter().map(|text| check(text).unwrap_or_else(|why| panic!("{why}"))).sum();
    assert!(checked > 20, "only {checked} options and commands in {} texts", texts.len());
}

#[test]
fn commands_in_the_source_of_advice_can_be_pasted() {
    let mut checked = 0;
    for code in literals() {
        let marked: Vec<&str> = code.split('`').skip(1).step_by(2).collect();
        for part in marked.into_iter().filter(|part| part.len() < 100 && !part.contains('{')) {
            checked += check(&format!("`{part}`")).unwrap_or_else(|why| panic!("{why}"));
        }
    }
    assert!(checked > 10, "only {checked} commands");
}

#[test]
fn advice_that_cannot_be_pasted_is_noticed() {
    for bad in ["send at --rate 11.8 Gb/s", "use `--rate 11.8 Gb/s`", "use --no-such-option", "run `sysctl -w 'x`"] {
        let found = check(bad);
        assert!(found.is_err(), "{bad}: {found:?}");
    }
}

/// The words that a shell hands to `landspeed` when it runs `line`.
fn words(line: &str) -> Vec<String> {
    // Where the output goes is of no interest, and nothing is to be written.
    let line = line.split(" > ").next().unwrap_or(line);
    let script = format!("exec 3>&1; set -f; landspeed() {{ printf '%s\\0' landspeed \"$@\" >&3; exit; }}; {line}");
    let elsewhere = tempfile::tempdir().expect("a temporary directory");
    let mut bash = Command::new("bash");
    bash.args(["-c", &script]).current_dir(elsewhere.path()).stdin(std::process::Stdio::null());
    let output = bash.output().expect("bash");
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("text");
    text.split_terminator('\0').map(str::to_owned).collect()
}

#[test]
fn every_example_in_the_help_is_accepted() {
    fn visit(command: &clap::Command, checked: &mut usize) {
        for example in manual::examples::read(command).0 {
            if example.line.starts_with("landspeed") {
                parse(&words(&example.line)).unwrap_or_else(|why| panic!("{}: {why}", example.line));
            } else {
                let shell = Command::new("bash").args(["-n", "-c", &example.line]).status().expect("bash");
                assert!(shell.success(), "{}", example.line);
            }
            *checked += 1;
        }
        command.get_subcommands().for_each(|command| visit(command, checked));
    }
    let mut checked = 0;
    visit(&Cli::command(), &mut checked);
    assert!(checked > 40, "only {checked} examples");
}

#[test]
fn every_command_in_golden_output_is_accepted() {
    let golden = landspeed_testkit::golden::path("");
    let mut files: Vec<PathBuf> = Vec::new();
    for folder in [golden.clone(), golden.join("check")] {
        let entries =
            std::fs::read_dir(&folder).expect("the golden files").map(|entry| entry.expect("an entry").path());
        files.extend(entries.filter(|path| path.extension().is_some_and(|found| found == "txt")));
    }
    let mut checked = 0;
    for path in files {
        let text = std::fs::read_to_string(&path).expect("a golden file");
        // `$ landspeed …` is what was run, right or wrong; what follows in its lines is what landspeed printed.
        for line in text.lines().filter(|line| !line.starts_with(['$', '#'])) {
            let quoted = line.split('\'').skip(1).step_by(2).filter(|part| part.starts_with("landspeed "));
            let quoted: Vec<&str> = quoted.filter(|part| !part.contains('[') && !part.contains('…')).collect();
            let fix = line.find("landspeed tune plan --").filter(|_| quoted.is_empty()).map(|at| &line[at..]);
            for command in quoted.into_iter().chain(fix) {
                parse(&words(command)).unwrap_or_else(|why| panic!("{}: {why}", path.display()));
                checked += 1;
            }
        }
    }
    assert!(checked > 30, "only {checked} commands");
}

#[test]
fn a_summary_has_eight_lines_at_most() {
    for mut document in recorded() {
        judge(&mut document);
        for width in [80, 160] {
            let summary = text::summary_at(&document, width);
            let lines: Vec<&str> = summary.lines().collect();
            assert!(lines.len() <= 8, "{summary}");
            assert!(lines.iter().all(|line| line.chars().count() <= width), "{summary}");
            assert!(!summary.contains('`'), "{summary}");
        }
    }
}
