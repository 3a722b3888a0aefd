//! A page for each command, from the definition that its help and its manual page are made of.

use std::fmt::Write as _;

use clap::{Arg, Command, CommandFactory as _};

use super::{ReferencePage, cell, code_cell};
use crate::Cli;
use crate::manual::page::{EXIT_STATUS, environment, exit_status, name, visible};

pub fn pages() -> Vec<ReferencePage> {
    let mut program = Cli::command().disable_help_subcommand(true);
    program.build();
    let mut pages = Vec::new();
    collect(&program, &mut pages);
    pages
}

fn collect(command: &Command, pages: &mut Vec<ReferencePage>) {
    pages.push((format!("commands/{}.md", name(command)), page(command)));
    for below in visible(command) {
        collect(below, pages);
    }
}

fn call(command: &Command) -> &str {
    command.get_bin_name().unwrap_or_else(|| command.get_name())
}

fn page(command: &Command) -> String {
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let long = command.get_long_about().map_or_else(|| format!("{about}."), ToString::to_string);
    let usage = command.clone().render_usage().to_string();
    let usage: Vec<&str> = usage.trim_start_matches("Usage:").lines().map(str::trim).collect();
    let mut page = format!("# {}\n\n{long}\n\n```text\n{}\n```\n", call(command), usage.join("\n"));
    if command.has_subcommands() {
        page.push_str("\n## Commands\n\n| command | |\n|---|---|\n");
        for below in visible(command) {
            let about = below.get_about().map(ToString::to_string).unwrap_or_default();
            let _ = writeln!(page, "| [`{}`]({}.md) | {} |", call(below), name(below), cell(&about));
        }
    }
    let shown: Vec<&Arg> = command.get_arguments().filter(|arg| !arg.is_hide_set()).collect();
    let mut headings: Vec<&str> = Vec::new();
    for arg in &shown {
        let heading = heading(arg);
        if !headings.contains(&heading) {
            headings.push(heading);
        }
    }
    // Arguments first, as in the help.
    headings.sort_by_key(|heading| match *heading {
        "Arguments" => 0,
        "Options" => 1,
        _ => 2,
    });
    for wanted in headings {
        let _ = write!(page, "\n## {wanted}\n\n| option | meaning |\n|---|---|\n");
        for arg in shown.iter().filter(|arg| heading(arg) == wanted) {
            let _ = writeln!(page, "| {} | {} |", spelled(arg), cell(&meaning(arg)));
        }
    }
    if let Some(help) = command.get_after_long_help().or_else(|| command.get_after_help()) {
        page.push_str(&after_help(&help.to_string()));
    }
    page.push_str("\n## Exit status\n\n| status | meaning |\n|---|---|\n");
    let statuses =
        exit_status(command).unwrap_or_else(|| EXIT_STATUS.map(|(status, is)| (status.into(), is.into())).into());
    for (status, meaning) in statuses {
        let _ = writeln!(page, "| `{status}` | {} |", cell(&meaning));
    }
    let variables: Vec<_> = environment(command).collect();
    if !variables.is_empty() {
        page.push_str("\n## Environment\n\n| variable | meaning |\n|---|---|\n");
        for (variable, meaning) in variables {
            let _ = writeln!(page, "| `{variable}` | {} |", cell(meaning));
        }
    }
    page
}

fn heading(arg: &Arg) -> &str {
    arg.get_help_heading().unwrap_or(if arg.is_positional() { "Arguments" } else { "Options" })
}

/// The ways to write an argument: `-t`, `--time <SECONDS>`.
fn spelled(arg: &Arg) -> String {
    let long = arg.to_string();
    let short = arg.get_short().map(|short| format!("-{short}"));
    let others = arg.get_visible_aliases().into_iter().flatten().map(|alias| format!("--{alias}"));
    // An option without a long name is written as the short one already.
    let short = short.filter(|short| !long.starts_with(&**short) || long.starts_with("--"));
    let all: Vec<String> = short.into_iter().chain([long]).chain(others).map(|word| code_cell(&word)).collect();
    all.join(", ")
}

/// The help of an argument, with its default and its values.
fn meaning(arg: &Arg) -> String {
    let help = arg.get_long_help().or_else(|| arg.get_help()).map(ToString::to_string).unwrap_or_default();
    let mut parts = vec![help];
    let takes_value = arg.get_action().takes_values();
    let defaults: Vec<String> = arg.get_default_values().iter().map(|value| value.display().to_string()).collect();
    if takes_value && !arg.is_hide_default_value_set() && !defaults.is_empty() {
        parts.push(format!("Default: `{}`.", defaults.join(" ")));
    }
    let values = arg.get_possible_values();
    let values: Vec<String> = values
        .iter()
        .filter(|value| takes_value && !value.is_hide_set())
        .map(|value| match value.get_help() {
            Some(help) => format!("`{}` ({help})", value.get_name()),
            None => format!("`{}`", value.get_name()),
        })
        .collect();
    if !values.is_empty() {
        parts.push(format!("Values: {}.", values.join(", ")));
    }
    let ends =
        |part: String| if part.ends_with(['.', ':', '?']) || part.is_empty() { part } else { format!("{part}.") };
    parts.into_iter().map(ends).collect::<Vec<_>>().join(" ").trim().to_owned()
}

/// The text after the options: `Examples:` and other indented parts as code, the rest as paragraphs, without the exit
/// status.
fn after_help(help: &str) -> String {
    let mut page = String::new();
    for block in help.split("\n\n") {
        let text = block.split("Exit status:").next().unwrap_or_default().trim_end();
        if text.is_empty() {
            continue;
        }
        match text.strip_prefix("Examples:\n") {
            Some(examples) => {
                let _ = write!(page, "\n## Examples\n\n```text\n{}\n```\n", unindented(examples));
            }
            None if text.lines().skip(1).any(|line| line.starts_with("  ")) => {
                let _ = write!(page, "\n```text\n{text}\n```\n");
            }
            None => {
                let _ = write!(page, "\n{text}\n");
            }
        }
    }
    page
}

fn unindented(text: &str) -> String {
    text.lines().map(|line| line.strip_prefix("  ").unwrap_or(line)).collect::<Vec<_>>().join("\n")
}
