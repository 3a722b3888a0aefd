//! The command `run`, as a sweep uses it. The command line implements it: it has the parser, reads keys, and changes
//! hosts.

use std::fmt;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use landspeed_flow::client::{Request, RunEvent, Target};
use landspeed_model::{ErrorEntry, Parameters, RunDocument, TuneupPlan};
use landspeed_tune::ChangeError;

/// Parser of the options of `run`, and its texts.
pub trait RunCommand: fmt::Debug + Sync {
    /// Returns the long names of all options.
    fn option_names(&self) -> Vec<String>;
    /// Parses a command line, without the name of the command.
    fn parse(&self, words: Vec<String>) -> Result<Box<dyn RunTest>, Refused>;
    /// Formats an error: the failure, then advice on a second line.
    fn describe(&self, error: &ErrorEntry) -> String;
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

/// Parsed options of `run`.
pub trait RunTest: fmt::Debug + Send + Sync {
    /// Returns the requested parameters, as far as they can be parsed, and an error if they are invalid.
    fn parameters(&self) -> (Parameters, Result<(), String>);
    /// Returns host and port of the server.
    fn server(&self) -> Target;
    /// Whether the server is iperf3.
    fn is_iperf3(&self) -> bool;
    /// Checks the options and reads the key.
    fn request(&self) -> Result<Request, ErrorEntry>;
    /// Runs the test, with `from` as client instead of this host. The document contains the verdict.
    fn measure(
        &self,
        request: &Request,
        from: Option<&Target>,
        interrupted: &AtomicBool,
        observe: &mut dyn FnMut(&RunEvent<'_>),
    ) -> RunDocument;
    /// Opens changes of client and server, held for at most `limit`.
    fn open_changes(
        &self,
        request: &Request,
        from: Option<&Target>,
        limit: Duration,
        interrupted: &'static AtomicBool,
    ) -> Result<Box<dyn HeldSettings>, ChangeError>;
}

/// Settings of client and server that are held, and rolled back on drop.
pub trait HeldSettings {
    /// Applies the changes of `plan` to both hosts; all other settings have their original values.
    fn hold(&mut self, plan: &TuneupPlan) -> Result<(), ChangeError>;
    /// Rolls back both hosts.
    fn roll_back(self: Box<Self>) -> Result<(), ChangeError>;
}
