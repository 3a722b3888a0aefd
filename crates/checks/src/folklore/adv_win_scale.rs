use crate::prelude::*;

const NAME: &str = "net.ipv4.tcp_adv_win_scale";

declare_check! {
    /// Whether the obsolete `tcp_adv_win_scale` is still set: the share of a buffer that becomes window.
    ///
    /// **Reads** `net.ipv4.tcp_adv_win_scale` and the kernel's version.
    ///
    /// **Matters** only as a sign: since Linux 6.6 the kernel measures the share for each connection and
    /// ignores this setting.
    ///
    /// **Leave it alone** on older kernels, where 1 (one half) is the default and a larger one gives more window for a
    /// buffer.
    code: "OLD-001",
    title: "tcp_adv_win_scale",
    severity: Note,
    sources: [IP_SYSCTL],
    bad: |facts, _| example::sysctl(facts, NAME, "2"),
}

fn evaluate(view: &View<'_>) -> Outcome {
    super::ignored(view, NAME, 1, (6, 6), "The kernel measures for each connection how much of the buffer is data.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_check_does_not_apply_before_linux_6_6() {
        let mut facts = example::facts();
        example::sysctl(&mut facts, NAME, "2");
        facts.kernel.release = "6.5.0".into();
        let audit = CHECK.audit_alone(&facts, &example::goal());
        assert_eq!((audit.findings.len(), audit.not_applicable.len()), (0, 1));
    }
}
