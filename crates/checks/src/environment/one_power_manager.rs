use super::running;
use crate::prelude::*;

declare_check! {
    /// Whether two programs set CPU frequencies.
    ///
    /// **Reads** whether tuned and power-profiles-daemon run.
    ///
    /// **Matters** because both write governor and energy preference: the last one wins, and the order changes
    /// from boot to boot.
    ///
    /// **Leave it alone** where tuned's own replacement of the daemon (tuned-ppd) runs: it only passes requests on.
    code: "ENV-011",
    title: "Several CPU frequency managers",
    severity: Note,
    sources: [
        "power-profiles-daemon, README: it sets governor and energy preference",
        "tuned(8) and tuned-profiles(7)",
    ],
    good: |facts, _| example::service(facts, "tuned", Some("throughput-performance")),
    bad: |facts, _| {
        example::service(facts, "tuned", Some("throughput-performance"));
        example::service(facts, "power-profiles-daemon", None);
    },
}

fn evaluate(view: &View<'_>) -> Outcome {
    let managers = known!(running(view, &["tuned", "power-profiles-daemon"]));
    match managers[..] {
        [] => Outcome::not_applicable("none runs"),
        [one] => Outcome::pass(one),
        _ => Outcome::found(advice::manual_problem(
            managers.join(" and "),
            "one of them; on a server tuned",
            "Both set governor and energy preference, and the later one wins.",
            "systemctl status tuned power-profiles-daemon",
        )),
    }
}
