//! The kernel's makefiles: calling them in a reproducible way, and parsing their output.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;

use super::child::Job;
use super::error::Error;

/// Environment variables that would change the result of a build.
const UNSET_VARIABLES: &[&str] = &[
    "ARCH",
    "AFLAGS",
    "CFLAGS",
    "CPPFLAGS",
    "CROSS_COMPILE",
    "GNUMAKEFLAGS",
    "HOSTCFLAGS",
    "HOSTLDFLAGS",
    "KAFLAGS",
    "KBUILD_CFLAGS",
    "KBUILD_EXTMOD",
    "KBUILD_OUTPUT",
    "KCFLAGS",
    "KCONFIG_ALLCONFIG",
    "KCONFIG_CONFIG",
    "KCPPFLAGS",
    "LDFLAGS",
    "LLVM",
    "LOCALVERSION",
    "MAKEFILES",
    "MAKEFLAGS",
    "MAKELEVEL",
    "MFLAGS",
    "SUBARCH",
    "V",
    "W",
];

/// Approximate number of objects in a build, for the remaining time. The actual count corrects it.
pub(super) const APPROX_OBJECTS: u64 = 765;

/// Meaning of a line of make's output for the progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MakeOutput {
    /// Compilation of an object began.
    Object,
    Link,
    Other,
}

impl MakeOutput {
    /// Parses a line such as `  CC      net/ipv4/tcp.o`.
    pub fn parse(line: &str) -> Self {
        let mut words = line.split_whitespace();
        match (words.next(), words.next()) {
            (Some("CC" | "AS"), Some(_)) if line.starts_with("  ") => Self::Object,
            (Some("LD"), Some("vmlinux.o")) => Self::Link,
            _ => Self::Other,
        }
    }
}

/// A source tree and its output directory.
pub(super) struct Make<'a> {
    pub source: &'a Path,
    /// Directory for all build products.
    pub objects: &'a Path,
    /// File for make's output.
    pub log: PathBuf,
    /// Directory that is reported as kept, or as full.
    pub place: &'a Path,
    /// Set when the user interrupts.
    pub interrupted: &'a AtomicBool,
}

impl Make<'_> {
    /// Builds a target.
    pub fn run(&self, what: &str, target: &str, jobs: usize, on_line: impl FnMut(MakeOutput)) -> Result<(), Error> {
        let mut on_line = on_line;
        let mut command = Command::new("make");
        for name in UNSET_VARIABLES {
            command.env_remove(name);
        }
        // The same source, compiler and configuration give the same bytes, regardless of user and time.
        command.envs([
            ("KBUILD_BUILD_TIMESTAMP", "Thu Jan  1 00:00:00 UTC 1970"),
            ("KBUILD_BUILD_USER", "landspeed"),
            ("KBUILD_BUILD_HOST", "lab"),
            ("KBUILD_BUILD_VERSION", "1"),
        ]);
        command.arg("-C").arg(self.source).arg("ARCH=um").arg("SUBARCH=x86_64");
        let mut objects = std::ffi::OsString::from("O=");
        objects.push(self.objects);
        command.arg(objects).arg(format!("-j{jobs}")).arg(target);
        let job = Job {
            what,
            command,
            interrupted: self.interrupted,
            log: Some(self.log.clone()),
            place: self.place.to_owned(),
        };
        job.run(|line| on_line(MakeOutput::parse(line)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn object_lines_of_make_are_recognised() {
        for (line, said) in [
            ("  CC      net/ipv4/tcp.o", MakeOutput::Object),
            ("  AS      arch/um/kernel/vmlinux.lds", MakeOutput::Object),
            ("  LD      vmlinux.o", MakeOutput::Link),
            ("  LD      net/ethtool/ethtool_nl.o", MakeOutput::Other),
            ("  HOSTCC  scripts/kconfig/conf.o", MakeOutput::Other),
            ("CC is missing", MakeOutput::Other),
            ("  CC", MakeOutput::Other),
            ("", MakeOutput::Other),
        ] {
            assert_eq!(MakeOutput::parse(line), said, "{line}");
        }
    }
}
