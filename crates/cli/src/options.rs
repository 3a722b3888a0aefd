//! Parsers of option values.

use std::path::Path;

use anyhow::Context as _;
use landspeed_flow::control::channel::Key;
use landspeed_model::NumaPolicy;
use landspeed_sys::trust::{self, Content, Policy};
use landspeed_units::{BitRate, Nanos};

/// Parses a rate above zero.
pub fn rate(text: &str) -> Result<BitRate, String> {
    let rate: BitRate = text.parse().map_err(|e: landspeed_units::ParseError| e.to_string())?;
    if rate.bps() == 0 {
        return Err("a rate of zero sends nothing; leave the option out to send without limit".to_owned());
    }
    Ok(rate)
}

/// Parses a rate, or `unlimited` (`None`).
pub fn rate_or_unlimited(text: &str) -> Result<RateLimit, String> {
    match text {
        "unlimited" | "max" => Ok(RateLimit(None)),
        "0" => Err("a rate of zero sends nothing; write unlimited to send as fast as the host can".to_owned()),
        _ => rate(text).map(|r| RateLimit(Some(r))),
    }
}

/// A rate limit; `None` is unlimited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateLimit(pub Option<BitRate>);

/// Parses a time above zero; a bare number is in seconds.
pub fn time(text: &str) -> Result<Nanos, String> {
    let time: Nanos = text.parse().map_err(|e: landspeed_units::ParseError| e.to_string())?;
    if time.get() == 0 {
        return Err("a time of zero measures nothing".to_owned());
    }
    Ok(time)
}

/// Parses a round-trip time. Refuses a bare number: it would mean seconds where the user probably means
/// milliseconds.
pub fn rtt(text: &str) -> Result<Nanos, String> {
    let bare = text.trim().parse::<f64>().is_ok_and(|value| value != 0.0);
    if bare {
        return Err(format!("`{0}` has no unit; write {0}ms, or {0}s for seconds", text.trim()));
    }
    time(text)
}

/// Parses a distance into metres: `30000km`, `1500m`.
pub fn metres(text: &str) -> Result<f64, String> {
    let (number, factor) = match text.strip_suffix("km") {
        Some(number) => (number, 1000.0),
        None => (text.strip_suffix('m').unwrap_or(text), 1.0),
    };
    match number.trim().parse::<f64>() {
        Ok(value) if value.is_finite() && value > 0.0 => Ok(value * factor),
        _ => Err(format!("`{text}` is not a distance; write 30000km")),
    }
}

/// Parses a list of cores: `3`, `0,2,4`, `0-3,8`.
pub fn cores(text: &str) -> Result<Vec<u32>, String> {
    let bad = || format!("`{text}` is not a list of cores; write 3, 0,2,4 or 0-3");
    let mut cores = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let first: u32 = first.trim().parse().map_err(|_| bad())?;
        let last: u32 = last.trim().parse().map_err(|_| bad())?;
        if last < first || last - first >= 1024 {
            return Err(bad());
        }
        cores.extend(first..=last);
    }
    Ok(cores)
}

/// Cores for the threads of a test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CoreChoice {
    /// Chosen on the NUMA node of the CPUs that serve the receive queues, but not these CPUs.
    Auto,
    /// The listed cores.
    List(Vec<u32>),
}

impl CoreChoice {
    /// Returns the listed cores; empty for `auto`.
    pub fn list(choice: Option<&Self>) -> Vec<u32> {
        match choice {
            Some(Self::List(cores)) => cores.clone(),
            Some(Self::Auto) | None => Vec::new(),
        }
    }
}

/// Parses `auto` or a list of cores.
pub fn core_choice(text: &str) -> Result<CoreChoice, String> {
    if text == "auto" {
        return Ok(CoreChoice::Auto);
    }
    cores(text).map(CoreChoice::List).map_err(|error| format!("{error}, or auto"))
}

/// Parses a NUMA policy: `local`, `bind:0`, `preferred:1`.
pub fn numa(text: &str) -> Result<NumaPolicy, String> {
    let bad = || format!("`{text}` is not a NUMA policy; write local, bind:0 or preferred:0");
    let node = |n: &str| n.parse::<u32>().map_err(|_| bad());
    match text.split_once(':') {
        None if text == "local" => Ok(NumaPolicy::Local),
        Some(("bind", n)) => node(n).map(NumaPolicy::Bind),
        Some(("preferred", n)) => node(n).map(NumaPolicy::Preferred),
        _ => Err(bad()),
    }
}

/// Parses a DSCP: 0 to 63, or a name from RFC 2474, 2597, 3246 or 8622.
pub fn dscp(text: &str) -> Result<u8, String> {
    let named = match text.to_ascii_lowercase().as_str() {
        "ef" => Some(46),
        "le" => Some(1),
        "cs0" | "default" | "be" => Some(0),
        name => name
            .strip_prefix("cs")
            .and_then(|n| n.parse::<u8>().ok())
            .filter(|n| *n < 8)
            .map(|n| n * 8)
            .or_else(|| assured(name)),
    };
    named
        .or_else(|| text.parse().ok().filter(|d| *d < 64))
        .ok_or_else(|| format!("`{text}` is not a DSCP; write 0 to 63, or ef, cs1, af41, le"))
}

/// Parses an assured forwarding name: AFxy = 8x + 2y (RFC 2597).
fn assured(name: &str) -> Option<u8> {
    let digits = name.strip_prefix("af")?.as_bytes();
    let [class @ b'1'..=b'4', precedence @ b'1'..=b'3'] = digits else { return None };
    Some((class - b'0') * 8 + (precedence - b'0') * 2)
}

/// Reads a key file.
pub fn key(path: &Path, policy: Policy) -> anyhow::Result<Key> {
    let text = trust::read_text(path, "key file", Content::Secret, policy)?;
    Key::from_text(&text).with_context(|| {
        format!(
            "{} is not a key file: 64 hex digits are expected; create one with 'landspeed serve --new-key FILE'",
            path.display()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn core_lists_use_the_kernel_syntax() {
        assert_eq!(cores("0-2,7"), Ok(vec![0, 1, 2, 7]));
        for bad in ["", "3-1", "x", "0-99999", "-1", "1,,2"] {
            assert!(cores(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn dscp_accepts_names_and_numbers() {
        assert_eq!((dscp("ef"), dscp("af41"), dscp("CS1"), dscp("63")), (Ok(46), Ok(34), Ok(8), Ok(63)));
        assert!(dscp("64").is_err() && dscp("af44").is_err() && dscp("cs8").is_err());
    }

    #[test]
    fn rtt_requires_a_unit() {
        assert!(rtt("92").unwrap_err().contains("write 92ms"));
        assert_eq!(rtt("92ms"), Ok(Nanos::from_millis(92)));
        assert_eq!(rtt("1.5s"), Ok(Nanos::from_millis(1500)));
        assert!(rtt("0").is_err() && rtt("x").is_err() && rtt("-1").is_err());
    }

    #[test]
    fn zero_rates_and_times_are_refused() {
        assert!(rate("0").unwrap_err().contains("leave the option out"));
        assert!(rate_or_unlimited("0").unwrap_err().contains("unlimited"));
        assert!(time("0").is_err() && time("-1").is_err() && time("1e30").is_err());
    }
}
