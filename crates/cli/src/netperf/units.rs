//! netperf's units of rates.

/// Unit of a rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Bits per second, in powers of 1000.
    Bits(u8),
    /// Bytes per second, in powers of 1024.
    Bytes(u8),
    /// Transactions per second.
    Transactions,
}

impl Unit {
    /// Parses the value of `-f`.
    pub fn of_option(text: &str) -> Result<Self, String> {
        match text {
            "k" => Ok(Self::Bits(1)),
            "m" => Ok(Self::Bits(2)),
            "g" => Ok(Self::Bits(3)),
            "K" => Ok(Self::Bytes(1)),
            "M" => Ok(Self::Bytes(2)),
            "G" => Ok(Self::Bytes(3)),
            "x" => Ok(Self::Transactions),
            _ => Err("k, m or g for bits, K, M or G for bytes, x for transactions".to_owned()),
        }
    }

    /// Returns netperf's name of the unit without the time: `10^6bits`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bits(1) => "10^3bits",
            Self::Bits(2) => "10^6bits",
            Self::Bits(_) => "10^9bits",
            Self::Bytes(1) => "KBytes",
            Self::Bytes(2) => "MBytes",
            Self::Bytes(_) => "GBytes",
            Self::Transactions => "Trans",
        }
    }

    /// Returns a rate in this unit: `amount` bytes or transactions in `span_ns` nanoseconds; `None` without a span.
    pub fn rate(self, amount: u64, span_ns: u64) -> Option<f64> {
        if span_ns == 0 {
            return None;
        }
        let per_second = amount as f64 * 1e9 / span_ns as f64;
        Some(match self {
            Self::Bits(power) => per_second * 8.0 / 1000_f64.powi(i32::from(power)),
            Self::Bytes(power) => per_second / 1024_f64.powi(i32::from(power)),
            Self::Transactions => per_second,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_in_the_unit_asked_for() {
        let rate = |unit| Unit::of_option(unit).expect("a unit").rate(125_000_000, 1_000_000_000);
        assert_eq!((rate("m"), rate("g"), rate("x")), (Some(1000.0), Some(1.0), Some(125_000_000.0)));
        assert_eq!(rate("K"), Some(125_000_000.0 / 1024.0));
        assert_eq!(Unit::Bits(2).rate(1, 0), None);
        assert!(Unit::of_option("b").is_err());
    }
}
