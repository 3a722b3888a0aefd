use landspeed_model::SysctlAssignment;

use crate::advice::assigned;
use crate::prelude::*;

const NAME: &str = "net.ipv4.tcp_congestion_control";

declare_check! {
    /// Whether the congestion control that a file sets could be loaded.
    ///
    /// **Reads** the sysctl files, `net.ipv4.tcp_congestion_control` and `net.ipv4.tcp_available_congestion_control`.
    ///
    /// **Matters** because a kernel without the module keeps its current one, and `sysctl --system` only prints
    /// a line at boot that is easily missed.
    ///
    /// **Leave it alone** if the file is for another kernel of this host.
    code: "TCP-009",
    title: "Congestion control named in a file",
    severity: Note,
    sources: [IP_SYSCTL],
    good: |facts, _| example::sysctl_file(facts, NAME, "cubic"),
    bad: |facts, _| example::sysctl_file(facts, NAME, "bbr3"),
}

fn evaluate(view: &View<'_>) -> Outcome {
    known!(&view.facts.sysctl_files);
    let running = known!(view.sysctl(NAME));
    let available = known!(view.sysctl("net.ipv4.tcp_available_congestion_control"));
    let Some(SysctlAssignment { path, line, value, .. }) = assigned(view, NAME) else {
        return Outcome::not_applicable("no file asks for one");
    };
    if value == running || available.split_whitespace().any(|name| name == value) {
        return Outcome::pass(format!("{value}, as {path} asks"));
    }
    Outcome::found(advice::manual_problem(
        format!("{path} line {line} asks for {value}; {running} runs, available: {available}"),
        format!("`modprobe tcp_{}` at boot (modules-load.d), or another value in the file", shell_word(value)),
        "The module is not loaded or this kernel does not have it, so the setting was refused at boot.",
        "sysctl net.ipv4.tcp_available_congestion_control",
    ))
}
