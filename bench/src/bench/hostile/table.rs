//! Results of the honest client under each attack, and their table.

use std::fmt::Write;

use landspeed_stats::median;
use serde::Serialize;

use super::SECONDS;
use super::honest::{Footprint, Kind, Run};
use super::work::Tally;

/// Minimum goodput relative to the quiet server.
const GOODPUT_GOAL: f64 = 0.9;

/// One attack against all kinds of server.
#[derive(Debug, Clone, Serialize)]
pub struct AttackRow {
    /// Name of the benchmark case.
    pub attack: &'static str,
    /// Description of the attacker's actions, with the highest rate.
    pub what: &'static str,
    /// Results, one per kind of server.
    pub servers: Vec<ServerRow>,
}

/// One attack against one server.
#[derive(Debug, Clone, Serialize)]
pub struct ServerRow {
    /// Name of the kind of server.
    pub name: &'static str,
    /// Whether the goal applies to this server.
    pub ours: bool,
    /// Result, or the reason why it was skipped.
    #[serde(flatten)]
    pub outcome: AttackOutcome,
}

/// Result of an attack on one server.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AttackOutcome {
    /// Not attacked, with the reason.
    Skipped(String),
    /// Attacked and measured.
    Measured(Box<Measured>),
}

/// The runs of an attack against one server.
#[derive(Debug, Clone, Serialize)]
pub struct Measured {
    /// Actions of the attacker.
    pub attacker: Tally,
    /// Honest runs against the attacked server, in order.
    pub attacked: Vec<Run>,
    /// Honest runs against the quiet server, in order.
    pub quiet: Vec<Run>,
    /// Resource use of the attacked server at the end of the last run.
    pub footprint: Option<Footprint>,
    /// Exit status of the attacked server, if it ended before it was stopped.
    pub server_ended: Option<String>,
    /// Size of the attacked server's log, bytes.
    pub server_log_bytes: usize,
    /// Figures for the table.
    pub summary: Summary,
}

/// Figures for the table.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Summary {
    /// Honest runs that succeeded under the attack.
    pub succeeded: usize,
    /// Honest runs under the attack.
    pub runs: usize,
    /// Median over successful runs of the overhead minus the median overhead at the quiet server, seconds.
    pub added_latency_s_median: Option<f64>,
    /// Maximum of the same difference, seconds.
    pub added_latency_s_max: Option<f64>,
    /// Median of the goodput divided by that of the same round's quiet run.
    pub goodput_ratio: Option<f64>,
    /// Whether every run succeeded with at least 0.9 times the quiet server's goodput.
    pub met: bool,
}

impl Summary {
    /// Summarizes paired runs: the n-th attacked run and the n-th quiet run belong to the same round.
    pub fn new(attacked: &[Run], quiet: &[Run]) -> Self {
        let runs = attacked.len();
        let succeeded = attacked.iter().filter(|run| run.error.is_none()).count();
        let base: Vec<f64> = quiet.iter().filter_map(|run| run.overhead_s).collect();
        let added: Vec<f64> = median(&base)
            .map(|base| attacked.iter().filter_map(|run| Some(run.overhead_s? - base)).collect())
            .unwrap_or_default();
        let ratios: Vec<f64> = attacked
            .iter()
            .zip(quiet)
            .filter_map(|(attacked, quiet)| Some(attacked.goodput_bps? / quiet.goodput_bps?))
            .filter(|ratio| ratio.is_finite())
            .collect();
        let goodput_ratio = median(&ratios);
        Self {
            succeeded,
            runs,
            added_latency_s_median: median(&added),
            added_latency_s_max: added.iter().copied().reduce(f64::max),
            goodput_ratio,
            met: runs > 0 && succeeded == runs && goodput_ratio.is_some_and(|ratio| ratio >= GOODPUT_GOAL),
        }
    }
}

/// Formats a Markdown table whose columns are also aligned in a terminal.
pub fn markdown(rows: &[AttackRow]) -> String {
    let mut header = vec!["attack".to_owned()];
    for kind in Kind::ALL {
        header.extend(["success", "added latency, median (max)", "goodput"].map(|figure| match figure {
            "success" => format!("{}: {figure}", kind.name()),
            _ => figure.to_owned(),
        }));
    }
    header.push("goal".to_owned());
    let mut cells = vec![header];
    cells.extend(rows.iter().map(|row| {
        let servers = row.servers.iter().flat_map(|server| figures(&server.outcome));
        let name = row.attack.strip_prefix("hostile-").unwrap_or(row.attack);
        std::iter::once(format!("`{name}`: {}", row.what)).chain(servers).chain([goal(row)]).collect()
    }));
    let caption = format!(
        "Under attack: honest tests of {SECONDS} s; added latency and goodput are relative to a quiet server of the same kind.\n\n"
    );
    caption + &aligned(&cells) + &remarks(rows)
}

fn figures(outcome: &AttackOutcome) -> [String; 3] {
    let AttackOutcome::Measured(measured) = outcome else { return ["–", "–", "–"].map(str::to_owned) };
    let Summary { succeeded, runs, added_latency_s_median, added_latency_s_max, goodput_ratio, .. } =
        measured.summary;
    let share = format!("{succeeded}/{runs}");
    let success = if succeeded == runs { share } else { format!("**{share}**") };
    let latency = match (added_latency_s_median, added_latency_s_max) {
        // Adding zero turns -0 into 0.
        (Some(median), Some(max)) => {
            format!("{:+} ms ({:+})", (median * 1e3).round() + 0.0, (max * 1e3).round() + 0.0)
        }
        _ => "–".to_owned(),
    };
    let goodput = goodput_ratio.map_or_else(
        || "–".to_owned(),
        |ratio| if ratio < GOODPUT_GOAL { format!("**{ratio:.2}×**") } else { format!("{ratio:.2}×") },
    );
    [success, latency, goodput]
}

/// Returns whether landspeed meets the goal on each of its ports.
fn goal(row: &AttackRow) -> String {
    let ours = || row.servers.iter().filter(|server| server.ours);
    let met = ours().filter_map(|server| match &server.outcome {
        AttackOutcome::Measured(measured) => Some((server.name, measured.summary.met)),
        AttackOutcome::Skipped(_) => None,
    });
    let met: Vec<_> = met.collect();
    let missed: Vec<&str> = met.iter().filter(|(_, met)| !met).map(|(name, _)| *name).collect();
    match (met.is_empty(), missed.is_empty()) {
        (true, _) => "not measured".to_owned(),
        (false, true) => "met".to_owned(),
        (false, false) if missed.len() == met.len() => "**missed**".to_owned(),
        (false, false) => format!("**missed**: {}", missed.join("; ")),
    }
}

/// Remarks below the table: servers that ended, the first error of each, and skipped servers.
fn remarks(rows: &[AttackRow]) -> String {
    let mut out = String::new();
    let mut said = Vec::new();
    for row in rows {
        for server in &row.servers {
            let remark = match &server.outcome {
                AttackOutcome::Skipped(why) => format!("{}: not measured: {why}", server.name),
                AttackOutcome::Measured(measured) => {
                    let failed = measured.attacked.iter().find_map(|run| run.error.as_deref());
                    let ended = measured.server_ended.as_deref().map(|how| format!("the server ended ({how})"));
                    let quiet = measured.quiet.iter().filter(|run| run.error.is_some()).count();
                    let quiet = (quiet > 0).then(|| format!("{quiet} quiet runs failed"));
                    let why = failed.map(|error| format!("first error: {error}"));
                    let parts: Vec<String> = [ended, quiet, why].into_iter().flatten().collect();
                    if parts.is_empty() {
                        continue;
                    }
                    format!("{}, `{}`: {}", server.name, row.attack, parts.join("; "))
                }
            };
            // A reason that is the same for every attack is listed once.
            if !said.contains(&remark) {
                out.push_str("\n- ");
                out.push_str(&remark);
                said.push(remark);
            }
        }
    }
    if out.is_empty() { out } else { out + "\n" }
}

/// Formats rows under a header, each column as wide as its widest cell.
fn aligned(rows: &[Vec<String>]) -> String {
    let columns = rows.first().map_or(0, Vec::len);
    let width = |at: usize| rows.iter().filter_map(|row| row.get(at)).map(|cell| cell.chars().count()).max();
    let widths: Vec<usize> = (0..columns).map(|at| width(at).unwrap_or(0)).collect();
    let mut out = String::new();
    for (number, row) in rows.iter().enumerate() {
        for (cell, &width) in row.iter().zip(&widths) {
            let _ = write!(out, "| {cell:width$} ");
        }
        out.push_str("|\n");
        if number == 0 {
            for &width in &widths {
                let _ = write!(out, "|{}", "-".repeat(width + 2));
            }
            out.push_str("|\n");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn good(goodput_bps: f64, overhead_s: f64) -> Run {
        Run { goodput_bps: Some(goodput_bps), overhead_s: Some(overhead_s), error: None }
    }

    fn bad(error: &str) -> Run {
        Run { goodput_bps: None, overhead_s: None, error: Some(error.to_owned()) }
    }

    fn row(ours: AttackOutcome, rival: AttackOutcome) -> AttackRow {
        let servers = vec![
            ServerRow { name: "landspeed", ours: true, outcome: ours },
            ServerRow { name: "landspeed, iperf3's protocol", ours: true, outcome: rival.clone() },
            ServerRow { name: "iperf3", ours: false, outcome: rival },
        ];
        AttackRow { attack: "hostile-idle", what: "7 connections", servers }
    }

    fn measured(attacked: Vec<Run>, quiet: Vec<Run>) -> AttackOutcome {
        let summary = Summary::new(&attacked, &quiet);
        let attacker = Tally::default();
        AttackOutcome::Measured(Box::new(Measured {
            attacker,
            attacked,
            quiet,
            footprint: None,
            server_ended: None,
            server_log_bytes: 0,
            summary,
        }))
    }

    #[test]
    fn goodput_is_compared_within_a_round() {
        let attacked = [good(9e9, 0.3), bad("busy"), good(2e9, 0.5)];
        let summary = Summary::new(&attacked, &[good(10e9, 0.1), good(5e9, 0.2), good(2e9, 0.3)]);
        assert_eq!((summary.succeeded, summary.runs, summary.met), (2, 3, false));
        let close = |value: Option<f64>, wanted: f64| (value.unwrap() - wanted).abs() < 1e-9;
        assert!(close(summary.added_latency_s_median, 0.2) && close(summary.added_latency_s_max, 0.3), "{summary:?}");
        assert!(close(summary.goodput_ratio, 0.95), "{summary:?}");
    }

    #[test]
    fn the_goal_is_nine_tenths_of_goodput_in_every_run() {
        let quiet = [good(10e9, 0.1)];
        assert!(Summary::new(&[good(9e9, 5.0)], &quiet).met);
        assert!(!Summary::new(&[good(8.9e9, 0.1)], &quiet).met);
        assert!(!Summary::new(&[bad("busy")], &quiet).met);
        assert!(!Summary::new(&[], &[]).met);
        assert!(!Summary::new(&[good(9e9, 0.1)], &[bad("quiet server failed")]).met);
    }

    #[test]
    fn the_table_names_failures_and_skipped_servers() {
        let ours = measured(vec![good(9.5e9, 0.15)], vec![good(10e9, 0.1)]);
        let rival = measured(vec![bad("iperf3: the server is busy")], vec![good(10e9, 0.1)]);
        let table = markdown(&[
            row(ours, rival),
            row(AttackOutcome::Skipped("iperf3 is not installed".to_owned()), measured(Vec::new(), Vec::new())),
        ]);
        let lines: Vec<&str> = table.lines().filter(|line| line.starts_with('|')).collect();
        let width = lines[0].chars().count();
        assert!(lines.len() == 4 && lines.iter().all(|line| line.chars().count() == width), "{table}");
        assert!(lines[2].contains("| 1/1 ") && lines[2].contains("+50 ms (+50)") && lines[2].contains("| 0.95× "));
        assert!(lines[2].contains("**0/1**") && lines[2].contains("**missed**: landspeed, iperf3's protocol"));
        assert!(table.contains("- iperf3, `hostile-idle`: first error: iperf3: the server is busy\n"), "{table}");
        assert!(table.contains("- landspeed: not measured: iperf3 is not installed\n"), "{table}");
    }
}
