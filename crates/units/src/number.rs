//! Shared by all quantities: parsing a decimal number with a unit, and printing with three significant digits.

use crate::error::{ParseError, Quantity, escape_for_terminal};

/// A text split into a number and the rest, both trimmed.
pub(crate) struct NumberWithUnit<'a> {
    text: &'a str,
    number: &'a str,
    /// The unit as typed; may be empty.
    pub unit: &'a str,
    quantity: Quantity,
}

/// Splits `text` after its leading number: digits, an optional fraction and an optional exponent.
pub(crate) fn split(text: &str, quantity: Quantity) -> Result<NumberWithUnit<'_>, ParseError> {
    let text = text.trim();
    if text.is_empty() {
        return Err(ParseError::Empty { quantity });
    }
    if text.starts_with(['-', '\u{2212}']) {
        return Err(ParseError::Negative { quantity, text: escape_for_terminal(text) });
    }
    let bytes = text.as_bytes();
    let mut end = digits(bytes, 0);
    let mut seen = end;
    if bytes.get(end) == Some(&b'.') {
        let fraction = digits(bytes, end + 1);
        seen += fraction - (end + 1);
        end = fraction;
    }
    if seen == 0 {
        return Err(ParseError::NotANumber { quantity, text: escape_for_terminal(text) });
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        let exponent = digits(bytes, end + 1 + sign);
        if exponent > end + 1 + sign {
            end = exponent;
        }
    }
    let (number, unit) = text.split_at(end);
    Ok(NumberWithUnit { text, number, unit: unit.trim_start(), quantity })
}

/// Returns the index of the first byte at or after `from` that is not a digit.
fn digits(bytes: &[u8], from: usize) -> usize {
    from + bytes[from..].iter().take_while(|b| b.is_ascii_digit()).count()
}

impl NumberWithUnit<'_> {
    /// Returns the number times `multiplier`, rounded to an integer; exact if the number was typed as an integer.
    pub(crate) fn scaled(&self, multiplier: u64) -> Result<u64, ParseError> {
        if self.number.bytes().all(|b| b.is_ascii_digit()) {
            return self
                .number
                .parse::<u64>()
                .ok()
                .and_then(|n| n.checked_mul(multiplier))
                .ok_or_else(|| self.too_large());
        }
        let value = (self.value()? * multiplier as f64).round();
        // 2^64 is the smallest f64 above u64::MAX.
        if value < 18_446_744_073_709_551_616.0 { Ok(value as u64) } else { Err(self.too_large()) }
    }

    /// Returns the number as a finite, non-negative float.
    pub(crate) fn value(&self) -> Result<f64, ParseError> {
        match self.number.parse::<f64>() {
            Ok(value) if value.is_finite() => Ok(value),
            Ok(_) => Err(self.too_large()),
            Err(_) => Err(ParseError::NotANumber { quantity: self.quantity, text: escape_for_terminal(self.text) }),
        }
    }

    pub(crate) fn too_large(&self) -> ParseError {
        ParseError::TooLarge { quantity: self.quantity, text: escape_for_terminal(self.text) }
    }

    pub(crate) fn unknown_unit(&self) -> ParseError {
        ParseError::UnknownUnit {
            quantity: self.quantity,
            text: escape_for_terminal(self.text),
            unit: escape_for_terminal(self.unit),
        }
    }
}

/// Formats `value` with three significant digits, and without a fraction from 100 up.
pub(crate) fn three_digits(value: f64) -> String {
    // The bounds are those of rounding: 9.996 prints as 10.0 and 99.96 as 100.
    if value < 9.995 {
        format!("{value:.2}")
    } else if value < 99.95 {
        format!("{value:.1}")
    } else {
        format!("{value:.0}")
    }
}

/// Whether `value` in units of `size` is exact with three significant digits, without a fraction from 100 up.
pub(crate) fn has_three_digits(value: u64, size: u64) -> bool {
    let decimals = match value / size {
        0..10 => 100,
        10..100 => 10,
        _ => 1,
    };
    (u128::from(value) * decimals).is_multiple_of(u128::from(size))
}

/// A value with three significant digits and its unit.
pub(crate) struct FormattedValue {
    pub text: String,
    /// Whether the number is exact (not rounded).
    pub exact: bool,
}

/// Formats `value` in the largest of `units` (name, size; ascending; the first is the integral base unit) in
/// which it is at least 1.00.
pub(crate) fn format_in_largest_unit(value: u64, units: &[(&str, u64)]) -> FormattedValue {
    let (base, _) = units[0];
    let mut format_in_largest_unit = FormattedValue { text: format!("{value} {base}"), exact: true };
    for &(name, size) in &units[1..] {
        let scaled = value as f64 / size as f64;
        // Below 0.9995 the smaller unit still prints at most 999 with three digits.
        if scaled < 0.9995 {
            break;
        }
        format_in_largest_unit =
            FormattedValue { text: format!("{} {name}", three_digits(scaled)), exact: has_three_digits(value, size) };
    }
    format_in_largest_unit
}
