//! Hosts without enough CPU time: what they measure does not describe the network.
//!
//! A stream thread that waits for a core, a quota that is used up, a core full of softirqs and steal time all delay
//! data and ACKs as a path does, and reorder and drop packets between the two TCPs of one host. A cause in the network
//! that is inferred from such readings is a hint only (rule 12 of honest measurement).

use landspeed_model::{Cause, CausePlace};

use crate::causes::{quota_of, throttled_share};
use crate::finding::{Finding, Standing, Strength};
use crate::flow::Flow;
use crate::load::{Role, host_of, load};
use crate::text;
use crate::thresholds::{CORE_BUSY, KEPT_WAITING, QUOTA_SEEN, RTT_QUEUE, SOFTIRQ_SHARE, STEAL_SHARE};

/// Weakens each network cause to a hint if a host of the flow lacked CPU time, and a full send buffer if its data waited for
/// the receiving host.
pub(crate) fn weaken(flow: &Flow, findings: &mut [Finding]) {
    // In a lab run virtual time stands still while a host computes, and UDP's losses are counted, not inferred.
    if flow.route.is_some() || flow.udp.is_some() || flow.is_rr() {
        return;
    }
    for finding in findings.iter_mut().filter(|finding| !finding.direct && finding.strength().is_some()) {
        let (roles, what): (&[Role], _) = match finding.cause {
            cause if cause.place() == CausePlace::Network => {
                (&[Role::Sender, Role::Receiver], "how the network behaves")
            }
            Cause::SendBuffer if flow.rtt_inflation().is_none_or(|ratio| ratio >= RTT_QUEUE) => {
                (&[Role::Receiver], "how much data the path holds")
            }
            _ => continue,
        };
        let Some((host, shortage)) =
            roles.iter().find_map(|&role| Some((host_of(flow, role).name(), cpu_shortage(flow, role)?)))
        else {
            continue;
        };
        finding.standing = Standing::Supported(Strength::Weak);
        finding.missing.push(format!("{what} while the {host} has CPU time: {shortage}"));
        if !flow.observed {
            finding.next_step = format!(
                "Run again with idle cores on the {host}: {shortage}. If the verdict stays: {}",
                finding.next_step
            );
        }
    }
}

/// Says how a host lacked CPU time; `None` if no reading shows it.
fn cpu_shortage(flow: &Flow, role: Role) -> Option<String> {
    let host = host_of(flow, role);
    let load = load(flow, role);
    if let Some(waits) = load.waits.filter(|waits| waits.largest.1 >= KEPT_WAITING) {
        let whose = if flow.observed { "its busiest thread" } else { "a stream thread" };
        return Some(format!("{whose} waited {} of the time for a core", text::percent(waits.largest.1)));
    }
    if let Some((quota, share)) = quota_of(flow, host)
        .and_then(|quota| Some((quota, throttled_share(quota)?)))
        .filter(|used| used.1 >= QUOTA_SEEN)
    {
        return Some(format!(
            "the CPU quota of {} was used up in {} of its periods",
            quota.group,
            text::percent(share)
        ));
    }
    if let Some(core) =
        host.most_interrupted().filter(|core| core.softirq >= SOFTIRQ_SHARE && core.kernel() >= CORE_BUSY)
    {
        return Some(format!("core {} was full of softirqs", core.core));
    }
    let steal = host.steal().filter(|&steal| steal >= STEAL_SHARE)?;
    Some(format!("the hypervisor took {} of its CPU time (steal time)", text::percent(steal)))
}
