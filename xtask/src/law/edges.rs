//! Table of allowed dependencies between crates. DESIGN: facts flow up, control flows down, glue is only at the
//! top.

/// A crate and the workspace crates it may depend on. Development dependencies are not counted.
pub struct CrateDependencies {
    /// Short name of the crate, without `landspeed-`.
    pub from: &'static str,
    /// Short names of the crates it may depend on.
    pub to: &'static [&'static str],
}

const fn edges(from: &'static str, to: &'static [&'static str]) -> CrateDependencies {
    CrateDependencies { from, to }
}

/// Allowed dependencies. A new crate needs a row here and a line in crates/README.md.
pub const TABLE: &[CrateDependencies] = &[
    edges("units", &[]),
    edges("stats", &[]),
    edges("quote", &[]),
    edges("sys", &["quote"]),
    edges("netlink", &["sys"]),
    edges("metrics", &["sys"]),
    edges("wire", &[]),
    edges("model", &["units"]),
    edges("problems", &["units"]),
    edges("settings", &["model"]),
    edges("emulation", &["problems", "stats", "units"]),
    edges("calc", &["units"]),
    edges("diagnose", &["calc", "model", "stats", "units"]),
    edges("results", &["model", "stats", "units"]),
    edges("compare", &["model", "results", "stats", "units"]),
    edges("sweep", &["compare", "model", "problems", "results", "stats", "units"]),
    edges("archive", &["model", "problems", "quote", "results", "sys", "units"]),
    edges("checks", &["calc", "model", "quote", "units"]),
    edges("trace", &["model", "stats", "units", "wire"]),
    edges("columns", &["trace", "wire"]),
    edges("capture", &["columns", "model", "sys", "trace", "wire"]),
    edges("tuneup", &["model", "results", "settings", "stats", "units"]),
    edges("qualify", &["calc", "model", "units"]),
    edges("mesh", &["model", "problems", "stats"]),
    edges("host", &["model", "netlink", "sys", "units"]),
    edges("flow", &["calc", "host", "model", "netlink", "settings", "stats", "sys", "units"]),
    edges("iperf3", &["flow", "host", "model", "settings", "sys", "units"]),
    edges("tune", &["host", "model", "netlink", "quote", "sys", "units"]),
    edges("lab", &["emulation", "model", "netlink", "problems", "qualify", "settings", "stats", "sys", "units"]),
    edges("emulate", &["emulation", "model", "netlink", "quote", "stats", "sys", "units", "wire"]),
    edges("tap", &["model", "netlink", "problems", "stats", "sys", "wire"]),
    edges("watch", &["host", "model", "netlink", "sys", "tap"]),
    edges(
        "experiment",
        &["diagnose", "flow", "lab", "model", "problems", "quote", "results", "sweep", "sys", "tune", "units"],
    ),
    edges("report", &["model", "quote", "results", "stats", "units"]),
    edges("testkit", &["model", "stats", "sys", "units"]),
    edges(
        "cli",
        &[
            "archive",
            "calc",
            "capture",
            "checks",
            "columns",
            "compare",
            "diagnose",
            "emulate",
            "emulation",
            "experiment",
            "flow",
            "host",
            "iperf3",
            "lab",
            "mesh",
            "metrics",
            "model",
            "netlink",
            "problems",
            "qualify",
            "quote",
            "report",
            "results",
            "settings",
            "stats",
            "sweep",
            "sys",
            "tap",
            "trace",
            "tune",
            "tuneup",
            "units",
            "watch",
            "wire",
        ],
    ),
    edges("landspeed", &["cli"]),
    edges("xtask", &["lab", "testkit"]),
];

/// Crates that only compute values: no files, sockets, clocks or threads, neither directly nor through a library.
/// Crates that do not exist yet may be listed in advance.
pub const PURE_CRATES: &[&str] = &[
    "units",
    "quote",
    "wire",
    "stats",
    "model",
    "problems",
    "settings",
    "emulation",
    "calc",
    "diagnose",
    "checks",
    "trace",
    "results",
    "compare",
    "sweep",
    "tuneup",
    "qualify",
    "mesh",
];

/// Crates that only the binary may depend on.
pub const TOP_CRATES: &[&str] = &["cli"];

/// The only crate that may contain `unsafe`.
pub const UNSAFE_CRATE: &str = "sys";

/// External packages that only the listed crates may use outside tests.
pub const CONFINED_DEPENDENCIES: &[(&str, &[&str])] = &[
    ("anyhow", &["cli", "xtask"]),
    ("libc", &["sys", "netlink", "testkit"]),
    ("socket2", &["sys", "flow", "iperf3", "testkit"]),
    ("httparse", &["metrics"]),
    ("nix", &["xtask"]),
    ("prometheus-client", &["metrics"]),
    ("ratatui-core", &["cli"]),
    ("ratatui-crossterm", &["cli"]),
    ("rustix", &[]),
    ("tempfile", &["testkit", "xtask"]),
    ("testkit", &["xtask"]),
];

/// Returns the crates that [`TABLE`] allows `from` to use; `None` for a crate without a row.
pub fn allowed(from: &str) -> Option<&'static [&'static str]> {
    TABLE.iter().find(|row| row.from == from).map(|row| row.to)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Crates that must not depend on each other; `cli` combines them.
    const INDEPENDENT_CRATES: &[&str] = &["flow", "lab", "tap", "checks"];

    #[test]
    fn independent_crates_do_not_depend_on_each_other() {
        for row in TABLE.iter().filter(|row| INDEPENDENT_CRATES.contains(&row.from)) {
            assert!(row.to.iter().all(|to| !INDEPENDENT_CRATES.contains(to)), "{}", row.from);
        }
    }

    #[test]
    fn pure_crates_may_use_only_pure_crates() {
        for row in TABLE.iter().filter(|row| PURE_CRATES.contains(&row.from)) {
            assert!(row.to.iter().all(|to| PURE_CRATES.contains(to)), "{}", row.from);
        }
    }

    #[test]
    fn only_the_binary_uses_the_top_crates() {
        for row in TABLE {
            assert!(row.from == "landspeed" || row.to.iter().all(|to| !TOP_CRATES.contains(to)), "{}", row.from);
        }
    }

    #[test]
    fn report_reads_documents_only() {
        // `results` and `stats` compute from documents; `units` formats values.
        assert_eq!(allowed("report"), Some(&["model", "quote", "results", "stats", "units"][..]));
    }
}
