use crate::hardware::{loss_severity, loss_text};
use crate::prelude::*;

declare_check! {
    /// Whether packets were lost between the NIC and the protocol because a CPU's backlog was full.
    ///
    /// **Reads** `/proc/net/softnet_stat` (processed, dropped, since boot) and `net.core.netdev_max_backlog`.
    ///
    /// **Matters** only where there were drops: the backlog holds packets that one CPU hands to another (RPS,
    /// virtual interfaces, loopback). A NIC's own queue on the usual path does not pass through it.
    ///
    /// **Leave it alone** at zero drops. Guides set 250000 blindly; ESnet lists it among the settings to leave, and a long
    /// backlog adds delay.
    code: "IRQ-013",
    title: "Backlog drops",
    severity: Minor,
    sources: [
        "Linux kernel, Documentation/admin-guide/sysctl/net.rst: netdev_max_backlog",
        esnet_2014!("A small amount of packet loss makes a huge difference in TCP performance"),
        esnet_2016!("Settings to leave alone in CentOS7"),
    ],
    bad: |facts, _| {
        if let Fact::Known(softnet) = &mut facts.softnet {
            softnet.dropped = 180_000;
        }
    },
}

fn evaluate(view: &View<'_>) -> Outcome {
    let softnet = *known!(view.facts.softnet.as_ref());
    let seen = loss_text(softnet.dropped, softnet.processed);
    let Some(severity) = loss_severity(softnet.dropped, softnet.processed) else {
        return Outcome::pass(format!("{} dropped of {} since boot", softnet.dropped, softnet.processed));
    };
    let backlog = view.sysctl_last("net.core.netdev_max_backlog");
    let advice = match backlog.known() {
        None => Advice::none("a larger net.core.netdev_max_backlog, set in the first network namespace"),
        Some(&now) => Advice::of(now),
    };
    Outcome::found(Problem {
        severity: Some(severity),
        observed: format!("{seen} packets dropped since boot"),
        recommended: advice.text,
        why: "A CPU was handed packets faster than it could take them.".into(),
        effect: Effect::measured(
            "The deck calls the effect of 0.0046 % packet loss huge; its graph has no figures",
            &[&source::LOSS_2014],
        ),
        by_hand: "cat /proc/net/softnet_stat  # second column, hexadecimal, one line for each CPU".into(),
        applicability: advice.applicability,
        changes: advice.to.iter().map(|to| Change::sysctl("net.core.netdev_max_backlog", to.to_string())).collect(),
    })
}

/// Longest backlog that is safe to set, packets: 36 ms of 1500-byte packets at 10 Gb/s, which is less than the
/// delay of the paths where backlogs matter. A longer one needs a decision.
const MAX_SAFE_BACKLOG: u64 = 30_000;
/// Backlog that many guides set, packets: 0.3 s of packets for one CPU at 10 Gb/s. A longer one does not help.
const MAX_BACKLOG: u64 = 250_000;

/// Recommended change of the backlog.
struct Advice {
    text: String,
    to: Option<u64>,
    applicability: Applicability,
}

impl Advice {
    fn none(text: &str) -> Self {
        Self { text: text.into(), to: None, applicability: Applicability::DisplayOnly }
    }

    /// Recommends twice the length, up to [`MAX_BACKLOG`].
    fn of(now: u64) -> Self {
        if now >= MAX_BACKLOG {
            return Self::none(
                "spread the load over more CPUs; the backlog is long enough: a longer one only adds delay",
            );
        }
        let to = now.saturating_mul(2).min(MAX_BACKLOG);
        let text =
            format!("net.core.netdev_max_backlog = {to}, then look whether drops go on; better, spread the load");
        let safe = to <= MAX_SAFE_BACKLOG;
        let applicability = if safe { Applicability::Safe } else { Applicability::NeedsCare };
        Self { text, to: Some(to), applicability }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_backlog_is_doubled_up_to_a_maximum() {
        let advised = |now| {
            let advice = Advice::of(now);
            (advice.to, advice.applicability)
        };
        assert_eq!(advised(1000), (Some(2000), Applicability::Safe));
        assert_eq!(advised(15_000), (Some(30_000), Applicability::Safe));
        assert_eq!(advised(15_001), (Some(30_002), Applicability::NeedsCare));
        assert_eq!(advised(200_000), (Some(250_000), Applicability::NeedsCare));
        for enough in [250_000, i32::MAX as u64, u64::MAX] {
            assert_eq!(advised(enough), (None, Applicability::DisplayOnly), "{enough}");
        }
    }
}
