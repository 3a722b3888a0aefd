//! Every sysctl of a namespace, one by one: changed and rolled back, with nothing else different afterwards.

use crate::bench::{bench, run, said};
use crate::crash::apply;

/// Applied and reverted in one transaction each, a group at a time where nothing goes wrong: a thousand alone take minutes.
const GROUP: usize = 8;

#[test]
fn every_sysctl_that_is_accepted_comes_back_with_everything_else() {
    let bench = bench!();
    let names = bench.shell("cd /proc/sys && find net -type f -perm -200 | sort");
    let mut before = bench.snapshot();
    let mut settings = Vec::new();
    for name in names.lines() {
        let now = bench.namespace.run(|| std::fs::read_to_string(format!("/proc/sys/{name}")));
        // Numbers only; other values have separate tests.
        let Some(number) = now.ok().and_then(|text| text.trim().parse::<i64>().ok()) else { continue };
        let wanted = match number {
            0 => 1,
            1 => 0,
            n => n + 1,
        };
        settings.push(format!("{name}={wanted}"));
    }
    assert!(settings.len() > 300, "{}", settings.len());
    let (mut taken, mut refused) = (0, Vec::new());
    let mut side_effects = Vec::new();
    for group in settings.chunks(GROUP) {
        let mut queue: Vec<Vec<&str>> = vec![group.iter().map(String::as_str).collect()];
        while let Some(some) = queue.pop() {
            bench.forget();
            let output = run(bench.tune(&apply(&some, "600")));
            let applied = output.code == 0;
            let undo = applied.then(|| run(bench.tune(&["revert"])));
            // What is so already needs no transaction.
            let nothing = applied && said(&output).contains("Nothing to write");
            let reverted = nothing || undo.as_ref().is_none_or(|undo| undo.code == 0);
            let difference = bench.snapshot().difference(&before);
            if some.len() > 1 && (!applied || !reverted || !difference.is_empty()) {
                if !difference.is_empty() {
                    side_effects.push(format!("{some:?}: {}\n  {}", said(&output), difference.join("\n  ")));
                    before = bench.snapshot();
                }
                queue.extend(some.into_iter().map(|one| vec![one]));
                continue;
            }
            if !difference.is_empty() {
                side_effects.push(format!("{some:?}: {}\n  {}", said(&output), difference.join("\n  ")));
                before = bench.snapshot();
                continue;
            }
            assert!(reverted, "{some:?}: {}", undo.as_ref().map(said).unwrap_or_default());
            if applied {
                taken += some.len();
            } else {
                refused.push(some[0]);
            }
        }
    }
    assert!(side_effects.is_empty(), "{}", side_effects.join("\n"));
    println!("{taken} changed and rolled back, {} refused: {refused:?}", refused.len());
    assert!(taken > 300, "{taken}; refused: {refused:?}");
}
