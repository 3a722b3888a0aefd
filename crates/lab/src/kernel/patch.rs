//! Patches of the user, which are applied after the edits of the lab.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;

use landspeed_sys::file;

use super::child::Job;
use super::error::{Error, PatchError};
use super::hash::Hasher;
use super::record::{AppliedPatch, STOCK};
use super::source;
use super::version::Version;

/// Number of digits of the digest of the patches in a kernel's id.
const DIGEST_DIGITS: usize = 8;

/// Maximum length of a kernel's name, characters.
const MAX_NAME: usize = 64;

/// Minimum length of a prefix of an id: a name that could be one is refused.
const ID_PREFIX: usize = 4;

/// Maximum number of lines shown of the text that a hunk expects.
const MAX_EXPECTED_LINES: usize = 12;

/// A patch file, read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Patch {
    /// Name of the file, without its directory.
    pub file: String,
    /// The patch, in the unified format.
    pub text: String,
}

impl Patch {
    /// Reads a patch file.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let text = file::read_text(path, file::MAX_TEXT_BYTES).map_err(|cause| PatchError {
            patch: path.display().to_string(),
            failures: vec![format!("cannot read it: {cause}")],
            advice: "Name a file in the unified format, as `git diff` and `diff -u` write it.".to_owned(),
        })?;
        let file = path.file_name().map_or_else(|| "patch".to_owned(), |name| name.to_string_lossy().into_owned());
        Ok(Self { file, text })
    }

    /// Returns the name of the copy that is kept with the kernel, for patch number `number` from 0.
    pub fn copy_name(&self, number: usize) -> String {
        format!("{}-{}", number + 1, self.file)
    }

    /// Returns the record of the patch.
    pub fn record(&self) -> AppliedPatch {
        let mut hasher = Hasher::default();
        hasher.field(self.text.as_bytes());
        AppliedPatch { file: self.file.clone(), hash: hasher.hex() }
    }

    /// Applies the patch to a copy of the source in `tree`, all of it or nothing. `copy` is written with the patch, so that
    /// the build has what was applied.
    pub fn apply(&self, tree: &Path, copy: &Path, kernel: &Version, interrupted: &AtomicBool) -> Result<(), Error> {
        fs::write(copy, &self.text).map_err(Error::io("write", copy))?;
        let mut command = Command::new("git");
        command.current_dir(tree).args(["apply", "--verbose", "--whitespace=nowarn"]);
        // A repository around the cache, and the settings of the user, have no effect. git refuses paths outside the tree,
        // and paths behind symbolic links.
        command.env("GIT_CEILING_DIRECTORIES", tree.parent().unwrap_or(tree));
        command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
        for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX"] {
            command.env_remove(name);
        }
        command.args(source::unused_files().map(|pattern| format!("--exclude={pattern}")));
        command.arg("--").arg(copy);
        let mut lines: Vec<String> = Vec::new();
        let job = Job { what: "applying the patch", command, interrupted, log: None, place: copy.to_owned() };
        match job.run(|line| lines.push(line.to_owned())) {
            Ok(()) if lines.iter().any(|line| line.starts_with("Checking patch ")) => Ok(()),
            Ok(()) => Err(self.refuse("it changes no file that the lab compiles".to_owned(), kernel).into()),
            Err(Error::Command { .. }) => Err(self.failures(&lines, kernel).into()),
            Err(other) => Err(other),
        }
    }

    fn refuse(&self, why: String, kernel: &Version) -> PatchError {
        let advice = format!("Make the patch against Linux {kernel}: paths as in a/net/ipv4/tcp.c.");
        PatchError { patch: self.file.clone(), failures: vec![why], advice }
    }

    /// Reads git's messages: `error: patch failed: FILE:LINE` after the text that it searched, or `error: FILE: reason`.
    fn failures(&self, lines: &[String], kernel: &Version) -> PatchError {
        let mut failures: Vec<String> = Vec::new();
        let mut named: BTreeSet<&str> = BTreeSet::new();
        let mut expected: Option<Vec<&str>> = None;
        for line in lines {
            let Some(message) = line.strip_prefix("error: ") else {
                if let Some(expected) = &mut expected {
                    expected.push(line);
                }
                continue;
            };
            if message.starts_with("while searching for:") {
                expected = Some(Vec::new());
            } else if let Some((file, at)) = message.strip_prefix("patch failed: ").and_then(|at| at.rsplit_once(':'))
            {
                named.insert(file);
                let hunk = at.parse().ok().and_then(|line| self.hunk(file, line));
                let hunk = hunk.map_or_else(|| format!("the hunk at line {at}"), |n| format!("hunk {n} (line {at})"));
                failures.push(format!("{file}: {hunk} does not match the source{}", shown(expected.take())));
            } else if !named.iter().any(|file| message.starts_with(&format!("{file}: "))) {
                failures.push(message.to_owned());
            }
        }
        if failures.is_empty() {
            return self.refuse("git apply failed without a reason".to_owned(), kernel);
        }
        PatchError { failures, ..self.refuse(String::new(), kernel) }
    }

    /// Returns the number, from 1, of the hunk of a file that begins at this line of the original.
    fn hunk(&self, file: &str, line: u64) -> Option<usize> {
        let mut in_file = false;
        let mut number = 0;
        for text in self.text.lines() {
            if let Some(name) = text.strip_prefix("+++ ").or_else(|| text.strip_prefix("--- ")) {
                let name = name.split('\t').next().unwrap_or_default().trim_end();
                if name.split_once('/').is_some_and(|(_, name)| name == file) {
                    (in_file, number) = (true, 0);
                } else if name != "/dev/null" {
                    in_file = false;
                }
            } else if let (true, Some(at)) = (in_file, text.strip_prefix("@@ -")) {
                number += 1;
                let first = at.split([',', ' ']).next().unwrap_or_default();
                if first.parse() == Ok(line) {
                    return Some(number);
                }
            }
        }
        None
    }
}

/// Formats the text that a hunk expects, indented.
fn shown(expected: Option<Vec<&str>>) -> String {
    let expected = expected.unwrap_or_default();
    let last = expected.iter().rposition(|line| !line.is_empty()).map_or(0, |last| last + 1);
    if last == 0 {
        return String::new();
    }
    let mut text = ", which should contain".to_owned();
    for line in &expected[..last.min(MAX_EXPECTED_LINES)] {
        text.push_str("\n    ");
        text.push_str(line);
    }
    if last > MAX_EXPECTED_LINES {
        text.push_str("\n    …");
    }
    text
}

/// Returns the id of the kernel with these patches: that of the stock kernel, and the digest of the patches.
pub(super) fn id(stock: &str, patches: &[Patch]) -> String {
    if patches.is_empty() {
        return stock.to_owned();
    }
    let mut hasher = Hasher::default();
    for patch in patches {
        hasher.field(patch.text.as_bytes());
    }
    format!("{stock}-{}", &hasher.hex()[..DIGEST_DIGITS])
}

/// Returns the name of a patched kernel: the requested one, or the names of its patch files. `Ok(None)` without patches, and
/// if those names cannot be used.
pub(super) fn name(requested: Option<&str>, patches: &[Patch]) -> Result<Option<String>, Error> {
    if patches.is_empty() {
        return Ok(None);
    }
    if let Some(name) = requested {
        return if is_name(name) { Ok(Some(name.to_owned())) } else { Err(Error::BadName(name.to_owned())) };
    }
    let stems: Vec<String> = patches
        .iter()
        .map(|patch| {
            let stem = PathBuf::from(&patch.file).file_stem().unwrap_or_default().to_string_lossy().into_owned();
            stem.chars().map(|c| if is_allowed(c) { c } else { '-' }).collect()
        })
        .collect();
    Ok(Some(stems.join("+")).filter(|name| is_name(name)))
}

fn is_allowed(c: char) -> bool {
    c.is_ascii_alphanumeric() || "._+-".contains(c)
}

/// Whether a text can name a kernel: it is no version, no beginning of an id, and not [`STOCK`].
fn is_name(text: &str) -> bool {
    let like_id = text.len() >= ID_PREFIX && text.chars().all(|c| c.is_ascii_hexdigit() || c == '-');
    (1..=MAX_NAME).contains(&text.len())
        && text.chars().all(is_allowed)
        && !text.starts_with('-')
        && text != STOCK
        && !like_id
        && text.parse::<Version>().is_err()
}

#[cfg(test)]
mod tests {
    use landspeed_testkit::or_skip;

    use super::*;

    const TCP: &str = "one\ntwo\n#define TCP_INIT_CWND 10\nfour\nfive\n";

    const INITIAL_WINDOW: &str = "\
diff --git a/include/net/tcp.h b/include/net/tcp.h
--- a/include/net/tcp.h
+++ b/include/net/tcp.h
@@ -1,5 +1,5 @@
 one
 two
-#define TCP_INIT_CWND 10
+#define TCP_INIT_CWND 20
 four
 five
";

    fn tree() -> Result<tempfile::TempDir, &'static str> {
        Command::new("git").arg("--version").output().map_err(|_| "git is not installed")?;
        let directory = tempfile::tempdir().expect("a temporary directory");
        let tree = directory.path().join("source");
        for name in ["include/net/tcp.h", "net/ipv4/tcp.c"] {
            fs::create_dir_all(tree.join(name).parent().expect("a parent")).expect("made");
            fs::write(tree.join(name), TCP).expect("written");
        }
        Ok(directory)
    }

    fn patch(text: &str) -> Patch {
        Patch { file: "iw20.patch".to_owned(), text: text.to_owned() }
    }

    fn apply(directory: &Path, text: &str) -> Result<(), Error> {
        let version = "7.3.4".parse().expect("a version");
        let tree = directory.join("source");
        patch(text).apply(&tree, &directory.join("1.patch"), &version, &AtomicBool::new(false))
    }

    #[test]
    fn a_fitting_patch_changes_the_tree() {
        let directory = or_skip!(tree());
        apply(directory.path(), INITIAL_WINDOW).expect("it fits");
        let text = fs::read_to_string(directory.path().join("source/include/net/tcp.h")).expect("there");
        assert!(text.contains("TCP_INIT_CWND 20"), "{text}");
    }

    #[test]
    fn a_failing_hunk_is_named_and_nothing_is_changed() {
        let directory = or_skip!(tree());
        let second = INITIAL_WINDOW.replace("include/net/tcp.h", "net/ipv4/tcp.c").replace(" two\n", " 2\n");
        let error =
            apply(directory.path(), &format!("{INITIAL_WINDOW}{second}")).expect_err("does not fit").to_string();
        let first = error.lines().next().expect("a line");
        assert_eq!(
            first,
            "cannot apply patch iw20.patch: net/ipv4/tcp.c: hunk 1 (line 1) does not match the source, which should contain"
        );
        assert!(error.contains("\n    2\n") && error.ends_with("paths as in a/net/ipv4/tcp.c."), "{error}");
        let text = fs::read_to_string(directory.path().join("source/include/net/tcp.h")).expect("there");
        assert_eq!(text, TCP, "the first file was changed");
    }

    #[test]
    fn patches_of_paths_outside_the_tree_are_refused() {
        let directory = or_skip!(tree());
        std::os::unix::fs::symlink("..", directory.path().join("source/up")).expect("linked");
        for name in ["../escaped", "net/../../escaped", "/escaped", "up/escaped", ".git/escaped"] {
            let text = format!("--- /dev/null\n+++ b/{name}\n@@ -0,0 +1 @@\n+x\n");
            let error = apply(directory.path(), &text).expect_err(name).to_string();
            assert!(error.contains("escaped"), "{name}: {error}");
        }
        assert!(!directory.path().join("escaped").exists() && !Path::new("/escaped").exists());
        assert!(!directory.path().join("source/.git").exists());
    }

    #[test]
    fn a_repository_around_the_cache_is_ignored() {
        let directory = or_skip!(tree());
        let made = Command::new("git").args(["init", "-q"]).current_dir(directory.path()).output().expect("git runs");
        assert!(made.status.success());
        apply(directory.path(), INITIAL_WINDOW).expect("it fits");
        let text = fs::read_to_string(directory.path().join("source/include/net/tcp.h")).expect("there");
        assert!(text.contains("TCP_INIT_CWND 20"), "{text}");
    }

    #[test]
    fn files_that_the_lab_does_not_compile_may_be_missing() {
        let directory = or_skip!(tree());
        let of_docs = INITIAL_WINDOW.replace("include/net/tcp.h", "Documentation/networking/ip-sysctl.rst");
        apply(directory.path(), &format!("{of_docs}{INITIAL_WINDOW}")).expect("documentation is not compiled");
        let error = apply(directory.path(), &of_docs).expect_err("nothing is left").to_string();
        assert!(error.contains("changes no file that the lab compiles"), "{error}");
        let error = apply(directory.path(), "not a patch\n").expect_err("no patch").to_string();
        assert!(error.contains("No valid patches in input"), "{error}");
    }

    #[test]
    fn hunks_are_counted_within_their_file() {
        let text = "--- a/x.c\n+++ b/x.c\n@@ -1,2 +1,2 @@\n@@ -9 +9,2 @@\n--- a/y.c\n+++ b/y.c\n@@ -9,3 +9,3 @@\n";
        let patch = patch(text);
        assert_eq!((patch.hunk("x.c", 9), patch.hunk("y.c", 9), patch.hunk("y.c", 1)), (Some(2), Some(1), None));
    }

    #[test]
    fn ids_contain_the_stock_id_and_the_digest_of_the_patches() {
        let (a, b) = (patch("a"), patch("b"));
        assert_eq!(id("820c9880838733c8", &[]), "820c9880838733c8");
        let both = id("820c9880838733c8", &[a.clone(), b.clone()]);
        assert!(both.starts_with("820c9880838733c8-") && both.len() == 25, "{both}");
        assert_ne!(both, id("820c9880838733c8", &[b, a]));
    }

    #[test]
    fn names_are_no_versions_and_no_ids() {
        let named = |file: &str| name(None, &[Patch { file: file.to_owned(), text: String::new() }]).expect("a name");
        assert_eq!(named("0001-tcp iw20.patch").as_deref(), Some("0001-tcp-iw20"));
        assert_eq!((named("7.3.patch"), named("820c.diff"), named("stock.patch")), (None, None, None));
        for wrong in ["stock", "7.3", "", "-x", "a b", "deadbeef", "820c-1a2b", "ä"] {
            assert!(name(Some(wrong), &[patch("a")]).is_err(), "{wrong}");
        }
        assert_eq!(name(Some("iw20"), &[patch("a")]).expect("a name").as_deref(), Some("iw20"));
        assert_eq!(name(Some("iw20"), &[]).expect("stock"), None);
    }
}
