//! The command `run` for sweeps between hosts.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args as _, Command, FromArgMatches as _};
use landspeed_experiment::hosts::command::{HeldSettings, Refused, RunCommand, RunTest};
use landspeed_flow::client::{self, Request, RunEvent, Target};
use landspeed_model::{ErrorEntry, Parameters, RunDocument, TuneupPlan};

use crate::host_changes::{ChangeError, HostChanges};
use crate::run::{self, RemoteEnd, live, measure, ready};
use crate::tuneup::hosts::Hosts;

/// The parser of `run`.
#[derive(Debug)]
pub struct Run;

impl RunCommand for Run {
    fn option_names(&self) -> Vec<String> {
        command().get_arguments().filter_map(|arg| arg.get_long()).map(str::to_owned).collect()
    }

    fn parse(&self, words: Vec<String>) -> Result<Box<dyn RunTest>, Refused> {
        let matches = command().try_get_matches_from(words).map_err(|error| refused(&error))?;
        let args = run::Args::from_arg_matches(&matches).map_err(|error| refused(&error))?;
        Ok(Box::new(args))
    }

    fn describe(&self, error: &ErrorEntry) -> String {
        crate::text::error(error)
    }
}

impl RunTest for run::Args {
    fn parameters(&self) -> (Parameters, Result<(), String>) {
        self.parameters()
    }

    fn server(&self) -> Target {
        self.server()
    }

    fn is_iperf3(&self) -> bool {
        self.iperf3
    }

    fn request(&self) -> Result<Request, ErrorEntry> {
        let (parameters, sound) = self.parameters();
        let mut request = Request {
            target: self.server(),
            parameters,
            key: None,
            command: landspeed_sys::process::command_line(),
            data: None,
            local_port: self.cport,
            start_ns: None,
        };
        ready(self, &mut request, sound)?;
        Ok(request)
    }

    fn measure(
        &self,
        request: &Request,
        from: Option<&Target>,
        interrupted: &AtomicBool,
        observe: &mut dyn FnMut(&RunEvent<'_>),
    ) -> RunDocument {
        let remote = match from {
            Some(from) => Ok(RemoteEnd::ThirdParty(from.clone())),
            None => self.with_iperf3.remote_end(self.iperf3, self.trust.policy()),
        };
        match remote {
            Ok(remote) => measure(request, &remote, self.ask_path, interrupted, live::View::silent(), observe),
            Err(why) => client::not_started_document(request, why),
        }
    }

    fn open_changes(
        &self,
        request: &Request,
        from: Option<&Target>,
        limit: Duration,
        interrupted: &'static AtomicBool,
    ) -> Result<Box<dyn HeldSettings>, ChangeError> {
        let family = request.parameters.family;
        let remote = |target| HostChanges::remote(target, family, request.key.as_ref(), limit, interrupted);
        let client = match from {
            Some(from) => remote(from)?,
            None => HostChanges::local(limit, self.trust)?,
        };
        Ok(Box::new(Hosts::of(client, remote(&request.target)?)))
    }
}

impl HeldSettings for Hosts {
    fn hold(&mut self, plan: &TuneupPlan) -> Result<(), ChangeError> {
        self.hold(plan)
    }

    fn roll_back(self: Box<Self>) -> Result<(), ChangeError> {
        (*self).roll_back()
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
    use landspeed_experiment::hosts::options::{RunOption, check_name, parse};

    use super::*;

    fn option(name: &str, value: impl Into<toml::Value>) -> RunOption {
        RunOption { name: name.to_owned(), value: value.into(), span: 0..0 }
    }

    fn refusal(options: &[RunOption]) -> Refused {
        parse(&Run, options).expect_err("refused options")
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
        let args = parse(&Run, &options).expect("options of run");
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
            check_name(&Run, "congestoin").expect_err("unknown").hint.as_deref(),
            Some("did you mean `congestion`?")
        );
        assert!(check_name(&Run, "json").is_err() && check_name(&Run, "title").is_err());
        check_name(&Run, "congestion").expect("an option");
        check_name(&Run, "target").expect("the server");
    }
}
