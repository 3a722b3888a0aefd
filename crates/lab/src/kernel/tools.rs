//! The programs that a build needs, and the packages that contain them.

use std::path::{Path, PathBuf};

/// A program the build runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tool {
    /// Name of the program, or path of a file if it starts with `/`.
    pub name: &'static str,
    /// Package in Debian.
    pub debian: &'static str,
    /// Package in Fedora.
    pub fedora: &'static str,
}

/// A tool that was not found.
pub type Missing = Tool;

const fn tool(name: &'static str, debian: &'static str, fedora: &'static str) -> Tool {
    Tool { name, debian, fedora }
}

const BUILD_TOOLS: &[Tool] = &[
    tool("gcc", "gcc", "gcc"),
    tool("/usr/include/stdio.h", "libc6-dev", "glibc-devel"),
    tool("ld", "binutils", "binutils"),
    tool("strip", "binutils", "binutils"),
    tool("make", "make", "make"),
    tool("flex", "flex", "flex"),
    tool("bison", "bison", "bison"),
    tool("bc", "bc", "bc"),
    tool("awk", "mawk", "gawk"),
    tool("sed", "sed", "sed"),
    tool("find", "findutils", "findutils"),
    tool("cmp", "diffutils", "diffutils"),
    tool("grep", "grep", "grep"),
];

const UNPACK_TOOLS: &[Tool] = &[tool("tar", "tar", "tar")];

const DEBIAN_TOOLS: &[Tool] = &[
    tool("apt-get", "apt", "apt"),
    tool("dpkg-deb", "dpkg", "dpkg"),
    tool("xz", "xz-utils", "xz"),
    tool(KEYRING, "debian-archive-keyring", "debian-keyring"),
];

/// The programs that a build with patches needs in addition.
pub(super) const PATCH_TOOLS: [Tool; 2] = [tool("git", "git", "git"), tool("cp", "coreutils", "coreutils")];

/// Keyring with the keys that sign Debian's index.
pub(super) const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// Origin of a source, as far as it affects the tools needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum From<'a> {
    /// Debian's archive.
    Debian,
    /// A tarball with this path.
    Tarball(&'a Path),
    /// A directory given by the user.
    Directory,
}

/// Returns the tools that a build from such a source needs.
pub fn needed(from: From<'_>) -> Vec<Tool> {
    let mut tools = BUILD_TOOLS.to_vec();
    match from {
        From::Debian => tools.extend(UNPACK_TOOLS.iter().chain(DEBIAN_TOOLS)),
        From::Tarball(path) => {
            tools.extend(UNPACK_TOOLS);
            match path.extension().and_then(|extension| extension.to_str()) {
                Some("xz" | "txz") => tools.push(tool("xz", "xz-utils", "xz")),
                Some("gz" | "tgz") => tools.push(tool("gzip", "gzip", "gzip")),
                Some("zst") => tools.push(tool("zstd", "zstd", "zstd")),
                Some("bz2") => tools.push(tool("bzip2", "bzip2", "bzip2")),
                _ => {}
            }
        }
        From::Directory => {}
    }
    tools
}

/// Returns those of `tools` that are in none of the directories of `path` (a value of `PATH`).
pub fn missing(tools: &[Tool], path: &std::ffi::OsStr) -> Vec<Missing> {
    let directories: Vec<PathBuf> = std::env::split_paths(path).collect();
    let there = |tool: &&Tool| {
        if tool.name.starts_with('/') {
            return Path::new(tool.name).exists();
        }
        directories.iter().any(|directory| directory.join(tool.name).is_file())
    };
    tools.iter().filter(|tool| !there(tool)).copied().collect()
}

/// Returns one message about all missing tools, with the commands that install them.
pub fn describe_missing(missing: &[Missing]) -> String {
    let packages = |of: fn(&Tool) -> &'static str| {
        let mut names: Vec<&str> = missing.iter().map(of).collect();
        names.sort_unstable();
        names.dedup();
        names.join(" ")
    };
    let names: Vec<&str> = missing.iter().map(|tool| tool.name).collect();
    format!(
        "cannot build a kernel: not installed: {}\nInstall:\n    Debian, Ubuntu:  sudo apt-get install {}\n    Fedora, RHEL:    sudo dnf install {}",
        names.join(", "),
        packages(|tool| tool.debian),
        packages(|tool| tool.fedora),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_missing_tools_are_named_at_once_with_their_packages() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        std::fs::write(directory.path().join("make"), "").expect("written");
        let tools = [tool("make", "make", "make"), tool("flex", "flex", "flex"), tool("xz", "xz-utils", "xz")];
        let missing = missing(&tools, directory.path().as_os_str());
        let text = describe_missing(&missing);
        assert_eq!(missing.len(), 2);
        assert!(text.contains("not installed: flex, xz"), "{text}");
        assert!(text.contains("apt-get install flex xz-utils\n"), "{text}");
        assert!(text.contains("dnf install flex xz"), "{text}");
    }

    #[test]
    fn a_package_with_two_missing_tools_is_named_once() {
        let text = describe_missing(&[tool("ld", "binutils", "binutils"), tool("strip", "binutils", "binutils")]);
        assert!(text.contains("apt-get install binutils\n"), "{text}");
    }

    #[test]
    fn only_the_tools_for_this_source_are_needed() {
        let names = |from| needed(from).iter().map(|tool| tool.name).collect::<Vec<_>>();
        assert!(names(From::Debian).contains(&"apt-get"));
        assert!(names(From::Tarball(Path::new("linux.tar.zst"))).contains(&"zstd"));
        assert!(!names(From::Tarball(Path::new("linux.tar"))).contains(&"apt-get"));
        assert!(!names(From::Directory).contains(&"tar"));
    }
}
