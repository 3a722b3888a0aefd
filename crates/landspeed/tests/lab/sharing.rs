//! Equal flows get equal shares.

use crate::lab::scenario::{assert_close, run};

#[test]
fn equal_flows_share_a_port_fairly() {
    landspeed_testkit::needs_lab_kernel!();
    assert_fair_share(&["time=15s", "flow.*.omit=8s"]);
}

#[test]
#[ignore = "long: 160 s of virtual time"]
fn equal_flows_share_a_port_fairly_for_a_minute() {
    landspeed_testkit::needs_lab_kernel!();
    assert_fair_share(&[]);
}

fn assert_fair_share(sets: &[&str]) {
    for congestion in ["cubic", "reno"] {
        let ran = run("fairness", &[&[&*format!("hosts.congestion={congestion}")], sets].concat());
        let rates: Vec<f64> = (0..4).map(|flow| ran.goodput(flow)).collect();
        // Jain's index: (Σx)² / (n Σx²).
        let sum: f64 = rates.iter().sum();
        let jain = sum * sum / (4.0 * rates.iter().map(|rate| rate * rate).sum::<f64>());
        assert_close(&format!("Jain's index of four {congestion} flows"), "", 1.0, jain, 0.05, &ran);
        let expected = 50e6 * 1448.0 / 1538.0;
        assert_close(&format!("goodput of four {congestion} flows together"), "b/s", expected, sum, 0.03, &ran);
    }
}
