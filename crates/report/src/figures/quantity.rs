//! Formats values with their units for readers.

/// A unit of an axis: its size in the base unit, and its name.
pub(crate) type Step = (f64, &'static str);

const RATES: &[Step] = &[(1e12, "Tb/s"), (1e9, "Gb/s"), (1e6, "Mb/s"), (1e3, "kb/s"), (1.0, "b/s")];
const SIZES: &[Step] =
    &[(1_099_511_627_776.0, "TiB"), (1_073_741_824.0, "GiB"), (1_048_576.0, "MiB"), (1024.0, "KiB"), (1.0, "B")];
const TIMES: &[Step] = &[(60e9, "min"), (1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns")];
/// Unit of the published records: Tb·m/s.
const RECORDS: &[Step] = &[(1e12, "Tb·m/s"), (1e9, "Gb·m/s"), (1e6, "Mb·m/s"), (1.0, "b·m/s")];

/// Formats a JSON value as text; strings without quotes.
pub(crate) fn plain(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::String(text) => text.clone(),
        serde_json::Value::Array(all) => all.iter().map(plain).collect::<Vec<_>>().join(" + "),
        other => other.to_string(),
    }
}

/// Returns the unit that fits a `value` in the base unit.
pub(crate) fn fitting(value: f64, unit: &str) -> Step {
    let steps = match unit {
        "bit/s" => RATES,
        "B" => SIZES,
        "ns" => TIMES,
        "bit·m/s" => RECORDS,
        "s" => return (1.0, "s"),
        "s/Gb" => return (1.0, "s/Gb"),
        "per GB" => return (1.0, "per GB"),
        "per s" => return (1.0, "per s"),
        "packets" => return (1.0, "packets"),
        _ => return (1.0, ""),
    };
    let size = value.abs() * 1.000_5;
    steps.iter().find(|step| size >= step.0).or(steps.last()).copied().unwrap_or((1.0, ""))
}

/// Formats a value with its unit: `9.41 Gb/s`.
pub(crate) fn text(value: f64, unit: &str) -> String {
    let (size, name) = if value == 0.0 { (1.0, fitting(0.0, unit).1) } else { fitting(value, unit) };
    let amount = value / size;
    let number = significant(amount);
    if name.is_empty() { number } else { format!("{number} {name}") }
}

/// Formats a number with three significant digits; integers below a million in full.
pub(crate) fn significant(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let size = value.abs();
    if !(1e-6..1e15).contains(&size) {
        return format!("{value:.2e}");
    }
    if value.fract() == 0.0 && size < 1e6 {
        return signed(&format!("{value:.0}"));
    }
    let rounded: f64 = format!("{value:.2e}").parse().unwrap_or(value);
    let magnitude = rounded.abs().log10().floor() as i32;
    signed(&format!("{rounded:.*}", (2 - magnitude).max(0) as usize))
}

fn signed(text: &str) -> String {
    text.replace('-', "−")
}

/// Formats a share as a percentage.
pub(crate) fn percent(share: f64) -> String {
    format!("{} %", significant((share * 1000.0).round() / 10.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_formatted_in_the_fitting_unit() {
        assert_eq!(text(9.414e9, "bit/s"), "9.41 Gb/s");
        assert_eq!(text(16_777_216.0, "B"), "16 MiB");
        assert_eq!(text(92e6, "ns"), "92 ms");
        assert_eq!(text(2.724e17, "bit·m/s"), "272400 Tb·m/s");
        assert_eq!(text(0.0, "bit/s"), "0 b/s");
        assert_eq!(text(0.987_6, "ratio"), "0.988");
        assert_eq!(text(12.0, "per GB"), "12 per GB");
        assert_eq!(percent(0.9), "90 %");
    }
}
