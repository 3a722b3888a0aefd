//! Child processes of the benchmark: each has a time limit, and is killed by its own process id.

use std::fs::File;
use std::io::{Read, Seek};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::machine::now;

/// Poll interval for a child. Long enough not to disturb the measurement.
const POLL: Duration = Duration::from_millis(20);

/// Poll interval for a child whose run time is measured.
const FINE_POLL: Duration = Duration::from_millis(2);

/// Time limit for a server to start listening, and to exit after a signal.
const SERVER_TIMEOUT: Duration = Duration::from_secs(5);

/// Result of a finished child.
#[derive(Debug)]
pub struct Finished {
    /// Exit status.
    pub status: ExitStatus,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl Finished {
    /// Returns the last line of its output, for an error message.
    pub fn last_line(&self) -> &str {
        let said = if self.stderr.trim().is_empty() { &self.stdout } else { &self.stderr };
        said.trim().lines().next_back().unwrap_or("it said nothing").trim()
    }
}

/// A running child; killed when dropped.
#[derive(Debug)]
pub struct Running {
    child: Child,
    name: String,
    stdout: File,
    stderr: File,
}

impl Running {
    /// Starts `command` without input; its output goes to unnamed files, since a full pipe could stall it.
    pub fn start(command: &mut Command) -> Result<Self> {
        let program = Path::new(command.get_program());
        let name = program.file_name().unwrap_or(program.as_os_str()).display().to_string();
        let (stdout, stderr) = (tempfile::tempfile()?, tempfile::tempfile()?);
        let child = command
            .stdin(Stdio::null())
            .stdout(stdout.try_clone()?)
            .stderr(stderr.try_clone()?)
            .spawn()
            .with_context(|| format!("cannot run {name}"))?;
        Ok(Self { child, name, stdout, stderr })
    }

    /// Waits until `ready` returns true, at most [`SERVER_TIMEOUT`].
    pub fn until(mut self, what: &str, mut ready: impl FnMut(&str) -> bool) -> Result<Self> {
        for _ in 0..polls(SERVER_TIMEOUT) {
            let said = text(&mut self.stderr)?;
            if ready(&said) {
                return Ok(self);
            }
            if let Some(status) = self.child.try_wait()? {
                bail!("{} ended ({status}) before {what}: {}", self.name, said.trim());
            }
            pause(POLL);
        }
        bail!("{} was not {what} after {SERVER_TIMEOUT:?}", self.name)
    }

    /// Waits for the child to exit; kills it after `limit` and returns an error.
    pub fn finish(mut self, limit: Duration) -> Result<Finished> {
        self.finish_polling(limit, POLL)
    }

    fn finish_polling(&mut self, limit: Duration, poll: Duration) -> Result<Finished> {
        let Some(status) = self.wait(limit, poll)? else {
            bail!("{} did not end within {limit:?} and was killed", self.name);
        };
        Ok(Finished { status, stdout: text(&mut self.stdout)?, stderr: text(&mut self.stderr)? })
    }

    /// Returns the exit status if the child has ended.
    pub fn exit_status(&mut self) -> Result<Option<ExitStatus>> {
        Ok(self.child.try_wait()?)
    }

    /// Returns its standard error so far.
    pub fn said(&mut self) -> Result<String> {
        text(&mut self.stderr)
    }

    /// Process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends `signal` to the child, kills it if it does not exit, and reaps it.
    pub fn stop(mut self, signal: Signal) -> Result<Finished> {
        // The child may have ended by itself (a one-shot server).
        let _ = kill(self.pid(), signal);
        if self.wait(SERVER_TIMEOUT, POLL)?.is_none() {
            self.child.kill()?;
        }
        let status = self.child.wait()?;
        Ok(Finished { status, stdout: text(&mut self.stdout)?, stderr: text(&mut self.stderr)? })
    }

    fn wait(&mut self, limit: Duration, poll: Duration) -> Result<Option<ExitStatus>> {
        let deadline = now() + limit;
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(Some(status));
            }
            if now() >= deadline {
                return Ok(None);
            }
            pause(poll);
        }
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(self.child.id().cast_signed())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Both calls fail harmlessly on a child that has already been reaped.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs `command` to completion, at most `limit`.
pub fn run(command: &mut Command, limit: Duration) -> Result<Finished> {
    Running::start(command)?.finish(limit)
}

/// Runs `command` to completion, at most `limit`; also returns its run time, with a resolution of [`FINE_POLL`].
pub fn run_timed(command: &mut Command, limit: Duration) -> Result<(Finished, Duration)> {
    let started = now();
    let mut running = Running::start(command)?;
    let finished = running.finish_polling(limit, FINE_POLL)?;
    Ok((finished, now() - started))
}

/// Runs `command`; an exit status other than 0 is an error.
pub fn run_checked(command: &mut Command, limit: Duration) -> Result<Finished> {
    let finished = run(command, limit)?;
    ensure!(
        finished.status.success(),
        "{} ended with {}: {}",
        command.get_program().display(),
        finished.status,
        finished.last_line()
    );
    Ok(finished)
}

/// User and system CPU time of all children reaped so far, seconds. Softirq time that is not charged to a process
/// is not included, whichever tool caused it.
pub fn children_cpu_s() -> Result<f64> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).context("getrusage")?;
    let seconds = |time: nix::sys::time::TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
    Ok(seconds(usage.user_time()) + seconds(usage.system_time()))
}

/// User and system CPU time of this thread, seconds.
pub fn thread_cpu_s() -> f64 {
    let seconds = |time: nix::sys::time::TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
    getrusage(UsageWho::RUSAGE_THREAD).map_or(0.0, |usage| seconds(usage.user_time()) + seconds(usage.system_time()))
}

fn text(file: &mut File) -> Result<String> {
    file.rewind()?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn polls(limit: Duration) -> u128 {
    limit.as_nanos().div_ceil(POLL.as_nanos())
}

#[expect(clippy::disallowed_methods, reason = "the harness polls processes that are not ours to instrument")]
fn pause(poll: Duration) {
    std::thread::sleep(poll);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn child_is_killed_after_its_time_limit() {
        let error = run(&mut sh("exec sleep 60"), Duration::from_millis(60)).unwrap_err();
        assert!(error.to_string().contains("was killed"), "{error}");
    }

    #[test]
    fn output_and_status_of_a_child_are_kept() {
        let finished = run(&mut sh("echo out; echo one >&2; echo two >&2; exit 3"), SERVER_TIMEOUT).unwrap();
        assert_eq!(finished.stdout, "out\n");
        assert_eq!((finished.status.code(), finished.last_line()), (Some(3), "two"));
        assert!(run_checked(&mut sh("exit 1"), SERVER_TIMEOUT).is_err());
    }

    #[test]
    fn the_output_of_a_failed_server_is_reported() {
        let error = Running::start(&mut sh("echo port taken >&2; exit 1")).unwrap().until("listening", |_| false);
        assert!(error.unwrap_err().to_string().contains("port taken"));
    }

    #[test]
    fn server_is_signalled_before_it_is_killed() {
        let server =
            Running::start(&mut sh("trap 'echo bye; exit 0' TERM; echo up >&2; while :; do sleep 0.05; done"));
        let server = server.unwrap().until("up", |said| said.contains("up")).unwrap();
        assert_eq!(server.stop(Signal::SIGTERM).unwrap().stdout, "bye\n");
    }

    #[test]
    fn cpu_time_of_reaped_children_is_counted() {
        let before = children_cpu_s().unwrap();
        run(&mut sh("i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done"), SERVER_TIMEOUT).unwrap();
        assert!(children_cpu_s().unwrap() > before);
    }
}
