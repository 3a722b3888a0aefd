//! Rules for Rust source in the whole workspace.

use std::path::Path;

use super::circles::{module_path, test_modules};
use super::edges::UNSAFE_CRATE;
use super::paths::Code;
use super::tree::File;
use super::{Tree, Violation};

/// `unsafe` occurs only in `sys`; every other crate root forbids it.
pub fn unsafe_stays_in_sys(tree: &Tree) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (file, code) in tree.rust_files() {
        if file.crate_name().is_none_or(|owner| owner == UNSAFE_CRATE) {
            continue;
        }
        for usage in code.usage.iter().filter(|usage| usage.segments == ["unsafe"]) {
            violations.push(Violation::at(&file.path, usage.line, format!("unsafe belongs in {UNSAFE_CRATE}")));
        }
        let forbids = code.attributes.iter().any(|(_, text)| text == "#![forbid(unsafe_code)]");
        if is_crate_root(file) && !forbids {
            violations.push(Violation::at(&file.path, 1, "a crate root says #![forbid(unsafe_code)]"));
        }
    }
    violations
}

fn is_crate_root(file: &File) -> bool {
    file.path.ends_with("src/lib.rs") || file.path.ends_with("src/main.rs")
}

/// Functions that write to a path and follow links of every user in it.
const UNCHECKED_WRITES: [&str; 4] = ["File::create", "fs::write", "fs::copy", "fs::create_dir_all"];

/// Where they are called nevertheless, because no other user can write there: /proc, /sys, /etc, the cache of kernels, and a
/// guest's own file system.
const PRIVATE_WRITES: [&str; 4] =
    ["crates/emulate/src/namespaces.rs", "crates/lab/src/", "crates/tap/src/events.rs", "crates/tune/src/persist.rs"];

/// Output files are written by `sys::file`, which follows no link of another user.
pub fn outputs_are_checked(tree: &Tree) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (file, code) in tree.rust_files() {
        let path = file.path.to_string_lossy();
        let is_program = path.starts_with("crates/") && path.contains("/src/") && !path.ends_with("tests.rs");
        let is_exempt = |owner: &str| owner == UNSAFE_CRATE || owner == "testkit";
        if !is_program
            || file.crate_name().is_none_or(is_exempt)
            || PRIVATE_WRITES.iter().any(|at| path.starts_with(at))
        {
            continue;
        }
        for usage in code.usage.iter().filter(|usage| !usage.in_test) {
            let path = usage.path();
            let calls = |name: &&str| path == **name || path.ends_with(&format!("::{name}"));
            if UNCHECKED_WRITES.iter().any(calls) {
                violations.push(Violation::at(
                    &file.path,
                    usage.line,
                    format!("{}: outputs are written by landspeed_sys::file", usage.path()),
                ));
            }
        }
    }
    violations
}

/// Files that may use the standard streams directly, each with the reason.
const PRINTERS: &[(&str, &str)] = &[
    ("crates/cli/src/terminal.rs", "escapes what it prints"),
    ("crates/cli/src/watch/screen/terminal.rs", "ratatui draws it; `place` escapes"),
    ("crates/lab/src/guest/mod.rs", "the console of a lab kernel, which the host prints escaped"),
    ("crates/tap/src/files.rs", "a capture, which is bytes and not for a terminal"),
];

/// Only the module of [`PRINTERS`] that escapes control characters prints, so that no text from elsewhere reaches a
/// terminal as it is.
pub fn one_module_prints(tree: &Tree) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (file, code) in program_files(tree) {
        if PRINTERS.iter().any(|(path, _)| file.path == Path::new(path)) {
            continue;
        }
        for usage in code.usage.iter().filter(|usage| !usage.in_test) {
            let segments: Vec<&str> = usage.segments.iter().map(String::as_str).collect();
            let prints = match segments.as_slice() {
                [name] if usage.is_macro => matches!(*name, "print" | "println" | "eprint" | "eprintln" | "dbg"),
                [.., "io", "stdout" | "stderr"] => true,
                _ => false,
            };
            if prints {
                violations.push(Violation::at(
                    &file.path,
                    usage.line,
                    format!(
                        "{} prints text as it is: use out!, outln!, err!, errln! of cli/src/terminal.rs",
                        usage.path()
                    ),
                ));
            }
        }
    }
    violations
}

/// Crates that read files which users name.
const READERS: &[&str] = &["archive", "capture", "cli", "experiment"];

/// Files that users name are opened by `sys::file`, which takes only regular files and has limits.
pub fn files_are_read_within_limits(tree: &Tree) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (file, code) in program_files(tree) {
        if file.crate_name().is_none_or(|owner| !READERS.contains(&owner)) {
            continue;
        }
        for usage in code.usage.iter().filter(|usage| !usage.in_test) {
            let segments: Vec<&str> = usage.segments.iter().map(String::as_str).collect();
            if matches!(
                segments.as_slice(),
                [.., "fs", "read" | "read_to_string"] | [.., "File", "open"] | [.., "io", "read_to_string"]
            ) {
                violations.push(Violation::at(
                    &file.path,
                    usage.line,
                    format!("{} has no limit and waits for a FIFO: use landspeed_sys::file", usage.path()),
                ));
            }
        }
    }
    violations
}

/// The source of the program: without tests, examples and developers' tasks.
fn program_files(tree: &Tree) -> Vec<(&File, &Code)> {
    let is_program = |file: &File| {
        file.path.iter().any(|part| part == "src")
            && file.crate_name().is_some_and(|owner| !["xtask", "testkit"].contains(&owner))
    };
    let files: Vec<(&File, &Code, Vec<String>)> = tree
        .rust_files()
        .filter(|(file, _)| is_program(file))
        .filter_map(|(file, code)| Some((file, code, module_path(&file.path)?)))
        .collect();
    let tests: Vec<(Option<&str>, Vec<String>)> = files
        .iter()
        .flat_map(|(file, code, module)| {
            test_modules(module, code).into_iter().map(|module| (file.crate_name(), module))
        })
        .collect();
    let is_test = |file: &File, module: &[String]| {
        tests.iter().any(|(owner, test)| *owner == file.crate_name() && module.starts_with(test))
    };
    files.into_iter().filter(|(file, _, module)| !is_test(file, module)).map(|(file, code, _)| (file, code)).collect()
}

/// No placeholder macros and no reminder comments.
pub fn no_todo_macros_or_comments(tree: &Tree) -> Vec<Violation> {
    // Split so that this file does not contain them.
    let notes = [concat!("FIX", "ME"), concat!("XX", "X"), concat!("not yet ", "implemented")];
    let mut violations = Vec::new();
    for (file, code) in tree.rust_files() {
        for usage in &code.usage {
            if usage.is_macro && matches!(usage.path().as_str(), "todo" | "unimplemented") {
                violations.push(Violation::at(
                    &file.path,
                    usage.line,
                    format!("{}! is left in the code", usage.path()),
                ));
            }
        }
    }
    for file in tree.files.iter().filter(|file| is_source(file)) {
        for (number, line) in file.text.lines().enumerate() {
            for note in notes.iter().filter(|note| has_word(line, note)) {
                violations.push(Violation::at(&file.path, number + 1, format!("{note} is left in the code")));
            }
        }
    }
    violations
}

fn is_source(file: &File) -> bool {
    let extension = file.path.extension().and_then(|extension| extension.to_str());
    matches!(extension, Some("rs" | "ts" | "py" | "sh"))
}

fn has_word(line: &str, word: &str) -> bool {
    let joins = |char: Option<char>| char.is_some_and(|char| char.is_alphanumeric() || char == '_');
    line.match_indices(word)
        .any(|(at, _)| !joins(line[..at].chars().next_back()) && !joins(line[at + word.len()..].chars().next()))
}

/// A test's name states what it tests: `a_lost_tail_is_counted`.
pub fn tests_are_named_as_claims(tree: &Tree) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (file, code) in tree.rust_files() {
        for usage in code.usage.iter().filter(|usage| usage.is_fn_name && usage.in_test) {
            if usage.path().starts_with("test_") {
                violations.push(Violation::at(
                    &file.path,
                    usage.line,
                    format!("{}: a test is named as the claim it makes, without a prefix", usage.path()),
                ));
            }
        }
    }
    violations
}

/// `#[ignore]` needs a reason: `#[ignore = "why"]`. A test that cannot run everywhere skips itself and says so.
pub fn ignored_tests_have_reasons(tree: &Tree) -> Vec<Violation> {
    let bare = |text: &str| text == "#[ignore]";
    let mut violations = Vec::new();
    for (file, code) in tree.rust_files() {
        for (line, _) in code.attributes.iter().filter(|(_, text)| bare(text)) {
            violations.push(Violation::at(&file.path, *line, "an ignored test says why: #[ignore = \"…\"]"));
        }
    }
    violations
}

#[cfg(test)]
mod tests {
    use super::*;

    fn violations(rule: fn(&Tree) -> Vec<Violation>, path: &str, text: &str) -> Vec<String> {
        let tree = Tree { files: vec![File::new(path, text).unwrap()], ..Tree::default() };
        rule(&tree).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn unsafe_outside_sys_is_a_breach_even_in_a_test() {
        let text = "#[cfg(test)] mod tests { fn f() { unsafe { g() } } }";
        assert_eq!(violations(unsafe_stays_in_sys, "crates/flow/src/tcp.rs", text).len(), 1);
        assert_eq!(violations(unsafe_stays_in_sys, "crates/sys/src/socket.rs", text).len(), 0);
    }

    #[test]
    fn a_crate_root_forbids_unsafe() {
        assert_eq!(violations(unsafe_stays_in_sys, "crates/flow/src/lib.rs", "//! x").len(), 1);
        assert_eq!(violations(unsafe_stays_in_sys, "crates/flow/src/lib.rs", "#![forbid(unsafe_code)]").len(), 0);
    }

    #[test]
    fn printing_outside_the_module_that_escapes_is_a_breach() {
        for text in [
            "fn f() { println!(\"x\"); }",
            "fn f() { eprint!(\"x\"); }",
            "use std::io; fn f() { io::stdout(); }",
            "fn f() { std::io::stderr(); }",
        ] {
            assert_eq!(violations(one_module_prints, "crates/cli/src/a.rs", text).len(), 1, "{text}");
            assert_eq!(violations(one_module_prints, "crates/cli/src/terminal.rs", text).len(), 0, "{text}");
            assert_eq!(violations(one_module_prints, "crates/flow/examples/a.rs", text).len(), 0, "{text}");
        }
    }

    #[test]
    fn reading_a_named_file_without_a_limit_is_a_breach() {
        for text in [
            "fn f() { std::fs::read(\"x\"); }",
            "use std::fs; fn f() { fs::read_to_string(\"x\"); }",
            "use std::fs::File; fn f() { File::open(\"x\"); }",
        ] {
            assert_eq!(violations(files_are_read_within_limits, "crates/cli/src/a.rs", text).len(), 1, "{text}");
            assert_eq!(violations(files_are_read_within_limits, "crates/sys/src/a.rs", text).len(), 0, "{text}");
        }
    }

    #[test]
    fn an_output_that_follows_links_is_a_breach_outside_tests() {
        let text = "fn f() { std::fs::write(a, b); File::create(a); file::create(a); }\n#[cfg(test)] mod tests { fn g() { fs::write(a, b); } }";
        assert_eq!(violations(outputs_are_checked, "crates/cli/src/output.rs", text).len(), 2);
        assert_eq!(violations(outputs_are_checked, "crates/sys/src/file.rs", text).len(), 0);
        assert_eq!(violations(outputs_are_checked, "crates/cli/src/output/tests.rs", text).len(), 0);
    }

    #[test]
    fn placeholders_and_notes_are_breaches_but_longer_words_are_not() {
        let note = concat!("// FIX", "ME later\nfn f() { tod", "o!() }");
        assert_eq!(violations(no_todo_macros_or_comments, "crates/flow/src/a.rs", note).len(), 2);
        let fine = concat!("const A: &str = \"0x", "XX", "XX\"; fn todo() {}");
        assert_eq!(violations(no_todo_macros_or_comments, "crates/flow/src/a.rs", fine).len(), 0);
    }

    #[test]
    fn a_prefixed_test_name_is_a_breach() {
        let text = "#[test]\nfn test_it() {}\nfn test_pattern() {}";
        let found = violations(tests_are_named_as_claims, "crates/flow/src/a.rs", text);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("crates/flow/src/a.rs:2: test_it"), "{found:?}");
    }

    #[test]
    fn an_ignored_test_without_a_reason_is_a_breach() {
        let text = "#[test]\n#[ignore]\nfn a() {}\n#[test]\n#[ignore = \"an hour\"]\nfn b() {}";
        assert_eq!(violations(ignored_tests_have_reasons, "crates/flow/src/a.rs", text).len(), 1);
    }
}
