//! User input is parsed or rejected with advice, and printed values can be parsed again.

use landspeed_units::{BitRate, Bytes, Nanos, ParseError, Quantity, Ratio};
use proptest::prelude::*;

fn bps(text: &str) -> u64 {
    text.parse::<BitRate>().unwrap().bps()
}

fn bytes(text: &str) -> u64 {
    text.parse::<Bytes>().unwrap().get()
}

fn ns(text: &str) -> u64 {
    text.parse::<Nanos>().unwrap().get()
}

fn ratio(text: &str) -> f64 {
    text.parse::<Ratio>().unwrap().get()
}

#[test]
fn rates_are_decimal_as_in_iperf3() {
    for text in ["10G", "10g", "10Gbps", "10 Gb/s", "10gbit", "10000m", "1e10", "0.01T", " 10G "] {
        assert_eq!(bps(text), 10_000_000_000, "{text}");
    }
    assert_eq!(bps("9.4Gb/s"), 9_400_000_000);
    assert_eq!(bps("300m"), 300_000_000);
    assert_eq!(bps("500K"), 500_000);
    assert_eq!(bps("1000000"), 1_000_000);
    assert_eq!(bps("18446744073709551615"), u64::MAX);
}

#[test]
fn rates_in_bytes_are_rejected() {
    for text in ["1GB/s", "1GBps", "1GiB/s", "10MB"] {
        assert!(matches!(text.parse::<BitRate>(), Err(ParseError::BytesNotBits { .. })), "{text}");
    }
}

#[test]
fn bare_size_suffixes_are_binary_and_kb_is_decimal() {
    assert_eq!(bytes("128K"), 128 << 10);
    assert_eq!(bytes("1m"), 1 << 20);
    assert_eq!(bytes("4MiB"), 4 << 20);
    assert_eq!(bytes("64KiB"), 64 << 10);
    assert_eq!(bytes("2GB"), 2_000_000_000);
    assert_eq!(bytes("1500"), 1500);
    assert_eq!(bytes("1500 B"), 1500);
    assert_eq!(bytes("1.5K"), 1536);
    assert_eq!(bytes("1T"), 1 << 40);
}

#[test]
fn a_bare_time_is_in_seconds() {
    assert_eq!(ns("10"), 10_000_000_000);
    assert_eq!(ns("0.5"), 500_000_000);
    assert_eq!(ns(".5"), 500_000_000);
    assert_eq!(ns("92ms"), 92_000_000);
    assert_eq!(ns("1.5s"), 1_500_000_000);
    assert_eq!(ns("250us"), 250_000);
    assert_eq!(ns("250µs"), 250_000);
    assert_eq!(ns("250\u{3bc}s"), 250_000);
    assert_eq!(ns("10ns"), 10);
    assert_eq!(ns("2m"), 120_000_000_000);
    assert_eq!(ns("2min"), ns("2m"));
    assert_eq!(ns("1h"), 3_600_000_000_000);
}

#[test]
fn ratios_are_fractions_percentages_or_one_in_n() {
    assert!((ratio("0.0046%") - 4.6e-5).abs() < 1e-12);
    assert!((ratio("1e-6") - 1e-6).abs() < 1e-18);
    assert!((ratio("1/22000") - 1.0 / 22000.0).abs() < 1e-18);
    assert!((ratio("100%") - 1.0).abs() < f64::EPSILON);
    assert!(matches!("5".parse::<Ratio>(), Err(ParseError::TooLarge { .. })));
    assert!(matches!("1/0".parse::<Ratio>(), Err(ParseError::DividesByZero { .. })));
    assert!(matches!("1%/2".parse::<Ratio>(), Err(ParseError::UnknownUnit { .. })));
    assert!(matches!("1/".parse::<Ratio>(), Err(ParseError::Empty { quantity: Quantity::Ratio })));
}

#[test]
fn values_print_in_the_largest_suitable_unit() {
    assert_eq!(BitRate::from_bps(9_412_345_678).to_string(), "9.41 Gb/s");
    assert_eq!(BitRate::from_bps(999_600_000).to_string(), "1.00 Gb/s");
    assert_eq!(BitRate::from_bps(999).to_string(), "999 b/s");
    assert_eq!(BitRate::ZERO.to_string(), "0 b/s");
    assert_eq!(Bytes::new(4 << 20).to_string(), "4.00 MiB");
    assert_eq!(Nanos::from_millis(92).to_string(), "92.0 ms");
    assert_eq!(Nanos::from_secs(90).to_string(), "1.50 min");
    assert_eq!(Nanos::new(250_000).to_string(), "250 µs");
    assert_eq!(Ratio::new(0.5).unwrap().to_string(), "50.0%");
    assert_eq!(Ratio::new(2e-10).unwrap().to_string(), "2.00e-8%");
    assert_eq!(format!("[{:>10}]", Nanos::from_millis(92)), "[   92.0 ms]");
}

#[test]
fn sizes_print_in_a_unit_that_is_exact() {
    for (size, text) in [
        (0, "0 B"),
        (1024, "1.00 KiB"),
        (1448, "1448 B"),
        (1500, "1500 B"),
        (4096, "4.00 KiB"),
        (9000, "9000 B"),
        (64_000, "62.5 KiB"),
        (65_536, "64.0 KiB"),
        (100_000, "100 kB"),
        (1_000_000, "1 MB"),
        (1_000_001, "977 KiB"),
        (1_048_576, "1.00 MiB"),
        (1_500_000, "1.5 MB"),
        (16_000_000, "16 MB"),
        (115_000_000, "115 MB"),
        (25_000_000_000, "25 GB"),
        (u64::MAX, "16.0 EiB"),
    ] {
        assert_eq!(Bytes::new(size).to_string(), text);
    }
    assert_eq!(format!("[{:>10}]", Bytes::new(1_000_000)), "[      1 MB]");
}

#[test]
fn errors_contain_an_example() {
    let rate = |text: &str| text.parse::<BitRate>().unwrap_err().to_string();
    assert_eq!(rate("-1"), "`-1` is not a rate: rates are positive, for example 10G or 300m");
    assert_eq!(rate("1e30"), "`1e30` is too large: rates end at 18446744 Tb/s, for example 10G or 300m");
    assert_eq!(rate("1e999"), "`1e999` is too large: rates end at 18446744 Tb/s, for example 10G or 300m");
    assert_eq!(rate("  "), "the rate is empty: give one, for example 10G or 300m");
    for text in ["NaN", "inf", "infinity", "fast", ".", "e5", "+1"] {
        assert!(rate(text).contains("rates begin with a number"), "{text}: {}", rate(text));
    }
    assert!("5 parsecs".parse::<Nanos>().unwrap_err().to_string().contains("unknown unit `parsecs`"));
    assert!("1e30".parse::<Nanos>().unwrap_err().to_string().contains("too large"));
    assert!("17E".parse::<Bytes>().unwrap_err().to_string().contains("too large"));
}

#[test]
fn error_messages_escape_control_characters() {
    let message = format!("\u{1b}[2J{}", "x".repeat(10_000)).parse::<BitRate>().unwrap_err().to_string();
    assert!(!message.contains('\u{1b}') && message.len() < 200, "{message}");
}

#[test]
fn invalid_durations_are_refused() {
    for s in [-1.0, f64::NAN, f64::INFINITY, 1e30] {
        assert_eq!(Nanos::from_secs_f64(s), None, "{s}");
    }
    assert_eq!(Nanos::from_secs_f64(0.092), Some(Nanos::from_millis(92)));
}

#[test]
fn a_mean_rate_is_exact_for_every_duration() {
    assert_eq!(BitRate::mean(Bytes::new(125), Nanos::from_secs(1)), Some(BitRate::from_bps(1000)));
    assert_eq!(BitRate::mean(Bytes::new(125), Nanos::ZERO), None);
    assert_eq!(BitRate::mean(Bytes::new(u64::MAX), Nanos::new(1)), None);
}

#[test]
fn json_is_a_plain_number() {
    assert_eq!(serde_json::to_string(&BitRate::from_bps(7)).unwrap(), "7");
    assert_eq!(serde_json::from_str::<Nanos>("92").unwrap(), Nanos::new(92));
    let schema = serde_json::to_value(schemars::schema_for!(Bytes)).unwrap();
    assert_eq!(schema["type"], "integer", "{schema}");
}

/// Three significant digits: half a unit in the last place is at most 0.5 %.
fn close(a: u64, b: u64) -> bool {
    a.abs_diff(b) as f64 <= 0.5e-2 * a as f64 + 0.5
}

proptest! {
    #[test]
    fn printed_values_parse_back_within_their_precision(exponent in 0u32..63, mantissa in 0u64..1 << 62) {
        let value = mantissa >> (62 - exponent.min(62));
        prop_assert!(close(value, bps(&BitRate::from_bps(value).to_string())));
        prop_assert!(close(value, bytes(&Bytes::new(value).to_string())));
        prop_assert!(close(value, ns(&Nanos::new(value).to_string())));
    }

    #[test]
    fn printed_ratios_parse_back_within_their_precision(exponent in -300i32..0, mantissa in 1.0f64..10.0) {
        let value = mantissa * 10f64.powi(exponent);
        prop_assume!(value <= 0.999);
        let back = ratio(&Ratio::new(value).unwrap().to_string());
        prop_assert!((back - value).abs() <= 0.5e-2 * value, "{value} {back}");
    }

    #[test]
    fn integers_parse_exactly(value: u64) {
        prop_assert_eq!(bps(&value.to_string()), value);
        prop_assert_eq!(bytes(&value.to_string()), value);
        prop_assert_eq!(ns(&format!("{value}ns")), value);
    }

    #[test]
    fn parsing_never_panics(text in any::<String>(), near in "[-+0-9.eE/%kKmMgGtTbBiIsu µ]{0,12}") {
        for text in [text.as_str(), near.as_str()] {
            let _ = text.parse::<BitRate>();
            let _ = text.parse::<Bytes>();
            let _ = text.parse::<Nanos>();
            if let Ok(ratio) = text.parse::<Ratio>() {
                prop_assert!((0.0..=1.0).contains(&ratio.get()));
            }
        }
    }
}
