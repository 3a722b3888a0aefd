//! Options of `run` in a plan, parsed by the parser of the command line.

use std::ops::Range;

use landspeed_problems::{Problem, suggest_or_list};
use landspeed_sweep::Plan;

use super::command::{Refused, RunCommand, RunTest};

/// Options for output, and options that the plan expresses differently.
const REFUSED: &[&str] = &["json", "jsonl", "format", "report", "tap", "verbose", "quiet", "title", "help", "from"];

/// An option of `run` in a plan.
#[derive(Debug, Clone, PartialEq)]
pub struct RunOption {
    /// Long name of the option; `target` is the server.
    pub name: String,
    /// Value in the plan.
    pub value: toml::Value,
    /// Byte range in the plan's text.
    pub span: Range<usize>,
}

impl Refused {
    /// Converts to a problem of the plan, located at the option if it is known, otherwise at `span`.
    pub fn problem(self, plan: &Plan, options: &[RunOption], span: &Range<usize>, key: &str) -> Problem {
        let about = self.option.as_ref().and_then(|name| options.iter().rev().find(|option| option.name == *name));
        let (span, key) = match about {
            Some(option) => (&option.span, format!("run.{}", option.name)),
            None => (span, key.to_owned()),
        };
        plan.problem(span, &key, self.message).maybe_hint(self.hint)
    }
}

/// Returns the long names of the options of `run` that a plan can set.
pub fn names(command: &dyn RunCommand) -> Vec<String> {
    let mut names = command.option_names();
    names.retain(|name| !REFUSED.contains(&name.as_str()));
    names.push("target".to_owned());
    names
}

/// Refuses names that are not options of `run` or that a plan cannot set.
pub fn check_name(command: &dyn RunCommand, name: &str) -> Result<(), Refused> {
    if REFUSED.contains(&name) {
        let hint = match name {
            "from" => "name the client under [hosts]: senders = [\"dtn1\"], receivers = [\"dtn2\"]",
            "title" => "give the plan its `name`",
            _ => "give it to landspeed sweep",
        };
        let message = format!("a plan cannot set `{name}`");
        return Err(Refused { message, hint: Some(hint.to_owned()), option: Some(name.to_owned()) });
    }
    let names = names(command);
    if names.iter().any(|known| known == name) {
        return Ok(());
    }
    Err(Refused {
        message: format!("`run` has no option `--{name}`"),
        hint: suggest_or_list(name, names.iter().map(String::as_str)),
        option: Some(name.to_owned()),
    })
}

/// Parses options; a later option replaces an earlier one of the same name.
pub fn parse(command: &dyn RunCommand, options: &[RunOption]) -> Result<Box<dyn RunTest>, Refused> {
    let mut words = Vec::new();
    for (at, option) in options.iter().enumerate() {
        if options[at + 1..].iter().all(|later| later.name != option.name) {
            words.extend(word(option)?);
        }
    }
    command.parse(words)
}

/// Returns the option as a command-line argument; `None` for a false flag.
fn word(option: &RunOption) -> Result<Option<String>, Refused> {
    let text = match &option.value {
        toml::Value::Boolean(true) => return Ok(Some(format!("--{}", option.name))),
        toml::Value::Boolean(false) => return Ok(None),
        value => scalar(value).ok_or_else(|| Refused {
            message: "expected text, a number, or true or false".to_owned(),
            hint: None,
            option: Some(option.name.clone()),
        })?,
    };
    Ok(Some(if option.name == "target" { text } else { format!("--{}={text}", option.name) }))
}

/// Returns a value in command-line syntax.
pub fn scalar(value: &toml::Value) -> Option<String> {
    match value {
        toml::Value::String(text) => Some(text.clone()),
        toml::Value::Integer(number) => Some(number.to_string()),
        toml::Value::Float(number) => Some(number.to_string()),
        _ => None,
    }
}
