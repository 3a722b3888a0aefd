//! Runs Slurm's programs `sbatch`, `squeue`, `scontrol`, `scancel` and `sinfo` with a timeout, and parses their
//! output.

use std::fmt;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use landspeed_sys::clock;

/// Timeout of a program: a busy controller delays its clients.
const PROGRAM_TIMEOUT: Duration = Duration::from_mins(2);
/// Polling interval while a program runs.
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// Maximum output that is kept, bytes.
const MAX_OUTPUT_BYTES: u64 = 16 << 20;
/// Slurm's default MaxArraySize; the highest array index is one less.
const MAX_ARRAY: usize = 1001;

/// Failure of a Slurm program. The messages include advice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SlurmError {
    /// The program is not installed.
    Missing(&'static str),
    /// The program cannot be started.
    Start {
        /// Name of the program.
        program: &'static str,
        /// Reason, from the system.
        why: String,
    },
    /// The program reported an error.
    Refused {
        /// Failed action.
        what: &'static str,
        /// Slurm's message.
        said: String,
        /// A setting or command that corrects it.
        advice: &'static str,
    },
    /// The program did not end in time.
    TimedOut {
        /// Name of the program.
        program: &'static str,
    },
}

impl fmt::Display for SlurmError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(program) => write!(
                f,
                "cannot run {program}: it is not on PATH\nInstall Slurm's commands on this host (Debian: slurm-client), or use \
                 --engine local."
            ),
            Self::Start { program, why } => write!(f, "cannot run {program}: {why}"),
            Self::Refused { what, said, advice } => write!(f, "{what}: {said}\n{advice}"),
            Self::TimedOut { program } => write!(
                f,
                "{program} did not end within {} s\nCheck that the controller runs: scontrol ping.",
                PROGRAM_TIMEOUT.as_secs()
            ),
        }
    }
}

impl std::error::Error for SlurmError {}

/// A pending or running task of a job array.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueuedTask {
    /// Index in the array.
    pub index: usize,
    /// Slurm's state code: `PD`, `R`, `CG` …
    pub state: String,
    /// Slurm's reason for pending: `Resources`, `Priority`, `PartitionDown` …
    pub reason: String,
}

impl QueuedTask {
    /// Whether the task is pending and will not start by itself.
    pub fn is_held(&self) -> bool {
        let reason = self.reason.to_lowercase().replace('_', " ");
        self.state == "PD"
            && (reason.contains("launch failed") || reason.contains("held") || reason.contains("jobhold"))
    }
}

/// Submits a job array; returns its job id.
pub fn submit(script: &Path, options: &[String]) -> Result<String, SlurmError> {
    let mut command = Command::new("sbatch");
    command.args(options).arg(script);
    let said = run(
        "sbatch",
        &mut command,
        "cannot submit to Slurm",
        "Check --partition and --slurm-option; `sinfo` lists partitions, `sbatch --help` options.",
    )?;
    // `ID` or `ID;CLUSTER`; site scripts may print other lines first.
    let job = said.lines().rev().find_map(|line| {
        let id = line.trim().split(';').next().unwrap_or_default();
        (!id.is_empty() && id.chars().all(|c| c.is_ascii_digit())).then(|| id.to_owned())
    });
    job.ok_or_else(|| SlurmError::Refused {
        what: "cannot submit to Slurm",
        said: format!("sbatch printed no job number: {}", one_line(&said)),
        advice: "Submit a job by hand with `sbatch --parsable` and see what it prints.",
    })
}

/// Returns the tasks of an array in the queue; none if Slurm no longer has the job.
pub fn queue(job: &str) -> Result<Vec<QueuedTask>, SlurmError> {
    let mut command = Command::new("squeue");
    command.args(["--array", "--noheader", "--format=%K|%t|%r", "--jobs", job]);
    let said = run(
        "squeue",
        &mut command,
        "cannot ask Slurm for its queue",
        "Check that the controller runs: scontrol ping.",
    );
    match said {
        Ok(said) => Ok(said.lines().filter_map(parse_queued).collect()),
        Err(SlurmError::Refused { said, .. }) if said.contains("Invalid job id") => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

fn parse_queued(line: &str) -> Option<QueuedTask> {
    let mut fields = line.trim().split('|');
    let index = fields.next()?.parse().ok()?;
    Some(QueuedTask { index, state: fields.next()?.to_owned(), reason: fields.next()?.to_owned() })
}

/// Returns Slurm's state of an ended task, if it is still available: `NODE_FAIL`, `TIMEOUT`, `FAILED, exit code
/// 2`.
pub fn final_state(job: &str, index: usize) -> Option<String> {
    let mut command = Command::new("scontrol");
    command.args(["--oneliner", "show", "job", &format!("{job}_{index}")]);
    let said = run("scontrol", &mut command, "", "").ok()?;
    let field = |name: &str| said.split_whitespace().find_map(|word| word.strip_prefix(name)).map(str::to_owned);
    let state = field("JobState=")?;
    let code = field("ExitCode=").filter(|code| code != "0:0");
    let code = code.map(|code| format!(", exit code {}", code.split(':').next().unwrap_or_default()));
    Some(format!("{state}{}", code.unwrap_or_default()))
}

/// Cancels jobs or tasks (`JOB_INDEX`).
pub fn cancel(jobs: &[String]) -> Result<(), SlurmError> {
    if jobs.is_empty() {
        return Ok(());
    }
    let mut command = Command::new("scancel");
    command.arg("--quiet").args(jobs);
    run("scancel", &mut command, "cannot cancel jobs", "Cancel them by hand: scancel JOB.").map(drop)
}

/// Returns the maximum number of tasks of an array.
pub fn max_array() -> Result<usize, SlurmError> {
    let mut command = Command::new("scontrol");
    command.args(["show", "config"]);
    let said = run(
        "scontrol",
        &mut command,
        "cannot ask Slurm for its configuration",
        "Check that the controller runs and that this host is configured for it: scontrol ping.",
    )?;
    Ok(limit(&said).unwrap_or(MAX_ARRAY))
}

/// Parses `MaxArraySize = 1001` in Slurm's configuration.
fn limit(configuration: &str) -> Option<usize> {
    let line = configuration.lines().find(|line| line.starts_with("MaxArraySize"))?;
    line.split('=').nth(1)?.trim().parse().ok()
}

/// Returns the number of usable cores of a partition, or of all partitions; `None` if unknown.
pub fn cores(partition: Option<&str>) -> Option<usize> {
    let mut command = Command::new("sinfo");
    command.args(["--noheader", "--format=%C"]);
    if let Some(partition) = partition {
        command.args(["--partition", partition]);
    }
    let said = run("sinfo", &mut command, "", "").ok()?;
    // Allocated/idle/other/total, one line per partition.
    let usable = |line: &str| -> Option<usize> {
        let mut counts = line.trim().split('/').map(str::parse::<usize>);
        Some(counts.next()?.ok()? + counts.next()?.ok()?)
    };
    said.lines().filter_map(usable).max().filter(|&cores| cores > 0)
}

/// Runs a program and returns its standard output if it succeeded.
fn run(
    program: &'static str,
    command: &mut Command,
    what: &'static str,
    advice: &'static str,
) -> Result<String, SlurmError> {
    let start = |why: std::io::Error| match why.kind() {
        std::io::ErrorKind::NotFound => SlurmError::Missing(program),
        _ => SlurmError::Start { program, why: why.to_string() },
    };
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().map_err(start)?;
    let read = |pipe: Option<Box<dyn Read + Send>>| {
        std::thread::spawn(move || {
            let mut text = Vec::new();
            let _ = pipe.map(|pipe| pipe.take(MAX_OUTPUT_BYTES).read_to_end(&mut text));
            String::from_utf8_lossy(&text).into_owned()
        })
    };
    let out = read(child.stdout.take().map(|pipe| Box::new(pipe) as _));
    let err = read(child.stderr.take().map(|pipe| Box::new(pipe) as _));
    let deadline_ns = clock::monotonic_ns() + PROGRAM_TIMEOUT.as_nanos() as u64;
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if clock::monotonic_ns() < deadline_ns => std::thread::park_timeout(POLL_INTERVAL),
            _ => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(SlurmError::TimedOut { program });
            }
        }
    };
    let (out, err) = (out.join().unwrap_or_default(), err.join().unwrap_or_default());
    if status.success() {
        return Ok(out);
    }
    let said = one_line(if err.trim().is_empty() { &out } else { &err });
    let said = if said.is_empty() { format!("{program} ended with {status}") } else { said };
    Err(SlurmError::Refused { what, said, advice })
}

/// Joins a program's output into one line, without repeated `: error:`.
fn one_line(said: &str) -> String {
    let lines = said.lines().map(str::trim).filter(|line| !line.is_empty());
    let text = lines.map(|line| line.replacen(": error:", ":", 1)).collect::<Vec<_>>().join("; ");
    landspeed_flow::control::printable(&text, 400)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slurm_errors_are_joined_into_one_line() {
        let said = "sbatch: error: invalid partition specified: nope\nsbatch: error: Batch job submission failed\n";
        assert_eq!(one_line(said), "sbatch: invalid partition specified: nope; sbatch: Batch job submission failed");
    }

    #[test]
    fn queue_lines_are_parsed_as_tasks() {
        let task = parse_queued("3|PD|Resources").expect("a task");
        assert_eq!((task.index, task.state.as_str(), task.reason.as_str()), (3, "PD", "Resources"));
        assert!(!task.is_held());
        assert!(parse_queued("0|PD|launch_failed_requeued_held").expect("a task").is_held());
        assert!(parse_queued("N/A|PD|None").is_none());
        assert!(parse_queued("").is_none());
    }

    #[test]
    fn max_array_size_is_parsed() {
        assert_eq!(limit("MaxArrayTasks = 3\nMaxArraySize            = 1001\n"), Some(1001));
        assert_eq!(limit("ClusterName = x"), None);
    }
}
