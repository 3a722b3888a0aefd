//! Properties that hold for any bytes that are parsed as a result of any program.
//!
//! A separate file, so that the tests of `landspeed-results` can include it without the other properties.

use landspeed_results::{Document, foreign};

/// A file given to compare or import.
pub fn result(bytes: &[u8]) {
    if let Ok(document) = Document::read(bytes) {
        for record in document.records() {
            assert!(record.figures.iter().all(|(_, value)| value.is_finite()));
        }
    }
    if let Ok(document) = foreign::read(bytes) {
        assert!(foreign::FOREIGN_KINDS.contains(&document.kind));
        assert!(!document.records.is_empty(), "a result has something that was measured");
        for record in document.records {
            assert!(record.figures.iter().all(|(_, value)| value.is_finite()));
        }
    }
}
