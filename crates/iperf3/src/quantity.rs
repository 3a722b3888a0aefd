//! Amounts and rates in the four characters and a unit that iperf3 prints them in.

/// `-f`: what rates are printed in. Transfers always have the unit that fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// Bits, whatever fits
    #[default]
    Adaptive,
    /// Kbits
    Kbits,
    /// Mbits
    Mbits,
    /// Gbits
    Gbits,
    /// Tbits
    Tbits,
    /// KBytes
    KBytes,
    /// MBytes
    MBytes,
    /// GBytes
    GBytes,
    /// TBytes
    TBytes,
}

impl Format {
    /// Every format with its letter and what it means.
    pub const ALL: [(&str, Self, &str); 9] = [
        ("a", Self::Adaptive, "Bits, whatever fits"),
        ("k", Self::Kbits, "Kbits"),
        ("m", Self::Mbits, "Mbits"),
        ("g", Self::Gbits, "Gbits"),
        ("t", Self::Tbits, "Tbits"),
        ("K", Self::KBytes, "KBytes"),
        ("M", Self::MBytes, "MBytes"),
        ("G", Self::GBytes, "GBytes"),
        ("T", Self::TBytes, "TBytes"),
    ];

    /// The format of a letter; `A` is `a`.
    pub fn of_letter(letter: &str) -> Option<Self> {
        let letter = if letter == "A" { "a" } else { letter };
        Self::ALL.iter().find(|(known, ..)| *known == letter).map(|(_, format, _)| *format)
    }
}

/// `1.95 GBytes`.
pub fn transfer(bytes: u64) -> String {
    adaptive(bytes as f64, 1024.0, "Bytes")
}

/// `16.8 Gbits/sec`.
pub fn rate(bits_per_second: f64, format: Format) -> String {
    let bits = |power: i32, prefix| fixed(bits_per_second, 1000_f64.powi(power), prefix, "bits");
    let bytes = |power: i32, prefix| fixed(bits_per_second / 8.0, 1024_f64.powi(power), prefix, "Bytes");
    let text = match format {
        Format::Adaptive => adaptive(bits_per_second, 1000.0, "bits"),
        Format::Kbits => bits(1, "K"),
        Format::Mbits => bits(2, "M"),
        Format::Gbits => bits(3, "G"),
        Format::Tbits => bits(4, "T"),
        Format::KBytes => bytes(1, "K"),
        Format::MBytes => bytes(2, "M"),
        Format::GBytes => bytes(3, "G"),
        Format::TBytes => bytes(4, "T"),
    };
    text + "/sec"
}

fn adaptive(mut value: f64, base: f64, unit: &str) -> String {
    let mut prefixes = ["", "K", "M", "G", "T"].into_iter();
    let mut prefix = prefixes.next().unwrap_or_default();
    while value >= base {
        let Some(next) = prefixes.next() else { break };
        prefix = next;
        value /= base;
    }
    fixed(value, 1.0, prefix, unit)
}

/// Three digits that count, four characters wide.
fn fixed(value: f64, divisor: f64, prefix: &str, unit: &str) -> String {
    let value = value / divisor;
    let digits = match value {
        v if v < 9.995 => 2,
        v if v < 99.95 => 1,
        _ => 0,
    };
    format!("{value:4.digits$} {prefix}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_read_as_iperf3_prints_them() {
        // From recorded runs: bytes and the text beside them.
        for (bytes, text) in [
            (2_139_095_040, "1.99 GBytes"),
            (1_277_952, "1.22 MBytes"),
            (1_048_576_000, "1000 MBytes"),
            (0, "0.00 Bytes"),
            (785_408, " 767 KBytes"),
            (85_800_000, "81.8 MBytes"),
        ] {
            assert_eq!(transfer(bytes), text);
        }
        for (bps, text) in [
            (17_081_074_657.4, "17.1 Gbits/sec"),
            (999_999_999.0, "1000 Mbits/sec"),
            (9_962_438.0, "9.96 Mbits/sec"),
            (388_000_000.0, " 388 Mbits/sec"),
            (0.0, "0.00 bits/sec"),
        ] {
            assert_eq!(rate(bps, Format::Adaptive), text);
        }
    }

    #[test]
    fn a_unit_asked_for_is_kept() {
        assert_eq!(rate(17_081_074_657.4, Format::Mbits), "17081 Mbits/sec");
        assert_eq!(rate(8.0 * 1_048_576.0, Format::MBytes), "1.00 MBytes/sec");
        assert_eq!(rate(8.0 * 1_048_576.0, Format::GBytes), "0.00 GBytes/sec");
    }
}
