//! Shell completion.
//!
//! The script loaded by the shell calls this program with [`VARIABLE`] set, and the program prints the
//! candidates. Two tables map arguments to their kind of value; a test checks that every argument has an entry.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use clap::builder::ValueHint;
use clap::{Arg, Command, CommandFactory as _};
use clap_complete::Shell;
use clap_complete::engine::{ArgValueCandidates, ArgValueCompleter, CompletionCandidate, PathCompleter};
use clap_complete::env::{CompleteEnv, Shells};

use crate::Cli;

/// The environment variable that makes the program complete a command line instead of running it.
pub const VARIABLE: &str = "LANDSPEED_COMPLETE";

/// Kind of value that an argument takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Takes {
    /// A file to read or write; `-` is standard input or output.
    File,
    Directory,
    Host,
    Interface,
    Congestion,
    Check,
    Document,
    Exhibit,
    Kernel,
    Metric,
    /// A number, a rate or free text: no candidates.
    Anything,
}

/// Kinds by argument name, for names with the same meaning in every command.
const BY_NAME: &[(&str, Takes)] = &[
    ("target", Takes::Host),
    ("from", Takes::Host),
    ("groups", Takes::File),
    ("operands", Takes::File),
    ("client", Takes::Host),
    ("peer", Takes::Host),
    ("interface", Takes::Interface),
    ("iface", Takes::Interface),
    ("congestion", Takes::Congestion),
    ("only", Takes::Check),
    ("except", Takes::Check),
    ("explain", Takes::Check),
    ("kernel", Takes::Kernel),
    ("kernels", Takes::Kernel),
];

/// Kinds by the value name in the help.
const BY_VALUE: &[(&str, Takes)] = &[
    ("DOCUMENT", Takes::Document),
    ("METRIC", Takes::Metric),
    ("EXHIBIT", Takes::Exhibit),
    ("FILE", Takes::File),
    ("UNIT", Takes::Anything),
    ("FILE|-", Takes::File),
    ("TARBALL|DIR", Takes::File),
    ("DIR", Takes::Directory),
    ("DIRECTORY", Takes::Directory),
    ("OUT", Takes::Directory),
    ("SCENARIO", Takes::File),
    ("PATH", Takes::File),
    ("ADDRESS", Takes::Anything),
    ("BLOCKS", Takes::Anything),
    ("BYTES", Takes::Anything),
    ("CAUSE", Takes::Anything),
    ("CIDR", Takes::Anything),
    ("CMD", Takes::Anything),
    ("CONDITION", Takes::Anything),
    ("CORES", Takes::Anything),
    ("DATE", Takes::Anything),
    ("DISTANCE", Takes::Anything),
    ("DSCP", Takes::Anything),
    ("FILTER", Takes::Anything),
    ("FLOWS", Takes::Anything),
    ("ID", Takes::Anything),
    ("IF", Takes::Interface),
    ("IF,IF", Takes::Anything),
    ("ID|+TAG|-TAG", Takes::Anything),
    ("INTERVAL", Takes::Anything),
    ("JOBS", Takes::Anything),
    ("IMAGE", Takes::Anything),
    ("KEY", Takes::Anything),
    ("KEY=VALUE", Takes::Anything),
    ("KIND", Takes::Anything),
    ("LIST", Takes::Anything),
    ("LOSS", Takes::Anything),
    ("MS", Takes::Anything),
    ("MTU", Takes::Anything),
    ("N", Takes::Anything),
    ("NAME", Takes::Anything),
    ("NODE:NEIGHBOUR", Takes::Anything),
    ("N[,M]", Takes::Anything),
    ("OMIT", Takes::Anything),
    ("P", Takes::Anything),
    ("PERCENT", Takes::Anything),
    ("PRECISION", Takes::Anything),
    ("OPTION", Takes::Anything),
    ("PER_SECOND", Takes::Anything),
    ("PID", Takes::Anything),
    ("POLICY", Takes::Anything),
    ("PORT", Takes::Anything),
    ("QUERY", Takes::Anything),
    ("RATE", Takes::Anything),
    ("RATE[/N]", Takes::Anything),
    ("RELEASE", Takes::Anything),
    ("RTT", Takes::Anything),
    ("SECONDS", Takes::Anything),
    ("SEED", Takes::Anything),
    ("SETTING=VALUE", Takes::Anything),
    ("SHIFT", Takes::Anything),
    ("SIZE", Takes::Anything),
    ("SIZES", Takes::Anything),
    ("START..END", Takes::Anything),
    ("STATUS", Takes::Anything),
    ("TAG", Takes::Anything),
    ("TEXT", Takes::Anything),
    ("TIME", Takes::Anything),
    ("TITLE", Takes::Anything),
    ("TOS", Takes::Anything),
    ("URL", Takes::Anything),
    ("US", Takes::Anything),
    ("VERSION", Takes::Anything),
];

fn takes(arg: &Arg) -> Option<Takes> {
    let find = |table: &[(&str, Takes)], name: &str| {
        table.iter().find_map(|(known, takes)| (*known == name).then_some(*takes))
    };
    let value = match arg.get_value_names() {
        Some([name, ..]) => name.to_string(),
        _ => arg.get_id().as_str().to_uppercase(),
    };
    let found = find(BY_NAME, arg.get_id().as_str()).or_else(|| find(BY_VALUE, &value));
    // Arguments with a path hint take a file even if the tables do not list them.
    let is_path = arg.get_value_hint() == ValueHint::AnyPath;
    match found {
        None | Some(Takes::Anything) if is_path => Some(Takes::File),
        found => found,
    }
}

/// Prints completion candidates if a shell requested them; returns whether it did.
pub fn answer() -> Result<bool, clap::Error> {
    let here = std::env::current_dir().ok();
    CompleteEnv::with_factory(command).var(VARIABLE).try_complete(std::env::args_os(), here.as_deref())
}

/// Returns the completion script that a shell loads.
pub fn script(shell: Shell) -> anyhow::Result<String> {
    let shells = Shells::builtins();
    let found = shells.completer(&shell.to_string());
    let Some(found) = found else { anyhow::bail!("no completions for {shell}") };
    let mut script = Vec::new();
    found.write_registration(VARIABLE, "landspeed", "landspeed", "landspeed", &mut script)?;
    let mut script = String::from_utf8(script)?;
    if shell == Shell::Zsh {
        // When zsh autoloads the script from fpath, the first completion runs the script itself, so it must call the
        // completer.
        script.push_str("[[ $funcstack[1] == _landspeed ]] && _clap_dynamic_completer_landspeed \"$@\"\n");
    }
    Ok(script.trim_start().to_owned())
}

/// Returns the command definition with completers.
fn command() -> Command {
    with_hints(Cli::command())
}

fn with_hints(command: Command) -> Command {
    command.mut_args(with_hint).mut_subcommands(with_hints)
}

fn with_hint(arg: Arg) -> Arg {
    if !arg.get_action().takes_values() || !arg.get_possible_values().is_empty() {
        return arg;
    }
    let candidates = |list: fn() -> Vec<CompletionCandidate>| ArgValueCandidates::new(list);
    match takes(&arg) {
        Some(Takes::File) => arg.add(ArgValueCompleter::new(PathCompleter::any().stdio())),
        Some(Takes::Directory) => arg.value_hint(ValueHint::DirPath),
        Some(Takes::Host) => arg.add(candidates(|| words(hosts()))),
        Some(Takes::Interface) => arg.add(candidates(|| words(names_in("/sys/class/net")))),
        Some(Takes::Congestion) => arg.add(candidates(|| words(congestion_controls()))),
        Some(Takes::Check) => arg.add(candidates(checks)),
        Some(Takes::Document) => arg.add(candidates(|| words(crate::schema::names().map(str::to_owned)))),
        Some(Takes::Exhibit) => arg.add(candidates(exhibits)),
        Some(Takes::Kernel) => arg.add(candidates(kernels)),
        Some(Takes::Metric) => {
            arg.add(candidates(|| words(landspeed_model::Metric::ALL.map(|metric| metric.name().to_owned()))))
        }
        Some(Takes::Anything) | None => arg.value_hint(ValueHint::Other),
    }
}

fn words(words: impl IntoIterator<Item = String>) -> Vec<CompletionCandidate> {
    words.into_iter().map(CompletionCandidate::new).collect()
}

fn explained(word: &str, what: impl Into<String>) -> CompletionCandidate {
    CompletionCandidate::new(word).help(Some(what.into().into()))
}

fn checks() -> Vec<CompletionCandidate> {
    landspeed_checks::all().map(|check| explained(check.code, check.title)).collect()
}

fn exhibits() -> Vec<CompletionCandidate> {
    landspeed_lab::gallery::EXHIBITS.iter().map(|exhibit| explained(exhibit.name, exhibit.title)).collect()
}

fn kernels() -> Vec<CompletionCandidate> {
    let kernels = landspeed_lab::kernel::Cache::open(None).and_then(|cache| cache.list()).unwrap_or_default();
    kernels.iter().map(|kernel| explained(&kernel.release, &*kernel.id)).collect()
}

fn congestion_controls() -> Vec<String> {
    let text = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap_or_default();
    text.split_whitespace().map(str::to_owned).collect()
}

fn names_in(directory: &str) -> BTreeSet<String> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter(|entry| entry.path().is_dir()).filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

/// Returns the hosts in /etc/hosts, ~/.ssh/known_hosts and ~/.ssh/config.
fn hosts() -> BTreeSet<String> {
    let read = |path: &Path| std::fs::read_to_string(path).unwrap_or_default();
    let home = |file: &str| std::env::home_dir().map_or_else(PathBuf::new, |home| home.join(file));
    let mut hosts = hosts_file(&read(Path::new("/etc/hosts")));
    hosts.append(&mut known_hosts(&read(&home(".ssh/known_hosts"))));
    hosts.append(&mut ssh_config(&read(&home(".ssh/config"))));
    hosts
}

/// Parses /etc/hosts: `192.0.2.1 name alias  # comment`.
fn hosts_file(text: &str) -> BTreeSet<String> {
    let lines = text.lines().filter_map(|line| line.split('#').next());
    lines.flat_map(|line| line.split_whitespace().skip(1)).map(str::to_owned).collect()
}

/// Parses known_hosts: `name,address ssh-ed25519 …`; `[name]:port` for other ports. Hashed names (`|1|…`) are
/// skipped.
fn known_hosts(text: &str) -> BTreeSet<String> {
    let lines = text.lines().map(str::trim).filter(|line| !line.starts_with(['#', '|', '@']));
    let names = lines.filter_map(|line| line.split_whitespace().next()).flat_map(|names| names.split(','));
    names.map(|name| name.trim_start_matches('[').split(']').next().unwrap_or(name).to_owned()).collect()
}

/// Parses an ssh configuration: `Host name other-name`; patterns are skipped.
fn ssh_config(text: &str) -> BTreeSet<String> {
    let lines = text.lines().filter_map(|line| line.trim().split_once(char::is_whitespace));
    let names =
        lines.filter(|(key, _)| key.eq_ignore_ascii_case("host")).flat_map(|(_, rest)| rest.split_whitespace());
    names.filter(|name| !name.contains(['*', '?', '!'])).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn collect_forgotten(command: &Command, forgotten: &mut Vec<String>) {
        let open = command.get_arguments().filter(|arg| {
            arg.get_action().takes_values() && arg.get_possible_values().is_empty() && takes(arg).is_none()
        });
        forgotten.extend(open.map(|arg| format!("{} {}", command.get_name(), arg.get_id())));
        for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
            collect_forgotten(below, forgotten);
        }
    }

    #[test]
    fn every_argument_has_a_completion_kind() {
        let mut forgotten = Vec::new();
        let mut command = Cli::command();
        command.build();
        collect_forgotten(&command, &mut forgotten);
        assert!(forgotten.is_empty(), "put them into a table above: {forgotten:?}");
    }

    #[test]
    fn host_names_come_from_hosts_file_and_ssh() {
        let set = |names: &[&str]| names.iter().map(ToString::to_string).collect::<BTreeSet<_>>();
        assert_eq!(hosts_file("127.0.0.1 localhost # here\n\n::1 ip6 localhost"), set(&["localhost", "ip6"]));
        let known = "dtn,192.0.2.1 ssh-rsa A\n[far]:2222 ssh-rsa B\n|1|x|y ssh-rsa C\n@revoked old ssh-rsa D";
        assert_eq!(known_hosts(known), set(&["dtn", "192.0.2.1", "far"]));
        assert_eq!(ssh_config("Host near n*\n  HostName 192.0.2.7\nHOST other"), set(&["near", "other"]));
    }
}
