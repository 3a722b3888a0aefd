//! One run of a case, in the lab or with real sockets.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use super::cases::{Case, Traffic};
use super::{Figures, Record, Side, figures, spacing};

/// Address of the remote host that the command under `emulate` sees.
const REMOTE: &str = "198.18.0.2";
/// No copies, as for the lab's flows.
const LAB_FLOW_OPTIONS: &str = "--send sendfile --receive discard";

/// Program and directories used for the runs.
pub(super) struct Bench {
    /// Path of the landspeed binary.
    pub program: PathBuf,
    /// Directory of scenarios and path files.
    pub scenarios: PathBuf,
    /// Directory for the files of a run.
    pub work: PathBuf,
}

impl Bench {
    /// Runs the scenario once.
    pub(super) fn lab(&self, case: &Case, seed: u64) -> Result<Record> {
        let scenario = self.write(case, true)?;
        let json = self.work.join("lab.json");
        let mut command = Command::new(&self.program);
        command.current_dir(&self.work).args(["lab", "run", "--quiet", "--seed", &seed.to_string()]);
        command.arg(&scenario).arg("--json").arg(&json);
        if matches!(case.command, Traffic::Captured(_)) {
            command.args(["--pcap", "sender:port", "--pcap", "receiver:port"]);
        }
        let status = command.status().context("cannot run landspeed")?;
        ensure!(status.success(), "landspeed lab run failed: {status}");
        let document = read(&json)?;
        let mut figures = figures::lab_figures(&document)?;
        if matches!(case.command, Traffic::Captured(_)) {
            let [sender, receiver] = ["sender.port.pcap", "receiver.port.pcap"].map(|name| self.work.join(name));
            figures.extend(spacing::figures(&sender, &receiver)?);
        }
        let kernel = document["kernel"]["release"].as_str().unwrap_or_default().to_owned();
        Ok(record(case, Side::Lab, kernel, true, figures))
    }

    /// Runs the traffic over the emulated path once.
    pub(super) fn emulate(&self, case: &Case, seed: u64) -> Result<Record> {
        let path = self.write(case, false)?;
        let [certificate, run, cross] = ["certificate", "run", "cross"].map(|n| self.work.join(format!("{n}.json")));
        for old in [&certificate, &run, &cross] {
            remove(old)?;
        }
        let landspeed = format!("{} run {REMOTE} --quiet", self.program.display());
        let flow = |options: &str| format!("{landspeed} {LAB_FLOW_OPTIONS} --json {} {options}", run.display());
        let mut command = Command::new(&self.program);
        command.current_dir(&self.work).env("LANDSPEED_ARCHIVE", "off");
        command.args(["emulate", "--quiet", "--seed", &seed.to_string()]).arg(&path).arg("--json").arg(&certificate);
        let script = match &case.command {
            Traffic::Flow(options) => flow(options),
            Traffic::Crossed { flow: options, cross: other } => {
                let other = format!("{landspeed} --json {} {other}", cross.display());
                format!("{other} & sleep 0.5; {}; wait", flow(options))
            }
            Traffic::Captured(options) => {
                let serve = format!("exec {} serve --quiet --allow-tap", self.program.display());
                command.args(["--remote", &serve]);
                format!("{} --tap capture", flow(options))
            }
        };
        let output = command.args(["--", "sh", "-c", &script]).output().context("cannot run landspeed")?;
        let said = String::from_utf8_lossy(&output.stderr);
        let (certificate, run) = (read(&certificate).with_context(|| said.to_string())?, read(&run)?);
        let cross = if matches!(case.command, Traffic::Crossed { .. }) { Some(read(&cross)?) } else { None };
        let mut figures = figures::emulation_figures(&certificate, &run, cross.as_ref())?;
        if matches!(case.command, Traffic::Captured(_)) {
            let [client, server] = ["client", "server"].map(|end| self.work.join(format!("capture.{end}.pcapng")));
            figures.extend(spacing::figures(&client, &server)?);
        }
        let kernel = run["hosts"]["client"]["kernel_release"].as_str().unwrap_or_default().to_owned();
        Ok(record(case, Side::Emulate, kernel, is_valid(&run), figures))
    }

    /// Writes the case's scenario or path file and returns its path.
    fn write(&self, case: &Case, is_lab: bool) -> Result<PathBuf> {
        let kind = if is_lab { "lab" } else { "path" };
        let source = self.scenarios.join(format!("{}.{kind}.toml", case.files));
        let text = std::fs::read_to_string(&source).with_context(|| format!("cannot read {}", source.display()))?;
        let path = self.work.join(format!("{kind}.toml"));
        std::fs::write(&path, case.text(&text, is_lab)?)
            .with_context(|| format!("cannot write {}", path.display()))?;
        Ok(path)
    }
}

fn record(case: &Case, side: Side, kernel: String, valid: bool, figures: Figures) -> Record {
    Record { case: case.name.to_owned(), side, kernel, valid, figures }
}

/// Whether the certificate has no invalid second between the start of the run and the end of its steady phase.
fn is_valid(run: &Value) -> bool {
    let phases = run["phases"].as_array().map_or(&[][..], Vec::as_slice);
    let end_ns = phases.iter().find(|phase| phase["name"] == "steady").and_then(|phase| phase["end_ns"].as_i64());
    let (Some(end_ns), Some(invalid)) = (end_ns, run["emulation"]["invalid"].as_array()) else { return false };
    invalid.iter().all(|span| {
        span["end_ns"].as_i64().is_some_and(|to_ns| to_ns <= 0)
            || span["start_ns"].as_i64().is_some_and(|from_ns| from_ns >= end_ns)
    })
}

fn read(path: &Path) -> Result<Value> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    serde_json::from_str(&text).with_context(|| format!("cannot read {}", path.display()))
}

fn remove(path: &Path) -> Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", path.display()))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn invalid_seconds_count_only_during_the_run() {
        let run = |start_ns: i64, end_ns: i64| {
            json!({
                "phases": [{ "name": "startup", "end_ns": 25 }, { "name": "steady", "end_ns": 6_000 }],
                "emulation": { "invalid": [{ "start_ns": start_ns, "end_ns": end_ns }] },
            })
        };
        assert!(is_valid(&run(-900, 0)) && is_valid(&run(6_000, 7_000)));
        assert!(!is_valid(&run(-900, 1)) && !is_valid(&run(5_999, 7_000)));
        assert!(!is_valid(&json!({ "phases": [] })), "a run that knows of no emulation is not valid");
    }
}
