//! Outputs of root at paths where another user has placed a link.

use std::os::unix::fs::{PermissionsExt as _, lchown, symlink};
use std::path::Path;

use landspeed_testkit::skip;

use crate::hostile::common::{Process, TIMEOUT_S, landspeed, scratch};

/// Commands that write: `FILE` is a link to a file, `DIR` a link to a directory, `RING` the first file of a ring; `MESH` is an
/// inventory.
const COMMANDS: [&str; 22] = [
    "calc --rate 10G --rtt 92ms --json FILE",
    "report fixtures/reports/lab.json -o FILE",
    "report fixtures/reports/lab.json --csv FILE",
    "report fixtures/reports/lab.json --svg DIR",
    "serve --new-key FILE",
    "serve --new-key DIR/site.key",
    "iperf3 -c 127.0.0.1 -p 9 --pidfile FILE",
    "iperf3 -c 127.0.0.1 -p 9 --logfile FILE",
    "run 127.0.0.1:9 --jsonl FILE",
    "run 127.0.0.1:9 --json FILE",
    "watch --for 10ms --jsonl FILE",
    "man DIR",
    "man DIR/pages",
    "check --record DIR/record",
    "archive export --format csv -o FILE",
    "mesh --new DIR/site.toml",
    "mesh MESH --once --out DIR/state",
    "lab suite write rfc9743 DIR/suite",
    "lab new DIR/x.toml",
    "tap -i lo -t 100ms -w FILE",
    "tap -i lo -t 100ms -w DIR/capture.pcapng",
    "tap -i lo -t 100ms -w RING --file-size 1M",
];

const INVENTORY: &str = "name = \"site\"\n[[host]]\nname = \"a\"\nlocal = true\n[[host]]\nname = \"b\"\naddress = \"127.0.0.1:9\"\n\
                         [[test]]\nname = \"t\"\npairs = \"mesh\"\ninterval = \"1h\"\n[test.run]\nrate = \"1M\"\ntime = \"100ms\"\n";

#[test]
fn root_writes_through_no_link_of_another_user() {
    if !landspeed_sys::process::is_root() {
        skip!("giving links to another user needs root");
    }
    let (shared, own) = (scratch(), scratch());
    std::fs::set_permissions(shared.path(), std::fs::Permissions::from_mode(0o1777)).expect("set");
    let target = own.path().join("target");
    let directory = own.path().join("directory");
    std::fs::write(&target, "old").expect("written");
    std::fs::create_dir(&directory).expect("made");
    let planted = |name: &str, to: &Path| {
        let link = shared.path().join(name);
        symlink(to, &link).expect("linked");
        lchown(&link, Some(4242), None).expect("given away");
        link.to_str().expect("plain").to_owned()
    };
    let (file, folder) = (planted("file", &target), planted("folder", &directory));
    planted("ring.00001.pcapng", &target);
    let ring = shared.path().join("ring.pcapng");
    let archive = own.path().join("archive");
    let inventory = own.path().join("site.toml");
    std::fs::write(&inventory, INVENTORY).expect("written");
    let inventory = inventory.to_str().expect("plain").to_owned();
    let run = |words: &[String]| {
        let mut command = landspeed();
        command.args(words).current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."));
        command.env("LANDSPEED_ARCHIVE", &archive);
        Process::start(command).end(TIMEOUT_S)
    };
    let import = ["archive", "import", "fixtures/iperf3/3.12/tcp.json"].map(str::to_owned);
    assert_eq!(run(&import).code, 0);
    for text in COMMANDS {
        let words: Vec<String> = text
            .split(' ')
            .map(|word| {
                word.replace("FILE", &file)
                    .replace("RING", &ring.to_string_lossy())
                    .replace("MESH", &inventory)
                    .replace("DIR", &folder)
            })
            .collect();
        let ended = run(&words);
        assert!(ended.code != 0, "{text}: {ended:?}");
        let said = format!("{}{}", ended.stdout, ended.stderr);
        assert!(said.contains("another user (uid 4242)"), "{text}: {said}");
        assert_eq!(std::fs::read_to_string(&target).expect("there"), "old", "{text}");
        assert_eq!(std::fs::read_dir(&directory).expect("there").count(), 0, "{text}");
    }
}
