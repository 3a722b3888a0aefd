//! Inputs without an end, without a writer, or of the wrong kind.

use std::fs::File;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use landspeed_sys::process::is_root;
use landspeed_testkit::process::run_concurrently;

use crate::hostile::common::{Ended, Process, TIMEOUT_S, landspeed, scratch};

/// Address space of each command, KiB: a program that reads without a limit fails. Static reservations need some.
const MEMORY_KIB: u64 = 6 << 20;

/// Every command that reads a file which the user names (`@`).
const READERS: &[&str] = &[
    "report @ -o x.html",
    "report @ --csv -",
    "compare @ @",
    "compare a=@ b=@",
    "archive import @",
    "trace @",
    "trace @ @",
    "trace @ --against @",
    "sweep @",
    "lab run @",
    "emulate @ -- true",
    "serve --config @",
    "serve --listen 127.0.0.1:0 --key-file @",
    "run 127.0.0.1:9 --key-file @",
    "tuneup 127.0.0.1:9 --key-file @",
    "check --peer 127.0.0.1:9 --key-file @",
    "check --host @",
    "tune plan --findings @",
    "iperf3 -s -p 0 --authorized-users-path @ --rsa-private-key-path @",
    "run 127.0.0.1:9 --iperf3 --username u --rsa-public-key-path @",
    "lab kernel build --source @",
];

fn inputs(directory: &Path) -> Vec<PathBuf> {
    let fifo = directory.join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().expect("mkfifo").success());
    let sparse = directory.join("sparse");
    File::create(&sparse).and_then(|file| file.set_len(1 << 40)).expect("a sparse file");
    let empty = directory.join("empty");
    std::fs::create_dir(&empty).expect("a directory");
    // Also a recorded host with such a file in it.
    let host = directory.join("host");
    std::fs::create_dir(&host).expect("a directory");
    assert!(Command::new("mkfifo").arg(host.join("kernel.json")).status().expect("mkfifo").success());
    let unreadable = directory.join("unreadable");
    std::fs::write(&unreadable, "x").expect("written");
    std::fs::set_permissions(&unreadable, std::fs::Permissions::from_mode(0o0)).expect("set");
    let mut all = vec!["/dev/zero".into(), "/dev/null".into(), fifo, sparse, empty, host, directory.join("missing")];
    if !is_root() {
        all.push(unreadable);
    }
    all
}

fn run(directory: &Path, line: &str, input: &Path) -> Ended {
    let words = line.replace('@', input.to_str().expect("a plain path"));
    let mut command = Command::new("sh");
    command.args(["-c", &format!("ulimit -v {MEMORY_KIB}; exec \"$0\" {words}"), crate::common::PROGRAM]);
    command.current_dir(directory).env("LANDSPEED_ARCHIVE", directory.join("archive")).stdin(Stdio::null());
    Process::start(command).end(TIMEOUT_S)
}

#[test]
fn endless_waiting_and_foreign_inputs_are_errors() {
    run_concurrently(READERS, |line| {
        let directory = scratch();
        for input in inputs(directory.path()) {
            let ended = run(directory.path(), line, &input);
            let what = format!("{line} with {}", input.display());
            // `archive import` counts files that it cannot import.
            let expected = if line.starts_with("iperf3") || line.starts_with("archive import") { 1 } else { 2 };
            let imports_nothing = line.starts_with("archive import") && input.is_dir();
            assert!(ended.code == expected || (imports_nothing && ended.code <= 1), "{what}: {ended:?}");
            let lines = ended.stderr.lines().filter(|line| !line.contains("results are kept in")).count();
            assert!((1..=6).contains(&lines) || imports_nothing, "{what}: {ended:?}");
            assert!(!ended.stderr.contains("memory allocation"), "{what}: {ended:?}");
        }
    });
}

#[test]
fn the_limit_or_the_kind_of_an_input_is_named() {
    let directory = scratch();
    for (line, input, word) in [
        ("compare @ @", "/dev/zero", "it is a device, not a regular file"),
        ("compare @ @", "fifo", "it is a FIFO, not a regular file"),
        ("compare @ @", "sparse", "it has more than 1 GiB, the limit"),
        ("sweep @", "sparse", "it has more than 16 MiB, the limit"),
        ("lab run @", "/dev/zero", "it is a device, not a regular file"),
        ("trace @", "fifo", "it is a FIFO, not a regular file"),
        ("trace @", "/dev/zero", "it is a device, not a regular file"),
    ] {
        if !directory.path().join("fifo").exists() {
            inputs(directory.path());
        }
        let ended = run(directory.path(), line, &directory.path().join(input));
        assert!(ended.stderr.contains(word), "{line} with {input}: {ended:?}");
    }
}

#[test]
fn endless_standard_input_has_a_limit() {
    let directory = scratch();
    run_concurrently(["lab run -", "trace -"], |line| {
        let mut command = landspeed();
        command.args(line.split(' ')).stdin(File::open("/dev/zero").expect("the device"));
        command.current_dir(directory.path());
        let ended = Process::start(command).end(TIMEOUT_S);
        assert_eq!(ended.code, 2, "{line}: {ended:?}");
    });
}

/// A compressed file: name, start, text that is repeated in members of a million, members, end, what the error says.
struct Bomb(&'static str, &'static str, &'static str, usize, &'static str, &'static str);

const BOMBS: [Bomb; 3] = [
    Bomb("iperf3.json.gz", IPERF3, r#"{"a":1},"#, 12, r#"{"a":1}]}"#, "would take more than 8 GiB of memory"),
    Bomb("run.flent.gz", RUN, r#"{"code":"","message":""},"#, 9, "{}]}", "would take more than 8 GiB of memory"),
    Bomb("blank.json.gz", "{", BLANK, 17, "}", "more than 1 GiB, the limit"),
];
const IPERF3: &str = r#"{"start":{"version":"iperf 3.12"},"end":{},"intervals":["#;
const RUN: &str = r#"{"schema":"landspeed.run/1","warnings":["#;
const BLANK: &str = "                                                                ";

#[test]
fn small_compressed_files_do_not_fill_the_memory() {
    let directory = scratch();
    for Bomb(name, start, text, members, end, _) in BOMBS {
        let script = "printf %s \"$2\" | gzip > \"$1\"
            yes \"$3\" | head -n 1000000 | tr -d '\\n' | gzip > member
            for n in $(seq \"$4\"); do cat member; done >> \"$1\"
            printf %s \"$5\" | gzip >> \"$1\"";
        let words = ["-c", script, "sh", name, start, text, &members.to_string(), end];
        assert!(Command::new("sh").args(words).current_dir(directory.path()).status().expect("a shell").success());
        let bytes = std::fs::metadata(directory.path().join(name)).expect("written").len();
        assert!(bytes < 2_000_000, "{name}: {bytes}");
    }
    let lines = ["report @ -o x.html", "archive import @", "compare @ @", "trace @"];
    run_concurrently(BOMBS.iter().flat_map(|bomb| lines.map(|line| (bomb, line))), |(bomb, line)| {
        let Bomb(name, .., why) = bomb;
        let ended = run(directory.path(), line, &directory.path().join(name));
        let expected = if line.starts_with("archive") { 1 } else { 2 };
        assert_eq!(ended.code, expected, "{line} {name}: {ended:?}");
        let why = if line.starts_with("trace") { "not a capture" } else { why };
        assert!(ended.stderr.contains(why), "{line} {name}: {ended:?}");
        let lines = ended.stderr.lines().filter(|line| !line.contains("results are kept in")).count();
        assert!((1..=6).contains(&lines) && !ended.stderr.contains("memory allocation"), "{line} {name}: {ended:?}");
    });
}
