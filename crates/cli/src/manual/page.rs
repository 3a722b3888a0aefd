//! Generates a manual page from a command's definition.

use clap::Command;
use clap_mangen::Man;
use clap_mangen::roff::{Inline, Roff, bold, roman};

use super::examples::{self, Example};
use super::tidy;

/// Default exit status table.
pub const EXIT_STATUS: [(&str, &str); 3] = [
    ("0", "It did what was asked, and there is nothing to look at."),
    ("1", "It did what was asked, and found something that a careful person would look at."),
    ("2", "It could not do what was asked; standard error says why and what to try."),
];

/// Environment variables: page, name, description.
const ENVIRONMENT: [(&str, &str, &str); 5] = [
    ("landspeed", "NO_COLOR", "Set, and not empty: no colours."),
    ("landspeed-lab", "LANDSPEED_KERNELS", "Where the lab's kernels are kept, if not in the user's cache directory."),
    ("landspeed-lab", "LANDSPEED_LAB_TMP", "Where a guest's memory and results are while it runs."),
    ("landspeed-lab-kernel", "LANDSPEED_DEBIAN_MIRROR", "The mirror that kernel sources come from."),
    ("landspeed-man", "SOURCE_DATE_EPOCH", "Seconds since 1970: the date of the pages."),
];

/// Returns name and text of the page of every visible command.
pub fn all(program: Command, date: &str) -> Vec<(String, String)> {
    let mut program = program.disable_help_subcommand(true);
    program.build();
    let version = format!("landspeed {}", program.get_version().unwrap_or_default());
    let book = ManualPages { date, version };
    let mut pages = Vec::new();
    book.collect(&program, &[], &mut pages);
    pages
}

struct ManualPages<'a> {
    date: &'a str,
    version: String,
}

impl ManualPages<'_> {
    fn collect(&self, command: &Command, above: &[&Command], pages: &mut Vec<(String, String)>) {
        pages.push((name(command).to_owned(), self.page(command, above)));
        let above = [above, &[command]].concat();
        for below in visible(command) {
            self.collect(below, &above, pages);
        }
    }

    fn page(&self, command: &Command, above: &[&Command]) -> String {
        let (own, paragraphs) = examples::read(command);
        let mut head = Roff::new();
        head.control("TH", [&*name(command).to_uppercase(), "1", self.date, &self.version, "landspeed manual"]);
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        head.control("SH", ["NAME"]).text([roman(format!("{} - {about}", name(command)))]);
        head.control("SH", ["SYNOPSIS"]);
        synopsis(&mut head, command);
        head.control("SH", ["DESCRIPTION"]);
        let long = command.get_long_about().map_or_else(|| format!("{about}."), ToString::to_string);
        for (index, paragraph) in long.split("\n\n").chain(paragraphs.iter().map(String::as_str)).enumerate() {
            // The exit status has its own section.
            let Some(paragraph) = before_exit_status(paragraph) else { continue };
            if index > 0 {
                head.control("PP", []);
            }
            head.text([roman(paragraph)]);
        }

        let mut tail = Roff::new();
        if command.has_subcommands() {
            tail.control("SH", ["COMMANDS"]);
            for below in visible(command) {
                tail.control("TP", []).text([bold(name(below)), roman("(1)")]);
                tail.text([roman(below.get_about().map(ToString::to_string).unwrap_or_default())]);
            }
        }
        let shown = if own.is_empty() { parent_examples(command, above) } else { own };
        if !shown.is_empty() {
            tail.control("SH", ["EXAMPLES"]);
            for example in &shown {
                tail.control("TP", []).text([bold(&*example.line)]).text([roman(&*example.comment)]);
            }
        }
        tail.control("SH", ["EXIT STATUS"]);
        let statuses =
            exit_status(command).unwrap_or_else(|| EXIT_STATUS.map(|(status, is)| (status.into(), is.into())).into());
        for (status, meaning) in statuses {
            tail.control("TP", []).text([bold(status)]).text([roman(meaning)]);
        }
        let variables: Vec<_> = environment(command).collect();
        if !variables.is_empty() {
            tail.control("SH", ["ENVIRONMENT"]);
            for (variable, meaning) in variables {
                tail.control("TP", []).text([bold(variable)]).text([roman(meaning)]);
            }
        }
        tail.control("SH", ["SEE ALSO"]).text(see_also(command, above, &shown, &paragraphs));
        tidy::page(&head, &options(command), &tail)
    }
}

/// The name of a command's page: `landspeed-lab-run`.
pub fn name(command: &Command) -> &str {
    command.get_display_name().unwrap_or_else(|| command.get_name())
}

/// The commands below a command that its help lists.
pub fn visible(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|below| !below.is_hide_set())
}

/// Whether a variable belongs on a page: those of `landspeed` only on the main page, those of a command on its
/// page and its subcommands' pages.
fn belongs(page: &str, whose: &str) -> bool {
    page == whose || (whose != "landspeed" && page.strip_prefix(whose).is_some_and(|rest| rest.starts_with('-')))
}

/// Returns the variables on a command's page, each with its meaning.
pub fn environment(command: &Command) -> impl Iterator<Item = (&'static str, &'static str)> {
    let ours = ENVIRONMENT.iter().filter(|(whose, ..)| belongs(name(command), whose));
    ours.map(|&(_, variable, meaning)| (variable, meaning))
}

/// Returns a command's own exit statuses, if its help has them.
pub fn exit_status(command: &Command) -> Option<Vec<(String, String)>> {
    examples::read(command).1.iter().find_map(|paragraph| own_exit_status(paragraph))
}

/// Writes the usage line of the help.
fn synopsis(roff: &mut Roff, command: &Command) {
    let usage = command.clone().render_usage().to_string();
    let full = command.get_bin_name().unwrap_or_else(|| command.get_name()).to_owned();
    for (index, line) in usage.trim_start_matches("Usage:").lines().map(str::trim).enumerate() {
        if index > 0 {
            roff.control("br", []);
        }
        match line.strip_prefix(&full) {
            Some(rest) => roff.text([bold(&*full), roman(rest)]),
            None => roff.text([roman(line)]),
        };
    }
}

fn options(command: &Command) -> String {
    let mut text = Vec::new();
    Man::new(command.clone()).render_options_section(&mut text).expect("memory takes everything");
    let mut text = String::from_utf8(text).expect("roff is text");
    let headings: std::collections::BTreeSet<_> =
        command.get_arguments().filter_map(clap::Arg::get_help_heading).collect();
    for heading in headings {
        // Help headings become subsections of OPTIONS.
        let upper = heading.to_uppercase();
        for said in [format!(".SH {upper}\n"), format!(".SH \"{upper}\"\n")] {
            text = text.replace(&said, &format!(".SS \"{heading}\"\n"));
        }
    }
    text
}

/// Returns the text before `Exit status:`; `None` if there is none.
fn before_exit_status(paragraph: &str) -> Option<&str> {
    let text = paragraph.split("Exit status:").next().unwrap_or_default().trim();
    (!text.is_empty()).then_some(text)
}

/// Parses a command's own exit statuses: `Exit status: 0 as asked, 1 refused, 2 failure.`
fn own_exit_status(paragraph: &str) -> Option<Vec<(String, String)>> {
    let (_, said) = paragraph.split_once("Exit status: ")?;
    if said.starts_with("0 clean, 1 findings, 2 failure") {
        return None;
    }
    let mut statuses: Vec<(String, String)> = Vec::new();
    for part in said.trim_end_matches('.').split(", ") {
        match (part.split_once(' '), statuses.last_mut()) {
            (Some((status, meaning)), _) if status.parse::<u8>().is_ok() => {
                statuses.push((status.to_owned(), meaning.to_owned()));
            }
            (_, Some((_, meaning))) => meaning.extend([", ", part]),
            _ => return None,
        }
    }
    for (_, meaning) in &mut statuses {
        if let Some(first) = meaning.get(..1).map(str::to_uppercase) {
            meaning.replace_range(..1, &first);
        }
        meaning.push('.');
    }
    Some(statuses)
}

/// Returns the examples of parent commands that run this command.
fn parent_examples(command: &Command, above: &[&Command]) -> Vec<Example> {
    let full = command.get_bin_name().unwrap_or_else(|| command.get_name());
    let all = above.iter().flat_map(|above| examples::read(above).0);
    all.filter(|example| example.line.contains(full)).collect()
}

/// Returns the cross-references: parent, subcommands, siblings, and commands used in examples and remarks.
fn see_also(command: &Command, above: &[&Command], examples: &[Example], remarks: &[String]) -> Vec<Inline> {
    let mut names: Vec<&str> = above.last().map(|above| name(above)).into_iter().collect();
    names.extend(visible(command).map(name));
    match above {
        // All top-level commands are siblings: only those used in examples and remarks are listed.
        [program] => {
            let said = |other: &&Command| {
                let call = other.get_bin_name().unwrap_or_default();
                examples.iter().any(|example| example.line.contains(call) || example.comment.contains(call))
                    || remarks.iter().any(|remark| remark.contains(call))
            };
            names.extend(visible(program).filter(said).map(name));
        }
        [.., above] => names.extend(visible(above).map(name)),
        [] => {}
    }
    names.retain(|other| *other != name(command));
    let mut seen = std::collections::BTreeSet::new();
    names.retain(|other| seen.insert(*other));
    let mut inlines = Vec::new();
    for other in names {
        if !inlines.is_empty() {
            inlines.push(roman(", "));
        }
        inlines.extend([bold(other), roman("(1)")]);
    }
    inlines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_may_describe_its_own_exit_status() {
        let own = own_exit_status("Text. Exit status: 0 as asked, 1 refused, or left to you, 2 failure.");
        let own = own.expect("three of them");
        let own: Vec<_> = own.iter().map(|(status, meaning)| (status.as_str(), meaning.as_str())).collect();
        assert_eq!(own, [("0", "As asked."), ("1", "Refused, or left to you."), ("2", "Failure.")]);
        assert_eq!(own_exit_status("Exit status: 0 clean, 1 findings, 2 failure."), None);
        assert_eq!(own_exit_status("No word of it."), None);
    }
}
