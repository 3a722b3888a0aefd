//! Runs the programs of a build.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, SyncSender};
use std::time::Duration;

use landspeed_sys::process;

use super::error::Error;

/// Number of output lines shown when a program fails.
const TAIL_LINES: usize = 12;
/// Maximum length of a line, bytes, to bound the memory; longer lines are split.
const LINE_BYTES: u64 = 64 * 1024;
/// Interval at which interrupts are noticed.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Number of ticks from asking a program to end until it is killed.
const KILL_AFTER_TICKS: u32 = 30;

/// A program to run.
pub(super) struct Job<'a> {
    /// Its purpose, as in "unpacking the source".
    pub what: &'a str,
    /// The program with its arguments.
    pub command: Command,
    /// Set when the user interrupts.
    pub interrupted: &'a AtomicBool,
    /// File for all of its output.
    pub log: Option<PathBuf>,
    /// Path that is reported as kept when interrupted, and as full when the disk is.
    pub place: PathBuf,
}

/// Result of a job that could be run to its end.
struct JobResult {
    status: ExitStatus,
    tail: VecDeque<String>,
    out: String,
    disk_full: bool,
}

impl Job<'_> {
    /// Runs the program; `on_line` gets each line of stdout and stderr. An unsuccessful exit is an error.
    pub fn run(self, mut on_line: impl FnMut(&str)) -> Result<(), Error> {
        self.run_to_end(&mut on_line).map(drop)
    }

    /// Runs the program and returns its standard output.
    pub fn output(self) -> Result<String, Error> {
        self.run_to_end(&mut |_| ())
    }

    fn run_to_end(mut self, on_line: &mut dyn FnMut(&str)) -> Result<String, Error> {
        let program = self.command.get_program().to_string_lossy().into_owned();
        let log = match &self.log {
            Some(path) => {
                let file = File::options().create(true).append(true).open(path);
                Some(file.map_err(Error::io("write", path))?)
            }
            None => None,
        };
        self.command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        self.command.env("LC_ALL", "C");
        let child = process::start_in_new_group(&mut self.command).spawn();
        let child = child.map_err(|cause| Error::Spawn { program, cause })?;
        let Some(ended) = follow(child, self.interrupted, log, on_line).map_err(|cause| Error::Io {
            operation: "wait for",
            path: self.what.into(),
            cause,
        })?
        else {
            return Err(Error::Interrupted(self.place));
        };
        if ended.status.success() {
            return Ok(ended.out);
        }
        if ended.disk_full {
            return Err(Error::DiskFull(self.place));
        }
        Err(Error::Command {
            what: self.what.to_owned(),
            status: ended.status.to_string(),
            tail: Vec::from(ended.tail).join("\n"),
            log: self.log,
        })
    }
}

/// Follows a child to its end. Returns `None` when interrupted, once its whole process group is gone.
fn follow(
    mut child: Child,
    interrupted: &AtomicBool,
    mut log: Option<File>,
    on_line: &mut dyn FnMut(&str),
) -> std::io::Result<Option<JobResult>> {
    let (lines, said) = mpsc::sync_channel(256);
    for (stream, is_out) in [
        (child.stdout.take().map(|pipe| Box::new(pipe) as Box<dyn Read + Send>), true),
        (child.stderr.take().map(|pipe| Box::new(pipe) as Box<dyn Read + Send>), false),
    ] {
        let (stream, lines) = (stream.expect("both outputs are pipes"), lines.clone());
        std::thread::spawn(move || forward(stream, is_out, &lines));
    }
    drop(lines);
    let (mut tail, mut errors, mut out) = (VecDeque::new(), VecDeque::new(), String::new());
    let (mut disk_full, mut asked) = (false, 0u32);
    loop {
        if interrupted.load(Ordering::Relaxed) || asked > 0 {
            if asked == 0 || asked == KILL_AFTER_TICKS {
                process::kill_group(child.id(), asked > 0);
            }
            asked += 1;
        }
        let (is_out, line): (bool, String) = match said.recv_timeout(POLL_INTERVAL) {
            Ok(line) => line,
            Err(RecvTimeoutError::Timeout) => {
                // A grandchild that left the process group may keep the pipes open: only the child's end matters.
                if asked > KILL_AFTER_TICKS && child.try_wait()?.is_some() {
                    break;
                }
                continue;
            }
            Err(RecvTimeoutError::Disconnected) => break,
        };
        if let Some(log) = &mut log {
            // A log that cannot be written must not abort the build.
            let _ = writeln!(log, "{line}");
        }
        disk_full |= line.contains("No space left on device") || line.contains("Disk quota exceeded");
        keep(&mut tail, &line);
        if line.contains("error:") || line.contains("Error ") || line.starts_with("E: ") {
            keep(&mut errors, &line);
        }
        on_line(&line);
        if is_out {
            out.push_str(&line);
            out.push('\n');
        }
    }
    let status = child.wait()?;
    if asked > 0 {
        return Ok(None);
    }
    let tail = if errors.is_empty() { tail } else { errors };
    Ok(Some(JobResult { status, tail, out, disk_full }))
}

fn keep(tail: &mut VecDeque<String>, line: &str) {
    if tail.len() == TAIL_LINES {
        tail.pop_front();
    }
    tail.push_back(line.to_owned());
}

fn forward(stream: Box<dyn Read + Send>, is_out: bool, lines: &SyncSender<(bool, String)>) {
    let mut stream = BufReader::new(stream);
    let mut bytes = Vec::new();
    loop {
        bytes.clear();
        match stream.by_ref().take(LINE_BYTES).read_until(b'\n', &mut bytes) {
            Ok(count) if count > 0 => {}
            _ => return,
        }
        let line = String::from_utf8_lossy(&bytes);
        if lines.send((is_out, line.trim_end().to_owned())).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use landspeed_sys::clock;

    use super::*;

    fn job<'a>(script: &str, interrupted: &'a AtomicBool) -> Job<'a> {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        Job { what: "a script", command, interrupted, log: None, place: "/somewhere".into() }
    }

    #[test]
    fn program_output_lines_are_reported_and_returned() {
        let not_interrupted = AtomicBool::new(false);
        assert_eq!(job("echo out; echo err >&2", &not_interrupted).output().expect("ends well"), "out\n");
        let mut lines = Vec::new();
        job("echo out; echo err >&2", &not_interrupted).run(|line| lines.push(line.to_owned())).expect("ends well");
        lines.sort();
        assert_eq!(lines, ["err", "out"]);
    }

    #[test]
    fn failures_show_error_lines_first() {
        let not_interrupted = AtomicBool::new(false);
        let script = "echo x.c:3: error: no; for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14; do echo $i; done; exit 3";
        let error = job(script, &not_interrupted).output().expect_err("exits with 3").to_string();
        assert!(error.contains("a script failed") && error.contains("x.c:3: error: no"), "{error}");
        assert!(!error.contains("14"), "{error}");
        let error = job("echo cc: No space left on device; exit 1", &not_interrupted).output().expect_err("fails");
        assert!(matches!(error, Error::DiskFull(_)));
    }

    #[test]
    fn an_interrupt_ends_the_program_and_its_children() {
        let interrupted = AtomicBool::new(false);
        let directory = tempfile::tempdir().expect("a temporary directory");
        let pid = directory.path().join("pid");
        let script = format!("sleep 1000 & echo $! > {0}.part; mv {0}.part {0}; echo ready; wait", pid.display());
        let error = job(&script, &interrupted).run(|_| interrupted.store(true, Ordering::Relaxed)).expect_err("cut");
        assert!(matches!(error, Error::Interrupted(_)), "{error}");
        let pid = std::fs::read_to_string(&pid).expect("the script wrote it");
        let stat = format!("/proc/{}/stat", pid.trim());
        // Gone, or a zombie not yet reaped by its new parent. Its pipes, whose end is waited for, are closed slightly
        // before that.
        let gone =
            || std::fs::read_to_string(&stat).map_or(true, |state| state.contains(") Z ") || state.contains(") X "));
        let deadline = clock::monotonic_ns() + 10_000_000_000;
        while !gone() {
            assert!(clock::monotonic_ns() < deadline, "process {pid} is still there");
            std::thread::yield_now();
        }
    }
}
