//! Comparison of a value read back with the requested one.

use landspeed_model::Target;

use crate::Value;

/// Checks the value read back: `false` if it is the requested one, `true` if the driver rounded or clamped
/// it; otherwise an error with the difference.
pub(super) fn accept(target: &Target, before: &Value, desired: &str, observed: &Value) -> Result<bool, String> {
    let wanted = Value::text(desired);
    if let (Value::Qdiscs(tree), Target::Qdisc { .. }) = (observed, target) {
        let kind = crate::discipline::QdiscRequest::parse(desired)?.kind();
        let fits = match kind {
            None => tree.is_default(),
            Some(kind) => {
                tree.transmit_qdiscs().iter().all(|node| node.kind == kind) && !tree.transmit_qdiscs().is_empty()
            }
        };
        return if fits { Ok(false) } else { Err(format!("{target} was set to {desired} and is {observed}")) };
    }
    if observed.same(&wanted) || same_mask(target, desired, observed) {
        return Ok(false);
    }
    let drivers = matches!(
        target,
        Target::Ring { .. } | Target::Channels { .. } | Target::Coalescing { .. } | Target::SegmentLimit { .. }
    );
    match (before.number(), wanted.number(), observed.number()) {
        // Closer to the requested value than before: rounded or clamped. Unchanged or further away: not accepted.
        (Some(before), Some(wanted), Some(observed))
            if drivers && observed.abs_diff(wanted) < before.abs_diff(wanted) =>
        {
            Ok(true)
        }
        _ => Err(format!("{target} was set to {desired} and reads {observed}")),
    }
}

/// Whether CPU masks or lists are equal, independent of their format.
fn same_mask(target: &Target, desired: &str, observed: &Value) -> bool {
    let Value::Text(observed) = observed else { return false };
    match target {
        Target::Queue { .. } => {
            let plain = |text: &str| {
                let digits: String = text.chars().filter(char::is_ascii_hexdigit).collect();
                digits.trim_start_matches('0').to_ascii_lowercase()
            };
            plain(desired) == plain(observed)
        }
        Target::InterruptAffinity { .. } => cpus(desired).is_some_and(|set| Some(set) == cpus(observed)),
        _ => false,
    }
}

/// Parses a CPU list in the kernel's format, ascending. `None` if it is not a list.
fn cpus(text: &str) -> Option<Vec<u32>> {
    let mut set = Vec::new();
    for part in text.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        if last.checked_sub(first)? > 65_536 {
            return None;
        }
        set.extend(first..=last);
    }
    set.sort_unstable();
    set.dedup();
    Some(set)
}
