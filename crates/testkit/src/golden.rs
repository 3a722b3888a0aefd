//! Golden files: expected texts, kept in `golden/` of the repository and compared by snapbox.
//! `SNAPSHOTS=overwrite` rewrites the files that differ.

use std::path::{Path, PathBuf};

use regex::Regex;
use snapbox::{Assert, Data, Redactions};

/// Returns the path of `golden/NAME`.
pub fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../golden").join(name)
}

/// Fails unless `text` equals `golden/NAME`.
pub fn same(name: &str, text: &str) {
    same_as_file(&path(name), text, &[]);
}

/// Like [`same`], but first replaces each match of a pattern with its placeholder, such as `("[TIME]", r"\d+
/// ms")`. If a pattern has a group `redacted`, only the group is replaced.
pub fn same_redacted(name: &str, text: &str, volatile: &[(&'static str, &str)]) {
    same_as_file(&path(name), text, volatile);
}

/// Like [`same_redacted`], for a file at any path.
pub fn same_as_file(file: &Path, text: &str, volatile: &[(&'static str, &str)]) {
    let mut redactions = Redactions::new();
    for (placeholder, pattern) in volatile {
        let pattern = Regex::new(pattern).expect("a pattern");
        redactions.insert(placeholder, pattern).expect("a placeholder in brackets");
    }
    // Redacted here and not by snapbox, so that the expected text is never a pattern: `[..]` in a usage line is
    // literal.
    let text = redactions.redact(text);
    let expected = Data::read_from(file, None).raw();
    Assert::new().action_env(snapbox::assert::DEFAULT_ACTION_ENV).eq(Data::text(text), expected);
}
