//! Qdisc trees are restored exactly: handles, parents and options, on every queue.

use landspeed_testkit::in_lab_kernel;

use crate::tune::bench::{Bench, bench, expect, output_text, run};
use crate::tune::crash::apply;

/// Trees that are restored exactly.
const TREES: &[(&str, &str)] = &[
    ("the kernel's own", ""),
    ("a configured mq", "tc qdisc add dev v0 root handle 1: mq"),
    (
        "an mq with a different leaf on each queue",
        "tc qdisc add dev v0 root handle 100: mq
         tc qdisc add dev v0 parent 100:1 handle 11: bfifo limit 30000
         tc qdisc add dev v0 parent 100:2 handle 12: pfifo limit 77
         tc qdisc add dev v0 parent 100:3 handle 13: pfifo_fast
         tc qdisc add dev v0 parent 100:4 handle 14: bfifo limit 40000",
    ),
    ("one root for all queues", "tc qdisc add dev v0 root handle 7: pfifo limit 99"),
    ("a token bucket", "tc qdisc add dev v0 root handle 3: tbf rate 900mbit burst 200kb latency 50ms"),
    (
        "token buckets below mq, one with a child queue",
        "tc qdisc add dev v0 root handle 100: mq
         tc qdisc add dev v0 parent 100:1 handle 1: tbf rate 100mbit burst 20kb limit 100kb
         tc qdisc add dev v0 parent 1:1 handle 20: bfifo limit 50000
         tc qdisc add dev v0 parent 100:2 handle 2: tbf rate 200mbit burst 20kb limit 100kb peakrate 300mbit mtu 3000",
    ),
    ("an ingress hook beside it", "tc qdisc add dev v0 handle ffff: ingress; tc qdisc add dev v0 root handle 9: pfifo"),
];

/// Trees of qdisc kinds that minimal kernels lack.
const FAIR_TREES: &[(&str, &str)] = &[
    (
        "fq with every option",
        "tc qdisc add dev v0 root handle 100: mq
         tc qdisc add dev v0 parent 100:1 handle 1: fq maxrate 1gbit limit 5000 flow_limit 50 quantum 6000 \
         initial_quantum 20000 buckets 512 orphan_mask 255 low_rate_threshold 600kbit ce_threshold 5ms refill_delay 30ms
         tc qdisc add dev v0 parent 100:2 handle 2: fq nopacing",
    ),
    (
        "fq_codel with every option",
        "tc qdisc add dev v0 root handle 100: mq
         tc qdisc add dev v0 parent 100:1 handle 1: fq_codel limit 500 flows 256 target 3ms interval 60ms quantum 500 \
         ce_threshold 2ms memory_limit 3mb drop_batch 20 noecn",
    ),
    ("codel", "tc qdisc add dev v0 root handle 1: codel limit 100 target 4ms interval 30ms ecn ce_threshold 3ms"),
    ("cake", "tc qdisc add dev v0 root handle 1: cake bandwidth 500mbit diffserv4 rtt 40ms wash ack-filter"),
    ("sfq", "tc qdisc add dev v0 root handle 1: sfq perturb 10 quantum 3000 limit 100"),
    ("pie", "tc qdisc add dev v0 root handle 1: pie limit 500 target 20ms tupdate 20ms alpha 3 beta 15 ecn bytemode"),
    ("fq_pie", "tc qdisc add dev v0 root handle 1: fq_pie limit 5000 flows 512 target 20ms"),
];

/// Configurations that only their creator can restore: refused, with the kind named.
const REFUSED: &[(&str, &str, &str)] = &[
    (
        "htb with classes",
        "tc qdisc add dev v0 root handle 1: htb; tc class add dev v0 parent 1: classid 1:1 htb rate 1gbit",
        "htb",
    ),
    (
        "htb on one queue of an mq",
        "tc qdisc add dev v0 root handle 1: mq; tc qdisc add dev v0 parent 1:2 handle 2: htb default 1
         tc class add dev v0 parent 2: classid 2:1 htb rate 1gbit",
        "htb",
    ),
    ("netem", "tc qdisc add dev v0 root handle 1: netem delay 10ms", "netem"),
    ("prio with filters", "tc qdisc add dev v0 root handle 1: prio", "prio"),
];

/// Lines of `tc -d qdisc show dev v0`.
pub fn qdisc_lines(bench: &Bench) -> Vec<String> {
    bench.shell("tc -d qdisc show dev v0").lines().map(ToOwned::to_owned).collect()
}

fn remove_qdiscs(bench: &Bench) {
    bench.remove_state();
    bench.shell("tc qdisc del dev v0 root 2>/dev/null || true; tc qdisc del dev v0 ingress 2>/dev/null || true");
}

/// Replaces each tree by one of three requests in turn; with three rounds by each of them. Trees that this
/// kernel lacks run in the lab's kernel.
fn assert_trees_are_restored(trees: &[(&str, &str)], rounds: usize) {
    let bench = bench!();
    let mut left_out = Vec::new();
    let requests = if bench.try_shell("tc qdisc add dev v0 root fq").status.success() {
        ["v0:qdisc=fq maxrate 1gbit", "v0:qdisc=fq_codel limit 100", "v0:qdisc=default"]
    } else {
        ["v0:qdisc=pfifo limit 500", "v0:qdisc=bfifo", "v0:qdisc=default"]
    };
    for (number, (name, script)) in trees.iter().enumerate() {
        for wanted in (number..number + rounds).map(|turn| requests[turn % requests.len()]) {
            remove_qdiscs(&bench);
            if !bench.try_shell(script).status.success() {
                left_out.push(*name);
                break;
            }
            let (before, tree) = (bench.snapshot(), qdisc_lines(&bench));
            let output = run(bench.tune(&apply(&[wanted], "600")));
            assert!(output.code == 0, "{name}, {wanted}: {}", output_text(&output));
            if output_text(&output).contains("Nothing to write") {
                continue;
            }
            assert_ne!(qdisc_lines(&bench), tree, "{name}, {wanted}");
            expect(bench.tune(&["revert"]), 0);
            bench.snapshot().must_equal(&before, &format_args!("{name}, {wanted}"));
        }
    }
    if !left_out.is_empty() {
        in_lab_kernel!("this kernel lacks what these trees need: {}", left_out.join(", "));
    }
}

#[test]
fn multi_queue_qdisc_trees_are_restored_exactly() {
    assert_trees_are_restored(TREES, 1);
}

#[test]
fn fair_queueing_qdisc_trees_are_restored_exactly() {
    assert_trees_are_restored(FAIR_TREES, 1);
}

#[test]
#[ignore = "long: every tree replaced by each of three requests, in the lab's kernel too"]
fn every_qdisc_tree_is_restored_after_each_request() {
    assert_trees_are_restored(TREES, 3);
    assert_trees_are_restored(FAIR_TREES, 3);
}

#[test]
fn an_unrestorable_qdisc_tree_is_refused_first() {
    let bench = bench!();
    let mut left_out = Vec::new();
    for (name, script, kind) in REFUSED {
        remove_qdiscs(&bench);
        if !bench.try_shell(script).status.success() {
            left_out.push(*name);
            continue;
        }
        let before = bench.snapshot();
        let text = expect(bench.tune(&apply(&["v0:qdisc=pfifo", "v0:mtu=9000"], "600")), 2);
        assert!(text.contains("nothing was changed") && text.contains(kind), "{name}: {text}");
        assert!(!bench.state().exists(), "{name}: no transaction was begun");
        bench.snapshot().must_equal(&before, name);
    }
    assert!(left_out.len() < REFUSED.len(), "htb at least");
    if !left_out.is_empty() {
        in_lab_kernel!("this kernel lacks what these trees need: {}", left_out.join(", "));
    }
}
