//! The interface, MTU, rings, offloads, flow control, drops: one check, one file.

use crate::check::Check;

/// In the order of their codes.
pub(crate) static CHECKS: &[&Check] = &[];
