//! Assignments in the files of sysctl.d(5), in the order in which `sysctl --system` applies them.

use std::collections::BTreeMap;

use landspeed_model::{Fact, SysctlAssignment};

use crate::host::{FactReader, is_absent};
use crate::parse::sysctl_assignments;

/// Of files with the same name, the one in the first of these directories is used (sysctl.d(5), sysctl(8)).
const DIRECTORIES: [&str; 5] =
    ["/etc/sysctl.d", "/run/sysctl.d", "/usr/local/lib/sysctl.d", "/usr/lib/sysctl.d", "/lib/sysctl.d"];
/// File that is read last.
const LAST_FILE: &str = "/etc/sysctl.conf";

pub(super) fn read(look: FactReader<'_>) -> Fact<Vec<SysctlAssignment>> {
    let mut files: BTreeMap<String, String> = BTreeMap::new();
    for directory in DIRECTORIES {
        match look.0.names(directory, "") {
            Ok(names) => {
                for name in names.into_iter().filter(|name| is_relevant(name)) {
                    files.entry(name.clone()).or_insert_with(|| format!("{directory}/{name}"));
                }
            }
            Err(why) if is_absent(&why) => {}
            Err(why) => return Fact::Unknown(format!("cannot list {directory}: {why}")),
        }
    }
    let mut assignments = Vec::new();
    for path in files.into_values().chain([LAST_FILE.to_owned()]) {
        match look.read(&path) {
            Ok(text) => assignments.extend(sysctl_assignments(&text).into_iter().map(|found| SysctlAssignment {
                path: path.clone(),
                line: found.line,
                name: found.name,
                value: found.value,
            })),
            // A link to /dev/null masks a file; a dangling link assigns nothing either.
            Err(error) if is_absent(&error.cause) || is_mask(look, &path) => {}
            Err(error) => return Fact::Unknown(error.to_string()),
        }
    }
    Fact::Known(assignments)
}

/// Returns whether a file is read: its name ends in lower-case `.conf`.
fn is_relevant(name: &str) -> bool {
    name.strip_suffix(".conf").is_some_and(|stem| !stem.is_empty())
}

fn is_mask(look: FactReader<'_>, path: &str) -> bool {
    look.0.link(path).is_ok_and(|target| target == "/dev/null")
}
