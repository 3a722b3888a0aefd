//! For any document a verdict is valid JSON without NaN, and has high confidence only if both sides
//! reported.

use crate::common::Scenario;
use landspeed_diagnose::{diagnose, warnings};
use landspeed_model::{Confidence, CoreUse, Direction, RunDocument, Status};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::Value;

fn both_ends_seen(document: &RunDocument, direction: Direction) -> bool {
    let mut streams = document.streams.iter().filter(|stream| stream.direction == direction);
    document.status == Status::Complete && streams.all(|stream| stream.sender.is_some() && stream.receiver.is_some())
}

fn check_properties(document: &RunDocument) -> Result<(), TestCaseError> {
    for direction in [Direction::Upload, Direction::Download, Direction::Both] {
        let verdict = diagnose(document, direction);
        for line in verdict.evidence.iter().chain(&verdict.ruled_out) {
            prop_assert!(line.value.is_finite(), "{line:?}");
        }
        let text = serde_json::to_string(&verdict).expect("a verdict serialises");
        prop_assert!(!text.contains("null,\"unit\""), "a value that is not finite: {text}");
        for words in [&verdict.summary, &verdict.next_step] {
            prop_assert!(!words.contains("NaN") && !words.contains("inf ") && !words.is_empty(), "{words}");
        }
        if verdict.confidence == Confidence::High {
            prop_assert!(both_ends_seen(document, direction.parts()[0]), "{verdict:#?}");
        }
    }
    for warning in warnings(document) {
        prop_assert!(!warning.message.contains("NaN"), "{warning:?}");
    }
    Ok(())
}

prop_compose! {
    fn scenarios()(
        goodput_bps in prop_oneof![Just(0.0), 1.0..1e12],
        congestion in prop_oneof![Just("cubic"), Just("bbr"), Just("reno"), Just("dctcp"), Just("")],
        streams in 0..4_u32,
        samples in 0..60_u64,
        interval_ms in 0..200_u64,
        ratios in vec(prop_oneof![Just(0.0), Just(1.0), 0.0..1.5, 0.0..1e6], 10),
        notsent in any::<u32>(),
        rtt in (any::<u32>(), any::<u32>()),
        buffers in (any::<u32>(), any::<u32>()),
        max_pacing_bps in proptest::option::of(0.0..1e12),
        line_rate_bps in proptest::option::of(any::<u64>()),
        loopback in any::<bool>(),
        receiver_report in any::<bool>(),
        cores in vec((any::<f32>(), any::<f32>(), 0.0..1.0_f32), 0..4),
        asked in (proptest::option::of(any::<u64>()), proptest::option::of(any::<u64>()), proptest::option::of(any::<u64>())),
    ) -> Scenario {
        let cores: Vec<CoreUse> = cores
            .into_iter()
            .map(|(user, softirq, system)| CoreUse { user, softirq, system, ..CoreUse::default() })
            .collect();
        let mut scenario = Scenario {
            goodput_bps, congestion, streams, samples, interval_ms,
            rwnd: ratios[0], sndbuf_limited: ratios[1], fill: ratios[2], flight_cwnd: ratios[3], flight_wnd: ratios[4],
            recv_fill: ratios[5], sender_thread: ratios[6], receiver_thread: ratios[7], wait: ratios[8],
            resent_ratio: ratios[9], notsent, srtt_us: rtt.0, min_rtt_us: rtt.1, sndbuf: buffers.0, rcvbuf: buffers.1,
            max_pacing_bps, line_rate_bps, loopback, receiver_report,
            sender_cores: cores.clone(), receiver_cores: cores,
            ..Scenario::default()
        };
        scenario.parameters.rate_bps = asked.0;
        scenario.parameters.read_rate_bps = asked.1;
        scenario.parameters.window_bytes = asked.2;
        scenario
    }
}

/// Replaces some numbers of a document with extreme values, and reverses some arrays.
fn set_extreme_values(value: &mut Value, rolls: &mut impl Iterator<Item = u8>) {
    match value {
        Value::Object(fields) => {
            for field in fields.values_mut() {
                set_extreme_values(field, rolls);
            }
        }
        Value::Array(items) => {
            if rolls.next().unwrap_or(0) == 1 {
                items.reverse();
            }
            for item in items {
                set_extreme_values(item, rolls);
            }
        }
        Value::Number(number) => match rolls.next().unwrap_or(0) {
            2 if !number.is_f64() => *value = 0.into(),
            // The largest value that fits every counter of the document.
            3 if !number.is_f64() => *value = i64::from(u8::MAX).into(),
            4 if number.is_f64() => *value = (-1e300).into(),
            5 if number.is_f64() => *value = 1e300.into(),
            _ => {}
        },
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn an_arbitrary_flow_gets_a_valid_verdict(scenario in scenarios()) {
        check_properties(&scenario.document())?;
    }

    #[test]
    fn an_arbitrary_datagram_test_gets_a_valid_verdict(
        scenario in scenarios(), rate in proptest::option::of(any::<u64>()),
        sent in any::<u64>(), delivered in any::<u64>(), dropped in any::<u64>(),
    ) {
        check_properties(&scenario.udp(rate, sent, delivered, dropped))?;
    }

    #[test]
    fn corrupt_documents_get_a_valid_verdict(scenario in scenarios(), rolls in vec(0..40_u8, 64..512)) {
        let mut value = serde_json::to_value(scenario.document()).expect("a document serialises");
        set_extreme_values(&mut value, &mut rolls.iter().copied().cycle());
        if let Ok(document) = serde_json::from_value::<RunDocument>(value) {
            check_properties(&document)?;
        }
    }
}
