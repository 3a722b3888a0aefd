//! What must be true of whatever an iperf3 peer sends.
//!
//! Beside the other claims and not among them, so that the tests of `landspeed-iperf3` include this file alone.

use landspeed_flow::validate;
use landspeed_iperf3::request;
use landspeed_iperf3::results::Results;

/// What an iperf3 client asks for, and the results that either end reports.
///
/// # Panics
/// When a decoder breaks its claim.
pub fn iperf3_texts(bytes: &[u8]) {
    let Ok(text) = serde_json::from_slice(bytes) else { return };
    if let Ok(wanted) = request::decode(&text) {
        let _ = validate::check_in(&wanted.parameters, wanted.dialect(&wanted.parameters));
    }
    if let Ok(results) = Results::decode(&text) {
        let again = serde_json::Value::Object(results.encode());
        let counts =
            |r: &Results| r.streams.iter().map(|s| (s.number, s.bytes, s.packets, s.errors)).collect::<Vec<_>>();
        assert_eq!(Results::decode(&again).map(|r| counts(&r)), Ok(counts(&results)));
    }
}
