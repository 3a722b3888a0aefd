//! The whole advice: correct for known paths, finite for every path, an error for an invalid path.

use landspeed_calc::{Advice, InputError, IpVersion, PathInput, Unit, advise};
use landspeed_units::{BitRate, Bytes, Nanos, Ratio};
use proptest::prelude::*;

fn path(rate: &str, rtt: &str) -> PathInput {
    PathInput::new(rate.parse().unwrap(), rtt.parse().unwrap())
}

fn value(advice: &Advice, key: &str) -> f64 {
    advice.get(key).unwrap_or_else(|| panic!("no {key}")).value
}

fn approx_equal(a: f64, b: f64) -> bool {
    (a / b - 1.0).abs() < 0.005
}

#[test]
fn advice_for_ten_gigabits_over_92_ms_is_correct() {
    let advice = advise(&path("10G", "92ms")).unwrap();
    assert!(approx_equal(value(&advice, "bdp"), 115e6));
    assert!(approx_equal(value(&advice, "tcp-rmem-max"), 230e6));
    assert!(approx_equal(value(&advice, "expected-rate"), 9.415e9));
    assert!(approx_equal(value(&advice, "flow-rate-ceiling"), 93.37e9));
    assert_eq!(advice.get("bdp").unwrap().value_text, "115000000 B (115 MB)");
    assert_eq!(advice.get("goodput-max").unwrap().value_text, "9.41 Gb/s");
    assert!(advice.get("mathis-rate").is_none() && advice.get("transfer-time").is_none());
}

#[test]
fn documented_example_matches_the_advice() {
    let page = include_str!("../../../docs/calc.md");
    for item in advise(&path("10G", "92ms")).unwrap().lines {
        let row = format!("{:<46} {}", item.label, item.value_text);
        assert!(page.contains(&row), "docs/calc.md lacks: {row}");
    }
}

#[test]
fn every_formula_is_in_the_documentation() {
    let page = include_str!("../../../docs/calc.md");
    let (loss, bytes, distance_m) = (Ratio::new(1e-6), Some(Bytes::new(1)), Some(1e6));
    let advice = advise(&PathInput { loss, bytes, distance_m, ..path("10G", "92ms") }).unwrap();
    assert_eq!(advice.lines.len(), 22);
    for item in advice.lines {
        assert!(page.contains(&format!("`{}`", item.key)), "docs/calc.md lacks the key {}", item.key);
        assert!(page.contains(item.formula), "docs/calc.md lacks the formula {}", item.formula);
    }
}

#[test]
fn two_hundred_gigabits_over_100_ms_need_three_flows() {
    let one = advise(&path("200G", "100ms")).unwrap();
    assert!(approx_equal(value(&one, "expected-rate"), 85.9e9), "the window field binds");
    assert!(one.get("window-per-flow").unwrap().note.as_ref().unwrap().contains("use 3 or more flows"));
    assert!(one.get("flows-needed").unwrap().note.is_some());
    let three = advise(&PathInput { flows: 3, ..path("200G", "100ms") }).unwrap();
    assert!(approx_equal(value(&three, "expected-rate"), 200e9 * 1448.0 / 1538.0));
    assert_eq!(three.get("window-per-flow").unwrap().note, None);
}

#[test]
fn small_loss_limits_a_long_path() {
    let loss = Some("1/22000".parse().unwrap());
    let advice = advise(&PathInput { loss, mtu: 9000, ..path("10G", "90ms") }).unwrap();
    assert!(approx_equal(value(&advice, "mathis-rate"), 0.1445e9));
    assert!(approx_equal(value(&advice, "cubic-rate"), 0.249e9));
    assert!(approx_equal(value(&advice, "expected-rate"), 0.249e9));
    assert_eq!(advice.get("expected-rate").unwrap().note.as_deref(), Some("limited by loss (CUBIC)"));
}

#[test]
fn heavy_loss_adds_a_note_about_timeouts() {
    let loss = Ratio::new(0.05);
    let advice = advise(&PathInput { loss, ..path("10G", "90ms") }).unwrap();
    assert!(advice.get("cubic-rate").unwrap().note.as_ref().unwrap().contains("timeouts"));
}

#[test]
fn zero_loss_equals_no_loss() {
    let with = advise(&PathInput { loss: Some(Ratio::ZERO), ..path("10G", "90ms") }).unwrap();
    assert_eq!(with, advise(&path("10G", "90ms")).unwrap());
}

#[test]
fn a_short_path_needs_no_larger_buffers() {
    let advice = advise(&path("10G", "100us")).unwrap();
    for key in ["tcp-rmem-max", "tcp-wmem-max"] {
        assert!(advice.get(key).unwrap().note.as_ref().unwrap().ends_with("no change needed"));
    }
}

#[test]
fn transfer_time_follows_the_expected_rate() {
    let bytes = Some(Bytes::new(1_000_000_000_000));
    let advice = advise(&PathInput { bytes, ..path("10G", "92ms") }).unwrap();
    assert!(approx_equal(value(&advice, "transfer-time"), 849.7));
}

#[test]
fn distances_beyond_the_speed_of_light_are_refused() {
    let at = |km: f64| advise(&PathInput { distance_m: Some(km * 1e3), ..path("10G", "10ms") });
    let error = at(2000.0).unwrap_err();
    assert!(matches!(error, InputError::FasterThanLight { .. }));
    assert!(
        error.to_string().starts_with("2000 km is farther than light in vacuum travels in half an RTT of 10.0 ms"),
        "{error}"
    );
    assert!(at(1200.0).unwrap().get("rtt-floor").unwrap().note.is_some());
    assert!(at(900.0).unwrap().get("rtt-floor").unwrap().note.is_none());
    assert!(approx_equal(value(&at(900.0).unwrap(), "land-speed"), 9.415e9 * 900e3));
}

#[test]
fn impossible_input_is_an_error_with_advice() {
    let fine = path("10G", "92ms");
    let refused = |input: PathInput| advise(&input).unwrap_err().to_string();
    for message in [
        refused(PathInput { rate: BitRate::ZERO, ..fine.clone() }),
        refused(PathInput { rate: BitRate::from_bps(u64::MAX), ..fine.clone() }),
        refused(PathInput { rtt: Nanos::ZERO, ..fine.clone() }),
        refused(PathInput { rtt: Nanos::new(u64::MAX), ..fine.clone() }),
        refused(PathInput { mtu: 0, ..fine.clone() }),
        refused(PathInput { mtu: 1000, ip_version: IpVersion::V6, ..fine.clone() }),
        refused(PathInput { mtu: u32::MAX, ..fine.clone() }),
        refused(PathInput { loss: Ratio::new(1.0), ..fine.clone() }),
        refused(PathInput { flows: 0, ..fine.clone() }),
        refused(PathInput { flows: u32::MAX, ..fine.clone() }),
        refused(PathInput { bytes: Some(Bytes::ZERO), ..fine.clone() }),
        refused(PathInput { distance_m: Some(-1.0), ..fine.clone() }),
        refused(PathInput { distance_m: Some(f64::NAN), ..fine.clone() }),
    ] {
        assert!(message.contains("give "), "{message}");
    }
}

#[test]
fn document_has_units_and_omits_absent_notes() {
    let advice = advise(&path("10G", "92ms")).unwrap();
    let json = serde_json::to_value(&advice).unwrap();
    assert_eq!(json["lines"][0]["key"], "bdp");
    assert_eq!(json["lines"][0]["unit"], "B");
    assert!(json["lines"][0].get("note").is_none());
    let schema = serde_json::to_value(schemars::schema_for!(Advice)).unwrap();
    assert!(schema["properties"]["lines"].is_object(), "{schema}");
}

fn any_path() -> impl Strategy<Value = PathInput> {
    let magnitude = |bits: u32| (0..bits, any::<u64>()).prop_map(|(shift, value)| value >> shift);
    (
        (magnitude(64), magnitude(64), 0u32..70_000, any::<bool>()),
        (prop::option::of(0.0f64..1.1), 0u32..70_000, prop::option::of(magnitude(64))),
        prop::option::of(prop_oneof![-1.0f64..1e9, 0.0f64..1e-3, Just(f64::MIN_POSITIVE)]),
    )
        .prop_map(|((rate, rtt, mtu, v6), (loss, flows, bytes), distance_m)| PathInput {
            rate: BitRate::from_bps(rate),
            rtt: Nanos::new(rtt),
            mtu,
            ip_version: if v6 { IpVersion::V6 } else { IpVersion::V4 },
            loss: loss.and_then(Ratio::new),
            flows,
            bytes: bytes.map(Bytes::new),
            distance_m,
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn every_path_has_finite_advice_or_an_error(input in any_path()) {
        if let Ok(advice) = advise(&input) {
            for (index, item) in advice.lines.iter().enumerate() {
                prop_assert!(item.value.is_finite() && item.value >= 0.0, "{item:?}");
                prop_assert!(!item.value_text.contains("NaN") && !item.value_text.contains("inf"), "{item:?}");
                prop_assert!(item.key.bytes().all(|b| b.is_ascii_lowercase() || b == b'-'));
                prop_assert!(!item.formula.is_empty() && !item.source.is_empty());
                prop_assert!(advice.lines[..index].iter().all(|other| other.key != item.key));
            }
            let expected = value(&advice, "expected-rate");
            prop_assert!(expected > 0.0 && expected <= value(&advice, "goodput-max"));
            prop_assert!(value(&advice, "tcp-rmem-max") <= f64::from(i32::MAX));
            prop_assert_eq!(advice.get("efficiency").unwrap().unit, Unit::Ratio);
        }
    }
}
