//! In the lab's kernel, as the machine's own first namespace, where the power can be cut: `net.core.*` and a restart are
//! real there.

use std::fmt::Write as _;
use std::path::Path;

use landspeed_testkit::lab_kernel::{Guest, machine};
use tempfile::TempDir;

use crate::bench::program;

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

/// Boots with two interfaces and the functions of [`PRELUDE`].
fn boot(kernel: &Path, directory: &TempDir, script: &str) -> Guest {
    let program = program();
    Guest::boot(kernel, directory.path(), &format!("export LS_PROGRAM='{}'\n{PRELUDE}\n{script}", program.display()))
}

fn apply(fault: &str) -> String {
    let mut text = format!("{fault} \"$LS_PROGRAM\" tune apply --state /run/disk/state --confirm 600");
    for setting in SETTINGS {
        let _ = write!(text, " --set '{setting}'");
    }
    text
}

#[test]
fn power_loss_at_any_record_leaves_a_clean_boot() {
    let (kernel, directory) = landspeed_testkit::or_skip!(machine());
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
        let mut guest = boot(&kernel, &directory, &script);
        let stopped = guest.next();
        drop(guest);
        let journal = std::fs::read_to_string(directory.path().join("disk/state/0001.journal")).expect("on the disk");
        if stopped == "STOPPED" {
            assert_eq!(journal.lines().count(), record, "what was recorded is on the disk: {journal}");
        }
        let script = "plant; look > /run/now; cp /run/disk/before /run/before
             tune status; echo LS STATUS $?; same boot
             tune confirm; echo LS CONFIRM $?; tune revert; echo LS REVERT $?; same late";
        let (words, said) = boot(&kernel, &directory, script).finish();
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
fn a_lab_apply_that_dies_is_rolled_back() {
    let (kernel, directory) = landspeed_testkit::or_skip!(machine());
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
    let (words, said) = boot(&kernel, &directory, &script).finish();
    assert!(words.iter().all(|word| word.starts_with("SAME") || word == "CONFIRMED"), "{said}");
    assert_eq!(words.len(), 3 + 3 * SETTINGS.len() + 2 + 2, "{words:?}");
}
