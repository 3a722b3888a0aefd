//! Common imports of the checks.

pub(crate) use landspeed_model::{Applicability, Change, Fact, Role, Severity, Target};
pub(crate) use landspeed_quote::{shell_command, shell_word};

pub(crate) use crate::advice::{
    self, IP_SYSCTL, Reference, SEGMENTS_SENT, SIGNIFICANT_LOSS_RATE, counted, is_long_path, join_first, origin,
    percent,
};
pub(crate) use crate::check::{Effect, Outcome, Problem};
pub(crate) use crate::hardware::FAST_BPS;
pub(crate) use crate::view::{View, bytes_text, cpu_list, feature, rate_text};
pub(crate) use crate::{example, source};
