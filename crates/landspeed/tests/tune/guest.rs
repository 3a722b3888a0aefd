//! The same in the lab's kernel, as the machine's own first namespace, where the power can be cut: `fq`, `cake`, `netem`,
//! `net.core.*` and a restart are real there. The guest sees this host's programs, for reading only, and one directory it
//! may write to: its disk.

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use landspeed_sys::process;
use landspeed_testkit::skip;
use serde_json::Value;
use tempfile::TempDir;

use crate::bench::program;
use crate::qdisc::{REFUSED, TREES};

/// Longest silence of a guest.
const SILENCE: Duration = Duration::from_mins(1);

const SETTINGS: &[&str] = &[
    "net.core.rmem_max=536870912",
    "net.ipv4.tcp_rmem=4096 131072 536870912",
    "net.core.default_qdisc=fq",
    "net.ipv4.tcp_mtu_probing=1",
    "v0:qdisc=fq maxrate 1gbit",
    "v0:mtu=9000",
    "v0:txqueuelen=2000",
];

const PRELUDE: &str = r#"
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin NO_COLOR=1
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t tmpfs tmpfs /run
mkdir /run/disk
mount -t hostfs none /run/disk -o $LS_DISK
ip link set lo up
ip link add v0 numtxqueues 4 numrxqueues 4 type veth peer name v1 numtxqueues 4 numrxqueues 4
ip link set v0 address 02:00:00:00:00:01
ip link set v1 address 02:00:00:00:00:02
ip link set v0 up
ip link set v1 up
tune() { "$LS_PROGRAM" tune "$@" --state /run/disk/state; }
tree() { tc -d qdisc show | sed -E 's/direct_packets_stat [0-9]+//' | sort; }
look() { tree; ip -d link show v0; ip -d link show v1; grep -rs '' /proc/sys/net /proc/sys/vm | grep -v -e nf_conntrack_count -e /vm/stat; }
plant() {
  tc qdisc add dev v0 root handle 10: mq
  tc qdisc add dev v0 parent 10:1 handle 11: fq quantum 6000
  tc qdisc add dev v0 parent 10:3 handle 5: pfifo limit 77
}
same() {
  look > /run/after
  if cmp -s /run/before /run/after; then echo "LS SAME $1"; else echo "LS DIFFERENT $1"; diff /run/before /run/after; fi
}
"#;

/// A machine that is switched on.
struct Guest {
    child: Child,
    lines: mpsc::Receiver<String>,
    said: String,
}

impl Guest {
    /// Boots with a script as its first program.
    fn boot(kernel: &Path, directory: &Path, script: &str) -> Self {
        let init = directory.join("init");
        std::fs::write(&init, format!("{PRELUDE}\n{script}\necho LS END\nexec sleep 1000\n")).expect("written");
        let disk = directory.join("disk");
        std::fs::create_dir_all(&disk).expect("a directory");
        let mut command = Command::new(kernel);
        command
            .args(["mem=256M", "root=/dev/root", "rootfstype=hostfs", "rootflags=/", "ro", "init=/bin/sh"])
            .arg(&init)
            .args(["con=null", "con0=null,fd:1", "quiet", "panic=-1", "seccomp=on", "umid=tune"])
            .arg(format!("uml_dir={}/", directory.display()))
            .arg(format!("LS_DISK={}", disk.display()))
            .arg(format!("LS_PROGRAM={}", program().display()))
            .env_clear()
            .env("TMPDIR", directory)
            .env("HOME", directory)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut child = process::lead_own_group(&mut command).spawn().expect("the kernel starts");
        let out = child.stdout.take().expect("piped");
        let (say, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(out).split(b'\n').map_while(Result::ok) {
                if say.send(String::from_utf8_lossy(&line).trim().to_owned()).is_err() {
                    break;
                }
            }
        });
        Self { child, lines, said: String::new() }
    }

    /// Its next line that begins with `LS `, without that.
    fn next(&mut self) -> String {
        loop {
            let line = self.lines.recv_timeout(SILENCE).unwrap_or_else(|_| panic!("silence after:\n{}", self.said));
            let _ = writeln!(self.said, "{line}");
            if let Some(word) = line.strip_prefix("LS ") {
                return word.to_owned();
            }
        }
    }

    /// Its lines to the end of the script.
    fn finish(mut self) -> (Vec<String>, String) {
        let mut words = Vec::new();
        loop {
            match self.next() {
                end if end == "END" => return (words, std::mem::take(&mut self.said)),
                word => words.push(word),
            }
        }
    }
}

/// The power goes.
impl Drop for Guest {
    fn drop(&mut self) {
        process::end_group(self.child.id(), true);
        let _ = self.child.wait();
    }
}

/// The newest kernel of the lab and a directory that the guest sees by the same name; or why there is none.
fn machine() -> Result<(PathBuf, TempDir), String> {
    if !process::is_root() {
        return Err("the guest sees the host's programs as its own root, which needs root".to_owned());
    }
    let list = Command::new(program()).args(["lab", "kernel", "list", "--json", "-"]).output().expect("it runs");
    let kernels: Value = serde_json::from_slice(&list.stdout).unwrap_or_default();
    let executable = kernels[0]["executable"].as_str().ok_or("no kernel is built for the lab")?;
    // The kernel takes a word with a dot for the parameter of a module, and does not pass it on.
    let directory = tempfile::Builder::new().prefix("landspeed-tune-").tempdir().map_err(|why| why.to_string())?;
    Ok((executable.into(), directory))
}

fn apply(fault: &str) -> String {
    let mut text = format!("{fault} \"$LS_PROGRAM\" tune apply --state /run/disk/state --confirm 600");
    for setting in SETTINGS {
        let _ = write!(text, " --set '{setting}'");
    }
    text
}

#[test]
fn the_power_may_go_at_any_record_and_the_next_boot_is_clean_and_knows_it() {
    let (kernel, directory) = match machine() {
        Ok(machine) => machine,
        Err(why) => skip!("{why}"),
    };
    let mut records = 0;
    for record in 1..100 {
        let _ = std::fs::remove_dir_all(directory.path().join("disk"));
        // It stands still right after the record, and the power goes.
        let script = format!(
            "plant; look > /run/before; cp /run/before /run/disk/before
             {} > /run/disk/said 2>&1 &
             while true; do
               state=$(cut -d' ' -f3 /proc/$!/stat 2>/dev/null) || break
               case $state in T) echo LS STOPPED; sleep 1000;; Z|X) break;; esac
             done",
            apply(&format!("LANDSPEED_TUNE_FAULT=stop-after-record:{record}")),
        );
        let mut guest = Guest::boot(&kernel, directory.path(), &script);
        let stopped = guest.next();
        drop(guest);
        let journal = std::fs::read_to_string(directory.path().join("disk/state/0001.journal")).expect("on the disk");
        if stopped == "STOPPED" {
            assert_eq!(journal.lines().count(), record, "what was recorded is on the disk: {journal}");
        }
        let script = "plant; look > /run/now; cp /run/disk/before /run/before
             tune status; echo LS STATUS $?; same boot
             tune confirm; echo LS CONFIRM $?; tune revert; echo LS REVERT $?; same late";
        let (words, said) = Guest::boot(&kernel, directory.path(), script).finish();
        assert_eq!(words, ["STATUS 0", "SAME boot", "CONFIRM 2", "REVERT 2", "SAME late"], "{record}: {said}");
        assert!(said.contains("the host was restarted, which undid everything"), "{said}");
        if stopped == "END" {
            break;
        }
        records = record;
    }
    assert_eq!(records, 3 + 2 * SETTINGS.len());
}

#[test]
fn in_the_lab_an_apply_that_dies_at_any_step_is_taken_back() {
    let (kernel, directory) = match machine() {
        Ok(machine) => machine,
        Err(why) => skip!("{why}"),
    };
    let script = format!(
        "plant; look > /run/before
         export LANDSPEED_TUNE_WATCHDOG_FAULT=after-awake
         for kind in after-record after-write; do
           number=0
           while number=$((number + 1)); do
             rm -rf /run/disk/state
             {} > /run/said 2>&1 && break
             tune status > /dev/null; same $kind:$number
           done
           tune revert > /dev/null; same whole-$kind
         done
         unset LANDSPEED_TUNE_WATCHDOG_FAULT; rm -rf /run/disk/state
         {} > /dev/null && tune confirm > /dev/null && echo LS CONFIRMED; tune revert > /dev/null; same confirmed",
        apply("LANDSPEED_TUNE_FAULT=$kind:$number"),
        apply(""),
    );
    let (words, said) = Guest::boot(&kernel, directory.path(), &script).finish();
    assert!(words.iter().all(|word| word.starts_with("SAME") || word == "CONFIRMED"), "{said}");
    assert_eq!(words.len(), 3 + 3 * SETTINGS.len() + 2 + 2, "{words:?}");
}

#[test]
fn every_tree_of_queueing_disciplines_that_the_lab_knows_comes_back_exactly() {
    let (kernel, directory) = match machine() {
        Ok(machine) => machine,
        Err(why) => skip!("{why}"),
    };
    let mut script = String::new();
    for (number, (_, tree)) in TREES.iter().enumerate() {
        let _ = write!(
            script,
            "tc qdisc del dev v0 root 2>/dev/null; tc qdisc del dev v0 ingress 2>/dev/null; rm -rf /run/disk/state
             if ( set -e
               {tree}
             true ); then
               tree > /run/before
               for wanted in 'fq maxrate 1gbit' 'fq_codel limit 100' pfifo default; do
                 tune apply --confirm 600 --set \"v0:qdisc=$wanted\" > /run/said 2>&1 || cat /run/said
                 grep -q 'Nothing to write' /run/said || tune revert > /run/said 2>&1 || cat /run/said
                 tree > /run/after
                 if cmp -s /run/before /run/after; then echo LS SAME {number}
                 else echo LS DIFFERENT {number} $wanted; diff /run/before /run/after; fi
               done
             else echo LS LACKS {number}; fi\n"
        );
    }
    for (number, (_, tree, kind)) in REFUSED.iter().enumerate() {
        let _ = write!(
            script,
            "tc qdisc del dev v0 root 2>/dev/null; tc qdisc del dev v0 ingress 2>/dev/null; rm -rf /run/disk/state
             if ( set -e
               {tree}
             true ); then
               tree > /run/before
               tune apply --set v0:qdisc=fq > /run/said 2>&1 || true
               tree > /run/after
               grep -q 'nothing was changed.*{kind}' /run/said && cmp -s /run/before /run/after && echo LS REFUSED {number}
             fi\n"
        );
    }
    let (words, said) = Guest::boot(&kernel, directory.path(), &script).finish();
    assert!(
        words.iter().all(|word| ["SAME", "LACKS", "REFUSED"].iter().any(|fine| word.starts_with(fine))),
        "{said}"
    );
    let count = |what: &str| words.iter().filter(|word| word.starts_with(what)).count();
    for (number, (name, _)) in TREES.iter().enumerate() {
        if words.contains(&format!("LACKS {number}")) {
            skip::record(&format!("the lab's kernel or tc lacks what {name} needs"));
        }
    }
    assert!(count("SAME") >= 4 * 8, "{said}");
    assert!(count("REFUSED") >= 2, "{said}");
}
