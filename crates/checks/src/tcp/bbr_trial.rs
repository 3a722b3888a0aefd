use landspeed_model::KernelOption;

use crate::prelude::*;

const NAME: &str = "net.ipv4.tcp_congestion_control";

declare_check! {
    /// Whether BBR is worth a trial.
    ///
    /// **Reads** the congestion control, the share of segments retransmitted since boot, the goal's RTT.
    ///
    /// **Matters** because CUBIC treats every loss as congestion; where losses have another cause that cannot
    /// be removed, BBR, which relies on rate and RTT, may reach several times the rate.
    ///
    /// **Leave it alone** where the cause of the loss can be fixed (do that first), and where other traffic
    /// shares a small buffer: BBR retransmits far more. Compare on your own path before keeping it.
    code: "TCP-008",
    title: "BBR for a long path with losses",
    severity: Note,
    sources: [esnet_2016!("Initial BBR TCP results (bwctl, 3 streams, 40 sec test)")],
    bad: |facts, _| example::counter(facts, "Tcp.RetransSegs", 5_000_000),
}

fn evaluate(view: &View<'_>) -> Outcome {
    let value = known!(view.sysctl(NAME));
    if value.starts_with("bbr") {
        return Outcome::pass(format!("{value} is in use"));
    }
    if value != "cubic" {
        return Outcome::not_applicable(format!("{value} first (TCP-007, OLD-014)"));
    }
    if !is_long_path(view) || view.role() == Role::Router {
        return Outcome::not_applicable("no long path was given (--rtt)");
    }
    let repeated = known!(counted(view, &["Tcp.RetransSegs"], &SEGMENTS_SENT));
    if !repeated.exceeds(SIGNIFICANT_LOSS_RATE) {
        return Outcome::pass(format!("no need: {}", repeated.text));
    }
    let mut problem = Problem {
        observed: format!("{value}; {}", repeated.text),
        recommended: "find the loss first; if it stays, try bbr and compare".into(),
        effect: Effect::measured(
            "BBR against H-TCP on four paths: from 183 to 803 Mb/s (4.4 times) at best, from 5051 to 3095 Mb/s (39 % less) at worst, with 60 to 320 times the retransmits",
            &[&source::BBR],
        ),
        applicability: Applicability::NeedsCare,
        ..advice::sysctl(
            NAME,
            value,
            "bbr",
            "CUBIC reduces its window by 30 % after a loss, whatever the cause; BBR does not, and retransmits far more.",
        )
    };
    if has_bbr(view) == Some(false) {
        problem.recommended =
            "find the loss; this kernel was built without bbr (CONFIG_TCP_CONG_BBR is not set)".into();
        problem.applicability = Applicability::DisplayOnly;
        problem.changes.clear();
    }
    Outcome::found(problem)
}

/// Returns whether this kernel has BBR; `None` if that is unknown.
fn has_bbr(view: &View<'_>) -> Option<bool> {
    let available = view.sysctl("net.ipv4.tcp_available_congestion_control");
    let listed = available.known().is_some_and(|names| names.split_whitespace().any(|name| name == "bbr"));
    let loaded = view.facts.modules.known().is_some_and(|modules| modules.contains_key("tcp_bbr"));
    match view.facts.kernel.option("CONFIG_TCP_CONG_BBR") {
        _ if listed || loaded => Some(true),
        KernelOption::Built => Some(true),
        KernelOption::NotSet => Some(false),
        KernelOption::Unknown => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bbr_is_missing_only_where_the_configuration_says_so() {
        for (value, listed, change) in
            [(Some("n"), false, false), (None, false, true), (Some("n"), true, true), (Some("m"), false, true)]
        {
            let (mut facts, goal) = crate::failing_example(&CHECK);
            let names = if listed { "reno cubic bbr" } else { "reno cubic" };
            example::sysctl(&mut facts, "net.ipv4.tcp_available_congestion_control", names);
            let Fact::Known(options) = &mut facts.kernel.configuration else { panic!("the example has one") };
            options.remove("CONFIG_TCP_CONG_BBR");
            options.extend(value.map(|value| ("CONFIG_TCP_CONG_BBR".to_owned(), value.to_owned())));
            let findings = CHECK.audit_alone(&facts, &goal).findings;
            assert_eq!(!findings[0].changes.is_empty(), change, "{value:?} {listed}");
            assert_eq!(findings[0].recommended.contains("without bbr"), !change, "{value:?} {listed}");
        }
    }
}
