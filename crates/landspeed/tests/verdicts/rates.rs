//! Rates somebody asked for, on loopback, where nothing else is in their way; and request/response.

use landspeed_testkit::claims::{Sure, holds};
use landspeed_testkit::pair::Pair;

use crate::path::{CONTROLS, PROGRAM};

#[test]
fn a_rate_asked_for_and_reached_is_the_application() {
    let pair = Pair::on_loopback(PROGRAM);
    for control in CONTROLS {
        let document = holds(&format!("rate {control}"), &["application"], Sure::High, || {
            pair.run(&format!("-t 3 -C {control} --rate 100M"))
        });
        let reached = document["summary"]["goodput_bps"].as_f64().expect("a figure") / 100e6;
        assert!((0.95..1.05).contains(&reached), "{reached}");
    }
}

#[test]
fn a_paced_rate_is_named() {
    let pair = Pair::on_loopback(PROGRAM);
    for control in CONTROLS {
        holds(&format!("pace {control}"), &["pacing"], Sure::High, || {
            pair.run(&format!("-t 3 -C {control} --pace 200M"))
        });
    }
}

#[test]
fn a_reader_held_to_a_rate_is_named_on_loopback() {
    let pair = Pair::on_loopback(PROGRAM);
    for control in CONTROLS {
        holds(&format!("read-rate-lo {control}"), &["slow-reader"], Sure::High, || {
            pair.run(&format!("-t 3 -C {control} --read-rate 100M"))
        });
    }
}

#[test]
fn a_closed_loop_is_bound_by_its_round_trips() {
    let pair = Pair::on_loopback(PROGRAM);
    for protocol in ["", "-u"] {
        holds(&format!("rr{protocol}"), &["round-trip"], Sure::Medium, || pair.run(&format!("-t 2 --rr {protocol}")));
    }
}

#[test]
fn an_open_loop_is_bound_by_its_schedule() {
    let pair = Pair::on_loopback(PROGRAM);
    holds("rr-open", &["application"], Sure::Medium, || pair.run("-t 2 --rr --rate 500"));
}
