use super::running;
use crate::prelude::*;

declare_check! {
    /// Whether two programs set the same clock.
    ///
    /// **Reads** which of chronyd, ntpd and systemd-timesyncd run.
    ///
    /// **Matters** because each undoes the other's corrections: the clock swings, and with it one-way delays.
    ///
    /// **Leave it alone** with ptp4l in addition to one of them, if ptp4l sets only the NIC's clock.
    code: "ENV-010",
    title: "Several time daemons",
    severity: Note,
    sources: ["Debian's packages of chrony and ntp: each conflicts with any other time daemon"],
    bad: |facts, _| example::service(facts, "ntpd", None),
}

fn evaluate(view: &View<'_>) -> Outcome {
    let daemons = known!(running(view, &["chronyd", "ntpd", "systemd-timesyncd"]));
    match daemons[..] {
        [] => Outcome::not_applicable("none runs"),
        [one] => Outcome::pass(one),
        _ => Outcome::found(advice::manual_problem(
            daemons.join(" and "),
            "one of them",
            "Each undoes the other's corrections.",
            "systemctl status chronyd ntpd systemd-timesyncd",
        )),
    }
}
