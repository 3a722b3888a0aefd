//! Properties that hold for anything an iperf3 peer sends.
//!
//! A separate file, so that the tests of `landspeed-iperf3` can include it without the other properties.

use landspeed_flow::validate;
use landspeed_iperf3::request;
use landspeed_iperf3::results::Results;

/// An iperf3 client's request, and the results that client or server report.
///
/// # Panics
/// If a decoder violates its property.
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
