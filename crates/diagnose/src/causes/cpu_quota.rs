//! Cause: the CPU quota (CFS throttling) of the process's control group.

use landspeed_model::Cause;

use crate::finding::{Bound, Finding, FindingBuilder, Strength};
use crate::flow::Flow;
use crate::reader::{Reader, reader};
use crate::stream::StreamView;
use crate::text;
use crate::thresholds::{QUOTA_USED_UP, SEND_EMPTY, SEND_FULL};

/// The cause is named if the group was throttled in many enforcement periods and the local side is the slow
/// one.
pub(crate) fn evaluate(flow: &Flow) -> Finding {
    let Some(host_readings) = flow.host_readings else { return Finding::not_applicable(Cause::CpuQuota) };
    let mut builder = FindingBuilder::new(flow, Cause::CpuQuota);
    // No quota: nothing to evaluate, and no reading is missing.
    let Some(quota) = &host_readings.quota else { return Finding::not_applicable(Cause::CpuQuota) };
    let share = (quota.periods > 0).then(|| quota.throttled_periods as f64 / quota.periods as f64);
    let metric = "periods in which the quota was used up over periods";
    let used_up = Bound::AtLeast(QUOTA_USED_UP);
    if builder.value(metric, share, "ratio", used_up, Some(flow.local().end), "cpu.stat nr_throttled") != Some(true) {
        return builder.refuted();
    }
    let strength = if flow.sends() {
        let fill = flow.figure(StreamView::send_fill);
        let metric = "send queue memory over SO_SNDBUF";
        builder.figure(metric, fill, "ratio", Bound::Below(SEND_FULL), "sender.samples[].wmem_queued_bytes");
        match fill {
            Some(fill) if fill.value < SEND_EMPTY => Strength::Strong,
            Some(fill) if fill.value < SEND_FULL => Strength::Moderate,
            _ => return builder.refuted(),
        }
    } else {
        match reader(flow) {
            Reader::Behind => Strength::Strong,
            Reader::Unclear => Strength::Moderate,
            _ => return builder.refuted(),
        }
    };
    let share = share.unwrap_or(0.0);
    let why = format!(
        "the CPU quota of control group {} ({} cores) was used up in {} of its periods",
        quota.group,
        text::number(quota.cores),
        text::percent(share)
    );
    let next = format!(
        "Raise or remove the quota (`systemctl set-property UNIT CPUQuota=`, `cpu.max`; a container's CPU limit); `cat \
         /sys/fs/cgroup{}/cpu.stat` shows nr_throttled rise.",
        quota.group
    );
    let mut finding = builder.holds(strength, why, next);
    finding.place = Some(format!("{}, control group {}", flow.local().name(), quota.group));
    finding
}
