//! Cause: the CPU quota (CFS throttling) of a control group.

use landspeed_model::{Cause, QuotaUse};

use crate::finding::{Bound, Finding, FindingBuilder, Strength};
use crate::flow::Flow;
use crate::host::HostView;
use crate::load::{Role, host_of, load};
use crate::reader::{Reader, reader};
use crate::stream::StreamView;
use crate::text;
use crate::thresholds::{QUOTA_USED_UP, SEND_EMPTY, SEND_FULL, THREAD_BUSY};
use crate::waits;

/// The cause is named if a group was throttled in many enforcement periods and its side is the slow one. With `run`
/// both ends report the group of landspeed, in a watched flow only the local process's is known.
pub(crate) fn evaluate(flow: &Flow) -> Finding {
    let mut builder = FindingBuilder::new(flow, Cause::CpuQuota);
    // No quota: nothing to evaluate, and no reading is missing.
    let mut limited = None;
    for role in [Role::Sender, Role::Receiver] {
        let host = host_of(flow, role);
        if let Some(why) = quota_unknown(flow, host) {
            builder.record_missing(&format!("the CPU quota of the {} ({why})", host.name()));
        }
        let Some((quota, share)) = quota_of(flow, host).and_then(|quota| Some((quota, throttled_share(quota)?)))
        else {
            continue;
        };
        let metric = "periods in which the quota was used up over periods";
        let used_up = Bound::AtLeast(QUOTA_USED_UP);
        let throttled = builder.value(metric, Some(share), "ratio", used_up, Some(host.end), "cpu.stat nr_throttled");
        if throttled == Some(true)
            && limited.is_none()
            && let Some(strength) = is_slow(flow, role, &mut builder)
        {
            limited = Some((host, quota, share, strength));
        }
    }
    let Some((host, quota, share, strength)) = limited else { return builder.refuted_or_not_applicable() };
    let why = format!(
        "the CPU quota of control group {} ({} cores) on the {} was used up in {} of its periods",
        quota.group,
        text::number(quota.cores),
        host.name(),
        text::percent(share)
    );
    // The CPU hierarchy of version 1 is mounted below a directory of that name.
    let is_v1 = ["/cgroup/cpu/", "/cgroup/cpu,cpuacct/"].iter().any(|mount| quota.directory.contains(mount));
    let file = if is_v1 { "cpu.cfs_quota_us" } else { "cpu.max" };
    let next = format!(
        "On the {} raise or remove the quota (`systemctl set-property UNIT CPUQuota=`, `{file}`; a container's CPU limit). `cat \
         {}/cpu.stat` shows nr_throttled rise.",
        host.name(),
        if quota.directory.is_empty() { format!("/sys/fs/cgroup{}", quota.group) } else { quota.directory.clone() },
    );
    let mut finding = builder.holds(strength, why, next);
    finding.place = Some(format!("{}, control group {}", host.name(), quota.group));
    finding
}

/// Returns the quota of a host that was used up most often.
pub(crate) fn quota_of<'a>(flow: &Flow<'a>, host: &HostView<'a>) -> Option<&'a QuotaUse> {
    match flow.host_readings {
        Some(readings) => readings.quota.as_ref().filter(|_| host.end == flow.local().end),
        None => host.series?.quota.as_ref(),
    }
}

/// Share of its periods in which a quota was used up; `None` if the group did not run.
pub(crate) fn throttled_share(quota: &QuotaUse) -> Option<f64> {
    (quota.periods > 0).then(|| quota.throttled_periods as f64 / quota.periods as f64)
}

/// Why the quota of a host is unknown.
fn quota_unknown<'a>(flow: &Flow<'a>, host: &HostView<'a>) -> Option<&'a str> {
    match flow.host_readings {
        Some(readings) => readings.quota_unknown.as_deref().filter(|_| host.end == flow.local().end),
        None => host.series?.unavailable.get("quota").map(String::as_str),
    }
}

/// How strongly threads or queues show that this side is the slow one; `None` if they do not.
fn is_slow(flow: &Flow, role: Role, builder: &mut FindingBuilder) -> Option<Strength> {
    // A thread that always runs or wants to run is held back by the quota alone.
    if let Some(work) = load(flow, role).work.filter(|work| work.value >= THREAD_BUSY) {
        let metric = "share of time on a core or ready for one, stream thread";
        let end = match role {
            Role::Sender => "sender.thread_wait_ns",
            Role::Receiver => "receiver.thread_wait_ns",
        };
        builder.figure(metric, Some(work), "ratio", Bound::AtLeast(THREAD_BUSY), end);
        return Some(Strength::Strong);
    }
    // A throttled thread is ready to run, and neither on a core nor in a run queue.
    if host_of(flow, role).end == flow.local().end
        && waits::is_in(builder, flow, "ready to run", |waits| waits.runs) == Some(true)
    {
        return Some(Strength::Strong);
    }
    match role {
        Role::Sender => {
            let fill = flow.figure(StreamView::send_fill);
            let metric = "send queue memory over SO_SNDBUF";
            builder.figure(metric, fill, "ratio", Bound::Below(SEND_FULL), "sender.samples[].wmem_queued_bytes");
            match fill {
                Some(fill) if fill.value < SEND_EMPTY => Some(Strength::Strong),
                Some(fill) if fill.value < SEND_FULL => Some(Strength::Moderate),
                _ => None,
            }
        }
        Role::Receiver => match reader(flow) {
            Reader::Behind => Some(Strength::Strong),
            Reader::Unclear => Some(Strength::Moderate),
            _ => None,
        },
    }
}
