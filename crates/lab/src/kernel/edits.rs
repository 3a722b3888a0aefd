//! Edits of a kernel's source before the build: small, each with its reason, each of a text that must occur
//! exactly once.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::hash::Hasher;

const FILES: [&str; 13] = [
    include_str!("edits/hz.toml"),
    include_str!("edits/timer-grain.toml"),
    include_str!("edits/read-cost.toml"),
    include_str!("edits/seeded-randomness.toml"),
    include_str!("edits/code-model.toml"),
    include_str!("edits/builtins.toml"),
    include_str!("edits/inline-irq-flags.toml"),
    include_str!("edits/bucket-state.toml"),
    include_str!("edits/bucket-exact.toml"),
    include_str!("edits/wire-state.toml"),
    include_str!("edits/wire-exact.toml"),
    include_str!("edits/clock-calls.toml"),
    include_str!("edits/kernel-reads.toml"),
];

/// An edit of one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Edit {
    /// A short name, for messages.
    pub name: String,
    /// Path of the file, from the top of the source.
    pub file: PathBuf,
    /// Description of the change.
    pub what: String,
    /// Reason for the change.
    pub why: String,
    /// Text to replace, which must occur exactly once.
    pub old: String,
    /// Text that replaces it.
    pub new: String,
}

/// Error: an edit does not fit the source.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "cannot apply edit `{edit}`: {file} {found} this text:\n{expected}\nBuild another version with --version or --source."
)]
pub struct EditError {
    /// Name of the edit.
    pub edit: String,
    /// The file it changes.
    pub file: String,
    /// Number of occurrences of the text, as a phrase.
    pub found: String,
    /// Text that should occur once, indented.
    pub expected: String,
}

impl Edit {
    /// Returns all edits, in the order in which they are applied.
    pub fn all() -> Vec<Self> {
        FILES.iter().map(|text| toml::from_str(text).expect("the edits are compiled in and tested")).collect()
    }

    /// Returns the edited text of the file that this edit is for.
    pub fn apply(&self, text: &str) -> Result<String, EditError> {
        let found = match text.matches(&self.old).count() {
            1 => return Ok(text.replacen(&self.old, &self.new, 1)),
            0 => "does not contain".to_owned(),
            several => format!("contains {several} times"),
        };
        Err(self.mismatch(found))
    }

    /// Returns the error for a source without this file.
    pub(super) fn without_file(&self) -> EditError {
        self.mismatch("does not exist; it should contain".to_owned())
    }

    fn mismatch(&self, found: String) -> EditError {
        let indented: Vec<String> = self.old.lines().map(|line| format!("    {line}")).collect();
        EditError {
            edit: self.name.clone(),
            file: self.file.display().to_string(),
            found,
            expected: indented.join("\n"),
        }
    }

    /// Returns the path of the file in a source tree.
    pub(super) fn path_in(&self, source: &Path) -> PathBuf {
        source.join(&self.file)
    }
}

/// Returns the hash of all edits, which is part of a kernel's id.
pub fn hash() -> String {
    let mut hasher = Hasher::default();
    for text in FILES {
        hasher.field(text.as_bytes());
    }
    hasher.hex()
}

/// Makes a directory with the files that the edits change, and the texts that they expect.
#[cfg(test)]
pub(super) fn fitting_source() -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a temporary directory");
    for edit in Edit::all() {
        let path = edit.path_in(directory.path());
        std::fs::create_dir_all(path.parent().expect("a directory")).expect("made");
        let before = std::fs::read_to_string(&path).unwrap_or_default();
        std::fs::write(path, format!("{before}before\n{}after\n", edit.old)).expect("written");
    }
    directory
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edit(name: &str) -> Edit {
        Edit::all().into_iter().find(|edit| edit.name == name).expect("there is such an edit")
    }

    const TIME_INTERNAL: &str = "\
#include <shared/timetravel.h>

#define TIMER_MULTIPLIER 256
#define TIMER_MIN_DELTA  500

#ifdef CONFIG_UML_TIME_TRAVEL_SUPPORT
";

    #[test]
    fn an_edit_changes_its_text_and_nothing_else() {
        let edited = edit("timer-grain").apply(TIME_INTERNAL).expect("the excerpt is from the kernel");
        assert!(edited.contains("#define TIMER_MULTIPLIER 1\n#define TIMER_MIN_DELTA  1\n"), "{edited}");
        assert!(edited.starts_with("#include <shared/timetravel.h>\n\n#define"));
        assert!(edited.ends_with("\n\n#ifdef CONFIG_UML_TIME_TRAVEL_SUPPORT\n"));
    }

    #[test]
    fn a_failed_edit_names_file_and_expected_text() {
        let moved = TIME_INTERNAL.replace("256", "512");
        let error = edit("timer-grain").apply(&moved).expect_err("the text is not there").to_string();
        for part in ["`timer-grain`", "arch/um/include/linux/time-internal.h", "#define TIMER_MULTIPLIER 256"] {
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn ambiguous_or_repeated_edits_are_refused() {
        let once = edit("timer-grain").apply(TIME_INTERNAL).expect("fits");
        assert!(edit("timer-grain").apply(&once).is_err());
        let twice = format!("{TIME_INTERNAL}{TIME_INTERNAL}");
        let error = edit("timer-grain").apply(&twice).expect_err("two places").to_string();
        assert!(error.contains("2 times"), "{error}");
    }

    #[test]
    fn every_edit_has_a_purpose_and_unique_name() {
        let mut names: Vec<_> = Edit::all()
            .into_iter()
            .map(|edit| {
                assert!(edit.what.len() > 20 && edit.why.len() > 40, "{}", edit.name);
                assert!(!edit.old.trim().is_empty() && edit.old != edit.new, "{}", edit.name);
                let port = edit.file.starts_with("arch/um") || edit.file.ends_with("Makefile.um");
                // The qdiscs that emulate links and their rates; no scenario measures them as queues.
                let link = ["net/sched/sch_tbf.c", "net/sched/sch_netem.c"].iter().any(|f| edit.file.ends_with(f));
                assert!(port || link, "{}: only the User-Mode port and the links are changed", edit.name);
                edit.name
            })
            .collect();
        names.dedup();
        assert_eq!(names.len(), FILES.len());
    }
}
