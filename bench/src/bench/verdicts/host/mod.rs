//! Verdicts on real traffic: cases with a known cause between network namespaces of this machine, quiet and beside
//! busy loops.

mod bed;
mod cases;

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail, ensure};
use landspeed_model::{RunDocument, Status};

use self::cases::{Midway, Setup};
use super::draw::Draw;
use super::judge::run_verdict;
use super::score::{Row, Score, Scores};
use super::truth::{Accept, View};

/// Duration of a run, seconds.
const SECONDS: u32 = 3;
/// Numbers of busy loops beside a run.
pub const LOADS: [usize; 4] = [0, 1, 2, 4];

/// Minimum idle share of a quiet machine. With other load, either side may be the one that waits.
const MIN_IDLE_SHARE: f64 = 0.8;
/// Time over which the idle share is measured.
const IDLE_SAMPLE_TIME: Duration = Duration::from_millis(500);
/// A flow below this share of the rate that its cause allows is limited by something else: by the CPU.
const MIN_REACHED: f64 = 0.9;

/// Viewpoints of a run between two hosts.
const VIEWS: [View; 3] = [View::BothHosts, View::SenderOnly, View::WatchSender];

/// The cases to run: seed, number, loads and families.
pub struct Selection<'a> {
    /// Seed of the parameters.
    pub seed: u64,
    /// Cases of each family.
    pub count: usize,
    /// Numbers of busy loops beside a run.
    pub loads: &'a [usize],
    /// Beginnings of the families' names; empty for all.
    pub families: &'a [String],
}

/// A case beside a number of busy loops.
struct HostCase {
    name: String,
    congestion: &'static str,
    setup: Setup,
    loops: usize,
}

impl HostCase {
    fn all(selection: &Selection<'_>) -> Vec<Self> {
        let is_chosen = |name: &str| {
            selection.families.is_empty() || selection.families.iter().any(|start| name.starts_with(start.as_str()))
        };
        let mut all = Vec::new();
        for &loops in selection.loads {
            for number in 0..selection.count {
                for (family, draw, controls) in cases::ALL.iter().filter(|(name, ..)| is_chosen(name)) {
                    let name = format!("{family}-{number:02}");
                    let congestion = controls[number % controls.len()];
                    let setup = draw(&mut Draw::new(selection.seed, &name), congestion);
                    all.push(Self { name: format!("{name}-load{loops}"), congestion, setup, loops });
                }
            }
        }
        all
    }

    /// Causes other than the true one that are right: a run beside busy loops may lack CPU time instead.
    fn accept(&self, run: &RunDocument) -> Vec<Accept> {
        let always = |cause| Accept { cause, from: View::BothHosts };
        let mut accept: Vec<Accept> = self.setup.accept.iter().copied().map(always).collect();
        let to_sender: &[&'static str] = match self.setup.truth {
            // A receiver without CPU time, a slow reader and a small buffer all appear as a closed window.
            "receiver-cpu" | "slow-reader" => &["receiver-window", "slow-reader"],
            // Losses in the receiving host appear as losses of the network.
            "firewall" => &["network-loss", "shallow-buffer"],
            // Without the receiver's report the losses of UDP are unknown.
            "network-congestion" | "network-loss" | "receive-buffer" if self.is_udp() => {
                &["application", "sender-cpu"]
            }
            _ => &[],
        };
        accept.extend(to_sender.iter().map(|&cause| Accept { cause, from: View::SenderOnly }));
        let is_rate_reached = match (self.setup.rate_bps, run.summary.goodput_bps) {
            (Some(rate), Some(goodput)) => goodput >= rate as f64 * MIN_REACHED,
            // The cause sets no rate: nothing shows that the CPU did not limit the run.
            _ => false,
        };
        if self.loops > 0 && !is_rate_reached {
            accept.extend(["sender-cpu", "receiver-cpu", "cpu-quota"].map(always));
        }
        accept.retain(|accept| accept.cause != self.setup.truth);
        accept
    }

    fn is_udp(&self) -> bool {
        self.setup.arguments.starts_with("-u ")
    }

    fn row(&self, run: &RunDocument, view: View) -> Row {
        let predicted = run_verdict(run, view);
        let score = Score::new(self.setup.truth, &self.accept(run), view, &predicted);
        Row { name: self.name.clone(), truth: self.setup.truth, predicted, score }
    }

    /// Reads the case's document, after measuring it if it is missing and there is a `binary`.
    fn document(&self, directory: &Path, binary: Option<&Path>) -> Result<RunDocument> {
        let path = directory.join(format!("{}.json", self.name));
        if !path.is_file() {
            let binary = binary.context("it has no document, and --offline runs nothing")?;
            if self.loops == 0 {
                ensure_idle()?;
            }
            let measured = catch_unwind(AssertUnwindSafe(|| {
                bed::measure(&path, &self.setup, self.congestion, self.loops, binary)
            }));
            measured.map_err(|panic| {
                anyhow!("{}", panic.downcast_ref::<String>().map_or("the set-up failed", String::as_str))
            })??;
        }
        let text = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let run: RunDocument =
            serde_json::from_slice(&text).with_context(|| format!("cannot read {}", path.display()))?;
        // What happens midway cuts the run short.
        if run.status != Status::Complete && self.setup.midway == Midway::Nothing {
            bail!("the run was cut short");
        }
        Ok(run)
    }
}

/// Runs the selected cases that have no document, and judges all of them in each view: first those beside no load,
/// then those beside busy loops. Prints what is skipped.
pub fn run_cases(directory: &Path, binary: Option<&Path>, selection: &Selection<'_>) -> Result<[Vec<Scores>; 2]> {
    let directory = directory.join(format!("seed-{}", selection.seed));
    fs::create_dir_all(&directory).with_context(|| format!("cannot create {}", directory.display()))?;
    let empty = |is_loaded| VIEWS.map(|view| Scores { view, is_loaded, rows: Vec::new() }).to_vec();
    let mut scores = [false, true].map(empty);
    for case in HostCase::all(selection) {
        let run = match case.document(&directory, binary) {
            Ok(run) => run,
            Err(error) => {
                println!("SKIPPED {}: {error:#}", case.name);
                continue;
            }
        };
        for scores in &mut scores[usize::from(case.loops > 0)] {
            scores.rows.push(case.row(&run, scores.view));
        }
    }
    Ok(scores)
}

/// Returns an error if other programs keep the cores busy.
fn ensure_idle() -> Result<()> {
    let read = || fs::read_to_string("/proc/stat").context("cannot read /proc/stat");
    let before = read()?;
    std::thread::park_timeout(IDLE_SAMPLE_TIME);
    let idle = idle_share(&before, &read()?);
    ensure!(
        idle >= MIN_IDLE_SHARE,
        "other programs keep the cores busy ({:.0} % idle, threshold ≥ 80 %)",
        idle * 100.0
    );
    Ok(())
}

/// Idle time (including iowait) divided by total time between two readings of `/proc/stat`, 0..=1.
fn idle_share(before: &str, after: &str) -> f64 {
    let ticks = |text: &str| -> Vec<u64> {
        let first = text.lines().next().unwrap_or_default();
        first.split_whitespace().skip(1).filter_map(|ticks| ticks.parse().ok()).collect()
    };
    let moved: Vec<u64> =
        ticks(before).iter().zip(ticks(after)).map(|(before, after)| after.saturating_sub(*before)).collect();
    let idle: u64 = moved.iter().skip(3).take(2).sum();
    // Guest time is already included in user time.
    let all: u64 = moved.iter().take(8).sum();
    if all == 0 { 0.0 } else { idle as f64 / all as f64 }
}

#[cfg(test)]
mod tests {
    use super::{HostCase, LOADS, Selection, idle_share};

    #[test]
    fn idle_share_includes_iowait_and_excludes_guest_time() {
        let before = "cpu  100 0 100 1000 0 0 0 0 0 0\n";
        let after = "cpu  110 0 110 1070 10 0 0 0 5 0\ncpu0 1 1 1 1\n";
        assert!((idle_share(before, after) - 0.8).abs() < 1e-9);
        assert!(idle_share(before, before).abs() < 1e-9);
    }

    #[test]
    fn four_draws_of_each_family_are_150_cases_in_each_load() {
        let selection = |seed| Selection { seed, count: 4, loads: &LOADS, families: &[] };
        let all = HostCase::all(&selection(303));
        assert!(all.len() >= 4 * 150, "{}", all.len());
        let again = HostCase::all(&selection(303));
        assert!(all.iter().zip(&again).all(|(one, two)| one.setup == two.setup && one.name == two.name));
        assert!(all.iter().zip(HostCase::all(&selection(1))).any(|(one, two)| one.setup != two.setup));
    }
}
