//! Visible skipping of tests that cannot run here.
//!
//! The standard harness has no "skipped" and hides the output of passing tests. A test that lacks a privilege or
//! a program therefore calls [`skip!`](crate::skip!), which prints a line and also appends it to the file named
//! by [`LOG_VARIABLE`]; `cargo xtask test` sets that variable, lists the lines and prints their number in its
//! last line.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};

/// Environment variable with the path of the file to which skipped tests append.
pub const LOG_VARIABLE: &str = "LANDSPEED_SKIP_LOG";

/// Records that the running test cannot run here, with the reason, and returns from it.
///
/// ```no_run
/// # fn is_root() -> bool { false }
/// #[test]
/// fn loss_on_a_namespaced_link_is_placed_in_the_network() {
///     if !is_root() {
///         landspeed_testkit::skip!("network namespaces need root");
///     }
/// }
/// ```
#[macro_export]
macro_rules! skip {
    ($($why:tt)*) => {{
        $crate::skip::record(&::std::format!($($why)*));
        return;
    }};
}

/// Returns the value of a `Result`, or skips the test with the error as the reason ([`skip!`](crate::skip!)).
#[macro_export]
macro_rules! or_skip {
    ($made:expr) => {
        match $made {
            Ok(made) => made,
            Err(why) => $crate::skip!("{why}"),
        }
    };
}

/// Prints `SKIPPED: <test>: <why>` and appends it to the skip log, if set. Called by [`skip!`](crate::skip!).
///
/// # Panics
/// If the log cannot be written: an uncounted skip must not look like a pass.
pub fn record(why: &str) {
    let line = line(why);
    println!("{}", line.trim_end());
    let Some(path) = std::env::var_os(LOG_VARIABLE) else { return };
    // A single write to a file opened for appending: lines of concurrent tests do not mix.
    let written = OpenOptions::new().create(true).append(true).open(&path).and_then(|mut log| {
        let written = log.write(line.as_bytes())?;
        if written == line.len() { Ok(()) } else { Err(ErrorKind::WriteZero.into()) }
    });
    if let Err(error) = written {
        panic!("cannot append to {}: {error}", std::path::Path::new(&path).display());
    }
}

/// Formats the line. The harness names each test's thread after the test.
fn line(why: &str) -> String {
    let thread = std::thread::current();
    let test = thread.name().filter(|&name| name != "main").unwrap_or("(unnamed test)");
    let why: Vec<&str> = why.split_whitespace().collect();
    format!("SKIPPED: {test}: {}\n", why.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_skip_names_its_test_and_stays_on_one_line() {
        assert_eq!(
            line("needs root,\n  or CAP_NET_ADMIN"),
            "SKIPPED: skip::tests::a_skip_names_its_test_and_stays_on_one_line: needs root, or CAP_NET_ADMIN\n"
        );
    }
}
