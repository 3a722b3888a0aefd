//! Formats values as text.

use landspeed_units::{BitRate, Bytes, Nanos, Ratio};

use crate::answers::Unit;

const SECONDS_PER_YEAR: f64 = 365.25 * 86_400.0;

/// Formats `value`, finite and not negative, with its unit.
pub(crate) fn value_text(value: f64, unit: Unit) -> String {
    match unit {
        // The exact number comes first, for use in a sysctl.
        Unit::Bytes if value >= 1024.0 => format!("{value:.0} B ({})", Bytes::new(value as u64)),
        Unit::Bytes => format!("{value:.0} B"),
        Unit::BitsPerSecond if value < 1.0 => format!("{value:.2e} b/s"),
        Unit::BitsPerSecond => BitRate::from_bps(value.round() as u64).to_string(),
        Unit::Seconds => seconds(value),
        Unit::Metres if value >= 10_000.0 => format!("{:.0} km", value / 1000.0),
        Unit::Metres => format!("{value:.1} m"),
        Unit::BitMetresPerSecond => bit_metres_per_second(value),
        Unit::Ratio => Ratio::new(value).unwrap_or_default().to_string(),
        Unit::Count => format!("{value:.0}"),
    }
}

fn seconds(value: f64) -> String {
    match Nanos::from_secs_f64(value) {
        Some(nanos) if value < SECONDS_PER_YEAR => nanos.to_string(),
        _ => match value / SECONDS_PER_YEAR {
            years if years < 1e4 => format!("{years:.1} years"),
            years => format!("{years:.1e} years"),
        },
    }
}

/// Uses Tb·m/s, as in the published record, except for small values.
fn bit_metres_per_second(value: f64) -> String {
    for (name, size) in [("Tb·m/s", 1e12), ("Gb·m/s", 1e9), ("Mb·m/s", 1e6)] {
        if value >= size {
            let scaled = value / size;
            return if scaled < 100.0 { format!("{scaled:.1} {name}") } else { format!("{scaled:.0} {name}") };
        }
    }
    format!("{value:.3e} b·m/s")
}
