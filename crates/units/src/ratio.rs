//! Dimensionless ratios.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::{ParseError, Quantity, escape_for_terminal};
use crate::number::{split, three_digits};

/// A dimensionless ratio, such as a loss rate or a share.
///
/// Parses `0.0046%`, `1e-6` and `1/22000`, from 0 to 1: a bare `5` is probably meant as `5%` and is rejected.
/// Prints as a percentage.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Ratio(f64);

impl Ratio {
    /// 0 %.
    pub const ZERO: Self = Self(0.0);

    /// Creates a ratio from its value (1.0 is 100 %); `None` if negative or not finite. May exceed 1.
    pub fn new(value: f64) -> Option<Self> {
        (0.0..=f64::MAX).contains(&value).then_some(Self(value))
    }

    /// Returns `part / whole`; `None` if `whole` is zero.
    pub fn of(part: u64, whole: u64) -> Option<Self> {
        (whole != 0).then(|| Self(part as f64 / whole as f64))
    }

    /// Returns the value; 1.0 is 100 %.
    pub const fn get(self) -> f64 {
        self.0
    }
}

impl FromStr for Ratio {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let value = if let Some((part, whole)) = text.split_once('/') {
            let (part, whole) = (split(part, Quantity::Ratio)?, split(whole, Quantity::Ratio)?);
            for side in [&part, &whole] {
                if !side.unit.is_empty() {
                    return Err(side.unknown_unit());
                }
            }
            let whole = whole.value()?;
            if whole == 0.0 {
                return Err(ParseError::DividesByZero { text: escape_for_terminal(text.trim()) });
            }
            part.value()? / whole
        } else {
            let split = split(text, Quantity::Ratio)?;
            match split.unit {
                "" => split.value()?,
                "%" => split.value()? / 100.0,
                _ => return Err(split.unknown_unit()),
            }
        };
        if (0.0..=1.0).contains(&value) {
            Ok(Self(value))
        } else {
            Err(ParseError::TooLarge { quantity: Quantity::Ratio, text: escape_for_terminal(text.trim()) })
        }
    }
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = self.0 * 100.0;
        f.pad(&if percent == 0.0 {
            "0%".to_owned()
        } else if percent < 1e-4 {
            format!("{percent:.2e}%")
        } else if percent < 0.9995 {
            // Leading zeros are not significant: 0.00455, not 0.00.
            let decimals = 2 + (-percent.log10().floor()) as usize;
            format!("{percent:.decimals$}%")
        } else {
            format!("{}%", three_digits(percent))
        })
    }
}
