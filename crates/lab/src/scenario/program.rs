//! Programs of this host that run on hosts of the network.

use landspeed_problems::{Notations, Time, Written, read_by_notations};
use schemars::JsonSchema;
use serde::de::Error;
use serde::{Deserialize, Serialize};

/// Default of `real-time-limit`, nanoseconds.
pub const DEFAULT_REAL_TIME_NS: u64 = 600_000_000_000;

/// A program of this host that runs, unmodified, on a host of the network.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Program {
    /// Name; default: the file name of its first word, with a number if it is taken.
    pub name: Option<String>,
    /// The host it runs on.
    pub host: String,
    /// Program and arguments. A name without `/` is searched for in `PATH`; hosts of the network are reached by their names.
    pub run: Vec<String>,
    /// Start time; default 0.
    pub at: Option<Time>,
    /// When to stop it: a time, or `end`, when all flows and all programs without this value have ended. Default: it ends by itself.
    pub stop: Option<Stop>,
    /// Maximum duration of a program that ends by itself; default: the scenario's `time`.
    pub time: Option<Time>,
    /// Expected exit status. Default: 0, or any status if it was stopped.
    pub expect: Option<u8>,
    /// Files to keep in the document, up to 1 MiB each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keep: Vec<String>,
    /// Directories that are empty and writable in the run, in addition to `/tmp`, `/var/tmp`, `/var/log`, `/run` and `/dev/shm`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub writable: Vec<String>,
}

/// When a program is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Stop {
    /// `"end"`: when the scenario ends.
    With(End),
    /// At this time after the start of the scenario.
    At(Time),
}

/// The end of a scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum End {
    /// When all flows and all other programs have ended.
    End,
}

read_by_notations!(Stop);

impl Notations for Stop {
    const EXPECTED: &'static str = "\"end\", or a time such as \"5s\"";

    fn text<E: Error>(text: &str) -> Result<Self, E> {
        match text {
            "end" => Ok(Self::With(End::End)),
            time if time.trim_start().starts_with(|c: char| c.is_ascii_digit()) => {
                time.parse().map(|time| Self::At(Written(time))).map_err(E::custom)
            }
            _ => Err(E::unknown_variant(text, &["end", "a time such as 5s"])),
        }
    }
}

impl Program {
    /// Returns the default name in results: the file name of the first word.
    pub fn default_name(&self) -> String {
        let word = self.run.first().map_or("program", String::as_str);
        let name = word.rsplit('/').next().unwrap_or(word);
        name.chars().filter(|c| !c.is_control()).take(64).collect()
    }
}
