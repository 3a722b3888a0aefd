//! Figures that are known, or unknown for a reason.

use std::collections::BTreeMap;

/// A figure, or the reason why it is unknown. A sum of figures is known if all of them are.
pub type Known<T> = Result<T, String>;

/// Reasons of the document's unknown figures, by path.
#[derive(Debug, Default)]
pub struct Unknown(BTreeMap<String, String>);

impl Unknown {
    /// Returns a figure for the field at `path`; records the reason if it is unknown.
    pub fn field<T>(&mut self, path: impl Into<String>, figure: Known<T>) -> Option<T> {
        figure.map_err(|why| self.0.insert(path.into(), why)).ok()
    }

    /// Returns all reasons.
    pub fn into_reasons(self) -> BTreeMap<String, String> {
        self.0
    }
}

/// Returns `part / whole`, or `why` if it is not finite.
pub fn ratio(part: f64, whole: f64, why: &str) -> Known<f64> {
    Some(part / whole).filter(|ratio| ratio.is_finite()).ok_or_else(|| why.to_owned())
}
