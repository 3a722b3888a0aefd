//! Small buffers and slow readers, over 20 ms.

use landspeed_testkit::claims::{Sure, holds};

use crate::or_skip;
use crate::path::{Across, CONTROLS};

#[test]
fn a_small_receive_buffer_is_named() {
    let across = or_skip!(Across::long());
    across.right.sysctl("net.ipv4.tcp_rmem", "4096 65536 131072");
    for control in CONTROLS {
        holds(&format!("tcp_rmem {control}"), &["receiver-window"], Sure::High, || {
            across.pair.run(&format!("-t 3 -C {control}"))
        });
    }
}

#[test]
fn a_small_send_buffer_is_named() {
    let across = or_skip!(Across::long());
    across.left.sysctl("net.ipv4.tcp_wmem", "4096 65536 65536");
    for control in CONTROLS {
        holds(&format!("tcp_wmem {control}"), &["send-buffer"], Sure::High, || {
            across.pair.run(&format!("-t 3 -C {control}"))
        });
    }
}

#[test]
fn buffers_locked_small_at_both_ends_are_named_as_buffers() {
    let across = or_skip!(Across::long());
    for control in CONTROLS {
        holds(&format!("window {control}"), &["receiver-window", "send-buffer"], Sure::Medium, || {
            across.pair.run(&format!("-t 3 -C {control} -w 64K"))
        });
    }
}

#[test]
fn a_slow_reader_is_named() {
    let across = or_skip!(Across::long());
    for control in CONTROLS {
        holds(&format!("read-rate {control}"), &["slow-reader"], Sure::High, || {
            across.pair.run(&format!("-t 3 -C {control} --read-rate 40M"))
        });
    }
}
