use landspeed_model::{Applicability, Role};

use crate::advice::{self, ESNET_2016, LOSS_THAT_MATTERS, counted, long_path};
use crate::check::{Outcome, Problem};
use crate::example;
use crate::view::View;

const NAME: &str = "net.ipv4.tcp_congestion_control";

declare_check! {
    /// Whether BBR deserves a trial.
    ///
    /// **Reads** the congestion control, the share of segments repeated since boot, the goal's round trip.
    ///
    /// **Matters** because CUBIC takes every loss for congestion; where losses have another cause and cannot be
    /// removed, BBR, which goes by rate and round trip, may carry several times as much.
    ///
    /// **Leave it alone** where the loss can be repaired (it should be), and where others share a small buffer with
    /// you: BBR repeats far more. Compare on your own path before keeping it.
    code: "TCP-008",
    name: "bbr-trial",
    group: Tcp,
    title: "BBR for a long path with losses",
    scope: Host,
    severity: Note,
    since: "0.1",
    sources: [ESNET_2016],
    example: { good: example::as_is, bad: |facts, _| example::counter(facts, "Tcp.RetransSegs", 5_000_000) },
}

fn evaluate(view: &View<'_>) -> Outcome {
    let value = known!(view.sysctl(NAME));
    if value.starts_with("bbr") {
        return Outcome::pass(format!("{value} is in use"));
    }
    if value != "cubic" {
        return Outcome::not_applicable(format!("{value} first (TCP-007, OLD-014)"));
    }
    if !long_path(view) || view.role() == Role::Router {
        return Outcome::not_applicable("no long path was given (--rtt)");
    }
    let repeated = known!(counted(view, &["Tcp.RetransSegs"], "Tcp.OutSegs"));
    if !repeated.exceeds(LOSS_THAT_MATTERS) {
        return Outcome::pass(format!("no need: {}", repeated.text));
    }
    let mut problem = Problem {
        observed: format!("{value}; {}", repeated.text),
        recommended: "find the loss first; if it stays, try bbr and compare".into(),
        effect: "On four paths in the 2016 ESnet deck from four times better to 30 % worse, with 60 to 320 times \
                 the retransmissions."
            .into(),
        applicability: Applicability::NeedsCare,
        ..advice::sysctl(
            NAME,
            value,
            "bbr",
            "CUBIC halves its rate for losses that are no congestion; BBR does \
                                              not, and repeats far more.",
        )
    };
    let options = view.facts.kernel.configuration.known();
    if options.is_some_and(|options| !options.contains_key("CONFIG_TCP_CONG_BBR")) {
        problem.recommended = "find the loss; this kernel was built without bbr (CONFIG_TCP_CONG_BBR)".into();
        problem.applicability = Applicability::DisplayOnly;
        problem.changes.clear();
    }
    Outcome::found(problem)
}
