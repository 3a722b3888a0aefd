use crate::prelude::*;

/// Sysctls with the memory each UDP socket may use when memory is short, bytes; the kernel default is 4096.
const NAMES: [&str; 2] = ["net.ipv4.udp_rmem_min", "net.ipv4.udp_wmem_min"];
const KERNEL_DEFAULT: u64 = 4096;

/// Values up to four times the default may be a page size; guides have 8 KiB to 16 MiB.
const HIGH_MINIMUM_BYTES: u64 = 16_384;

declare_check! {
    /// Whether UDP's guaranteed minimum was raised for speed.
    ///
    /// **Reads** `net.ipv4.udp_rmem_min` and `net.ipv4.udp_wmem_min`.
    ///
    /// **Matters** because the first is what a socket keeps when UDP is over its memory limit: raising it
    /// defeats the limit. The second has no effect at all. Neither makes anything faster.
    ///
    /// **Leave it alone** at the kernel's 4096.
    code: "OLD-012",
    title: "udp_rmem_min and udp_wmem_min raised",
    severity: Note,
    sources: [IP_SYSCTL],
    bad: |facts, _| example::sysctl(facts, NAMES[0], "1048576"),
}

fn evaluate(view: &View<'_>) -> Outcome {
    let values = [known!(view.sysctl_last(NAMES[0])), known!(view.sysctl_last(NAMES[1]))];
    let set: Vec<_> = NAMES.iter().zip(values).filter(|(_, value)| *value > HIGH_MINIMUM_BYTES).collect();
    if set.is_empty() {
        return Outcome::pass(format!("{} and {}", values[0], values[1]));
    }
    let seen: Vec<_> = set.iter().map(|(name, value)| format!("{name} = {value}{}", origin(view, name))).collect();
    Outcome::found(Problem {
        observed: seen.join(", "),
        by_hand: format!("sysctl {}", NAMES.join(" ")),
        changes: set.iter().map(|(name, _)| Change::sysctl(**name, KERNEL_DEFAULT.to_string())).collect(),
        ..advice::sysctl(
            NAMES[0],
            "",
            KERNEL_DEFAULT,
            "The first only counts when memory is short, the second never.",
        )
    })
}
