use crate::prelude::*;

/// Linux's largest default receive maximum (with enough memory), bytes: since 6.16, and before.
const RECEIVE: u64 = 32 << 20;
const RECEIVE_BEFORE_6_16: u64 = 6 << 20;

/// Linux's largest default send maximum, bytes.
const SEND: u64 = 4 << 20;

/// The kernel's default maximum is at most the memory divided by this (Linux net/ipv4/tcp.c, tcp_init).
const MEMORY_PART: u64 = 128;

declare_check! {
    /// Whether a file sets a TCP buffer maximum below the kernel's default.
    ///
    /// **Reads** `net.ipv4.tcp_rmem` and `net.ipv4.tcp_wmem` in the sysctl files, the kernel's version and the memory.
    ///
    /// **Matters** because maxima that were large in 2012 are below today's default: 4 MB in old vendors'
    /// scripts, 16 MB in a deck that is still copied, compared with Linux's own 32 MB for receiving.
    ///
    /// **Leave it alone** on a machine with little memory, where the kernel default is lower too.
    code: "OLD-015",
    title: "Buffer maxima below the default",
    severity: Minor,
    sources: [IP_SYSCTL, red_hat_2012!("Tuning – sysctl settings")],
    good: |facts, _| example::sysctl_file(facts, "net.ipv4.tcp_rmem", "4096 131072 2147483647"),
    bad: |facts, _| example::sysctl_file(facts, "net.ipv4.tcp_rmem", "4096 87380 16777216"),
}

fn evaluate(view: &View<'_>) -> Outcome {
    known!(&view.facts.sysctl_files);
    let memory = *known!(&view.facts.memory_bytes);
    let Some(new) = view.facts.kernel.at_least(6, 16) else {
        return Outcome::unknown("the kernel's version is not known");
    };
    let receive = if new { RECEIVE } else { RECEIVE_BEFORE_6_16 };
    let (mut seen, mut low) = (0, Vec::new());
    for (name, default) in [("net.ipv4.tcp_rmem", receive), ("net.ipv4.tcp_wmem", SEND)] {
        let Some(line) = advice::assigned(view, name) else { continue };
        let Some(maximum) = line.value.split_whitespace().last().and_then(|text| text.parse::<u64>().ok()) else {
            continue;
        };
        seen += 1;
        let default = default.min(memory / MEMORY_PART);
        if maximum < default {
            low.push(format!(
                "{} line {} ends {name} at {}, the default is {}",
                line.path,
                line.line,
                bytes_text(maximum),
                bytes_text(default)
            ));
        }
    }
    if seen == 0 {
        return Outcome::not_applicable("no file sets them");
    }
    if low.is_empty() {
        return Outcome::pass("not below the kernel default");
    }
    Outcome::found(advice::manual_problem(
        join_first(&low),
        "remove the line, or set what the goal needs (BUF-001, BUF-002)",
        "The kernel's own maximum is larger than this old advice.",
        "grep -r -e tcp_rmem -e tcp_wmem /etc/sysctl.conf /etc/sysctl.d",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_default_of_a_small_machine_is_not_low() {
        let mut facts = example::facts();
        example::sysctl_file(&mut facts, "net.ipv4.tcp_rmem", "4096 87380 16777216");
        let findings = |facts: &_| CHECK.audit_alone(facts, &example::goal()).findings.len();
        assert_eq!(findings(&facts), 1);
        facts.memory_bytes = Fact::Known(2 << 30);
        assert_eq!(findings(&facts), 0);
        facts.memory_bytes = Fact::Known(256 << 30);
        facts.kernel.release = "6.1.0".into();
        assert_eq!(findings(&facts), 0);
    }
}
