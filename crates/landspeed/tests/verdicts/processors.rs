//! The hosts' processors: on loopback nothing else is in the way.

use landspeed_sys::thread;
use landspeed_testkit::claims::{Sure, holds, never_misleads};
use landspeed_testkit::pair::{Burden, Pair};
use landspeed_testkit::skip;

use crate::path::{CONTROLS, PROGRAM};

/// What a bulk transfer on loopback may be bound by.
const PROCESSORS: &[&str] = &["sender-cpu", "receiver-cpu"];

/// Two cores for two pinned ends.
fn cores() -> Option<(u32, u32)> {
    match thread::allowed_cores()[..] {
        [first, second, ..] => Some((first, second)),
        _ => None,
    }
}

#[test]
fn bulk_on_loopback_is_bound_by_a_processor() {
    let Some((one, other)) = cores() else { skip!("two ends need two cores") };
    let pair = Pair::on_loopback(PROGRAM);
    for control in CONTROLS {
        holds(&format!("bulk-lo {control}"), PROCESSORS, Sure::Medium, || {
            pair.run(&format!("-t 3 -C {control} --cpus {one} --peer-cpus {other}"))
        });
    }
}

#[test]
fn a_sender_that_copies_to_a_receiver_that_discards_is_the_slower_end() {
    let Some((one, other)) = cores() else { skip!("two ends need two cores") };
    let pair = Pair::on_loopback(PROGRAM);
    for control in CONTROLS {
        holds(&format!("copy-discard {control}"), &["sender-cpu"], Sure::Medium, || {
            pair.run(&format!("-t 3 -C {control} --cpus {one} --peer-cpus {other} --receive discard"))
        });
    }
}

/// Which end is the slower one is not settled here: softirq of the receive path runs on the sender's core.
#[test]
fn a_receiver_that_copies_what_was_spliced_is_bound_by_a_processor() {
    let Some((one, other)) = cores() else { skip!("two ends need two cores") };
    let pair = Pair::on_loopback(PROGRAM);
    for control in CONTROLS {
        holds(&format!("splice-copy {control}"), PROCESSORS, Sure::Medium, || {
            pair.run(&format!("-t 3 -C {control} --cpus {one} --peer-cpus {other} --send splice --receive copy"))
        });
    }
}

/// With other load on the other core besides, the sender can be the one that is kept waiting longer.
#[test]
fn a_receiver_kept_from_its_core_is_not_a_slow_reader() {
    let Some((one, other)) = cores() else { skip!("two ends need two cores") };
    let pair = Pair::on_loopback(PROGRAM);
    let _burden = Burden::on(other, 2);
    for control in CONTROLS {
        holds(&format!("starved-receiver {control}"), PROCESSORS, Sure::Medium, || {
            pair.run(&format!("-t 3 -C {control} --cpus {one} --peer-cpus {other}"))
        });
    }
}

#[test]
fn a_sender_kept_from_its_core_is_not_a_slow_application() {
    let Some((one, other)) = cores() else { skip!("two ends need two cores") };
    let pair = Pair::on_loopback(PROGRAM);
    let _burden = Burden::on(one, 2);
    for control in CONTROLS {
        holds(&format!("starved-sender {control}"), PROCESSORS, Sure::Medium, || {
            pair.run(&format!("-t 3 -C {control} --cpus {one} --peer-cpus {other} --receive discard"))
        });
    }
}

#[test]
fn loopback_is_never_taken_for_a_network() {
    let pair = Pair::on_loopback(PROGRAM);
    for arguments in ["-C bbr --bidir -P 2", "-C bbr --send zerocopy", "-C cubic -P 4", "-C reno -R"] {
        never_misleads(&format!("lo {arguments}"), PROCESSORS, || pair.run(&format!("-t 3 {arguments}")));
    }
}
