//! Another boot: what was set at run time is gone by itself, nothing is written, and `status` says so.

use crate::tune::bench::{bench, expect, run, was_killed};
use crate::tune::crash::{PLAN, apply, plant_tree};

#[test]
fn nothing_is_written_after_a_restart() {
    let bench = bench!();
    plant_tree(&bench);
    let before = bench.snapshot();
    let plan = &PLAN[3..6];
    for number in 1.. {
        bench.forget();
        let mut command = bench.tune(&apply(plan, "600"));
        command.env("LANDSPEED_TUNE_FAULT", format!("after-record:{number}"));
        command.env("LANDSPEED_TUNE_WATCHDOG_FAULT", "after-awake");
        let killed = was_killed(&run(command));
        bench.kill_watchdog(1);
        // The host as the power left it stands for the host after the restart: any write to it is detected.
        let left = bench.snapshot();
        let journal = bench.journal(1);
        for arguments in [&["status"][..], &["status", "--json", "-"], &["confirm"], &["revert"]] {
            let mut command = bench.tune(arguments);
            command.env("LANDSPEED_TUNE_BOOT_ID", "another");
            let output = run(command);
            let text = crate::tune::bench::said(&output);
            if arguments[0] == "status" {
                assert!(text.contains("restarted") && output.code == 0, "{number}: {text}");
            }
            bench.snapshot().must_equal(&left, &format_args!("{number}, {arguments:?}: {text}"));
        }
        // A new transaction of the new boot is possible at once.
        let mut command = bench.tune(&apply(&["net.ipv4.tcp_sack=0"], "600"));
        command.env("LANDSPEED_TUNE_BOOT_ID", "another");
        expect(command, 0);
        let mut command = bench.tune(&["revert"]);
        command.env("LANDSPEED_TUNE_BOOT_ID", "another");
        expect(command, 0);
        bench.snapshot().must_equal(&left, &number);
        // Back in the first boot, for the next round: the journal as the power left it is recovered from.
        std::fs::write(bench.state().join("0001.journal"), journal).expect("written");
        let _ = std::fs::remove_file(bench.state().join("0002.journal"));
        let output = run(bench.tune(&["revert"]));
        bench.recovered();
        bench.snapshot().must_equal(&before, &format_args!("{number}: {}", crate::tune::bench::said(&output)));
        if !killed {
            assert_eq!(number, 3 + 2 * plan.len() as u64 + 1);
            break;
        }
    }
}

#[test]
fn a_restart_undoes_a_confirmed_transaction_visibly() {
    let bench = bench!();
    expect(bench.tune(&apply(&["net.ipv4.tcp_mtu_probing=1"], "600")), 0);
    expect(bench.tune(&["confirm"]), 0);
    let mut command = bench.tune(&["status"]);
    command.env("LANDSPEED_TUNE_BOOT_ID", "another");
    let text = expect(command, 0);
    assert!(text.contains("confirmed before the last restart, which undid what was set at run time"), "{text}");
    expect(bench.tune(&["revert"]), 0);
}
