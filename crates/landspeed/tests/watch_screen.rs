//! `landspeed watch` on a pseudo terminal: keys, pages, and restoring the terminal.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use landspeed_testkit::process::{signal, until};
use landspeed_testkit::skip;

use crate::common::PROGRAM;

/// Timeout of a key's effect, seconds; allows for a busy machine.
const TIMEOUT_S: u64 = 60;
/// Size of the terminal: columns and rows.
const SIZE: (usize, usize) = (100, 24);

/// A transfer over loopback, until dropped.
struct Transfer {
    port: u16,
    ends: [TcpStream; 2],
    threads: Vec<JoinHandle<()>>,
}

impl Transfer {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("bound").port();
        let near = TcpStream::connect(("127.0.0.1", port)).expect("connected");
        let (far, _) = listener.accept().expect("connected");
        let ends = [near.try_clone().expect("a copy"), far.try_clone().expect("a copy")];
        let (mut near, mut far) = (near, far);
        let write = std::thread::spawn(move || {
            while near.write_all(&[7; 4096]).is_ok() {
                landspeed_sys::clock::sleep_until(landspeed_sys::clock::monotonic_ns() + 1_000_000);
            }
        });
        let read = std::thread::spawn(move || {
            let mut buffer = vec![0; 1 << 16];
            while far.read(&mut buffer).is_ok_and(|n| n > 0) {}
        });
        Self { port, ends, threads: vec![write, read] }
    }
}

impl Drop for Transfer {
    fn drop(&mut self) {
        for end in &self.ends {
            let _ = end.shutdown(Shutdown::Both);
        }
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// A shell script on a pseudo terminal of `script` (util-linux). Killed on drop.
struct Terminal {
    child: Child,
    keys: Option<ChildStdin>,
    output: Arc<Mutex<Vec<u8>>>,
    reader: Option<JoinHandle<()>>,
    directory: tempfile::TempDir,
}

impl Terminal {
    /// Runs `script`, in which `$watch` is the command for a transfer. Files are relative to [`Self::file`].
    fn run(transfer: &Transfer, script: &str) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let inner = directory.path().join("script");
        let text = format!(
            "cd {}\nstty rows {} cols {}\nwatch='{PROGRAM} watch --interval 1s --port {}'\n{script}\n",
            directory.path().display(),
            SIZE.1,
            SIZE.0,
            transfer.port
        );
        std::fs::write(&inner, text).expect("a file");
        let mut command = Command::new("script");
        command.args(["-qefc", &format!("bash {}", inner.display()), "/dev/null"]);
        command.env("TERM", "xterm").env("NO_COLOR", "1").env_remove("COLUMNS");
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("script");
        let output = Arc::<Mutex<Vec<u8>>>::default();
        let (mut from, into) = (child.stdout.take().expect("piped"), Arc::clone(&output));
        let reader = std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(n @ 1..) = from.read(&mut buffer) {
                into.lock().expect("no panic").extend_from_slice(&buffer[..n]);
            }
        });
        Self { keys: child.stdin.take(), child, output, reader: Some(reader), directory }
    }

    fn press(&mut self, keys: &str) {
        self.keys.as_mut().expect("open").write_all(keys.as_bytes()).expect("typed");
    }

    /// Waits until the screen contains `text`.
    fn wait_for_text(&self, text: &str) {
        until(TIMEOUT_S, text, || screen(&self.output.lock().expect("no panic")).contains(text));
    }

    fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.file(name)).unwrap_or_else(|why| panic!("{name}: {why}"))
    }

    fn wait_for(&self, name: &str) -> String {
        until(TIMEOUT_S, name, || std::fs::metadata(self.file(name)).is_ok_and(|file| file.len() > 0));
        self.read(name)
    }

    /// Waits for the end; returns the complete output.
    fn end(&mut self) -> String {
        until(TIMEOUT_S, "the end", || self.child.try_wait().is_ok_and(|status| status.is_some()));
        self.reader.take().expect("once").join().expect("no panic");
        String::from_utf8_lossy(&self.output.lock().expect("no panic")).into_owned()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Renders the screen after these bytes: supports cursor positions, clearing, and text.
fn screen(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let mut cells = vec![vec![' '; SIZE.0]; SIZE.1];
    let (mut x, mut y) = (0, 0);
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\x1b' if letters.peek() == Some(&'[') => {
                letters.next();
                let mut words = String::new();
                let last = loop {
                    match letters.next() {
                        Some(end @ '@'..='~') => break end,
                        Some(more) => words.push(more),
                        None => break ' ',
                    }
                };
                match last {
                    'H' => {
                        let mut places = words.split(';').map(|word| word.parse::<usize>().unwrap_or(1) - 1);
                        (y, x) = (places.next().unwrap_or(0), places.next().unwrap_or(0));
                    }
                    'J' => cells.iter_mut().for_each(|line| line.fill(' ')),
                    _ => {}
                }
            }
            '\n' => y += 1,
            '\r' => x = 0,
            letter if letter.is_control() => {}
            letter => {
                if let Some(cell) = cells.get_mut(y).and_then(|line| line.get_mut(x)) {
                    *cell = letter;
                }
                x += 1;
            }
        }
    }
    cells.into_iter().map(|line| line.into_iter().collect::<String>() + "\n").collect()
}

/// Name of a missing program: `script`, `bash` or `stty`.
fn missing() -> Option<&'static str> {
    ["script", "bash", "stty"].into_iter().find(|name| !Path::new("/usr/bin").join(name).exists())
}

#[test]
fn keys_sort_open_a_flow_go_back_and_quit() {
    if let Some(name) = missing() {
        skip!("no {name}");
    }
    let transfer = Transfer::start();
    let mut terminal =
        Terminal::run(&transfer, "stty -a > before\n$watch --json w.json; echo $? > code\nstty -a > after");
    terminal.wait_for_text("2 of 2 connections busy; watch uses");
    terminal.wait_for_text("▼rate");
    terminal.press("\x1b[C");
    terminal.wait_for_text("▼RTT");
    terminal.press("r");
    terminal.wait_for_text("▲RTT");
    terminal.press("/nothing\r");
    terminal.wait_for_text("No flow matches the filter.");
    terminal.press("\x1b");
    terminal.wait_for_text("Enter flow");
    terminal.press("\x1b[B\r");
    terminal.wait_for_text("60 s ago");
    terminal.wait_for_text("  cause ");
    terminal.press("\x1b");
    terminal.wait_for_text("Enter flow");
    terminal.press("?");
    terminal.wait_for_text("reverse the order");
    terminal.press("\x1b");
    terminal.wait_for_text("Enter flow");
    terminal.press("p");
    terminal.wait_for_text("PAUSED");
    terminal.press("q");
    let text = terminal.end();
    assert_eq!(terminal.read("code"), "0\n", "{text}");
    assert_eq!(terminal.read("after"), terminal.read("before"), "the terminal's modes are restored");
    let (_, after) = text.rsplit_once("\x1b[?1049l").expect("the second screen is left");
    assert!(after.contains("  overhead ") && after.contains("  watched "), "{after}");
    assert!(terminal.read("w.json").contains("landspeed.watch/1"));
}

#[test]
fn sigterm_and_sighup_restore_the_terminal() {
    if let Some(name) = missing() {
        skip!("no {name}");
    }
    let transfer = Transfer::start();
    let script = "stty -a > before\nbash -c \"echo \\$\\$ > pid; exec $watch\"; echo $? > code\nstty -a > after";
    for name in ["TERM", "HUP"] {
        let mut terminal = Terminal::run(&transfer, script);
        terminal.wait_for_text("connections busy");
        signal(terminal.wait_for("pid").trim().parse().expect("a number"), name);
        let text = terminal.end();
        assert_eq!(terminal.read("code"), "0\n", "{name}: {text}");
        assert_eq!(terminal.read("after"), terminal.read("before"), "{name}");
        assert!(text.rsplit_once("\x1b[?1049l").expect("left").1.contains("  overhead "), "{name}: {text}");
    }
}

#[test]
fn ctrl_z_restores_the_terminal_until_fg() {
    if let Some(name) = missing() {
        skip!("no {name}");
    }
    let transfer = Transfer::start();
    let script = "set -m\nstty -a > before\n$watch\nstty -a > stopped\nfg\necho $? > code\nstty -a > after";
    let mut terminal = Terminal::run(&transfer, script);
    terminal.wait_for_text("connections busy");
    terminal.press("\x1a");
    assert_eq!(
        terminal.wait_for("stopped"),
        terminal.read("before"),
        "a stopped watch leaves the modes as they were"
    );
    terminal.wait_for_text("connections busy");
    terminal.press("\x1b[C");
    terminal.wait_for_text("▼RTT");
    terminal.press("q");
    let text = terminal.end();
    assert_eq!(terminal.read("code"), "0\n", "{text}");
    assert_eq!(terminal.read("after"), terminal.read("before"));
}

#[test]
fn terminal_without_cursor_positioning_gets_lines() {
    if let Some(name) = missing() {
        skip!("no {name}");
    }
    let transfer = Transfer::start();
    let script = "$watch --for 3s --plain\nTERM=dumb $watch --for 3s; echo $? > code";
    let mut terminal = Terminal::run(&transfer, script);
    let text = terminal.end();
    assert_eq!(terminal.read("code"), "0\n", "{text}");
    assert!(!text.contains('\x1b'), "{text:?}");
    assert!(text.matches("connections busy").count() >= 4, "{text}");
}
