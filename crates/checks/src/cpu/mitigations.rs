use crate::prelude::*;

declare_check! {
    /// Mitigations of the CPU's known vulnerabilities. Reported, never changed.
    ///
    /// **Reads** `/sys/devices/system/cpu/vulnerabilities` and `mitigations=` on the command line.
    ///
    /// **Matters** in two ways: mitigations cost time at every system call and interrupt, so figures from two
    /// hosts can be compared only if both have the same; and tuning guides recommend `mitigations=off`, which
    /// opens the host to its own users. This check reports the current state.
    ///
    /// **Leave it alone**, always: landspeed does not trade security for rate.
    code: "CPU-012",
    title: "Mitigations of CPU vulnerabilities",
    severity: Note,
    sources: [
        "Linux kernel, Documentation/admin-guide/hw-vuln/index.rst",
        "Linux kernel, Documentation/admin-guide/kernel-parameters.txt: mitigations=",
    ],
    bad: |facts, _| {
        facts.cpu.vulnerabilities.insert("mds".into(), "Vulnerable; SMT vulnerable".into());
    },
}

fn evaluate(view: &View<'_>) -> Outcome {
    let known = &view.facts.cpu.vulnerabilities;
    if known.is_empty() {
        return Outcome::unknown("the kernel's list of vulnerabilities was not read");
    }
    let names = |begins: &str| {
        let chosen = known.iter().filter(|(_, text)| text.starts_with(begins)).map(|(name, _)| name.as_str());
        chosen.collect::<Vec<_>>().join(", ")
    };
    let (open, closed) = (names("Vulnerable"), names("Mitigation"));
    let setting = view.facts.kernel.parameter("mitigations").unwrap_or("auto");
    let (observed, recommended) = if !open.is_empty() {
        let text = format!("open: {open} (mitigations={setting})");
        (text, "a decision for the host's owner; landspeed does not change it".to_owned())
    } else if view.role() == Role::Benchmark && !closed.is_empty() {
        let text = format!("mitigated in software: {closed}");
        (text, "state them beside the figures; landspeed does not change them".to_owned())
    } else if closed.is_empty() {
        return Outcome::pass("this CPU is not affected by any that the kernel knows");
    } else {
        return Outcome::pass(format!("mitigated: {closed}"));
    };
    Outcome::found(Problem {
        observed,
        recommended,
        why: "Mitigations cost time at each system call and interrupt, and without them the host's users can read memory that is not theirs."
            .into(),
        by_hand: "grep . /sys/devices/system/cpu/vulnerabilities/*".into(),
        ..Problem::default()
    })
}
