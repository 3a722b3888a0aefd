use crate::prelude::*;

/// Name, first version without it, and former effect.
const REMOVED: [(&str, (u32, u32), &str); 3] = [
    ("net.ipv4.tcp_tw_recycle", (4, 12), "broke connections from behind address translation"),
    ("net.ipv4.tcp_abc", (3, 9), "counted bytes for the window's growth"),
    ("net.ipv4.tcp_cookie_size", (3, 10), "belonged to TCP cookie transactions"),
];

declare_check! {
    /// Whether files set sysctls that Linux removed long ago.
    ///
    /// **Reads** the sysctl files and the kernel's version.
    ///
    /// **Matters** as a sign that a file was copied for more than ten years. On a kernel that still has
    /// `tcp_tw_recycle`, it breaks connections of hosts that share an address.
    ///
    /// **Leave it alone** never: the lines can be deleted without a loss.
    code: "OLD-009",
    title: "Removed sysctls",
    severity: Note,
    sources: ["tcp(7): tcp_tw_recycle up to Linux 4.11, tcp_abc up to 3.8, cookies removed in 3.10"],
    bad: |facts, _| example::sysctl_file(facts, "net.ipv4.tcp_tw_recycle", "1"),
}

fn evaluate(view: &View<'_>) -> Outcome {
    let files = known!(&view.facts.sysctl_files);
    let (mut found, mut harmful) = (Vec::new(), false);
    for line in files {
        let Some((name, (major, minor), did)) = REMOVED.iter().find(|(name, ..)| *name == line.name) else {
            continue;
        };
        match view.facts.kernel.at_least(*major, *minor) {
            Some(true) => {
                found.push(format!("{name} ({} line {}): gone since Linux {major}.{minor}", line.path, line.line));
            }
            Some(false) if line.value != "0" && name.ends_with("tw_recycle") => {
                harmful = true;
                found.push(format!("{name} = {} ({} line {}): {did}", line.value, line.path, line.line));
            }
            Some(false) => {}
            None => return Outcome::unknown("the kernel's version is not known"),
        }
    }
    if found.is_empty() {
        return Outcome::pass("no file sets any");
    }
    Outcome::found(Problem {
        severity: harmful.then_some(Severity::Major),
        ..advice::manual_problem(
            join_first(&found),
            "remove the lines",
            if harmful {
                "Hosts that share an address lose connections."
            } else {
                "They do nothing; the advice is older than the kernel."
            },
            "grep -r -e tw_recycle -e tcp_abc -e cookie_size /etc/sysctl.conf /etc/sysctl.d",
        )
    })
}
