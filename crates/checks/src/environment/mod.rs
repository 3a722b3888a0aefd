//! Virtual machines, containers, clocks, other programs that tune: one check, one file.

use crate::check::Check;

/// In the order of their codes.
pub(crate) static CHECKS: &[&Check] = &[];
