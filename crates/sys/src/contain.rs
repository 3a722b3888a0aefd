//! User and PID namespaces for programs that must not leave processes behind.

use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use crate::process::pidfd_open;

/// Moves the process into a new user namespace in which it has every capability; user and group ids stay the same
/// for files and programs. The process must have one thread.
///
/// # Errors
/// `EPERM` or `ENOSPC` if the system forbids unprivileged user namespaces, `EINVAL` with several threads.
pub fn unshare_user() -> io::Result<()> {
    // SAFETY: both take nothing and cannot fail.
    let (user, group) = unsafe { (libc::geteuid(), libc::getegid()) };
    // SAFETY: CLONE_NEWUSER changes the process's credentials only, no memory and no descriptors.
    if unsafe { libc::unshare(libc::CLONE_NEWUSER) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // Otherwise an unprivileged process may not map its group (user_namespaces(7)).
    std::fs::write("/proc/self/setgroups", "deny")?;
    std::fs::write("/proc/self/uid_map", format!("{user} {user} 1\n"))?;
    std::fs::write("/proc/self/gid_map", format!("{group} {group} 1\n"))
}

/// Creates a PID namespace for the calling thread's next child, which becomes its init: when it ends, the kernel
/// kills all others in the namespace. The thread cannot start threads any more.
pub fn unshare_pid_namespace() -> io::Result<()> {
    // SAFETY: CLONE_NEWPID changes what the calling thread's children get, no memory and no descriptors.
    match unsafe { libc::unshare(libc::CLONE_NEWPID) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Runs `command` under an init process that only waits for it: when the command ends, or the thread that started
/// it ends for any reason, all descendants of the command are killed. The thread must have called
/// [`unshare_pid_namespace`] and start nothing else. The child's id is that of the init process; its exit status is
/// the command's, or 128 + n after signal n.
///
/// # Errors
/// If the kernel has no process descriptors (pidfd_open(2), since 5.3).
pub fn kill_descendants_with(command: &mut Command) -> io::Result<&mut Command> {
    let parent = pidfd_open(std::process::id())?;
    let split = move || {
        // SAFETY: between fork and exec only async-signal-safe calls are made and nothing is allocated; the process has one thread
        // after fork, so that forking again is safe, too.
        unsafe {
            if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) != 0 {
                return Err(io::Error::last_os_error());
            }
            // The parent may have ended before; in a new PID namespace getppid(2) is 0 either way.
            let mut ended = libc::pollfd { fd: parent.as_raw_fd(), events: libc::POLLIN, revents: 0 };
            if libc::poll(&raw mut ended, 1, 0) != 0 {
                return Err(io::Error::from_raw_os_error(libc::ESRCH));
            }
            match libc::fork() {
                -1 => Err(io::Error::last_os_error()),
                0 => Ok(()),
                child => wait_for(child),
            }
        }
    };
    // SAFETY: as said at the calls.
    Ok(unsafe { command.pre_exec(split) })
}

/// Main loop of the init process: reaps orphans, and exits with the command's status.
///
/// # Safety
/// Only between fork and exec.
unsafe fn wait_for(child: libc::pid_t) -> ! {
    // SAFETY: async-signal-safe calls on integers and a local; the descriptors closed are this process's own copies, among them the
    // one by which std learns of a failed exec.
    unsafe {
        libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, 0);
        loop {
            let mut status = 0;
            let ended = libc::waitpid(-1, &raw mut status, 0);
            if ended == child && libc::WIFEXITED(status) {
                libc::_exit(libc::WEXITSTATUS(status));
            }
            if ended == child && libc::WIFSIGNALED(status) {
                libc::_exit(128 + libc::WTERMSIG(status));
            }
            if ended < 0 && *libc::__errno_location() != libc::EINTR {
                libc::_exit(127);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the exit status of a script; the error is the reason why it cannot run here.
    fn run(script: &str) -> Result<Option<i32>, String> {
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                unshare_pid_namespace().map_err(|why| format!("no privilege for a PID namespace: {why}"))?;
                let mut command = Command::new("sh");
                let status = kill_descendants_with(command.args(["-c", script]))
                    .expect("a descriptor")
                    .status()
                    .expect("sh runs");
                Ok(status.code())
            });
            thread.join().expect("no panic")
        })
    }

    #[test]
    fn descendants_end_with_the_command() {
        let directory = tempfile::tempdir().expect("a directory");
        let pipe = directory.path().join("pipe");
        let script =
            format!("mkfifo {0}; (sleep 60 > {0}) & (cat {0}; echo gone > {0}.gone) & exit 7", pipe.display());
        let status = landspeed_testkit::or_skip!(run(&script));
        assert_eq!(status, Some(7));
        // No process has the pipe open for writing any more, and none will write the other file.
        assert!(!directory.path().join("pipe.gone").exists());
        let open = std::fs::read_dir("/proc").expect("proc").flatten().any(|entry| {
            let line = std::fs::read_to_string(entry.path().join("cmdline")).unwrap_or_default();
            line.contains(&*pipe.to_string_lossy())
        });
        assert!(!open, "a descendant is left");
    }

    #[test]
    fn missing_program_is_an_error() {
        let outcome = std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                unshare_pid_namespace().map_err(|why| format!("no privilege for a PID namespace: {why}"))?;
                let mut command = Command::new("/nonexistent/program");
                Ok::<_, String>(kill_descendants_with(&mut command).expect("a descriptor").status())
            });
            thread.join().expect("no panic")
        });
        let outcome = landspeed_testkit::or_skip!(outcome);
        assert_eq!(outcome.expect_err("no such program").kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn fatal_signal_is_reported_as_exit_status() {
        assert_eq!(landspeed_testkit::or_skip!(run("kill -9 $$")), Some(137));
    }
    /// Time between fork and the death signal in [`slow_starter`], ms.
    const SLOW_MS: i32 = 500;

    /// Set where [`slow_starter`] is wanted.
    const SLOW_STARTER: &str = "LANDSPEED_SLOW_STARTER";

    #[test]
    #[ignore = "a part of a_command_does_not_outlive_a_parent_killed_at_its_start, which kills it"]
    fn slow_starter() {
        if std::env::var_os(SLOW_STARTER).is_none() {
            return;
        }
        std::thread::spawn(|| {
            let separated = unshare_pid_namespace().is_ok();
            println!("{}", if separated { "ready" } else { "no privilege" });
            let mut command = Command::new("sleep");
            command.arg("70.25");
            let wait = || {
                // SAFETY: write and poll are async-signal-safe; the buffer is static, and no descriptor is polled.
                unsafe {
                    libc::write(1, c"forked\n".as_ptr().cast(), 7);
                    libc::poll(std::ptr::null_mut(), 0, SLOW_MS);
                }
                Ok(())
            };
            // SAFETY: as said at the calls.
            unsafe { command.pre_exec(wait) };
            if separated {
                let _ = kill_descendants_with(&mut command).expect("a descriptor").status();
            }
        })
        .join()
        .expect("no panic");
    }

    #[test]
    fn a_command_does_not_outlive_a_parent_killed_at_its_start() {
        let mut starter = Command::new(std::env::current_exe().expect("a program"));
        starter.args(["--exact", "contain::tests::slow_starter", "--ignored", "--nocapture"]);
        let mut starter =
            starter.env(SLOW_STARTER, "1").stdout(std::process::Stdio::piped()).spawn().expect("the test program");
        let mut output = io::BufReader::new(starter.stdout.take().expect("a pipe"));
        let seen = io::BufRead::lines(&mut output)
            .map_while(Result::ok)
            .find(|line| line.contains("forked") || line.contains("no privilege"));
        starter.kill().expect("it runs");
        starter.wait().expect("it ends");
        if seen.is_none_or(|line| line.contains("no privilege")) {
            landspeed_testkit::skip!("no privilege for a PID namespace");
        }
        crate::clock::sleep_until(crate::clock::monotonic_ns() + 2 * SLOW_MS as u64 * 1_000_000);
        let runs = std::fs::read_dir("/proc")
            .expect("proc")
            .flatten()
            .any(|entry| std::fs::read(entry.path().join("cmdline")).is_ok_and(|line| line == b"sleep\x0070.25\0"));
        assert!(!runs, "the command runs on");
    }
}
