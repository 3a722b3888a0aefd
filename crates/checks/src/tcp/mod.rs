//! TCP and UDP behaviour: one check, one file.

use crate::check::Check;

mod sack;

/// In the order of their codes.
pub(crate) static CHECKS: &[&Check] = &[&sack::CHECK];
