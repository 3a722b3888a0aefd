use landspeed_model::QueueFacts;

use super::side;
use crate::prelude::*;

declare_check! {
    /// Whether both settings of receive flow steering (RFS) are set, or neither.
    ///
    /// **Reads** `net.core.rps_sock_flow_entries` and `queues/rx-*/rps_flow_cnt`.
    ///
    /// **Matters** because RFS works only with both set: with one of them zero it costs memory and does
    /// nothing, although it appears to be on.
    ///
    /// **Leave it alone** where both are zero: bulk transfers that are pinned by hand do not need it.
    code: "IRQ-008",
    title: "RFS configured in both places",
    scope: Port,
    severity: Note,
    sources: ["Linux kernel, Documentation/networking/scaling.rst: RFS Configuration"],
    bad: |facts, _| example::sysctl(facts, "net.core.rps_sock_flow_entries", "32768"),
}

/// Maximum number of entries (`net/core/sysctl_net_core.c`).
const MAX_ENTRIES: u64 = 1 << 29;

fn evaluate(view: &View<'_>) -> Outcome {
    let port = known!(view.device());
    let entries = match view.sysctl_last("net.core.rps_sock_flow_entries") {
        Fact::Known(entries) => entries,
        Fact::Absent(why) => return Outcome::not_applicable(why),
        Fact::Unknown(why) => return Outcome::unknown(why),
    };
    let queues = known!(port.queues.as_ref());
    let receive: Vec<&QueueFacts> =
        side(queues, "rx-").into_iter().filter(|queue| queue.rps_flow_count.is_some()).collect();
    if receive.is_empty() {
        return Outcome::not_applicable("the receive queues have no rps_flow_cnt");
    }
    let flows: u64 = receive.iter().filter_map(|queue| queue.rps_flow_count).map(u64::from).sum();
    let (recommended, changes) = match (entries, flows) {
        (0, 0) => return Outcome::pass("off"),
        (0, flows) => {
            let entries = flows.min(MAX_ENTRIES).next_power_of_two();
            let change = Change::sysctl("net.core.rps_sock_flow_entries", entries.to_string());
            (format!("net.core.rps_sock_flow_entries = {entries}, or 0 for the queues"), vec![change])
        }
        (entries, 0) => {
            let each = (entries / receive.len() as u64).max(1);
            let change = |queue: &&QueueFacts| {
                let target = Target::Queue {
                    interface: port.name.clone(),
                    queue: queue.name.clone(),
                    file: "rps_flow_cnt".into(),
                };
                Change::new(target, each.to_string())
            };
            let changes = receive.iter().map(change).collect();
            (format!("{each} for each of {} queues, or 0 for the sysctl", receive.len()), changes)
        }
        (entries, flows) => return Outcome::pass(format!("{flows} flows in the queues, {entries} entries")),
    };
    Outcome::found(Problem {
        severity: None,
        observed: format!("net.core.rps_sock_flow_entries = {entries}, {flows} flows in the queues"),
        recommended,
        why: "RFS works only with both set: as it is, it does nothing.".into(),
        effect: Effect::stated(
            "None as it is: RFS stays off until both are set",
            "Linux kernel, Documentation/networking/scaling.rst",
        ),
        by_hand: format!(
            "sysctl net.core.rps_sock_flow_entries; grep . /sys/class/net/{}/queues/rx-*/rps_flow_cnt",
            shell_word(&port.name)
        ),
        applicability: Applicability::NeedsCare,
        changes,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_missing_rfs_setting_is_recommended() {
        // Sixteen queues.
        for (entries, each, desired) in
            [("32768", 0, Some(("2048", 16))), ("0", 3000, Some(("65536", 1))), ("0", 0, None)]
        {
            let mut facts = example::facts();
            example::sysctl(&mut facts, "net.core.rps_sock_flow_entries", entries);
            example::queues(&mut facts, "rx-", |queue| queue.rps_flow_count = Some(each));
            let audit = CHECK.audit_alone(&facts, &example::goal());
            let found = audit.findings.first().map(|f| (f.changes[0].desired.as_str(), f.changes.len()));
            assert_eq!(found, desired, "{entries} entries, {each} for each queue");
        }
    }
}
