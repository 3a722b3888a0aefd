use super::{KERNEL_DEFAULTS, desired, rate_of_window, signed};
use crate::prelude::*;

declare_check! {
    /// Whether the buffer sizes are valid numbers.
    ///
    /// **Reads** `net.ipv4.tcp_rmem` and `net.ipv4.tcp_wmem`.
    ///
    /// **Matters** because they must be three ascending, positive 32-bit numbers: programs that compute them
    /// have written negative ones (an overflow), and a maximum below the initial size disables autotuning.
    ///
    /// **Leave it alone** never: such numbers are always a mistake.
    code: "BUF-012",
    title: "Order of the TCP buffer sizes",
    severity: Critical,
    sources: [
        "bpftune issue 36: negative receive buffers written by a tuning program",
        "Linux Documentation/networking/ip-sysctl.rst, tcp_rmem: min, default, max",
    ],
    bad: |facts, _| example::sysctl(facts, "net.ipv4.tcp_rmem", "4096 131072 -1845493760"),
}

fn evaluate(view: &View<'_>) -> Outcome {
    let (mut seen, mut changes) = (Vec::new(), Vec::new());
    for (name, _) in KERNEL_DEFAULTS {
        let numbers: Fact<Vec<i128>> = signed(view, name);
        let numbers = known!(numbers);
        let in_range = numbers.iter().all(|number| (1..=i128::from(i32::MAX)).contains(number));
        if numbers.len() != 3 || !in_range || !numbers.is_sorted() {
            seen.push(format!("{name} = {}", known!(view.sysctl(name))));
            changes.push(Change::sysctl(name, desired(view, name)));
        }
    }
    let Some(first) = changes.first() else { return Outcome::pass("positive and rising") };
    Outcome::found(Problem {
        observed: seen.join(", "),
        recommended: format!("three rising numbers from 1 to {}, for example {}", i32::MAX, first.desired),
        by_hand: "sysctl net.ipv4.tcp_rmem net.ipv4.tcp_wmem".into(),
        changes: changes.clone(),
        effect: Effect::arithmetic(format!(
            "A connection that keeps an initial buffer of {} carries at most {}.",
            bytes_text(KERNEL_DEFAULTS[0].1[1]),
            rate_of_window(KERNEL_DEFAULTS[0].1[1] as f64, view.rtt_s().0)
        )),
        ..advice::sysctl("", "", "", "New connections get buffers that no transfer can use.")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descending_and_overflowing_numbers_are_found() {
        for (value, bad) in [
            ("4096 131072 2147483647", false),
            ("4096 131072 2147483648", true),
            ("4096 131072 65536", true),
            ("0 131072 33554432", true),
            ("4096 131072", true),
        ] {
            let mut facts = example::facts();
            example::sysctl(&mut facts, "net.ipv4.tcp_wmem", value);
            let audit = CHECK.audit_alone(&facts, &example::goal());
            assert_eq!(!audit.findings.is_empty(), bad, "{value}");
        }
    }
}
