use std::collections::BTreeMap;

use landspeed_model::SysctlAssignment;

use crate::prelude::*;

declare_check! {
    /// Whether sysctl files assign different values to one name.
    ///
    /// **Reads** the sysctl files in the order they are applied; names beginning with `net.`.
    ///
    /// **Matters** because the file whose name sorts last wins, not the one that was edited last: an edit in
    /// the wrong file has no effect, and a new package may override it.
    ///
    /// **Leave it alone** where a file of the distribution is overridden on purpose: the order exists for that.
    code: "ENV-016",
    title: "Sysctls set in several files",
    severity: Note,
    sources: ["sysctl.d(5): order of files"],
    good: |facts, _| example::sysctl_file(facts, "net.core.rmem_max", "2147483647"),
    bad: |facts, _| {
        example::sysctl_file(facts, "net.core.rmem_max", "16777216");
        example::sysctl_file(facts, "net.core.rmem_max", "2147483647");
    },
}

fn evaluate(view: &View<'_>) -> Outcome {
    let files = known!(&view.facts.sysctl_files);
    let mut by_name: BTreeMap<&str, Vec<&SysctlAssignment>> = BTreeMap::new();
    for line in files.iter().filter(|line| line.name.starts_with("net.")) {
        by_name.entry(&line.name).or_default().push(line);
    }
    if by_name.is_empty() {
        return Outcome::not_applicable("no file sets anything of the network");
    }
    let contradiction = |(name, lines): (&&str, &Vec<&SysctlAssignment>)| {
        let (last, before) = lines.split_last()?;
        let other = before.iter().rev().find(|line| line.value != last.value)?;
        Some(format!(
            "{name}: {} line {} has {}, {} line {} wins with {}",
            other.path, other.line, other.value, last.path, last.line, last.value
        ))
    };
    let found: Vec<_> = by_name.iter().filter_map(contradiction).collect();
    if found.is_empty() {
        return Outcome::pass(format!("{} names, each with one value", by_name.len()));
    }
    Outcome::found(advice::manual_problem(
        join_first(&found),
        "keep each setting in one file; remove the others",
        "Which one wins depends on file names; an edit in the other does nothing.",
        "systemd-analyze cat-config sysctl.d",
    ))
}
