//! What the rules return.

use std::fmt;
use std::path::Path;

/// A breach of a rule at one place in the tree.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Violation {
    /// File, relative to the workspace, with a line number where there is one.
    pub place: String,
    /// The problem, and how to fix it.
    pub what: String,
}

impl Violation {
    /// Creates a violation at a place.
    pub fn new(place: impl Into<String>, what: impl Into<String>) -> Self {
        Self { place: place.into(), what: what.into() }
    }

    /// Creates a violation at a line of a file.
    pub fn at(path: &Path, line: usize, what: impl Into<String>) -> Self {
        Self::new(format!("{}:{line}", path.display()), what)
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.what)
    }
}
