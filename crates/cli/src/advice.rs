//! Tests: commands and options in verdicts and warnings parse; summaries stay short.

mod texts;

use std::path::PathBuf;
use std::process::Command;

use clap::CommandFactory as _;
use clap::error::ErrorKind;

use self::texts::{commands, options, recorded, source, texts};
use crate::run::judge;
use crate::{Cli, manual, text};

/// Returns the text in backticks in the source of `diagnose`, including texts that no recorded run contains.
fn literals() -> Vec<String> {
    let marked = |code: String| code.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>();
    source("diagnose").into_iter().flat_map(marked).collect()
}

/// Parses a command line as the program does; an option may lack its value.
fn parse(words: &[String]) -> Result<(), String> {
    match Cli::command().try_get_matches_from(words) {
        Ok(_) => Ok(()),
        Err(error) if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) => Ok(()),
        Err(error)
            if error.kind() == ErrorKind::InvalidValue && error.to_string().contains("a value is required") =>
        {
            Ok(())
        }
        Err(error) => Err(format!("{words:?}: {error}")),
    }
}

fn of_run(options: &[String]) -> Vec<String> {
    ["landspeed", "run", "host.example"].map(str::to_owned).into_iter().chain(options.iter().cloned()).collect()
}

/// Returns the number of commands and options in the text; an error if one of them does not parse.
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
    let all = literals().into_iter().filter(|part| part.len() < 100).chain(commands());
    let mut checked = 0;
    // Skipped: text with `{…}` placeholders, and `landspeed run --iperf3`, which the help prints without a host.
    for part in all.filter(|part| !part.contains('{') && part != "landspeed run --iperf3") {
        checked += check(&format!("`{part}`")).unwrap_or_else(|why| panic!("{why}"));
    }
    assert!(checked > 40, "only {checked} commands");
}

#[test]
fn invalid_commands_in_advice_are_detected() {
    for bad in ["send at --rate 11.8 Gb/s", "use `--rate 11.8 Gb/s`", "use --no-such-option", "run `sysctl -w 'x`"] {
        let found = check(bad);
        assert!(found.is_err(), "{bad}: {found:?}");
    }
}

/// Returns the argument lists of the `landspeed` commands in a shell line; those of a pipe in any order.
fn commands_of(line: &str) -> Vec<Vec<String>> {
    // The redirection is dropped so that no file is written.
    let line = line.split(" > ").next().unwrap_or(line);
    let script =
        format!("exec 3>&1; set -f; landspeed() {{ printf '%s\\0' landspeed \"$@\" $'\\x1e' >&3; exit; }}; {line}");
    let elsewhere = tempfile::tempdir().expect("a temporary directory");
    let mut bash = Command::new("bash");
    bash.args(["-c", &script]).current_dir(elsewhere.path()).stdin(std::process::Stdio::null());
    let output = bash.output().expect("bash");
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("text");
    let commands = text.split_terminator("\x1e\0");
    commands.map(|words| words.split_terminator('\0').map(str::to_owned).collect()).collect()
}

/// Parses every `landspeed` command of a shell line.
fn parse_line(line: &str) -> Result<(), String> {
    let commands = commands_of(line);
    if commands.is_empty() {
        Err("no command".to_owned())
    } else {
        commands.iter().try_for_each(|words| parse(words))
    }
}

#[test]
fn every_example_in_the_help_is_accepted() {
    fn visit(command: &clap::Command, checked: &mut usize) {
        for example in manual::examples::read(command).0 {
            if example.line.starts_with("landspeed") {
                parse_line(&example.line).unwrap_or_else(|why| panic!("{}: {why}", example.line));
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

/// Returns the commands of landspeed on a page: in blocks, without prompt and remark; and in the text, where one may lack
/// arguments.
fn commands_of_page(page: &str) -> Vec<(String, bool)> {
    let mut commands = Vec::new();
    for (index, part) in page.split("```").enumerate() {
        if index.is_multiple_of(2) {
            commands.extend(part.split('`').skip(1).step_by(2).map(|code| (code.replace('\n', " "), true)));
            continue;
        }
        for line in part.lines() {
            let line = line.split_once("$ ").filter(|(host, _)| !host.contains(' ')).map_or(line, |(_, line)| line);
            let line = line.strip_prefix("sudo ").unwrap_or(line);
            let line = line.split("  ").next().unwrap_or(line).split(" # ").next().unwrap_or(line);
            commands.push((line.to_owned(), false));
        }
    }
    // Not forms of commands, and not the first lines of long ones.
    let is_whole = |line: &str| !line.contains(['…', '{', '[', '\\']) && !line.contains("bash|zsh");
    commands.retain(|(line, _)| line.starts_with("landspeed ") && is_whole(line));
    commands
}

#[test]
fn every_command_in_pages_of_use_is_accepted() {
    let docs = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let (mut checked, mut wrong) = (0, Vec::new());
    for folder in [docs.clone(), docs.join("recipes"), docs.join("causes")] {
        let files = std::fs::read_dir(&folder).expect("pages").map(|entry| entry.expect("an entry").path());
        for path in files.filter(|path| path.extension().is_some_and(|found| found == "md")) {
            let page = std::fs::read_to_string(&path).expect("a page");
            for (command, in_text) in commands_of_page(&page) {
                let lacks = |why: &str| {
                    ["required arguments were not", "\nCommands:\n"].iter().any(|lacking| why.contains(lacking))
                };
                if let Err(why) = parse_line(&command)
                    && !(in_text && lacks(&why))
                {
                    wrong.push(format!("{}: {command}: {why}", path.display()));
                }
                checked += 1;
            }
        }
    }
    assert!(checked > 200 && wrong.is_empty(), "{} of {checked}\n{}", wrong.len(), wrong.join("\n"));
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
        // Lines that begin with `$` are the commands that were run, which may be invalid; quoted commands in the other
        // lines are landspeed's output.
        for line in text.lines().filter(|line| !line.starts_with(['$', '#'])) {
            let quoted = line.split('\'').skip(1).step_by(2).filter(|part| part.starts_with("landspeed "));
            let quoted: Vec<&str> = quoted.filter(|part| !part.contains('[') && !part.contains('…')).collect();
            let fix = line.find("landspeed tune plan --").filter(|_| quoted.is_empty()).map(|at| &line[at..]);
            for command in quoted.into_iter().chain(fix) {
                parse_line(command).unwrap_or_else(|why| panic!("{}: {why}", path.display()));
                checked += 1;
            }
        }
    }
    assert!(checked > 30, "only {checked} commands");
}

#[test]
fn summaries_have_at_most_eight_lines() {
    for mut document in recorded() {
        judge(&mut document);
        let words = |width| {
            let summary = text::summary_at(&document, width);
            summary.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(words(80), words(160), "the width selects no content");
        for width in [80, 160] {
            let summary = text::summary_at(&document, width);
            let lines: Vec<&str> = summary.lines().collect();
            assert!(lines.len() <= 8, "{summary}");
            assert!(lines.iter().all(|line| line.chars().count() <= width), "{summary}");
            assert!(!summary.contains('`'), "{summary}");
        }
    }
}
