//! Completions in real shells: keys are typed on a pseudo terminal, and the resulting command line is
//! compared.

use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use landspeed_sys::clock;

use super::{Installed, find};

/// Timeout of a shell for one line, seconds; allows for a busy machine.
const TIMEOUT_S: u64 = 60;

/// Text typed before Tab, and the expected last words of the command line after it.
type Case = (String, String);

/// Cases for every shell. Words that depend on the machine are read from the same sources as the program
/// reads them.
fn cases() -> Vec<Case> {
    let case = |typed: &str, words: &str| (typed.to_owned(), words.to_owned());
    let mut cases = vec![
        case("landspeed trac", "<landspeed><trace>"),
        case("landspeed run --rever", "<run><--reverse>"),
        case("landspeed run --send sendf", "<--send><sendfile>"),
        case("landspeed schema fac", "<schema><facts>"),
        case("landspeed lab gallery show nuttcp-b", "<show><nuttcp-burst>"),
        case("landspeed check --explain TCP-00", "<--explain><TCP-00"),
        case("landspeed explain receiver-w", "<explain><receiver-window>"),
        case("landspeed trace transf", "<trace><transfer.pcap>"),
        case("landspeed tune plan --json dir", "<--json><directory/>"),
        case("landspeed lab run --cache dir", "<--cache><directory/>"),
    ];
    let controls = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap_or_default();
    if let Some(control) = controls.split_whitespace().next() {
        let rivals = controls.split_whitespace().filter(|other| other.starts_with(&control[..2])).count();
        if rivals == 1 {
            cases.push(case(&format!("landspeed run -C {}", &control[..2]), &format!("<-C><{control}>")));
        }
    }
    let interfaces = std::fs::read_dir("/sys/class/net").into_iter().flatten().flatten();
    let with_l = interfaces.filter(|entry| entry.file_name().to_string_lossy().starts_with('l')).count();
    if with_l == 1 {
        cases.push(case("landspeed tap -i l", "<-i><lo>"));
    }
    cases
}

/// Types each case into `shell` and compares the result. `setup` is typed first, line by line.
fn each_case_completes(shell: &[&str], setup: &[String], installed: &Installed) {
    let work = tempfile::tempdir().expect("a temporary directory");
    std::fs::write(work.path().join("transfer.pcap"), "").expect("writable");
    std::fs::create_dir(work.path().join("directory")).expect("writable");
    let mut terminal = Terminal::open(shell, work.path(), installed);
    for line in setup {
        terminal.enter(line);
    }
    for (typed, words) in cases() {
        // Tab completes; Ctrl-A moves to the beginning of the line, where a command that prints the words is
        // inserted.
        let said = terminal.enter(&format!("{typed}\t\x01printf '<%s>' "));
        assert!(said.contains(&words), "{typed}<TAB> was to give {words}, and all was: {said:?}");
    }
    terminal.close();
}

/// A shell on a pseudo terminal of `script`.
struct Terminal {
    child: std::process::Child,
    keys: Option<std::process::ChildStdin>,
    screen: Arc<Mutex<String>>,
    reader: Option<std::thread::JoinHandle<()>>,
    lines: u32,
}

impl Terminal {
    fn open(shell: &[&str], work: &Path, installed: &Installed) -> Self {
        let mut path = std::ffi::OsString::from(installed.path("usr/bin"));
        path.push(":/usr/bin:/bin");
        let mut child = Command::new("script")
            .args(["-q", "-f", "-e", "-c", &shell.join(" "), "/dev/null"])
            .current_dir(work)
            .env_clear()
            .envs([("TERM", "dumb"), ("LC_ALL", "C.UTF-8"), ("SHELL", "/bin/sh"), ("PS1", "$ ")])
            .env("PATH", path)
            .env("HOME", work)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("script runs");
        let keys = child.stdin.take();
        let mut output = child.stdout.take().expect("piped");
        let screen: Arc<Mutex<String>> = Arc::default();
        let shown = Arc::clone(&screen);
        let reader = std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = output.read(&mut buffer) {
                shown.lock().expect("no panic").push_str(&String::from_utf8_lossy(&buffer[..count]));
            }
        });
        Self { child, keys, screen, reader: Some(reader), lines: 0 }
    }

    /// Types a line and Enter, waits until the shell has executed it, and returns the output.
    fn enter(&mut self, line: &str) -> String {
        self.lines += 1;
        let keys = self.keys.as_mut().expect("open");
        let from = self.screen.lock().expect("no panic").len();
        // The marker is computed, so that its echo does not match.
        let mark = format!("done-{}-done", self.lines * 7);
        let typed = format!("{line}\r printf 'done-%d-done\\n' $(expr {} '*' 7)\r", self.lines);
        keys.write_all(typed.as_bytes()).and_then(|()| keys.flush()).expect("the terminal takes keys");
        let deadline = clock::monotonic_ns() + TIMEOUT_S * 1_000_000_000;
        loop {
            let said = self.screen.lock().expect("no panic")[from..].to_owned();
            if said.contains(&mark) {
                return said;
            }
            let now = clock::monotonic_ns();
            assert!(now < deadline, "{TIMEOUT_S} s were not enough for {line:?}: {said:?}");
            clock::sleep_until(now + 5_000_000);
        }
    }

    fn close(mut self) {
        let keys = self.keys.as_mut().expect("open");
        let _ = keys.write_all(b"exit\r").and_then(|()| keys.flush());
        let deadline = clock::monotonic_ns() + TIMEOUT_S * 1_000_000_000;
        while self.child.try_wait().expect("a child of ours").is_none() && clock::monotonic_ns() < deadline {
            clock::sleep_until(clock::monotonic_ns() + 5_000_000);
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // Closing the terminal ends the shell.
        self.keys = None;
        let _ = self.child.kill();
        let _ = self.child.wait();
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
    }
}

/// Returns why this shell cannot be tested here.
fn missing(shell: &str) -> Option<String> {
    ["script", shell].iter().find(|program| find(program).is_none()).map(|program| format!("there is no {program}"))
}

#[test]
fn bash_completes_commands_options_values_and_files() {
    if let Some(why) = missing("bash") {
        landspeed_testkit::skip!("{why}");
    }
    let Some(installed) = Installed::new() else { return };
    let script = installed.path("usr/share/bash-completion/completions/landspeed");
    let setup = ["bind 'set enable-bracketed-paste off'".to_owned(), format!("source {}", script.display())];
    each_case_completes(&["bash", "--norc", "--noprofile", "-i"], &setup, &installed);
}

#[test]
fn zsh_completes_commands_options_values_and_files() {
    if let Some(why) = missing("zsh") {
        landspeed_testkit::skip!("{why}");
    }
    let Some(installed) = Installed::new() else { return };
    let functions = installed.path("usr/share/zsh/site-functions");
    // As for a user: the function is found in fpath and loaded on first use.
    let setup = [
        "bindkey -e; unsetopt zle_bracketed_paste; unset zle_bracketed_paste".to_owned(),
        format!("fpath=({} $fpath); autoload -Uz compinit; compinit -u -D", functions.display()),
    ];
    each_case_completes(&["zsh", "-f", "-i"], &setup, &installed);
}

#[test]
fn fish_completes_commands_options_values_and_files() {
    if let Some(why) = missing("fish") {
        landspeed_testkit::skip!("{why}");
    }
    let Some(installed) = Installed::new() else { return };
    let script = installed.path("usr/share/fish/vendor_completions.d/landspeed.fish");
    let setup = [format!("source {}", script.display())];
    each_case_completes(&["fish", "--no-config", "-i"], &setup, &installed);
}
