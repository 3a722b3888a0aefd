//! Levels as numbers, for chart axes.

use landspeed_units::{BitRate, Bytes, Nanos, Ratio};
use serde_json::Value;

/// Returns the levels of a key in their base unit, and that unit: `bit/s`, `B`, `ns`, `ratio` or empty. `None` if a
/// level is not a quantity, or the units differ.
pub fn numbers<'a>(key: &str, levels: impl IntoIterator<Item = &'a Value>) -> Option<(Vec<f64>, String)> {
    let sizes = is_size(key);
    let parsed: Option<Vec<(f64, &str)>> = levels.into_iter().map(|level| quantity(level, sizes)).collect();
    let parsed = parsed?;
    let unit = parsed.iter().find(|(number, _)| *number != 0.0).or(parsed.first())?.1;
    let alike = parsed.iter().all(|(number, other)| *other == unit || *number == 0.0);
    alike.then(|| (parsed.iter().map(|(number, _)| *number).collect(), unit.to_owned()))
}

/// Whether values of this key that end without a unit, such as `64K`, are sizes rather than rates.
fn is_size(key: &str) -> bool {
    let last = key.rsplit('.').next().unwrap_or(key);
    ["window", "len", "mss", "limit", "bytes", "buffers", "mtu"].contains(&last)
}

fn quantity(value: &Value, sizes: bool) -> Option<(f64, &'static str)> {
    let unit = if sizes { "B" } else { "" };
    match value {
        Value::Number(number) => Some((number.as_f64()?, unit)),
        Value::String(text) => {
            let text = text.trim();
            let last = text.chars().last()?;
            if text.parse::<f64>().is_ok() {
                return Some((text.parse().ok()?, unit));
            }
            match last {
                'B' => text.parse::<Bytes>().ok().map(|size| (size.get() as f64, "B")),
                '%' => text.parse::<Ratio>().ok().map(|share| (share.get(), "ratio")),
                _ if text.contains('/') => text.parse::<Ratio>().ok().map(|share| (share.get(), "ratio")),
                's' => text.parse::<Nanos>().ok().map(|time| (time.get() as f64, "ns")),
                _ if sizes => text.parse::<Bytes>().ok().map(|size| (size.get() as f64, "B")),
                _ => text.parse::<BitRate>().ok().map(|rate| (rate.bps() as f64, "bit/s")),
            }
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(key: &str, levels: &str) -> Option<(Vec<f64>, String)> {
        numbers(key, &serde_json::from_str::<Vec<Value>>(levels).expect("a list"))
    }

    #[test]
    fn quantities_are_converted_to_base_units() {
        assert_eq!(of("switch.w.queue.limit", "[\"64KB\", \"1MB\"]"), Some((vec![64e3, 1e6], "B".to_owned())));
        assert_eq!(of("link.0.delay", "[\"0\", \"5ms\"]").map(|found| found.0), Some(vec![0.0, 5e6]));
        assert_eq!(of("link.0.rate", "[\"1G\", \"10G\"]"), Some((vec![1e9, 10e9], "bit/s".to_owned())));
        assert_eq!(of("run.parallel", "[1, 4]"), Some((vec![1.0, 4.0], String::new())));
        assert_eq!(of("run.congestion", "[\"cubic\", \"bbr\"]"), None);
        assert_eq!(of("link.0.loss", "[\"0.01%\", \"1/1000\"]").map(|found| found.1), Some("ratio".to_owned()));
    }
}
