use super::receive_queues;
use crate::prelude::*;

const COMMIT: &str = "Linux commit 6f8b12d661d0 (2020), net: napi: add hard irqs deferral feature";

declare_check! {
    /// Whether software deferral of interrupts is configured completely.
    ///
    /// **Reads** `gro_flush_timeout` and `napi_defer_hard_irqs`.
    ///
    /// **Matters** in three ways. Deferral works only with both set. With many queues at 100 Gb/s it saves the
    /// cost of arming and handling interrupts: the commit that added it is about NICs with 32 queues and more.
    /// For small messages the timeout adds to the latency.
    ///
    /// **Leave it alone** unless interrupts limit the host: it is an option to try, not a default.
    code: "IRQ-011",
    title: "Deferred hard interrupts",
    scope: Port,
    severity: Note,
    sources: [
        COMMIT,
        "Linux kernel, Documentation/networking/napi.rst: Software IRQ coalescing",
    ],
    bad: |facts, _| example::port(facts).napi_defer_hard_irqs = Fact::Known(10),
}

/// Number of queues from which the commit reports a cost.
const MANY_QUEUES: u32 = 32;

/// The values of the commit's example: nanoseconds and empty polls.
const TIMEOUT_NS: u64 = 20_000;
const DEFER: u32 = 10;

fn evaluate(view: &View<'_>) -> Outcome {
    let port = known!(view.device());
    let timeout = *known!(port.gro_flush_timeout_ns.as_ref());
    let defer = *known!(port.napi_defer_hard_irqs.as_ref());
    let file = |file: &str, value: String| {
        Change::new(Target::InterfaceFile { interface: port.name.clone(), file: file.into() }, value)
    };
    let both =
        || vec![file("gro_flush_timeout", TIMEOUT_NS.to_string()), file("napi_defer_hard_irqs", DEFER.to_string())];
    let fast = port.speed_bps.known().is_some_and(|&speed| speed >= FAST_BPS);
    let queues = receive_queues(port).known().copied().unwrap_or(0);
    let observed = format!("gro_flush_timeout {timeout} ns, napi_defer_hard_irqs {defer}");
    let (severity, recommended, why, effect, changes) = match (timeout, defer) {
        (0, 0) if view.role() != Role::Latency && fast && queues >= MANY_QUEUES => (
            Severity::Note,
            format!("worth a trial: {TIMEOUT_NS} ns and {DEFER}"),
            format!("{queues} queues raise and re-arm many interrupts."),
            Effect::stated("The commit describes it for 100 Gb/s NICs with many queues", COMMIT),
            both(),
        ),
        (0, 0) => return Outcome::pass("not deferred"),
        (1.., _) if view.role() == Role::Latency => (
            Severity::Minor,
            "0 and 0".into(),
            "Packets wait for the timeout before they are handed on.".into(),
            Effect::arithmetic(format!("Up to {timeout} ns less for each message.")),
            vec![file("napi_defer_hard_irqs", "0".into()), file("gro_flush_timeout", "0".into())],
        ),
        (0, _) => (
            Severity::Note,
            format!("both or neither: {TIMEOUT_NS} ns beside {defer}, or 0 for both"),
            "Deferral without a timeout does nothing.".into(),
            Effect::stated("None as it is: deferral needs both", COMMIT),
            vec![file("gro_flush_timeout", TIMEOUT_NS.to_string())],
        ),
        // Older use of the timeout alone: packets are merged for longer, interrupts are re-armed as usual.
        (_, 0) => {
            return Outcome::pass(format!("{observed}: packets are gathered longer, interrupts are not deferred"));
        }
        (_, _) => return Outcome::pass(observed),
    };
    Outcome::found(Problem {
        severity: Some(severity),
        observed,
        recommended,
        why,
        effect,
        by_hand: format!(
            "grep . /sys/class/net/{}/{{gro_flush_timeout,napi_defer_hard_irqs}}",
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
    fn incomplete_deferral_is_found_and_latency_turns_it_off() {
        for (timeout, defer, role, desired) in [
            (0, 0, Role::Dtn, vec![]),
            (0, 10, Role::Dtn, vec!["20000"]),
            (20_000, 0, Role::Dtn, vec![]),
            (20_000, 10, Role::Dtn, vec![]),
            (20_000, 10, Role::Latency, vec!["0", "0"]),
        ] {
            let mut facts = example::facts();
            let port = example::port(&mut facts);
            (port.gro_flush_timeout_ns, port.napi_defer_hard_irqs) = (Fact::Known(timeout), Fact::Known(defer));
            let goal = landspeed_model::Goal { role, ..example::goal() };
            let audit = CHECK.audit_alone(&facts, &goal);
            let found: Vec<_> = audit.findings.iter().flat_map(|f| &f.changes).map(|c| c.desired.as_str()).collect();
            assert_eq!(found, desired, "{timeout} {defer} {role:?}");
        }
    }

    #[test]
    fn deferral_is_suggested_for_many_queues_at_100_gigabits() {
        let mut facts = example::facts();
        if let Fact::Known(channels) = &mut example::port(&mut facts).channels {
            channels.combined.now = MANY_QUEUES;
        }
        let audit = CHECK.audit_alone(&facts, &example::goal());
        assert_eq!((audit.findings[0].severity, audit.findings[0].changes.len()), (Severity::Note, 2));
    }
}
