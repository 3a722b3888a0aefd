use crate::prelude::*;

const NAME: &str = "net.ipv4.tcp_app_win";

/// Default: a negligible share is reserved, the window divided by 2^31.
const KERNEL_DEFAULT: u64 = 31;

declare_check! {
    /// Whether a part of every window is reserved for the application.
    ///
    /// **Reads** `net.ipv4.tcp_app_win`.
    ///
    /// **Matters** because window / 2^n is kept for the program: 1 takes half of what a long path needs. Guides set it
    /// to small numbers as if it were a size.
    ///
    /// **Leave it alone** at 31; 0 reserves nothing either.
    code: "OLD-013",
    title: "tcp_app_win",
    severity: Note,
    sources: [IP_SYSCTL],
    bad: |facts, _| example::sysctl(facts, NAME, "2"),
}

fn evaluate(view: &View<'_>) -> Outcome {
    let value = known!(view.sysctl_last(NAME));
    if value == 0 || value >= KERNEL_DEFAULT {
        return Outcome::pass("nothing is reserved");
    }
    let reserved = 0.5_f64.powi(i32::try_from(value).unwrap_or(i32::MAX));
    Outcome::found(Problem {
        // Reserving an eighth of the window costs an eighth of a window-limited rate.
        severity: (reserved >= 0.125).then_some(Severity::Minor),
        observed: format!("{NAME} = {value}{}: {} of each window", origin(view, NAME), percent(reserved)),
        ..advice::sysctl(NAME, value, KERNEL_DEFAULT, "What is held back cannot be in flight.")
    })
}
