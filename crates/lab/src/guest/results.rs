//! The results directory, through which the guest and its host exchange files.

/// Mount point of the results directory.
pub const RESULTS: &str = "/out";
