//! Errors for quantities in user input.

use std::fmt;

/// Kind of quantity expected; selects the wording and the example in a [`ParseError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quantity {
    /// A [`crate::BitRate`].
    Rate,
    /// A [`crate::Bytes`].
    Size,
    /// A [`crate::Nanos`].
    Time,
    /// A [`crate::Ratio`].
    Ratio,
}

impl Quantity {
    /// Returns two accepted spellings.
    pub const fn example(self) -> &'static str {
        match self {
            Self::Rate => "10G or 300m",
            Self::Size => "128K or 4MiB",
            Self::Time => "92ms or 1.5s",
            Self::Ratio => "0.0046% or 1/22000",
        }
    }

    const fn plural(self) -> &'static str {
        match self {
            Self::Rate => "rates",
            Self::Size => "sizes",
            Self::Time => "times",
            Self::Ratio => "ratios",
        }
    }

    const fn units(self) -> &'static str {
        match self {
            Self::Rate => "b/s, k, m, g, t (powers of 1000)",
            Self::Size => "B, K, M, G, T or KiB, MiB (powers of 1024), KB, MB (powers of 1000)",
            Self::Time => "ns, us, ms, s, min, h, d",
            Self::Ratio => "none or %",
        }
    }

    const fn limit(self) -> &'static str {
        match self {
            Self::Rate => "18446744 Tb/s",
            Self::Size => "16 EiB",
            Self::Time => "584 years",
            Self::Ratio => "1, the whole (100%)",
        }
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Rate => "rate",
            Self::Size => "size",
            Self::Time => "time",
            Self::Ratio => "ratio",
        })
    }
}

/// Error for a text that is not the expected quantity. The message states the problem and shows an accepted
/// example.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// The text is empty.
    #[error("the {quantity} is empty: give one, for example {}", quantity.example())]
    Empty {
        /// Expected kind of quantity.
        quantity: Quantity,
    },
    /// The text does not begin with a decimal number.
    #[error("`{text}` is not a {quantity}: {} begin with a number, for example {}", quantity.plural(), quantity.example())]
    NotANumber {
        /// Expected kind of quantity.
        quantity: Quantity,
        /// Input text, shortened and with control characters escaped.
        text: String,
    },
    /// The number is negative.
    #[error("`{text}` is not a {quantity}: {} are positive, for example {}", quantity.plural(), quantity.example())]
    Negative {
        /// Expected kind of quantity.
        quantity: Quantity,
        /// Input text, shortened and with control characters escaped.
        text: String,
    },
    /// The number is followed by an unknown unit.
    #[error(
        "`{text}` has the unknown unit `{unit}`: a {quantity} takes {}, for example {}",
        quantity.units(),
        quantity.example()
    )]
    UnknownUnit {
        /// Expected kind of quantity.
        quantity: Quantity,
        /// Input text, shortened and with control characters escaped.
        text: String,
        /// The unknown unit.
        unit: String,
    },
    /// A rate with a capital B (bytes) instead of bits. It is not guessed, which could be wrong by a factor of
    /// eight.
    #[error("`{text}` counts bytes: rates are in bits per second (1 GB/s is 8G), for example 10G or 300m")]
    BytesNotBits {
        /// Input text, shortened and with control characters escaped.
        text: String,
    },
    /// A fraction with a denominator of zero.
    #[error("`{text}` divides by zero: give a ratio, for example 0.0046% or 1/22000")]
    DividesByZero {
        /// Input text, shortened and with control characters escaped.
        text: String,
    },
    /// The value exceeds the limit of its type.
    #[error("`{text}` is too large: {} end at {}, for example {}", quantity.plural(), quantity.limit(), quantity.example())]
    TooLarge {
        /// Expected kind of quantity.
        quantity: Quantity,
        /// Input text, shortened and with control characters escaped.
        text: String,
    },
}

/// Returns `text` safe for one line of a terminal: control characters escaped, at most 40 characters.
pub(crate) fn escape_for_terminal(text: &str) -> String {
    const MAX_CHARS: usize = 40;
    let mut out: String = text.chars().take(MAX_CHARS).flat_map(char::escape_debug).collect();
    if text.chars().nth(MAX_CHARS).is_some() {
        out.push('…');
    }
    out
}
