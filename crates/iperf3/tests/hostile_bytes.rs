//! What the fuzz target of iperf3's texts claims, on stable: valid input, damaged a little, and plain noise.

#[path = "../../../fuzz/src/iperf3.rs"]
mod claims;
#[path = "../../flow/tests/damage/mod.rs"]
mod damage;

use damage::{damage, damaged};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn noise_breaks_no_iperf3_text(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        claims::iperf3_texts(&bytes);
    }

    #[test]
    fn a_damaged_iperf3_text_breaks_nothing(number: u64, bytes: i64, jitter: f64, damage in damage()) {
        let stream = serde_json::json!({"id": number, "bytes": bytes, "retransmits": -1, "jitter": jitter, "errors": bytes, "packets": number});
        let results = serde_json::json!({"cpu_util_total": jitter, "streams": [stream]}).to_string();
        claims::iperf3_texts(&damaged(results.into_bytes(), &damage));
        let wanted = serde_json::json!({"tcp": true, "time": number, "num": bytes, "len": number, "bandwidth": jitter, "parallel": 2}).to_string();
        claims::iperf3_texts(&damaged(wanted.into_bytes(), &damage));
    }
}
