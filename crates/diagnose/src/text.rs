//! Formatting of figures for people.

use landspeed_units::{BitRate, Bytes, Micros, Nanos};

/// Formats a rate, such as `9.41 Gb/s`; a non-finite value prints as zero.
pub(crate) fn rate(bps: f64) -> String {
    BitRate::from_bps(bps as u64).to_string()
}

/// Formats a rate for an option, such as `1.9G`: at most three significant digits, rounded down.
pub(crate) fn rate_argument(bps: f64) -> String {
    if !bps.is_finite() || bps < 1.0 {
        return "0".to_owned();
    }
    let (unit, suffix) = [(1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, "")]
        .into_iter()
        .find(|&(unit, _)| bps >= unit)
        .unwrap_or((1.0, ""));
    let value = bps / unit;
    let decimals = if value >= 100.0 {
        0
    } else if value >= 10.0 {
        1
    } else {
        2
    };
    let power = 10_f64.powi(decimals);
    let text = format!("{:.*}", decimals as usize, (value * power).floor() / power);
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text}{suffix}")
}

/// Formats a size, such as `6.00 MiB`, or `1 MB` if it is round in powers of 1000.
pub(crate) fn bytes(bytes: f64) -> String {
    Bytes::new(bytes as u64).to_string()
}

/// Formats a time in microseconds, such as `50.0 ms`.
pub(crate) fn micros(us: f64) -> String {
    let is_whole = us.fract() == 0.0 && us < 1e3;
    if is_whole { Micros::new(us as u32).to_string() } else { Nanos::new((us * 1e3) as u64).to_string() }
}

/// Formats a time in nanoseconds, such as `50.0 ms`.
pub(crate) fn nanos(ns: f64) -> String {
    Nanos::new(ns as u64).to_string()
}

/// Formats a share, such as `97 %`; small shares keep two significant digits (`0.0046 %`).
pub(crate) fn percent(share: f64) -> String {
    let value = share * 100.0;
    if !value.is_finite() || value == 0.0 {
        "0 %".to_owned()
    } else if value.abs() >= 9.95 {
        format!("{value:.0} %")
    } else if value.abs() >= 0.995 {
        format!("{value:.1} %")
    } else {
        let digits = (1.0 - value.abs().log10().floor()).clamp(2.0, 9.0) as usize;
        format!("{value:.digits$} %")
    }
}

/// Formats a plain number: integers without decimals, small values with three digits.
pub(crate) fn number(value: f64) -> String {
    if value.fract() == 0.0 && value.abs() < 1e15 {
        format!("{value:.0}")
    } else if value.abs() >= 0.01 {
        format!("{value:.2}")
    } else {
        format!("{value:.2e}")
    }
}

/// Formats a value in the unit of an evidence line.
pub(crate) fn in_unit(value: f64, unit: &str) -> String {
    match unit {
        "bytes" => bytes(value),
        "bps" => rate(value),
        "ratio" if value.abs() >= 0.01 || value == 0.0 => format!("{value:.2}"),
        "ratio" => number(value),
        unit => format!("{} {unit}", number(value)),
    }
}

/// Whether a kernel list such as `0-3,8` contains a number.
pub(crate) fn list_contains(list: &str, number: u32) -> bool {
    list.split(',').any(|part| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let bounds = first.trim().parse::<u32>().ok().zip(last.trim().parse::<u32>().ok());
        bounds.is_some_and(|(first, last)| (first..=last).contains(&number))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_keep_two_significant_digits() {
        assert_eq!(percent(0.97), "97 %");
        assert_eq!(percent(0.0123), "1.2 %");
        assert_eq!(percent(0.000_046), "0.0046 %");
        assert_eq!(percent(0.0), "0 %");
        assert_eq!(percent(f64::NAN), "0 %");
    }

    #[test]
    fn rate_arguments_are_rounded_down_to_three_digits() {
        assert_eq!(rate_argument(1.9e9), "1.9G");
        assert_eq!(rate_argument(949_999_999.0), "949M");
        assert_eq!(rate_argument(9.4149e9), "9.41G");
        assert_eq!(rate_argument(12_000.0), "12k");
        assert_eq!(rate_argument(f64::NAN), "0");
    }

    #[test]
    fn kernel_core_lists_are_parsed() {
        assert!(list_contains("0-3,8", 2) && list_contains("0-3,8\n", 8));
        assert!(!list_contains("0-3,8", 4) && !list_contains("", 0) && !list_contains("a-b", 1));
    }

    #[test]
    fn thresholds_are_printed_with_their_unit() {
        assert_eq!(in_unit(0.2, "ratio"), "0.20");
        assert_eq!(in_unit(65_536.0, "bytes"), "64.0 KiB");
        assert_eq!(in_unit(20.0, "samples"), "20 samples");
    }
}
