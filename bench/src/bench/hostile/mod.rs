//! `cargo xtask bench hostile`: an honest client during an attack.
//!
//! For every attack two servers of each kind run: one is attacked, the other one is quiet. Each round tests
//! against both, one after the other. While the quiet server is tested, the attacker opens and sends nothing new
//! (open connections stay open), so the CPU time of attacker and attacked server counts against the attacked
//! server only.

mod attacks;
mod connect;
mod hold;
mod honest;
mod iperf3;
mod landspeed;
pub mod local;
mod table;
mod work;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use nix::sys::signal::Signal;

use super::child::Running;
pub use attacks::{ALL, Attack};
use honest::{Footprint, Kind, Programs, Run};
use table::{AttackOutcome, Measured, ServerRow, Summary};
pub use table::{AttackRow, markdown};
use work::{RunningAttack, Work};

/// Nominal duration of an honest run, seconds.
const SECONDS: u32 = 1;
/// Time limit for an attack to open all its connections before the first run.
const WARM_UP: Duration = Duration::from_secs(20);
/// Time that a resumed attack acts before the next run.
const SETTLE: Duration = Duration::from_millis(300);

/// Runs attacks.
pub struct Hostile(Programs);

impl Hostile {
    /// Creates it; `landspeed` and `iperf3` are the programs or the reasons why they are missing.
    pub fn new(landspeed: Result<PathBuf, String>, iperf3: Result<PathBuf, String>) -> Result<Self> {
        Programs::new(landspeed, iperf3).map(Self)
    }

    /// Runs one attack against every kind of server.
    pub fn run_rounds(&self, attack: &Attack, rounds: u32) -> AttackRow {
        println!("  {}", attack.what);
        let servers = Kind::ALL
            .into_iter()
            .map(|kind| ServerRow {
                name: kind.name(),
                ours: kind.is_ours(),
                outcome: self.attempt(attack, kind, rounds),
            })
            .collect();
        AttackRow { attack: attack.name, what: attack.what, servers }
    }

    fn attempt(&self, attack: &Attack, kind: Kind, rounds: u32) -> AttackOutcome {
        let skip = |why: String| {
            println!("  SKIPPED {}: {why}", kind.name());
            AttackOutcome::Skipped(why)
        };
        let Some(work) = kind.work(attack) else {
            return skip(format!("`{}` has no counterpart in iperf3's protocol", attack.name));
        };
        if let Some(why) = self.0.missing(kind) {
            return skip(why);
        }
        match self.measure(attack, kind, work, rounds) {
            Ok(measured) => AttackOutcome::Measured(Box::new(measured)),
            Err(error) => skip(format!("`{}`: {error:#}", attack.name)),
        }
    }

    fn measure(&self, attack: &Attack, kind: Kind, work: Work, rounds: u32) -> Result<Measured> {
        let (quiet_server, quiet_address) = self.0.serve(kind, attack.server)?;
        let (mut server, address) = self.0.serve(kind, attack.server)?;
        let mut running_attack = RunningAttack::start(work, address).context("cannot start the attack")?;
        running_attack.warm_up(WARM_UP);
        running_attack.pause();
        let (mut attacked, mut quiet) = (Vec::new(), Vec::new());
        for round in 0..rounds {
            for turn in 0..2 {
                let is_attacked = (round + turn) % 2 == 0;
                let (name, run) = if is_attacked {
                    running_attack.resume();
                    std::thread::park_timeout(SETTLE);
                    let run = self.0.test(kind, address, SECONDS);
                    running_attack.pause();
                    ("attacked", run)
                } else {
                    ("quiet", self.0.test(kind, quiet_address, SECONDS))
                };
                print(round, kind, name, &run);
                if is_attacked { attacked.push(run) } else { quiet.push(run) }
            }
        }
        let footprint = Footprint::read(server.id());
        let server_ended = server.exit_status()?.map(|status| status.to_string());
        let attacker = running_attack.tally();
        println!("     attacker: {}", serde_json::to_string(&attacker).unwrap_or_default());
        drop(running_attack);
        let server_log_bytes = server.stop(Signal::SIGTERM)?.stdout.len();
        println!("     log of the attacked server: {server_log_bytes} bytes");
        stop(quiet_server)?;
        let summary = Summary::new(&attacked, &quiet);
        Ok(Measured { attacker, attacked, quiet, footprint, server_ended, server_log_bytes, summary })
    }
}

fn stop(server: Running) -> Result<()> {
    server.stop(Signal::SIGTERM).map(drop)
}

fn print(round: u32, kind: Kind, server: &str, run: &Run) {
    let outcome = match (run.goodput_bps, run.overhead_s, &run.error) {
        (Some(goodput), Some(overhead), None) => {
            format!("{:.2} Gb/s, {:.0} ms beyond {SECONDS} s", goodput / 1e9, overhead * 1e3)
        }
        (.., error) => format!("FAILED: {}", error.as_deref().unwrap_or("unknown")),
    };
    println!("  {:>2} {:<29} {server:<9} {outcome}", round + 1, kind.name());
}

#[cfg(test)]
mod tests {
    use super::attacks::ServerConfig;
    use super::*;
    use crate::machine::now;

    /// Time limit for an attack to reach its server on a loaded machine.
    const LIMIT: Duration = Duration::from_secs(30);

    /// Returns the workspace's binary of the same build, which `cargo test --workspace` builds.
    fn binary() -> Option<PathBuf> {
        let own = std::env::current_exe().ok()?;
        Some(own.parent()?.parent()?.join("landspeed")).filter(|path| path.is_file())
    }

    fn programs() -> Option<Programs> {
        Programs::new(Ok(binary()?), Err("not needed".to_owned())).ok()
    }

    /// An attack counts an action only after the server's answers show that it reached the attacked state.
    #[test]
    fn every_attack_reaches_its_target_state() {
        let Some(programs) = programs() else {
            landspeed_testkit::skip!("the landspeed binary is not built, or few files may be open");
        };
        for attack in ALL {
            for kind in [Kind::Landspeed, Kind::LandspeedIperf3] {
                let Some(work) = kind.work(attack) else { continue };
                let (server, address) = match programs.serve(kind, attack.server) {
                    Err(why) if attack.server == ServerConfig::HostChanges => {
                        println!("SKIPPED {}: {why:#}", attack.name);
                        continue;
                    }
                    served => served.unwrap(),
                };
                let running_attack = RunningAttack::start(work, address).unwrap();
                let deadline = now() + LIMIT;
                while running_attack.tally().done == 0 {
                    assert!(now() < deadline, "{}, {}: {:?}", attack.name, kind.name(), running_attack.tally());
                    std::thread::park_timeout(Duration::from_millis(10));
                }
                drop(running_attack);
                stop(server).unwrap();
            }
        }
    }

    #[test]
    fn an_honest_client_is_measured_during_an_attack() {
        let Some(programs) = programs() else {
            landspeed_testkit::skip!("the landspeed binary is not built, or few files may be open");
        };
        let attack = ALL.iter().find(|attack| attack.name == "hostile-junk").unwrap();
        let row = Hostile(programs).run_rounds(attack, 1);
        let AttackOutcome::Measured(measured) = &row.servers[0].outcome else { panic!("{row:?}") };
        assert_eq!((measured.summary.succeeded, measured.summary.runs, measured.quiet.len()), (1, 1, 1), "{row:?}");
        assert!(measured.attacker.done > 0 && measured.footprint.is_some() && measured.server_ended.is_none());
        assert!(measured.summary.goodput_ratio.is_some(), "{row:?}");
        // Without iperf3 the other servers are skipped and listed as such.
        let table = markdown(std::slice::from_ref(&row));
        assert!(table.contains("| 1/1 ") && table.contains("iperf3: not measured: not needed"), "{table}");
    }
}
