//! What tuning guides hand down that helps no more, or never did: one check, one file.

use crate::check::Check;

/// In the order of their codes.
pub(crate) static CHECKS: &[&Check] = &[];
