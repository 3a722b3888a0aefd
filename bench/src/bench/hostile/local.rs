//! Attacks by another local user, and floods of the server's log: each is held or broken, without a rate.
//!
//! The other user is uid 65534 (`setpriv`). Everything happens in temporary directories and network namespaces.

use std::os::unix::fs::{PermissionsExt as _, chown, lchown, symlink};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use landspeed_testkit::netns::{Namespace, veth};
use nix::sys::signal::Signal;
use serde::Serialize;
use serde_json::Value;

use super::landspeed;
use super::work::{RunningAttack, Source, Work};
use crate::bench::child::{Finished, Running, run};
use crate::bench::net;
use crate::machine::now;

/// User id of the attacker.
const OTHER_UID: u32 = 65534;
/// Time limit of a command beside an attack.
const LIMIT: Duration = Duration::from_mins(1);
/// Duration of a flood.
const FLOOD: Duration = Duration::from_secs(8);
/// Maximum log of one client that floods a server, bytes: 300 lines at once and two a second, with texts of 400 characters.
const MAX_LOG_BYTES: usize = 320 * 500;

/// An attack of a local user, or of one client on the log.
#[derive(Debug, Clone, Copy)]
pub struct LocalAttack {
    /// Name of the benchmark case.
    pub name: &'static str,
    /// Description of the attacker's actions.
    pub what: &'static str,
    act: fn(&Path) -> Result<Outcome>,
}

/// Result of an attack.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The attack had no effect; holds the measurement.
    Held(String),
    /// The attack had its effect, which is described.
    Broken(String),
    /// The attack was not carried out, for this reason.
    Skipped(String),
}

/// An attack and its result.
#[derive(Debug, Clone, Serialize)]
pub struct LocalRow {
    /// Name of the benchmark case.
    pub attack: &'static str,
    /// Description of the attacker's actions.
    pub what: &'static str,
    /// Effect of the attack on the program.
    pub outcome: Outcome,
}

/// All attacks, in the order in which they run.
pub const ALL: &[LocalAttack] = &[
    LocalAttack {
        name: "hostile-local-status",
        what: "another user takes the names of an emulation's status, drips and forges answers; root runs a test",
        act: status,
    },
    LocalAttack {
        name: "hostile-local-links",
        what: "another user's links and files at the paths of root's outputs, in a directory like /tmp",
        act: links,
    },
    LocalAttack {
        name: "hostile-local-mesh",
        what: "another user holds the lock of root's mesh, and owns the state directory of another mesh",
        act: mesh,
    },
    LocalAttack {
        name: "hostile-log-changes",
        what: "one client, 8 s of refused changes with names of 400 characters, `serve --quiet --allow-host-changes`",
        act: |program| log_flood(program, &["--quiet", "--allow-host-changes"], landspeed::flood_of_changes),
    },
    LocalAttack {
        name: "hostile-log-tests",
        what: "one client, 8 s of tests that are accepted and dropped, `serve`",
        act: |program| log_flood(program, &[], landspeed::vanish),
    },
];

impl LocalAttack {
    /// Runs the attack against a program, and prints the result.
    pub fn run(&self, program: &Result<std::path::PathBuf, String>) -> LocalRow {
        let outcome = match program {
            _ if !nix::unistd::geteuid().is_root() => {
                Outcome::Skipped("acting as another user needs root".to_owned())
            }
            Err(why) => Outcome::Skipped(why.clone()),
            Ok(program) => (self.act)(program).unwrap_or_else(|why| Outcome::Skipped(format!("{why:#}"))),
        };
        let (word, why) = outcome.text();
        println!("  {} → {word}: {why}", self.what);
        LocalRow { attack: self.name, what: self.what, outcome }
    }
}

impl Outcome {
    fn text(&self) -> (&'static str, &str) {
        match self {
            Self::Held(why) => ("held", why),
            Self::Broken(why) => ("**broken**", why),
            Self::Skipped(why) => ("not measured", why),
        }
    }
}

/// Formats a Markdown table.
pub fn markdown(rows: &[LocalRow]) -> String {
    let line = |row: &LocalRow| {
        let (word, why) = row.outcome.text();
        format!(
            "| `{}`: {} | {word} | {} |\n",
            row.attack.trim_start_matches("hostile-"),
            row.what,
            why.replace('\n', " ")
        )
    };
    "| attack | result | measured |\n|---|---|---|\n".to_owned() + &rows.iter().map(line).collect::<String>()
}

/// Returns a command that the other user runs.
fn as_other(words: &[&str]) -> Command {
    let mut command = Command::new("setpriv");
    command.arg(format!("--reuid={OTHER_UID}")).arg(format!("--regid={OTHER_UID}")).args(["--clear-groups", "--"]);
    // Other users may not start what root installed for itself.
    command.args(words).env("PATH", "/usr/bin:/bin");
    command
}

/// Takes the names of the status of interface N: some answer with one byte after the other, some with invalid seconds.
const SQUATTER: &str = "
import json, socket, sys, threading, time
name = 'landspeed-emulate-status-' + sys.argv[1]
forged = json.dumps({'path': {'name': 'forged', 'seed': 1, 'mtu_bytes': 1500, 'links': 1}, 'placement': {'command': {}},
  'start_unix_ns': time.time_ns() - 60 * 10**9, 'elapsed_ns': 61 * 10**9,
  'invalid': [{'second': i, 'reasons': ['late'], 'message': 'forged'} for i in range(61)]}).encode()
def serve(listener, forge):
    while True:
        stream, _ = listener.accept()
        def answer(stream=stream):
            try:
                if forge: stream.sendall(forged); stream.close()
                while True: stream.sendall(b' '); time.sleep(.3)
            except OSError: pass
        threading.Thread(target=answer, daemon=True).start()
for suffix, forge in [('', False), ('-' + '0' * 16, False), ('-' + 'f' * 16, True)]:
    listener = socket.socket(socket.AF_UNIX)
    listener.bind('\\0' + name + suffix)
    listener.listen(8)
    threading.Thread(target=serve, args=(listener, forge), daemon=True).start()
print('bound', file=sys.stderr, flush=True)
time.sleep(600)
";

fn status(program: &Path) -> Result<Outcome> {
    let fail = |why: String| anyhow::anyhow!(why);
    let (server_host, client_host) =
        (Namespace::new("server").map_err(fail)?, Namespace::new("client").map_err(fail)?);
    let link = veth(&server_host, &client_host, "10.66.0.1/24", "10.66.0.2/24");
    let index = client_host.exec(["ip", "-o", "link", "show", "dev", &link.b]);
    let index = index.split(':').next().unwrap_or_default();
    let server = server_host.run(|| {
        let mut command = Command::new(program);
        command.args(["serve", "--listen", "10.66.0.1:5210", "--no-iperf3"]);
        Running::start(&mut command)?.until("listening", |_| net::is_listening(5210))
    })?;
    let squatter = client_host.run(|| {
        Running::start(&mut as_other(&["python3", "-c", SQUATTER, index.trim()]))?
            .until("bound", |said| said.contains("bound"))
    })?;
    let started = now();
    let mut command = Command::new(program);
    command.args(["run", "10.66.0.1:5210", "-t", "1", "-b", "20M", "--json", "-", "--quiet"]);
    let finished = client_host.run(|| run(&mut command, LIMIT));
    let took = now() - started;
    drop((squatter, server));
    let Ok(finished) = finished else { return Ok(Outcome::Broken(format!("the run did not end within {LIMIT:?}"))) };
    let document: Value = serde_json::from_str(&finished.stdout).context("the run printed no document")?;
    ensure!(document["status"] == "complete", "the run is {}: {}", document["status"], finished.last_line());
    Ok(if !document["emulation"].is_null() {
        Outcome::Broken("the forged status is in root's document".to_owned())
    } else if took > Duration::from_secs(6) {
        Outcome::Broken(format!("a run of 1 s took {:.1} s", took.as_secs_f64()))
    } else {
        Outcome::Held(format!("a run of 1 s took {:.1} s; no status in its document", took.as_secs_f64()))
    })
}

/// Commands of root that write: `FILE` is another user's link to a file, `DIR` one to a directory, `OWN` another user's file.
const WRITERS: [&str; 8] = [
    "calc --rate 10G --rtt 92ms --json FILE",
    "serve --new-key FILE",
    "serve --new-key DIR/site.key",
    "man DIR/pages",
    "check --record DIR/record",
    "lab suite write ccwg DIR/suite",
    "mesh --new DIR/site.toml",
    "watch --for 10ms --jsonl OWN",
];

fn links(program: &Path) -> Result<Outcome> {
    let (shared, own) = (tempfile::tempdir()?, tempfile::tempdir()?);
    std::fs::set_permissions(shared.path(), std::fs::Permissions::from_mode(0o1777))?;
    let (target, directory) = (own.path().join("target"), own.path().join("directory"));
    std::fs::write(&target, "old")?;
    std::fs::create_dir(&directory)?;
    let plant = |name: &str, to: &Path| -> Result<String> {
        let link = shared.path().join(name);
        symlink(to, &link)?;
        lchown(&link, Some(OTHER_UID), None)?;
        Ok(link.display().to_string())
    };
    let (file, folder) = (plant("file", &target)?, plant("folder", &directory)?);
    let theirs = shared.path().join("theirs");
    std::fs::write(&theirs, "old")?;
    chown(&theirs, Some(OTHER_UID), None)?;
    let text = |path: &Path| std::fs::read_to_string(path).unwrap_or_default();
    for line in WRITERS {
        let words = line.replace("FILE", &file).replace("DIR", &folder).replace("OWN", &theirs.display().to_string());
        let finished = run(Command::new(program).args(words.split(' ')).env("LANDSPEED_ARCHIVE", "off"), LIMIT)?;
        let written = text(&target) != "old" || text(&theirs) != "old" || std::fs::read_dir(&directory)?.count() > 0;
        if written || finished.status.success() {
            return Ok(Outcome::Broken(format!("`landspeed {line}` wrote, with {}", finished.status)));
        }
    }
    Ok(Outcome::Held(format!("{} commands refuse; nothing is written", WRITERS.len())))
}

/// An inventory of this host and of one that does not answer.
const INVENTORY: &str = "name = \"site\"\n[[host]]\nname = \"a\"\nlocal = true\n[[host]]\nname = \"b\"\naddress = \"127.0.0.1:9\"\n\
                         [[test]]\nname = \"t\"\npairs = \"mesh\"\ninterval = \"1h\"\n[test.run]\nrate = \"1M\"\ntime = \"100ms\"\n";

fn mesh(program: &Path) -> Result<Outcome> {
    let directory = tempfile::tempdir()?;
    std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o755))?;
    let at = |name: &str| directory.path().join(name);
    std::fs::write(at("site.toml"), INVENTORY)?;
    let round = |out: &Path| -> Result<Finished> {
        let mut command = Command::new(program);
        command.arg("mesh").arg(at("site.toml")).arg("--once").arg("--out").arg(out).env("LANDSPEED_ARCHIVE", "off");
        run(&mut command, LIMIT)
    };
    let first = round(&at("state"))?;
    ensure!(at("state/journal.jsonl").exists(), "the mesh did not run: {}", first.last_line());
    let lock = at("state/lock").display().to_string();
    let holder = Running::start(&mut as_other(&["flock", "-x", &lock, "sh", "-c", "echo held >&2; sleep 60"]))?;
    let held = holder.until("holding the lock", |said| said.contains("held"));
    let second = round(&at("state"))?;
    let is_locked_out = second.stderr.contains("another landspeed mesh");
    drop(held);
    if is_locked_out {
        return Ok(Outcome::Broken("the mesh does not start while another user holds its lock".to_owned()));
    }
    std::fs::create_dir(at("theirs"))?;
    chown(at("theirs"), Some(OTHER_UID), Some(OTHER_UID))?;
    let third = round(&at("theirs"))?;
    Ok(if third.stderr.contains("owned by another user") {
        Outcome::Held("the lock cannot be held; another user's state directory is refused".to_owned())
    } else {
        Outcome::Broken(format!("the state directory of another user is used: {}", third.last_line()))
    })
}

/// Floods a server for [`FLOOD`] from one address, and measures its log.
fn log_flood(
    program: &Path,
    options: &[&str],
    act: fn(&super::connect::Action) -> std::io::Result<()>,
) -> Result<Outcome> {
    let port = net::free_port()?;
    let mut command = Command::new(program);
    command.args(["serve", "--no-iperf3", "--listen", &format!("127.0.0.1:{port}")]).args(options);
    let server = Running::start(&mut command)?.until("listening", |_| net::is_listening(port))?;
    let work = Work::Repeat { per_s: 1000, workers: 4, source: Source::One, act };
    let attack = RunningAttack::start(work, std::net::SocketAddr::from(([127, 0, 0, 1], port)))?;
    let end = now() + FLOOD;
    while now() < end {
        std::thread::park_timeout(Duration::from_millis(50));
    }
    let tally = attack.tally();
    drop(attack);
    let finished = server.stop(Signal::SIGTERM)?;
    ensure!(tally.done > 0, "the attack did not reach the server: {}", tally.last_error.unwrap_or_default());
    let bytes = finished.stdout.len() + finished.stderr.len();
    let lines = finished.stdout.lines().count() + finished.stderr.lines().count();
    let measured = format!("{} connections in {} s: {lines} lines, {bytes} bytes", tally.done, FLOOD.as_secs());
    Ok(if bytes > MAX_LOG_BYTES { Outcome::Broken(measured) } else { Outcome::Held(measured) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_the_table() {
        let row = |outcome| LocalRow { attack: "hostile-local-x", what: "something", outcome };
        let table = markdown(&[row(Outcome::Held("1 s".to_owned())), row(Outcome::Broken("a\nb".to_owned()))]);
        let lines: Vec<&str> = table.lines().skip(2).collect();
        assert_eq!(lines, ["| `local-x`: something | held | 1 s |", "| `local-x`: something | **broken** | a b |"]);
    }

    #[test]
    fn the_other_user_has_no_rights() {
        if !nix::unistd::geteuid().is_root() {
            landspeed_testkit::skip!("acting as another user needs root");
        }
        let Ok(said) = run(&mut as_other(&["id", "-u"]), LIMIT) else {
            landspeed_testkit::skip!("there is no setpriv");
        };
        assert_eq!(said.stdout.trim(), OTHER_UID.to_string());
    }
}
