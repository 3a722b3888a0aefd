use std::collections::BTreeMap;

use landspeed_model::SysctlAssignment;

use crate::prelude::*;

declare_check! {
    /// Whether current sysctl values match the files.
    ///
    /// **Reads** the sysctl files in the order they are applied, and the current values.
    ///
    /// **Matters** because a value that was set by hand is lost at the next boot, and a file that another
    /// program overrides (tuned, a container runtime, a script) misleads its readers.
    ///
    /// **Leave it alone** while an experiment runs.
    code: "ENV-015",
    title: "Running sysctls differ from the files",
    severity: Note,
    sources: ["sysctl.d(5): the file that is applied last wins"],
    good: |facts, _| example::sysctl_file(facts, "net.ipv4.tcp_mtu_probing", "1"),
    bad: |facts, _| example::sysctl_file(facts, "net.ipv4.tcp_rmem", "4096 87380 16777216"),
}

fn evaluate(view: &View<'_>) -> Outcome {
    let files = known!(&view.facts.sysctl_files);
    let last: BTreeMap<&str, &SysctlAssignment> = files.iter().map(|line| (line.name.as_str(), line)).collect();
    let (mut same, mut differ, mut names) = (0_usize, Vec::new(), Vec::new());
    for (name, line) in last {
        let Some(Fact::Known(running)) = view.facts.sysctls.get(name) else { continue };
        if running.split_whitespace().eq(line.value.split_whitespace()) {
            same += 1;
        } else {
            names.push(name);
            differ.push(format!("{name} = {running}, {} line {} has {}", line.path, line.line, line.value));
        }
    }
    if differ.is_empty() {
        return if same == 0 {
            Outcome::not_applicable("no file sets anything that is read here")
        } else {
            Outcome::pass(format!("{same} as the files have them"))
        };
    }
    let tuned = view.facts.services.get("tuned").and_then(Fact::known).is_some_and(|tuned| tuned.running);
    let why = if tuned {
        "tuned runs and sets its own values over the files; or somebody changed them since boot."
    } else {
        "Somebody or some program changed them since boot: at the next one they are the files' again."
    };
    Outcome::found(Problem {
        ..advice::manual_problem(
            join_first(&differ),
            "write the intended value into the file that wins, or apply the files: `sysctl --system`",
            why,
            format!("sysctl {}", shell_command(&names)),
        )
    })
}
