//! A program in a namespace, which ends with everything it started.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, ExitStatus};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::Duration;

use landspeed_sys::contain::{end_descendants_with, unshare_processes};
use landspeed_sys::netns;
use landspeed_sys::process::{Identity, start_ticks};

use crate::error::EmulateError;

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProgramEnd {
    /// Its exit status; 128 + n after signal n.
    pub status: i32,
}

/// A running program. Dropping it ends the program and all that it started, also what left its process group.
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
        // The thread stays until the program has ended: the program is ended when the thread is.
        let work = move || {
            let child = netns::enter(namespace.as_fd())
                .and_then(|()| unshare_processes())
                .and_then(|()| end_descendants_with(&mut command)?.spawn());
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

    /// Waits for its end at most this long.
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

    /// The first process.
    pub fn identity(&self) -> Identity {
        self.identity
    }

    /// Ends it at once.
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
