//! Every sysctl of a namespace is changed and rolled back, without side effects.

use std::collections::BTreeSet;

use crate::tune::bench::{Bench, bench, expect, output_text, run};
use crate::tune::crash::apply;

/// Numeric sysctls of a namespace, each with a different value that the kernel accepts unchanged. Other
/// values have separate tests.
///
/// The values are tried on `scratch`, whose settings are undefined afterwards.
fn changes(scratch: &Bench) -> Vec<String> {
    // One setting of netfilter is that of the whole host, and cannot be set back: other tests would see it change.
    let names = scratch.shell("cd /proc/sys && find net -type f -perm -200 ! -name nf_hooks_lwtunnel | sort");
    let change = |name: &str| {
        let path = format!("/proc/sys/{name}");
        let read = || std::fs::read_to_string(&path).ok()?.trim().parse::<i128>().ok();
        let now = read()?;
        let candidates = match now {
            0 => vec![1],
            1 => vec![0, 2],
            // One more; one less, at a maximum; a whole number of jiffies more; a multiple of 10 ms more.
            n => vec![n + 1, n - 1, n + 20, n + 1000, n * 2],
        };
        let takes = |wanted: &i128| std::fs::write(&path, wanted.to_string()).is_ok() && read() == Some(*wanted);
        let wanted = candidates.into_iter().find(takes)?;
        let _ = std::fs::write(&path, now.to_string());
        Some(format!("{name}={wanted}"))
    };
    scratch.namespace.run(|| names.lines().filter_map(change).collect())
}

/// Names of the settings that the plan refuses before anything is written.
fn refused(bench: &Bench, changes: &[String]) -> BTreeSet<String> {
    let settings: Vec<&str> = changes.iter().flat_map(|change| ["--set", change]).collect();
    let plan = bench.plan(&settings);
    let steps = plan["steps"].as_array().expect("a list");
    assert_eq!(steps.len(), changes.len());
    let refused = steps.iter().filter(|step| !step["refused"].is_null());
    refused.map(|step| step["name"].as_str().expect("a name").to_owned()).collect()
}

/// Applies and reverts each group of this size in one transaction.
fn assert_restored_in_groups(group: usize) {
    let (bench, scratch) = (bench!(), bench!());
    let changes = changes(&scratch);
    let names = refused(&bench, &changes);
    let is_refused = |change: &&str| change.split_once('=').is_some_and(|(name, _)| names.contains(name));
    let (refused, taken): (Vec<&str>, Vec<&str>) = changes.iter().map(String::as_str).partition(is_refused);
    assert_eq!(refused.len(), names.len(), "{names:?}");
    assert!(taken.len() > 300, "{}; refused: {refused:?}", taken.len());
    let mut before = bench.snapshot();
    let mut wrong = Vec::new();
    for some in taken.chunks(group) {
        bench.remove_state();
        let applied = run(bench.tune(&apply(some, "600")));
        let reverted = run(bench.tune(&["revert"]));
        let now = bench.snapshot();
        if applied.code != 0 || reverted.code != 0 || now != before {
            let difference = now.difference(&before).join("\n  ");
            wrong.push(format!("{some:?}: {}{}\n  {difference}", output_text(&applied), output_text(&reverted)));
            before = now;
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    bench.remove_state();
    let text = expect(bench.tune(&apply(&refused, "600")), 2);
    assert!(text.contains("nothing was changed"), "{text}");
    bench.snapshot().must_equal(&before, &"refused");
}

#[test]
fn sysctls_are_restored_in_groups_without_side_effects() {
    assert_restored_in_groups(32);
}

#[test]
#[ignore = "long: a thousand transactions"]
fn each_sysctl_is_restored_alone_without_side_effects() {
    assert_restored_in_groups(1);
}
