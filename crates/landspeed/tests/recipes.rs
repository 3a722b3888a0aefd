//! The commands of `docs/recipes` run as printed, each recipe in a separate directory. `dtn.example` is a server
//! on loopback, and what takes long is shortened.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use landspeed_testkit::process::Process;

use crate::common::PROGRAM;

/// The addresses for landspeed and iperf3 clients.
struct Addresses {
    landspeed: SocketAddr,
    iperf3: SocketAddr,
}

fn recipes() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/recipes")
}

/// The lines after `$ ` in the blocks of a page.
fn lines(page: &str) -> impl Iterator<Item = &str> {
    page.lines().filter_map(|line| line.strip_prefix("$ "))
}

/// The line with the server's address, short times, and experiments of the lab only planned.
fn shortened(line: &str, addresses: &Addresses) -> String {
    let of_iperf3 = line.contains("iperf3 -c");
    let mut words: Vec<String> = Vec::new();
    for word in line.split(' ') {
        let before = words.last().map(String::as_str);
        let word = match (before, word) {
            (Some("-t"), _) => "0.5".to_owned(),
            (Some("-O"), _) => "0.2".to_owned(),
            (Some("--for"), _) => "1s".to_owned(),
            (Some("-p"), "5201") => addresses.iperf3.port().to_string(),
            (_, "dtn.example:5201") => addresses.iperf3.to_string(),
            (_, "dtn.example") if of_iperf3 => addresses.iperf3.ip().to_string(),
            (_, "dtn.example") => addresses.landspeed.to_string(),
            (_, word) => word.to_owned(),
        };
        words.push(word);
    }
    if line.starts_with("landspeed run ") && !words.iter().any(|word| word == "-t") {
        words.extend(["-t", "0.5"].map(str::to_owned));
    }
    // iperf3's times are whole seconds.
    if of_iperf3 && let Some(time) = words.iter_mut().find(|word| *word == "0.5") {
        "1".clone_into(time);
    }
    if (line.contains(" lab run ") || line.contains(" gallery run ")) && !line.contains("--dry-run") {
        words.push("--dry-run".to_owned());
    }
    words.join(" ")
}

#[test]
fn every_command_of_the_recipes_runs() {
    let mut command = Command::new(PROGRAM);
    command.args(["serve", "--listen", "127.0.0.1:0", "--iperf3-port", "0"]).env("NO_COLOR", "1");
    let server = Process::start(command);
    let addresses =
        Addresses { landspeed: server.address_in("listening on"), iperf3: server.address_in("iperf3 clients") };
    let beside = Path::new(PROGRAM).parent().expect("a directory");
    let path = format!("{}:{}", beside.display(), std::env::var("PATH").expect("a path"));
    let (mut ran, mut failed) = (0, Vec::new());
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(recipes()).expect("recipes").flatten().map(|file| file.path()).collect();
    files.sort();
    for file in files.iter().filter(|file| file.extension().is_some_and(|found| found == "md")) {
        let name = file.file_name().expect("a name").display();
        let page = std::fs::read_to_string(file).expect("a page");
        let directory = tempfile::tempdir().expect("a temporary directory");
        for scenario in files.iter().filter(|file| file.extension().is_some_and(|found| found == "toml")) {
            let copy = directory.path().join(scenario.file_name().expect("a name"));
            std::fs::copy(scenario, copy).expect("a copy");
        }
        for line in lines(&page) {
            let short = shortened(line, &addresses);
            let mut bash = Command::new("timeout");
            bash.args(["60", "bash", "-o", "pipefail", "-c", &short])
                .current_dir(directory.path())
                .stdin(Stdio::null());
            bash.env("PATH", &path).env("NO_COLOR", "1").env("LANDSPEED_ARCHIVE", directory.path().join("archive"));
            let output = bash.output().expect("timeout, of coreutils, runs");
            ran += 1;
            if !matches!(output.status.code(), Some(0 | 1)) {
                let said = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
                failed.push(format!("{name}: {line}\n{short}\n{}", said.concat()));
            }
        }
    }
    assert!(ran > 30 && failed.is_empty(), "{} of {ran} failed\n{}", failed.len(), failed.join("\n"));
}
