//! Transactions of an earlier boot: runtime settings are gone, nothing is written, and `status` reports it.

use crate::tune::bench::{bench, expect, run, was_killed};
use crate::tune::crash::{PLAN, apply, create_qdisc_tree};

#[test]
fn earlier_boot_transactions_write_nothing() {
    let bench = bench!();
    create_qdisc_tree(&bench);
    let before = bench.snapshot();
    let plan = &PLAN[3..6];
    for number in 1.. {
        bench.remove_state();
        let mut command = bench.tune(&apply(plan, "600"));
        command.env("LANDSPEED_TUNE_FAULT", format!("after-record:{number}"));
        command.env("LANDSPEED_TUNE_WATCHDOG_FAULT", "after-awake");
        let killed = was_killed(&run(command));
        bench.kill_watchdog(1);
        // The host as it was when the power was lost serves as the host after the restart: any write is detected.
        let left = bench.snapshot();
        let journal = bench.journal(1);
        for arguments in [&["status"][..], &["status", "--json", "-"], &["confirm"], &["revert"]] {
            let mut command = bench.tune(arguments);
            command.env("LANDSPEED_TUNE_BOOT_ID", "another");
            let output = run(command);
            let text = crate::tune::bench::output_text(&output);
            if arguments[0] == "status" {
                assert!(text.contains("restarted") && output.code == 0, "{number}: {text}");
            }
            bench.snapshot().must_equal(&left, &format_args!("{number}, {arguments:?}: {text}"));
        }
        // The new boot can start a new transaction at once.
        let mut command = bench.tune(&apply(&["net.ipv4.tcp_sack=0"], "600"));
        command.env("LANDSPEED_TUNE_BOOT_ID", "another");
        expect(command, 0);
        let mut command = bench.tune(&["revert"]);
        command.env("LANDSPEED_TUNE_BOOT_ID", "another");
        expect(command, 0);
        bench.snapshot().must_equal(&left, &number);
        // Back to the first boot for the next round: restore the journal from the power loss and recover from it.
        std::fs::write(bench.state().join("0001.journal"), journal).expect("written");
        let _ = std::fs::remove_file(bench.state().join("0002.journal"));
        let output = run(bench.tune(&["revert"]));
        bench.finish_recovery();
        bench.snapshot().must_equal(&before, &format_args!("{number}: {}", crate::tune::bench::output_text(&output)));
        if !killed {
            assert_eq!(number, 3 + 2 * plan.len() as u64 + 1);
            break;
        }
    }
}

#[test]
fn status_reports_confirmed_transactions_undone_by_restart() {
    let bench = bench!();
    expect(bench.tune(&apply(&["net.ipv4.tcp_mtu_probing=1"], "600")), 0);
    expect(bench.tune(&["confirm"]), 0);
    let mut command = bench.tune(&["status"]);
    command.env("LANDSPEED_TUNE_BOOT_ID", "another");
    let text = expect(command, 0);
    assert!(text.contains("confirmed before the last restart, which undid what was set at run time"), "{text}");
    expect(bench.tune(&["revert"]), 0);
}
