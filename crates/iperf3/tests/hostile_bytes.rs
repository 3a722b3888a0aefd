//! The claims of the fuzz target for iperf3's texts on the stable toolchain: corrupted valid input, and random
//! bytes.

#[path = "../../../fuzz/src/iperf3.rs"]
mod claims;
#[path = "../../flow/tests/damage/mod.rs"]
mod damage;

use damage::{damage, damaged};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn random_bytes_never_panic_the_iperf3_parsers(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        claims::iperf3_texts(&bytes);
    }

    #[test]
    fn corrupt_iperf3_texts_never_panic(number: u64, bytes: i64, jitter: f64, damage in damage()) {
        let stream = serde_json::json!({"id": number, "bytes": bytes, "retransmits": -1, "jitter": jitter, "errors": bytes, "packets": number});
        let results = serde_json::json!({"cpu_util_total": jitter, "streams": [stream]}).to_string();
        claims::iperf3_texts(&damaged(results.into_bytes(), &damage));
        let wanted = serde_json::json!({"tcp": true, "time": number, "num": bytes, "len": number, "bandwidth": jitter, "parallel": 2}).to_string();
        claims::iperf3_texts(&damaged(wanted.into_bytes(), &damage));
    }
}
