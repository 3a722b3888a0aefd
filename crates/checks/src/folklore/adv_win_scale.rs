use crate::advice::IP_SYSCTL;
use crate::check::Outcome;
use crate::example;
use crate::view::View;

const NAME: &str = "net.ipv4.tcp_adv_win_scale";

declare_check! {
    /// Whether somebody still sets the share of a buffer that becomes window.
    ///
    /// **Reads** `net.ipv4.tcp_adv_win_scale` and the kernel's version.
    ///
    /// **Matters** only as a sign: since Linux 6.6 the kernel measures the share for each connection and ignores this
    /// number.
    ///
    /// **Leave it alone** on older kernels, where 1 (one half) is the default and a larger one gives more window for a
    /// buffer.
    code: "OLD-001",
    name: "adv-win-scale",
    group: Folklore,
    title: "tcp_adv_win_scale",
    scope: Host,
    severity: Note,
    since: "0.1",
    sources: [IP_SYSCTL],
    example: { good: example::as_is, bad: |facts, _| example::sysctl(facts, NAME, "2") },
}

fn evaluate(view: &View<'_>) -> Outcome {
    super::ignored(view, NAME, 1, (6, 6), "The kernel measures for each connection how much of the buffer is data.")
}

#[cfg(test)]
mod tests {
    use crate::audit::audit_with;
    use crate::example;

    #[test]
    fn the_check_does_not_apply_before_linux_6_6() {
        let mut facts = example::facts();
        example::sysctl(&mut facts, super::NAME, "2");
        facts.kernel.release = "6.5.0".into();
        let audit = audit_with(&facts, &example::goal(), [&super::CHECK]).expect("audited");
        assert_eq!((audit.findings.len(), audit.not_applicable.len()), (0, 1));
    }
}
