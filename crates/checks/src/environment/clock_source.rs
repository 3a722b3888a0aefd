use crate::prelude::*;

/// Clock sources that are coarse or read over a bus: a microsecond or more for each reading, compared with some
/// 20 ns.
const SLOW: [&str; 5] = ["hpet", "acpi_pm", "pit", "jiffies", "refined-jiffies"];

declare_check! {
    /// Clock source of the kernel.
    ///
    /// **Reads** `current_clocksource` and the available alternatives.
    ///
    /// **Matters** because TCP, pacing and every measurement read the clock for each packet. Reading a counter
    /// in the CPU takes nanoseconds; reading a timer on the board takes about a microsecond, and programs need
    /// a system call for it.
    ///
    /// **Leave it alone** where the kernel rejected the CPU's counter: the reason is in its log. Clocks of
    /// hypervisors (kvm-clock, Hyper-V's, Xen's) are as good.
    code: "ENV-008",
    title: "Clock source",
    severity: Minor,
    sources: [
        "Linux Documentation/virt/kvm/x86/timekeeping.rst: TSC, HPET and ACPI timers",
        "Linux Documentation/timers/timekeeping.rst",
    ],
    bad: |facts, _| facts.time.clocksource = Fact::Known("hpet".into()),
}

fn evaluate(view: &View<'_>) -> Outcome {
    let time = &view.facts.time;
    let source = known!(&time.clocksource);
    if !SLOW.contains(&source.as_str()) {
        return Outcome::pass(source);
    }
    let better: Vec<_> = time.clocksources.iter().filter(|name| !SLOW.contains(&name.as_str())).collect();
    let recommended = match better.first() {
        Some(name) => format!("{name}, if the kernel's log does not say why it was given up"),
        None => "the CPU's counter; the kernel does not offer it: see its log, and the firmware's settings".into(),
    };
    let problem = advice::manual_problem(
        source,
        recommended,
        "The clock is read for every packet; this one is a hundred times slower than a counter in the CPU.",
        "cat /sys/devices/system/clocksource/clocksource0/*clocksource; dmesg | grep -i -e tsc -e clocksource",
    );
    Outcome::found(problem.with_effect(Effect::stated(
        "HPET and ACPI PM timers are slow to read: every reading goes over a bus instead of staying in the CPU",
        "Linux Documentation/virt/kvm/x86/timekeeping.rst",
    )))
}
