//! The device on its bus: one check, one file.

use crate::check::Check;

/// In the order of their codes.
pub(crate) static CHECKS: &[&Check] = &[];
