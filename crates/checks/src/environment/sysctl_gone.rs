use std::collections::BTreeSet;

use crate::prelude::*;

declare_check! {
    /// Whether files set sysctls that this kernel does not have.
    ///
    /// **Reads** the sysctl files, and which names the kernel has.
    ///
    /// **Matters** little by itself: the line has no effect. But it shows that the file was written for another
    /// kernel, and that errors at boot went unnoticed.
    ///
    /// **Leave it alone** where one file serves several kernel versions.
    code: "ENV-017",
    title: "Sysctls unknown to the kernel",
    severity: Note,
    sources: ["sysctl.d(5)", "Linux Documentation/networking/ip-sysctl.rst"],
    good: |facts, _| example::sysctl_file(facts, "net.core.rmem_max", "2147483647"),
    bad: |facts, _| {
        example::sysctl_file(facts, "net.ipv4.tcp_tw_recycle", "1");
        facts.sysctls.insert("net.ipv4.tcp_tw_recycle".into(), Fact::Absent("this kernel has no such \
            sysctl".into()));
    },
}

fn evaluate(view: &View<'_>) -> Outcome {
    let files = known!(&view.facts.sysctl_files);
    if !*known!(&view.facts.first_network_namespace) {
        return Outcome::not_applicable("in a separate network namespace some sysctls are always missing (ENV-020)");
    }
    let names: BTreeSet<&str> = files.iter().map(|line| line.name.as_str()).collect();
    let read: Vec<_> = names.iter().filter(|name| view.facts.sysctls.contains_key(**name)).collect();
    if read.is_empty() {
        return Outcome::not_applicable("no file sets anything that is read here");
    }
    let gone: Vec<_> =
        read.iter().filter(|name| matches!(view.facts.sysctls.get(***name), Some(Fact::Absent(_)))).collect();
    if gone.is_empty() {
        return Outcome::pass(format!("the kernel has all {} that are read here", read.len()));
    }
    let texts: Vec<_> = gone.iter().map(|name| format!("{name}{}", origin(view, name))).collect();
    Outcome::found(advice::manual_problem(
        join_first(&texts),
        "remove the lines",
        "They do nothing here; the file was written for another kernel.",
        format!("sysctl {}", shell_command(gone.iter().map(|name| **name))),
    ))
}
