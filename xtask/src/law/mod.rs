//! The workspace's rules: DESIGN's "Never" list and the countable rules of the style guide, checked in the tree.
//!
//! Each rule is a function from the [`Tree`] to its violations. `cargo xtask law` prints them all; the tests below
//! run the same functions, so `cargo test` fails on every breach that the command would print.

mod circles;
mod dependencies;
mod edges;
mod files;
mod paths;
mod purity;
mod style;
mod tree;
mod violation;

use anyhow::Result;

pub use tree::{Tree, root};
use violation::Violation;

/// A rule: its name as a claim, and the function that checks it.
type Rule = (&'static str, fn(&Tree) -> Vec<Violation>);

const RULES: &[Rule] = &[
    ("crates depend only on what the table of edges allows", dependencies::dependencies_are_in_the_table),
    ("anyhow and testkit stay where they belong", dependencies::confined_dependencies),
    ("pure crates depend on no I/O library", dependencies::pure_crates_have_no_io_dependency),
    ("pure crates touch no file, socket, clock or thread", purity::pure_crates_have_no_side_effects),
    ("files of a crate do not use each other in circles", circles::files_do_not_use_each_other),
    ("unsafe stays in sys", style::unsafe_stays_in_sys),
    ("outputs are written by sys::file", style::outputs_are_checked),
    ("one module writes to the standard streams", style::one_module_prints),
    ("files are read through sys::file", style::files_are_read_within_limits),
    ("nothing is left unfinished", style::no_todo_macros_or_comments),
    ("tests are named as claims", style::tests_are_named_as_claims),
    ("an ignored test says why", style::ignored_tests_have_reasons),
    ("files stay readable in one sitting", files::files_are_short),
    ("no path of a developer's machine is in the tree", files::no_machine_paths),
    ("every crate is on the map", files::every_crate_is_in_the_readme),
];

/// `cargo xtask law`: prints every breach; returns an error if there is one.
pub fn run() -> Result<()> {
    let tree = Tree::read(&root())?;
    let mut found = 0;
    for (name, rule) in RULES {
        let violations = rule(&tree);
        println!("{} {name}", if violations.is_empty() { "ok  " } else { "FAIL" });
        for breach in &violations {
            println!("     {breach}");
        }
        found += violations.len();
    }
    anyhow::ensure!(found == 0, "the law is broken in {found} places");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workspace_has_no_breaches() {
        let tree = Tree::read(&root()).expect("the workspace can be read");
        let broken: Vec<String> = RULES
            .iter()
            .flat_map(|(name, rule)| rule(&tree).into_iter().map(move |breach| format!("{name}: {breach}")))
            .collect();
        assert!(broken.is_empty(), "\n{}", broken.join("\n"));
    }
}
