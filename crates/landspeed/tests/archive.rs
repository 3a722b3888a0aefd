//! `landspeed archive` from the command line: killed imports, full disks, read-only archives, concurrent
//! use.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use landspeed_sys::clock;
use serde_json::Value;
use tempfile::TempDir;

use crate::common::PROGRAM;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The program with its archive in `directory`.
fn landspeed(directory: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(PROGRAM);
    command.args(words).env("LANDSPEED_ARCHIVE", directory.join("archive")).current_dir(repository());
    command
}

fn output(command: &mut Command) -> (i32, String, String) {
    let Output { status, stdout, stderr } = command.output().expect("the program starts");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (status.code().unwrap_or(-1), text(stdout), text(stderr))
}

/// Runs the program, asserts success and returns standard output.
fn run(directory: &Path, words: &[&str]) -> String {
    let (status, out, err) = output(&mut landspeed(directory, words));
    assert_eq!(status, 0, "{words:?}: {out}{err}");
    out
}

fn new() -> TempDir {
    tempfile::tempdir().expect("a directory")
}

/// Writes `count` small distinct documents as lines of a file.
fn lines(directory: &Path, name: &str, count: u64, first: u64) -> PathBuf {
    let bytes = std::fs::read(repository().join("fixtures/iperf3/3.18/tcp.json")).expect("a fixture");
    let mut document: Value = serde_json::from_slice(&bytes).expect("JSON");
    let mut text = String::new();
    for i in first..first + count {
        document["start"]["timestamp"]["timesecs"] = (1_700_000_000 + i).into();
        text += &document.to_string();
        text.push('\n');
    }
    let path = directory.join(name);
    std::fs::write(&path, text).expect("a file");
    path
}

fn verification(directory: &Path) -> Value {
    let out = run(directory, &["archive", "verify", "--json", "-"]);
    serde_json::from_str(&out).unwrap_or_else(|why| panic!("{why}: {out}"))
}

#[test]
fn nothing_stored_is_lost_in_25_random_kills() {
    kill_imports(25, 17);
}

#[test]
#[ignore = "long: a minute of kills"]
fn nothing_stored_is_lost_in_200_random_kills() {
    kill_imports(200, 18);
}

/// Kills imports at random times. Every document reported as stored must remain, and none may be corrupt.
fn kill_imports(kills: u64, seed: u64) {
    let directory = new();
    // The kills spread over the time that an import takes on this machine, with its load at the time.
    let file = lines(directory.path(), "documents.jsonl", 400, 1_000_000);
    let began_ns = clock::monotonic_ns();
    run(directory.path(), &["archive", "import", "--quiet", &file.to_string_lossy()]);
    let mut span_ns = clock::monotonic_ns() - began_ns;
    let mut random = landspeed_testkit::random::Random::new(seed);
    let deadline = clock::monotonic_ns() + 400_000_000_000;
    let mut stored = std::collections::BTreeSet::new();
    let mut interrupted = 0;
    for kill in 0..kills {
        assert!(clock::monotonic_ns() < deadline, "{kill} kills took too long");
        let file = lines(directory.path(), "documents.jsonl", 400, kill * 400);
        let mut child = landspeed(directory.path(), &["archive", "import", "--ids"])
            .arg(&file)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program starts");
        clock::sleep_until(clock::monotonic_ns() + random.below(span_ns));
        child.kill().expect("a signal");
        let ended = child.wait_with_output().expect("it ends");
        if ended.status.success() {
            span_ns -= span_ns / 4;
        } else {
            interrupted += 1;
            span_ns += span_ns / 16;
        }
        let text = String::from_utf8_lossy(&ended.stdout).into_owned();
        // The last line may be truncated.
        stored.extend(text.lines().filter(|line| line.len() == 64).map(str::to_owned));
    }
    let ids = run(directory.path(), &["archive", "find", "--ids"]);
    let kept: std::collections::BTreeSet<String> = ids.lines().map(str::to_owned).collect();
    assert_eq!(kept, stored_documents(directory.path()), "seed {seed}: found without `verify`");
    let found = verification(directory.path());
    assert_eq!((&found["damaged"], &found["adopted"]), (&serde_json::json!([]), &0.into()), "seed {seed}");
    let lost: Vec<&String> = stored.difference(&kept).collect();
    assert!(lost.is_empty(), "seed {seed}: {} of {} lost", lost.len(), stored.len());
    assert!(interrupted > kills / 4, "seed {seed}: only {interrupted} were interrupted");
    let again = verification(directory.path());
    assert_eq!((again["adopted"].as_u64(), again["unfinished"].as_u64()), (Some(0), Some(0)), "seed {seed}");
    assert_eq!(again["intact"].as_u64(), Some(kept.len() as u64), "seed {seed}");
    eprintln!("{} documents, {interrupted} of {kills} interrupted, {found}", kept.len());
}

/// Ids of the documents that exist as files.
fn stored_documents(directory: &Path) -> std::collections::BTreeSet<String> {
    let list =
        |path: &Path| std::fs::read_dir(path).expect("a directory").map(|entry| entry.expect("an entry").path());
    let files = list(&directory.join("archive/documents")).flat_map(|directory| list(&directory).collect::<Vec<_>>());
    let ids = files.filter_map(|path| path.file_name()?.to_str()?.strip_suffix(".json.gz").map(str::to_owned));
    ids.collect()
}

#[test]
fn two_imports_at_once_of_which_one_is_killed() {
    for (kill, delay_ms) in [20, 40, 60, 90, 130].into_iter().enumerate() {
        let directory = new();
        // The documents of the first file are in the second, too.
        let files = [lines(directory.path(), "a.jsonl", 200, 0), lines(directory.path(), "b.jsonl", 400, 0)];
        let [mut killed, whole] = files.map(|file| {
            let mut command = landspeed(directory.path(), &["archive", "import", "--quiet"]);
            command.arg(file).spawn().expect("it starts")
        });
        clock::sleep_until(clock::monotonic_ns() + delay_ms * 1_000_000);
        killed.kill().expect("a signal");
        killed.wait().expect("it ends");
        // While the second import is still running.
        run_quietly(directory.path(), &["archive", "find", "--ids"]);
        assert!(whole.wait_with_output().expect("it ends").status.success());
        assert_eq!(run(directory.path(), &["archive", "find", "--ids"]).lines().count(), 400, "kill {kill}");
        assert_eq!(verification(directory.path())["adopted"], 0, "kill {kill}");
        let leftovers = std::fs::read_dir(directory.path().join("archive")).expect("there");
        let names: Vec<_> = leftovers.map(|entry| entry.expect("an entry").file_name()).collect();
        assert!(!names.iter().any(|name| name.to_string_lossy().starts_with("writing.")), "{names:?}");
    }
}

/// Runs the program on an archive that may not exist yet.
fn run_quietly(directory: &Path, words: &[&str]) {
    let (status, out, err) = output(&mut landspeed(directory, words));
    assert!(status == 0 || err.contains("there is no archive"), "{out}{err}");
}

#[test]
fn two_imports_at_once_keep_every_document() {
    let directory = new();
    let files = [lines(directory.path(), "a.jsonl", 150, 0), lines(directory.path(), "b.jsonl", 150, 100)];
    let children = files.map(|file| {
        landspeed(directory.path(), &["archive", "import"])
            .arg(file)
            .stdout(Stdio::null())
            .spawn()
            .expect("it starts")
    });
    for child in children {
        let ended = child.wait_with_output().expect("it ends");
        assert!(ended.status.success());
    }
    // Fifty documents are in both files.
    assert_eq!(run(directory.path(), &["archive", "find", "--ids"]).lines().count(), 250);
    assert_eq!(verification(directory.path())["intact"], 250);
}

#[test]
fn a_measurement_is_kept_and_shown_as_it_was_printed() {
    let directory = new();
    let (status, printed, err) = output(&mut landspeed(directory.path(), &["check"]));
    assert!(status <= 1, "{printed}{err}");
    assert!(err.contains("results are kept in") && err.contains("LANDSPEED_ARCHIVE=off"), "{err}");
    let (_, _, err) = output(&mut landspeed(directory.path(), &["check"]));
    assert!(!err.contains("results are kept in"), "{err}");
    let id = run(directory.path(), &["archive", "find", "--kind", "audit", "--ids", "-n", "1"]);
    let shown = run(directory.path(), &["archive", "show", id.trim()]);
    assert!(shown.contains("landspeed.audit/1"), "{shown}");
    let first = printed.lines().next().expect("a line");
    assert!(shown.contains(first), "{first}\n{shown}");
    let json = run(directory.path(), &["archive", "show", id.trim(), "--json", "-"]);
    let document: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(document["schema"], "landspeed.audit/1");
    let (status, _, err) = output(landspeed(directory.path(), &["check"]).env("LANDSPEED_ARCHIVE", "off"));
    assert!(status <= 1 && !err.contains("archive"), "{err}");
}

#[test]
fn results_of_other_programs_are_imported() {
    let directory = new();
    let out = run(
        directory.path(),
        &["archive", "import", "fixtures/foreign", "fixtures/iperf3/3.12/tcp.json", "--tag", "old"],
    );
    assert!(out.starts_with("11 documents stored"), "{out}");
    let table = run(directory.path(), &["archive", "find", "--tag", "old", "--kind", "perfsonar"]);
    assert!(table.contains("9.41 Gb/s"), "{table}");
    let json = run(directory.path(), &["archive", "find", "kind=flent", "--json", "-"]);
    let list: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(list["records"][0]["figures"]["goodput_bps"], 180e6);
    let (status, _, err) =
        output(&mut landspeed(directory.path(), &["archive", "import", "README.md", "missing.json"]));
    assert_eq!(status, 1);
    assert!(err.contains("README.md: not a result") && err.contains("missing.json"), "{err}");
}

/// An iperf3 log with two documents, as `--logfile` writes it, in UTF-16 and after a warning.
#[test]
fn import_and_compare_read_the_same_files() {
    let directory = new();
    let one = std::fs::read_to_string(repository().join("fixtures/iperf3/3.12/tcp.json")).expect("a fixture");
    let two = std::fs::read_to_string(repository().join("fixtures/iperf3/3.22/tcp.json")).expect("a fixture");
    let log = format!("Warning: experimental\n{one}{two}iperf3: error - broken pipe\n");
    let utf16: Vec<u8> = [0xfeff].into_iter().chain(log.encode_utf16()).flat_map(u16::to_le_bytes).collect();
    let file = |name: &str, bytes: &[u8]| {
        let path = directory.path().join(name);
        std::fs::write(&path, bytes).expect("a file");
        path.display().to_string()
    };
    let transfer = std::fs::read(repository().join("fixtures/foreign/nuttcp-tcp.txt")).expect("a fixture");
    let (log, utf16) = (file("log.txt", log.as_bytes()), file("powershell.json", &utf16));
    let nuttcp = file("nuttcp.txt", &transfer.repeat(3));
    let out = run(directory.path(), &["archive", "import", log.as_str(), utf16.as_str(), nuttcp.as_str()]);
    // The documents of both logs are the same.
    assert!(out.starts_with("3 documents stored, 2 there already"), "{out}");
    let found = run(directory.path(), &["archive", "find", "kind=nuttcp", "--json", "-"]);
    let found: Value = serde_json::from_str(&found).expect("JSON");
    assert_eq!(found["records"].as_array().map(Vec::len), Some(3));
    for files in [&log, &utf16] {
        let json = run(
            directory.path(),
            &["compare", files.as_str(), nuttcp.as_str(), "--metric", "goodput", "--json", "-"],
        );
        let document: Value = serde_json::from_str(&json).expect("JSON");
        assert_eq!(document["groups"][0]["runs"], 2, "{document:#}");
    }
    let cut = file("cut.json", &one.as_bytes()[..1000]);
    for words in [vec!["archive", "import", cut.as_str()], vec!["compare", cut.as_str(), log.as_str()]] {
        let (status, _, err) = output(&mut landspeed(directory.path(), &words));
        assert!(status > 0 && err.contains("damaged at byte 1000"), "{words:?}: {err}");
    }
}

#[test]
fn invalid_queries_give_advice() {
    let directory = new();
    let fails = |words: &[&str], expected: &str| {
        let (status, out, err) = output(&mut landspeed(directory.path(), words));
        assert_eq!(status, 2, "{words:?}: {out}{err}");
        assert!(err.contains(expected), "{words:?}: {err}");
    };
    fails(&["archive", "list"], "there is no archive in");
    fails(&["archive", "verify", "--rebuild"], "there is no archive in");
    run(directory.path(), &["archive", "import", "fixtures/iperf3/3.12/tcp.json"]);
    fails(&["archive", "find", "hots=x"], "did you mean 'host'");
    fails(&["archive", "find", "--metric", "goodput<5GB"], "counts bytes");
    fails(&["archive", "show", "ffffffffff"], "no document of the archive");
    fails(&["archive", "trend", "loss"], "has loss");
    fails(&["archive", "tag", "+x"], "no document is named");
    fails(&["archive", "prune"], "--older-than");
    let (status, _, err) = output(landspeed(directory.path(), &["archive", "list"]).env("LANDSPEED_ARCHIVE", "off"));
    assert!(status == 2 && err.contains("results are not kept"), "{err}");
    std::fs::write(directory.path().join("archive/index.sqlite"), [9; 5000]).expect("a file");
    fails(&["archive", "list"], "landspeed archive verify --rebuild");
    run(directory.path(), &["archive", "verify", "--rebuild"]);
    assert!(run(directory.path(), &["archive", "list"]).contains("iperf3"));
}

#[test]
fn full_disk_does_not_fail_a_measurement() {
    if !landspeed_sys::process::is_root() {
        landspeed_testkit::skip!("mounting a small file system needs root");
    }
    let directory = new();
    let mounted = directory.path().join("full");
    std::fs::create_dir(&mounted).expect("a directory");
    let mount = Command::new("mount").args(["-t", "tmpfs", "-o", "size=64k", "tmpfs"]).arg(&mounted).status();
    if !mount.is_ok_and(|status| status.success()) {
        landspeed_testkit::skip!("a tmpfs cannot be mounted here");
    }
    let (status, out, err) =
        output(landspeed(&mounted, &["check"]).env("LANDSPEED_ARCHIVE", mounted.join("archive")));
    let unmounted = Command::new("umount").arg(&mounted).status();
    assert!(unmounted.is_ok_and(|status| status.success()));
    assert!(status <= 1 && !out.is_empty(), "{out}{err}");
    assert!(err.contains("the result is not in the archive"), "{err}");
}

/// Runs a shell script as root with an archive of 40 documents on a file system of 2 MiB, `$FULL`, in its own mount
/// namespace. Returns its output; `None` if the test was skipped.
fn on_a_small_disk(script: &str) -> Option<String> {
    if !landspeed_sys::process::is_root() {
        landspeed_testkit::skip::record("mounting a small file system needs root");
        return None;
    }
    let directory = new();
    let documents = lines(directory.path(), "documents.jsonl", 40, 0);
    let mount = "mkdir \"$FULL\" && mount -t tmpfs -o size=2m tmpfs \"$FULL\"";
    let fill = "fill() { for size in 64k 4k 1; do dd if=/dev/zero of=\"$FULL/filler\" bs=$size conv=notrunc oflag=append \
                2>/dev/null || true; done; }";
    let import = "landspeed() { status=0; \"$LANDSPEED\" \"$@\" || status=$?; echo \"status $status\"; }
                  landspeed archive import --quiet \"$DOCUMENTS\"";
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private", "sh", "-uc"]);
    command.arg(format!("{mount} || {{ echo NO TMPFS; exit 0; }}\n{fill}\n{import}\n{script}\n"));
    let full = directory.path().join("full");
    command.env("LANDSPEED_ARCHIVE", full.join("archive")).env("FULL", &full);
    let (status, out, err) = output(command.env("LANDSPEED", PROGRAM).env("DOCUMENTS", documents));
    assert_eq!(status, 0, "{out}{err}");
    if out.contains("NO TMPFS") {
        landspeed_testkit::skip::record("a tmpfs cannot be mounted here");
        return None;
    }
    Some(format!("{out}{err}"))
}

#[test]
fn a_full_archive_is_read_and_pruned() {
    let script = "fill; echo STEPS
        landspeed archive list --limit 3
        landspeed archive find --ids
        landspeed archive prune --keep 10
        landspeed archive prune --keep 10 --yes
        fill
        landspeed archive list --limit 3
        landspeed archive verify
        echo LEFT; landspeed archive find --ids";
    let Some(out) = on_a_small_disk(script) else { return };
    let (_, steps) = out.split_once("STEPS").expect("the disk is filled");
    assert_eq!(steps.matches("status 0").count(), 7, "{out}");
    assert!(steps.contains("3 of 40;") && steps.contains("30 documents would be removed"), "{out}");
    assert!(steps.contains("30 documents removed") && steps.contains("10 intact"), "{out}");
    let (_, left) = steps.split_once("LEFT").expect("the last step");
    assert_eq!(left.lines().filter(|line| line.len() == 64).count(), 10, "{out}");
}

#[test]
fn a_result_that_does_not_fit_is_a_warning_with_advice() {
    let Some(out) = on_a_small_disk("fill; echo STEPS; landspeed check") else { return };
    let (_, steps) = out.split_once("STEPS").expect("the disk is filled");
    assert!(steps.contains("status 0") || steps.contains("status 1"), "{out}");
    assert!(steps.contains("warning: the result is not in the archive"), "{out}");
    assert!(steps.contains("No space left on device") && steps.contains("archive prune"), "{out}");
}

#[test]
fn a_read_only_archive_is_read_with_and_without_its_index() {
    let script = "mount -o remount,ro \"$FULL\"; echo STEPS
        landspeed archive list --limit 3
        landspeed archive prune --keep 10
        landspeed archive prune --keep 10 --yes
        mount -o remount,rw \"$FULL\"; rm \"$LANDSPEED_ARCHIVE\"/index.sqlite*; mount -o remount,ro \"$FULL\"
        landspeed archive find --ids";
    let Some(out) = on_a_small_disk(script) else { return };
    let (_, steps) = out.split_once("STEPS").expect("it is read-only");
    assert_eq!(steps.matches("status 0").count(), 3, "{out}");
    assert!(steps.contains("3 of 40;") && steps.contains("30 documents would be removed"), "{out}");
    assert!(steps.contains("status 2") && steps.contains("cannot change the archive"), "{out}");
    assert_eq!(steps.lines().filter(|line| line.len() == 64).count(), 40, "{out}");
}

#[test]
fn what_a_run_of_root_left_is_named_and_skipped() {
    if !landspeed_sys::process::is_root() {
        landspeed_testkit::skip!("becoming another user needs root");
    }
    let directory = new();
    let file = lines(directory.path(), "documents.jsonl", 20, 0);
    run(directory.path(), &["archive", "import", file.to_str().expect("plain")]);
    let owned = Command::new("chown").args(["-R", "65534:65534"]).arg(directory.path()).status();
    assert!(owned.is_ok_and(|status| status.success()));
    let program = directory.path().join("landspeed");
    std::fs::copy(PROGRAM, &program).expect("a copy that others may run");
    let mut documents = std::fs::read_dir(directory.path().join("archive/documents")).expect("there");
    let theirs = documents.next().expect("a directory").expect("an entry").path();
    std::os::unix::fs::chown(&theirs, Some(0), Some(0)).expect("as an earlier landspeed left it");
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&program).args(["archive", "verify"]);
    let (status, out, err) = output(command.env("LANDSPEED_ARCHIVE", directory.path().join("archive")));
    assert_eq!(status, 1, "{out}{err}");
    let name = theirs.file_name().expect("a name").to_string_lossy();
    assert!(out.contains(&format!("documents/{name}: Permission denied")) && out.contains("chown"), "{out}");
    assert!(!out.contains("damaged"), "{out}");
    // Root neither writes to the user's archive nor leaves files in it, and may read it.
    let before = everything_below(directory.path());
    let (status, out, err) = output(&mut landspeed(directory.path(), &["check"]));
    assert!(status <= 1 && err.contains("the result is not in the archive"), "{out}{err}");
    assert!(err.contains("owned by another user (uid 65534)") && err.contains("LANDSPEED_ARCHIVE"), "{err}");
    assert_eq!(run(directory.path(), &["archive", "find", "--ids"]).lines().count(), 20);
    assert_eq!(everything_below(directory.path()), before);
}

fn everything_below(directory: &Path) -> Vec<u8> {
    Command::new("find").arg(directory).args(["-printf", "%p %u %m %s\n"]).output().expect("find runs").stdout
}

#[test]
fn read_only_archive_can_be_queried() {
    if !landspeed_sys::process::is_root() {
        landspeed_testkit::skip!("becoming another user needs root");
    }
    let directory = new();
    run(directory.path(), &["archive", "import", "fixtures/iperf3/3.12/tcp.json"]);
    let opened = Command::new("chmod").args(["-R", "a+rX"]).arg(directory.path()).status();
    assert!(opened.is_ok_and(|status| status.success()));
    let program = directory.path().join("landspeed");
    std::fs::copy(PROGRAM, &program).expect("a copy that others may run");
    let as_nobody = |words: &[&str]| {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&program).args(words);
        output(command.env("LANDSPEED_ARCHIVE", directory.path().join("archive")))
    };
    let (status, out, err) = as_nobody(&["archive", "find"]);
    assert_eq!(status, 0, "{err}");
    assert!(out.contains("iperf3"), "{out}");
    let (status, _, err) = as_nobody(&["check"]);
    assert!(status <= 1, "{err}");
    assert!(err.contains("the result is not in the archive"), "{err}");
}

#[test]
fn labset_of_an_earlier_version_is_a_sweep() {
    let directory = new();
    let old = "fixtures/reports/labset.json";
    run(directory.path(), &["archive", "import", old]);
    let list = run(directory.path(), &["archive", "list", "kind=sweep"]);
    let row = list.lines().find(|line| line.contains("Goodput over buffer size")).expect("a row");
    let shown = run(directory.path(), &["archive", "show", row.split_whitespace().next().expect("an id")]);
    assert!(shown.contains("sweep    Goodput over buffer size: 6 cells, 12 runs"), "{shown}");
    let parts = [format!("{old}:buffer=20KB"), format!("{old}:buffer=1MB")];
    let compared = run(directory.path(), &["compare", &parts[0], &parts[1], "--metric", "goodput"]);
    assert!(compared.contains("goodput"), "{compared}");
}
