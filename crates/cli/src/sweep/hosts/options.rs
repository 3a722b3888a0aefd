//! Options of `run` in a plan, parsed by the command-line parser.

use std::ops::Range;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args as _, Command, FromArgMatches as _};
use landspeed_problems::{Problem, suggest_or_list};
use landspeed_sweep::Plan;

use crate::run;

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

/// A refused option.
#[derive(Debug)]
pub struct Refused {
    /// Description of the problem.
    pub message: String,
    /// Advice, if there is any.
    pub hint: Option<String>,
    /// Name of the option, if known.
    pub option: Option<String>,
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
pub fn names() -> Vec<String> {
    let command = command();
    let mut names: Vec<String> =
        command.get_arguments().filter_map(|arg| arg.get_long()).map(str::to_owned).collect();
    names.retain(|name| !REFUSED.contains(&name.as_str()));
    names.push("target".to_owned());
    names
}

/// Refuses names that are not options of `run` or that a plan cannot set.
pub fn check_name(name: &str) -> Result<(), Refused> {
    if REFUSED.contains(&name) {
        let hint = match name {
            "from" => "name the client under [hosts]: senders = [\"dtn1\"], receivers = [\"dtn2\"]",
            "title" => "give the plan its `name`",
            _ => "give it to landspeed sweep",
        };
        let message = format!("a plan cannot set `{name}`");
        return Err(Refused { message, hint: Some(hint.to_owned()), option: Some(name.to_owned()) });
    }
    let names = names();
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
pub fn parse(options: &[RunOption]) -> Result<run::Args, Refused> {
    let mut words = Vec::new();
    for (at, option) in options.iter().enumerate() {
        if options[at + 1..].iter().all(|later| later.name != option.name) {
            words.extend(word(option)?);
        }
    }
    let matches = command().try_get_matches_from(words).map_err(|error| refused(&error))?;
    run::Args::from_arg_matches(&matches).map_err(|error| refused(&error))
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

fn command() -> Command {
    run::Args::augment_args(Command::new("run").no_binary_name(true))
}

/// Converts a clap error, without its usage lines.
fn refused(error: &clap::Error) -> Refused {
    let text = error.render().to_string();
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.next().unwrap_or_default();
    let message = first.strip_prefix("error: ").unwrap_or(first);
    let hint = lines.find_map(|line| {
        let tip = line.strip_prefix("tip: ").map(str::to_owned);
        tip.or_else(|| {
            line.strip_prefix("[possible values: ").map(|rest| format!("use one of: {}", rest.trim_end_matches(']')))
        })
    });
    let mut message = message.to_owned();
    if error.kind() == ErrorKind::MissingRequiredArgument {
        // clap lists the missing arguments on separate lines.
        let missing: Vec<&str> = text.lines().map(str::trim).filter(|line| line.starts_with("--")).collect();
        message = format!("{message} {}", missing.join(", "));
    }
    let option = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(text)) => {
            text.trim_start_matches("--").split([' ', '=', '[', '<']).next().map(str::to_owned)
        }
        _ => None,
    };
    Refused { message, hint, option }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn option(name: &str, value: impl Into<toml::Value>) -> RunOption {
        RunOption { name: name.to_owned(), value: value.into(), span: 0..0 }
    }

    fn refusal(options: &[RunOption]) -> Refused {
        parse(options).expect_err("refused options")
    }

    #[test]
    fn options_are_parsed_as_on_the_command_line() {
        let options = [
            option("target", "dtn2:5300"),
            option("parallel", 4),
            option("udp", true),
            option("rate", "1G"),
            option("parallel", 8),
        ];
        let args = parse(&options).expect("options of run");
        let (parameters, sound) = args.parameters();
        assert_eq!((parameters.streams, parameters.rate_bps), (8, Some(1_000_000_000)));
        assert_eq!(args.server().port, Some(5300));
        sound.expect("sound parameters");
    }

    #[test]
    fn bad_values_name_their_option() {
        let bad = refusal(&[option("target", "dtn2"), option("window", "fish")]);
        assert_eq!(bad.option.as_deref(), Some("window"));
        assert!(bad.message.contains("fish"), "{}", bad.message);
        let bad = refusal(&[option("target", "dtn2"), option("send", "pigeon")]);
        assert!(bad.hint.is_some_and(|hint| hint.starts_with("use one of: copy")));
        assert_eq!(
            refusal(&[option("target", "dtn2"), option("time", toml::Value::Array(Vec::new()))]).option.as_deref(),
            Some("time")
        );
    }

    #[test]
    fn unknown_names_get_a_suggestion() {
        assert_eq!(
            check_name("congestoin").expect_err("unknown").hint.as_deref(),
            Some("did you mean `congestion`?")
        );
        assert!(check_name("json").is_err() && check_name("title").is_err());
        check_name("congestion").expect("an option");
        check_name("target").expect("the server");
    }
}
