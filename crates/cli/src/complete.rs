//! Shell completion.
//!
//! The script loaded by the shell calls this program with [`COMPLETE_VARIABLE`] set, and the program prints the
//! candidates. Two tables map arguments to their kind of value; a test checks that every argument has an entry.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use clap::builder::ValueHint;
use clap::{Arg, Command, CommandFactory as _};
use clap_complete::Shell;
use clap_complete::engine::{ArgValueCandidates, ArgValueCompleter, CompletionCandidate, PathCompleter};
use clap_complete::env::{CompleteEnv, Shells};
use landspeed_sys::file;

use crate::Cli;

/// The environment variable that makes the program complete a command line instead of running it.
pub const COMPLETE_VARIABLE: &str = "LANDSPEED_COMPLETE";

/// Kind of value that an argument takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ValueKind {
    /// A file to read or write; `-` is standard input or output.
    File,
    Directory,
    Host,
    Interface,
    Congestion,
    Check,
    Document,
    Exhibit,
    Suite,
    Kernel,
    Metric,
    Topic,
    /// A number, a rate or free text: no candidates.
    NoCandidates,
}

/// Kinds by argument name, for names with the same meaning in every command.
const BY_NAME: &[(&str, ValueKind)] = &[
    ("target", ValueKind::Host),
    ("from", ValueKind::Host),
    ("groups", ValueKind::File),
    ("operands", ValueKind::File),
    ("client", ValueKind::Host),
    ("peer", ValueKind::Host),
    ("interface", ValueKind::Interface),
    ("iface", ValueKind::Interface),
    ("congestion", ValueKind::Congestion),
    ("only", ValueKind::Check),
    ("except", ValueKind::Check),
    ("explain", ValueKind::Check),
    ("topic", ValueKind::Topic),
    ("kernel", ValueKind::Kernel),
    ("kernels", ValueKind::Kernel),
];

/// Kinds by the value name in the help.
const BY_VALUE: &[(&str, ValueKind)] = &[
    ("DOCUMENT", ValueKind::Document),
    ("METRIC", ValueKind::Metric),
    ("EXHIBIT", ValueKind::Exhibit),
    ("SUITE", ValueKind::Suite),
    ("FILE", ValueKind::File),
    ("UNIT", ValueKind::NoCandidates),
    ("FILE|-", ValueKind::File),
    ("TARBALL|DIR", ValueKind::File),
    ("DIR", ValueKind::Directory),
    ("DIRECTORY", ValueKind::Directory),
    ("OUT", ValueKind::Directory),
    ("SCENARIO", ValueKind::File),
    ("PATH", ValueKind::File),
    ("ADDRESS", ValueKind::NoCandidates),
    ("BLOCKS", ValueKind::NoCandidates),
    ("BYTES", ValueKind::NoCandidates),
    ("CASE", ValueKind::NoCandidates),
    ("CAUSE", ValueKind::NoCandidates),
    ("CIDR", ValueKind::NoCandidates),
    ("CMD", ValueKind::NoCandidates),
    ("CONDITION", ValueKind::NoCandidates),
    ("CORES", ValueKind::NoCandidates),
    ("DATE", ValueKind::NoCandidates),
    ("DISTANCE", ValueKind::NoCandidates),
    ("DSCP", ValueKind::NoCandidates),
    ("ENDPOINTS", ValueKind::NoCandidates),
    ("EXPRESSION", ValueKind::NoCandidates),
    ("FILTER", ValueKind::NoCandidates),
    ("FLOWS", ValueKind::NoCandidates),
    ("ID", ValueKind::NoCandidates),
    ("IF", ValueKind::Interface),
    ("IF,IF", ValueKind::NoCandidates),
    ("ID|+TAG|-TAG", ValueKind::NoCandidates),
    ("INTERVAL", ValueKind::NoCandidates),
    ("JOBS", ValueKind::NoCandidates),
    ("IMAGE", ValueKind::NoCandidates),
    ("IDLE/INTERVAL/COUNT", ValueKind::NoCandidates),
    ("KEY", ValueKind::NoCandidates),
    ("KEY=VALUE", ValueKind::NoCandidates),
    ("TIME:KEY=VALUE", ValueKind::NoCandidates),
    ("KIND", ValueKind::NoCandidates),
    ("LIST", ValueKind::NoCandidates),
    ("LOSS", ValueKind::NoCandidates),
    ("MS", ValueKind::NoCandidates),
    ("MTU", ValueKind::NoCandidates),
    ("N", ValueKind::NoCandidates),
    ("NAME", ValueKind::NoCandidates),
    ("HOST,HOST", ValueKind::NoCandidates),
    ("HOST[,FAMILY]", ValueKind::Host),
    ("ADDRESS[,FAMILY]", ValueKind::NoCandidates),
    ("LEVEL", ValueKind::NoCandidates),
    ("TEST", ValueKind::NoCandidates),
    ("TOS[,TOS]", ValueKind::NoCandidates),
    ("NODE:NEIGHBOUR", ValueKind::NoCandidates),
    ("N[,M]", ValueKind::NoCandidates),
    ("OMIT", ValueKind::NoCandidates),
    ("P", ValueKind::NoCandidates),
    ("PERCENT", ValueKind::NoCandidates),
    ("PRECISION", ValueKind::NoCandidates),
    ("OPTION", ValueKind::NoCandidates),
    ("PER_SECOND", ValueKind::NoCandidates),
    ("PID", ValueKind::NoCandidates),
    ("POLICY", ValueKind::NoCandidates),
    ("PORT", ValueKind::NoCandidates),
    ("QUERY", ValueKind::NoCandidates),
    ("RATE", ValueKind::NoCandidates),
    ("RATE[/N]", ValueKind::NoCandidates),
    ("RELEASE", ValueKind::NoCandidates),
    ("RTT", ValueKind::NoCandidates),
    ("SECONDS", ValueKind::NoCandidates),
    ("SEED", ValueKind::NoCandidates),
    ("SETTING=VALUE", ValueKind::NoCandidates),
    ("SHIFT", ValueKind::NoCandidates),
    ("SIZE", ValueKind::NoCandidates),
    ("SIZES", ValueKind::NoCandidates),
    ("START..END", ValueKind::NoCandidates),
    ("STATUS", ValueKind::NoCandidates),
    ("TAG", ValueKind::NoCandidates),
    ("TEXT", ValueKind::NoCandidates),
    ("TIME", ValueKind::NoCandidates),
    ("TITLE", ValueKind::NoCandidates),
    ("TOS", ValueKind::NoCandidates),
    ("URL", ValueKind::NoCandidates),
    ("US", ValueKind::NoCandidates),
    ("VERSION", ValueKind::NoCandidates),
];

fn takes(arg: &Arg) -> Option<ValueKind> {
    let find = |table: &[(&str, ValueKind)], name: &str| {
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
        None | Some(ValueKind::NoCandidates) if is_path => Some(ValueKind::File),
        found => found,
    }
}

/// Prints completion candidates if a shell requested them; returns whether it did.
pub fn answer() -> Result<bool, clap::Error> {
    let here = std::env::current_dir().ok();
    CompleteEnv::with_factory(command).var(COMPLETE_VARIABLE).try_complete(std::env::args_os(), here.as_deref())
}

/// Returns the completion script that a shell loads.
pub fn script(shell: Shell) -> anyhow::Result<String> {
    let shells = Shells::builtins();
    let found = shells.completer(&shell.to_string());
    let Some(found) = found else { anyhow::bail!("no completions for {shell}") };
    let mut script = Vec::new();
    found.write_registration(COMPLETE_VARIABLE, "landspeed", "landspeed", "landspeed", &mut script)?;
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
        Some(ValueKind::File) => arg.add(ArgValueCompleter::new(PathCompleter::any().stdio())),
        Some(ValueKind::Directory) => arg.value_hint(ValueHint::DirPath),
        Some(ValueKind::Host) => arg.add(candidates(|| to_candidates(hosts()))),
        Some(ValueKind::Interface) => arg.add(candidates(|| to_candidates(names_in("/sys/class/net")))),
        Some(ValueKind::Congestion) => arg.add(candidates(|| to_candidates(congestion_controls()))),
        Some(ValueKind::Check) => arg.add(candidates(checks)),
        Some(ValueKind::Document) => arg.add(candidates(|| to_candidates(crate::schema::names().map(str::to_owned)))),
        Some(ValueKind::Topic) => arg.add(candidates(topics)),
        Some(ValueKind::Exhibit) => arg.add(candidates(exhibits)),
        Some(ValueKind::Suite) => arg.add(candidates(suites)),
        Some(ValueKind::Kernel) => arg.add(candidates(kernels)),
        Some(ValueKind::Metric) => {
            arg.add(candidates(|| to_candidates(landspeed_model::Metric::ALL.map(|metric| metric.name().to_owned()))))
        }
        Some(ValueKind::NoCandidates) | None => arg.value_hint(ValueHint::Other),
    }
}

fn to_candidates(to_candidates: impl IntoIterator<Item = String>) -> Vec<CompletionCandidate> {
    to_candidates.into_iter().map(CompletionCandidate::new).collect()
}

fn candidate_with_help(word: &str, what: impl Into<String>) -> CompletionCandidate {
    CompletionCandidate::new(word).help(Some(what.into().into()))
}

fn checks() -> Vec<CompletionCandidate> {
    landspeed_checks::all().map(|check| candidate_with_help(check.code, check.title)).collect()
}

fn topics() -> Vec<CompletionCandidate> {
    crate::explain::names().into_iter().map(|(name, title)| candidate_with_help(&name, title)).collect()
}

fn suites() -> Vec<CompletionCandidate> {
    landspeed_lab::suite::names().map(CompletionCandidate::new).collect()
}

fn exhibits() -> Vec<CompletionCandidate> {
    landspeed_lab::gallery::EXHIBITS.iter().map(|exhibit| candidate_with_help(exhibit.name, exhibit.title)).collect()
}

fn kernels() -> Vec<CompletionCandidate> {
    let kernels = landspeed_lab::kernel::Cache::open(None).and_then(|cache| cache.list()).unwrap_or_default();
    let of = |kernel: &landspeed_lab::kernel::Kernel| {
        let word = if kernel.is_stock() { &kernel.release } else { kernel.display_name() };
        candidate_with_help(word, &*kernel.id)
    };
    kernels.iter().map(of).collect()
}

fn congestion_controls() -> Vec<String> {
    let text = file::read_text("/proc/sys/net/ipv4/tcp_available_congestion_control".as_ref(), file::MAX_TEXT_BYTES)
        .unwrap_or_default();
    text.split_whitespace().map(str::to_owned).collect()
}

fn names_in(directory: &str) -> BTreeSet<String> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter(|entry| entry.path().is_dir()).filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

/// Returns the hosts in /etc/hosts, ~/.ssh/known_hosts and ~/.ssh/config.
fn hosts() -> BTreeSet<String> {
    let read = |path: &Path| file::read_text(path, file::MAX_TEXT_BYTES).unwrap_or_default();
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

    fn collect_missing(command: &Command, forgotten: &mut Vec<String>) {
        let open = command.get_arguments().filter(|arg| {
            arg.get_action().takes_values() && arg.get_possible_values().is_empty() && takes(arg).is_none()
        });
        forgotten.extend(open.map(|arg| format!("{} {}", command.get_name(), arg.get_id())));
        for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
            collect_missing(below, forgotten);
        }
    }

    #[test]
    fn every_argument_has_a_completion_kind() {
        let mut forgotten = Vec::new();
        let mut command = Cli::command();
        command.build();
        collect_missing(&command, &mut forgotten);
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
