//! A program in a network namespace, killed together with its descendants.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, ExitStatus};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::Duration;

use landspeed_sys::contain::{kill_descendants_with, unshare_pid_namespace};
use landspeed_sys::netns;
use landspeed_sys::process::{Identity, start_ticks};

use crate::error::EmulateError;

/// Result of a program that ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProgramEnd {
    /// Exit status, or 128 + n after signal n.
    pub status: i32,
}

/// A running program. Dropping it kills the program and all its descendants, including those in other process
/// groups.
#[derive(Debug)]
pub struct Program {
    identity: Identity,
    ended: Receiver<io::Result<ExitStatus>>,
    thread: Option<JoinHandle<()>>,
}

impl Program {
    /// Starts `command` in the network namespace `namespace`.
    pub fn start(mut command: Command, namespace: OwnedFd) -> Result<Self, EmulateError> {
        let shown = command.get_program().to_string_lossy().into_owned();
        let (started_sender, started) = mpsc::channel();
        let (ended_sender, ended) = mpsc::channel();
        // The thread lives as long as the program, because the kernel kills the program when the thread ends.
        let work = move || {
            let child = netns::enter(namespace.as_fd())
                .and_then(|()| unshare_pid_namespace())
                .and_then(|()| kill_descendants_with(&mut command)?.spawn());
            drop(namespace);
            match child {
                Err(error) => drop(started_sender.send(Err(error))),
                Ok(mut child) => {
                    let pid = child.id();
                    let _ = started_sender.send(Ok(Identity { pid, started: start_ticks(pid).unwrap_or(0) }));
                    let _ = ended_sender.send(child.wait());
                }
            }
        };
        let what = || format!("run {shown}");
        let thread = std::thread::Builder::new()
            .name("program".to_owned())
            .spawn(work)
            .map_err(EmulateError::system(what()))?;
        let identity = started.recv().unwrap_or_else(|_| Err(io::ErrorKind::BrokenPipe.into()));
        let identity = identity.map_err(EmulateError::system(what()))?;
        Ok(Self { identity, ended, thread: Some(thread) })
    }

    /// Waits for the program's end, at most for `timeout`; `None` if it is still running.
    pub fn wait(&self, timeout: Duration) -> Option<ProgramEnd> {
        match self.ended.recv_timeout(timeout) {
            Ok(Ok(status)) => {
                let status = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
                Some(ProgramEnd { status: status.unwrap_or(127) })
            }
            Ok(Err(_)) | Err(RecvTimeoutError::Disconnected) => Some(ProgramEnd { status: 127 }),
            Err(RecvTimeoutError::Timeout) => None,
        }
    }

    /// Identity of the program's first process.
    pub fn identity(&self) -> Identity {
        self.identity
    }

    /// Kills the program.
    pub fn kill(&self) {
        self.identity.kill();
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.kill();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
