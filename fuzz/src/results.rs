//! Properties that hold for any bytes that are read as a result, of whatever program.
//!
//! Beside the other claims and not among them, so that the tests of `landspeed-results` include this file alone.

use landspeed_results::{Document, foreign};

/// A file that is compared or imported.
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
