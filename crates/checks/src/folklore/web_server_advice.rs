use crate::prelude::*;

/// Settings in lists for busy web servers; each is about many short connections.
const NAMES: [&str; 8] = [
    "net.ipv4.ip_local_port_range",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_max_orphans",
    "net.ipv4.tcp_max_syn_backlog",
    "net.ipv4.tcp_max_tw_buckets",
    "net.ipv4.tcp_rfc1337",
    "net.ipv4.tcp_synack_retries",
    "net.ipv4.tcp_tw_reuse",
];

declare_check! {
    /// Whether advice for web servers was copied to a host of large transfers.
    ///
    /// **Reads** the sysctl files.
    ///
    /// **Matters** because lists of "network tuning" mix settings for thousands of short connections with those for a
    /// few long ones. They change nothing for a transfer, but they hide the intent, and some break things
    /// (`tcp_max_tw_buckets`, `tcp_max_orphans`: the kernel's documentation says not to lower them).
    ///
    /// **Leave it alone** where the host serves many short connections as well.
    code: "OLD-008",
    title: "Web server settings on a transfer node",
    severity: Note,
    sources: [IP_SYSCTL],
    bad: |facts, _| example::sysctl_file(facts, "net.ipv4.tcp_tw_reuse", "1"),
}

fn evaluate(view: &View<'_>) -> Outcome {
    let files = known!(&view.facts.sysctl_files);
    if !matches!(view.role(), Role::Dtn | Role::Benchmark) {
        return Outcome::not_applicable("the host may well serve many short connections");
    }
    let set: Vec<_> = files
        .iter()
        .filter(|line| NAMES.contains(&line.name.as_str()))
        .map(|line| format!("{} = {} ({} line {})", line.name, line.value, line.path, line.line))
        .collect();
    if set.is_empty() {
        return Outcome::pass("no file sets any");
    }
    Outcome::found(advice::manual_problem(
        join_first(&set),
        "remove the lines, unless many short connections are served here too",
        "They are for thousands of short connections; a transfer has a few long ones.",
        "grep -r -e tw_ -e fin_timeout -e syn /etc/sysctl.conf /etc/sysctl.d",
    ))
}
