//! Pure crates must not use I/O, clocks or threads outside their tests.

use super::edges::PURE_CRATES;
use super::{Tree, Violation};

/// Modules of `std` for I/O, threads and the environment.
const MODULES: &[&str] = &["fs", "thread", "process", "env", "os"];

/// Socket and clock types, matched by name alone.
const TYPES: &[&str] =
    &["TcpStream", "TcpListener", "UdpSocket", "UnixStream", "UnixListener", "UnixDatagram", "Instant", "SystemTime"];

/// Standard streams.
const STREAMS: &[&str] = &["stdin", "stdout", "stderr"];

/// Macros that write to the standard streams.
const PRINTERS: &[&str] = &["print", "println", "eprint", "eprintln", "dbg"];

/// Source of pure crates outside tests must not name a file, socket, clock, thread, environment variable or
/// terminal.
pub fn pure_crates_have_no_side_effects(tree: &Tree) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (file, code) in tree.rust_files() {
        let Some(owner) = file.crate_name().filter(|owner| PURE_CRATES.contains(owner)) else { continue };
        // Examples are programs that use the library.
        if !file.path.iter().any(|part| part == "src") {
            continue;
        }
        for usage in code.usage.iter().filter(|usage| !usage.in_test) {
            let segments: Vec<&str> = usage.segments.iter().map(String::as_str).collect();
            let reaches_out = match segments.as_slice() {
                ["std", module, ..] if MODULES.contains(module) => true,
                ["std", "io", stream, ..] if STREAMS.contains(stream) => true,
                ["std", "net" | "time", "*"] => true,
                [name] if usage.is_macro => PRINTERS.contains(name),
                all => all.iter().any(|segment| TYPES.contains(segment)),
            };
            if reaches_out {
                violations.push(Violation::at(
                    &file.path,
                    usage.line,
                    format!("{owner} is pure and must not use {}: take what it gives as an argument", usage.path()),
                ));
            }
        }
    }
    violations
}

#[cfg(test)]
mod tests {
    use super::super::tree::File;
    use super::*;

    fn count(path: &str, text: &str) -> usize {
        let tree = Tree { files: vec![File::new(path, text).unwrap()], ..Tree::default() };
        pure_crates_have_no_side_effects(&tree).len()
    }

    #[test]
    fn every_io_clock_and_thread_access_is_detected() {
        for text in [
            "use std::fs::File;",
            "use std::{fmt, thread};",
            "use std::net::{IpAddr, UdpSocket};",
            "fn f() { let _ = std::time::Instant::now(); }",
            "use std::time::{Duration, SystemTime};",
            "fn f() { println!(\"x\"); }",
            "use std::io::stdout;",
            "fn f() { let _ = std::env::var(\"HOME\"); }",
        ] {
            assert_eq!(count("crates/calc/src/a.rs", text), 1, "{text}");
        }
    }

    #[test]
    fn plain_types_tests_and_other_crates_are_accepted() {
        assert_eq!(count("crates/calc/src/a.rs", "use std::{net::IpAddr, time::Duration, io::Read};"), 0);
        assert_eq!(count("crates/calc/src/a.rs", "#[cfg(test)] mod tests { use std::fs; }"), 0);
        assert_eq!(count("crates/calc/tests/golden.rs", "use std::fs;"), 0);
        assert_eq!(count("crates/calc/examples/show.rs", "use std::fs;"), 0);
        assert_eq!(count("crates/host/src/live.rs", "use std::fs;"), 0);
    }
}
