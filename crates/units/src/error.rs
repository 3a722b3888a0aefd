//! Errors of a quantity in user input.

use std::fmt;

/// The kind of quantity that was expected; it decides the words and the example in a [`ParseError`].
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
    /// Two spellings that are accepted.
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

/// Why a text is not the quantity it should be. The message says what is wrong and shows an accepted example.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// Nothing was given.
    #[error("the {quantity} is empty: give one, for example {}", quantity.example())]
    Empty {
        /// What was expected.
        quantity: Quantity,
    },
    /// The text does not begin with a finite decimal number.
    #[error("`{text}` is not a {quantity}: {} begin with a number, for example {}", quantity.plural(), quantity.example())]
    NotANumber {
        /// What was expected.
        quantity: Quantity,
        /// What was given, shortened and with control characters escaped.
        text: String,
    },
    /// The number has a minus sign.
    #[error("`{text}` is not a {quantity}: {} are positive, for example {}", quantity.plural(), quantity.example())]
    Negative {
        /// What was expected.
        quantity: Quantity,
        /// What was given, shortened and with control characters escaped.
        text: String,
    },
    /// The number is followed by something that is not a unit of this quantity.
    #[error(
        "`{text}` has the unknown unit `{unit}`: a {quantity} takes {}, for example {}",
        quantity.units(),
        quantity.example()
    )]
    UnknownUnit {
        /// What was expected.
        quantity: Quantity,
        /// What was given, shortened and with control characters escaped.
        text: String,
        /// The part that was not understood.
        unit: String,
    },
    /// A rate in bytes (capital B) where bits are meant: guessing would be wrong by a factor of eight.
    #[error("`{text}` counts bytes: rates are in bits per second (1 GB/s is 8G), for example 10G or 300m")]
    BytesNotBits {
        /// What was given, shortened and with control characters escaped.
        text: String,
    },
    /// A fraction with a zero below the line.
    #[error("`{text}` divides by zero: give a ratio, for example 0.0046% or 1/22000")]
    DividesByZero {
        /// What was given, shortened and with control characters escaped.
        text: String,
    },
    /// The value does not fit.
    #[error("`{text}` is too large: {} end at {}, for example {}", quantity.plural(), quantity.limit(), quantity.example())]
    TooLarge {
        /// What was expected.
        quantity: Quantity,
        /// What was given, shortened and with control characters escaped.
        text: String,
    },
}

/// `text` made safe for one line of a terminal: control characters escaped, at most 40 characters.
pub(crate) fn shown(text: &str) -> String {
    const MAX_CHARS: usize = 40;
    let mut out: String = text.chars().take(MAX_CHARS).flat_map(char::escape_debug).collect();
    if text.chars().nth(MAX_CHARS).is_some() {
        out.push('…');
    }
    out
}
