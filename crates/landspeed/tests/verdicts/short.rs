//! Runs that show too little say so.

use landspeed_testkit::claims::never_misleads;
use landspeed_testkit::pair::Pair;

use crate::path::PROGRAM;

#[test]
fn a_run_that_is_over_at_once_has_no_cause() {
    let pair = Pair::on_loopback(PROGRAM);
    for _ in 0..3 {
        let document = pair.run("-n 100M");
        assert_eq!(document["verdict"]["cause"], "undetermined", "{:#}", document["verdict"]);
        assert_eq!(document["verdict"]["confidence"], "low");
    }
}

#[test]
fn half_a_second_is_never_enough_to_be_sure() {
    let pair = Pair::on_loopback(PROGRAM);
    never_misleads("half a second", &["sender-cpu", "receiver-cpu", "undetermined"], || {
        let document = pair.run("-t 0.5");
        assert_ne!(document["verdict"]["confidence"], "high", "{:#}", document["verdict"]);
        document
    });
}
