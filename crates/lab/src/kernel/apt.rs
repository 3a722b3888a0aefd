//! Access to Debian's archive with a private apt state: it needs no root, and the host's package system is not
//! changed.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;

use super::child::Job;
use super::error::Error;
use super::tools::KEYRING;
use super::version::{MIN_VERSION, Version};

/// Debian mirror used if the host has none configured.
pub const DEFAULT_MIRROR: &str = "http://deb.debian.org/debian";

/// Suites searched for sources. The names of the first pair follow Debian's releases; the second pair is for
/// mirrors that have only code names, or whose other names are outdated.
const SUITES: [[&str; 2]; 2] = [["stable-backports", "stable"], ["trixie-backports", "trixie"]];

/// A packaged kernel source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Package {
    /// Package name, such as `linux-source-7.3`.
    pub name: String,
    /// Package version, such as `7.3.4-1~bpo13+1`.
    pub version: String,
    /// Kernel version, such as `7.3.4`.
    pub kernel: Version,
    /// Size of the package file, bytes.
    pub size_bytes: u64,
    /// SHA-256 of the package file.
    pub hash: String,
}

/// Returns the host's own Debian mirror, if the host runs Debian and has one configured. `files` are the contents
/// of its sources files.
pub fn host_mirror<'a>(os_release: &str, files: impl Iterator<Item = &'a str>) -> Option<String> {
    if !os_release.lines().any(|line| line.trim_end() == "ID=debian") {
        return None;
    }
    files.flat_map(uris).find(|uri| {
        let path = uri.trim_end_matches('/');
        path.ends_with("/debian") || (path.starts_with("mirror+file:") && path.ends_with("/debian.list"))
    })
}

/// Returns the URIs of a sources file in one-line or deb822 style, without options, comments and source packages.
fn uris(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for line in text.lines() {
        let mut words = line.split_whitespace();
        match words.next() {
            Some("deb") => {
                let rest: Vec<&str> = words.collect();
                let options = rest.iter().position(|word| word.ends_with(']')).filter(|_| rest[0].starts_with('['));
                found.extend(rest.get(options.map_or(0, |at| at + 1)).map(|uri| (*uri).to_owned()));
            }
            Some("URIs:") => found.extend(words.map(str::to_owned)),
            _ => {}
        }
    }
    found
}

/// Returns the kernel sources in the output of `apt-cache show` whose versions can be parsed, newest first.
pub fn packages(show: &str) -> Vec<Package> {
    let mut found: Vec<Package> = show.split("\n\n").filter_map(package).collect();
    found.sort_by(|a, b| b.kernel.cmp(&a.kernel));
    found
}

fn package(stanza: &str) -> Option<Package> {
    let field =
        |name: &str| stanza.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": ").map(str::trim));
    let name = field("Package")?;
    name.strip_prefix("linux-source-")?.parse::<Version>().ok()?;
    let version = field("Version")?;
    let upstream = version.split_once(':').map_or(version, |(_epoch, rest)| rest);
    // 7.3.4-1~bpo13+1 is kernel 7.3.4; 7.4~rc2-1~exp1 is 7.4-rc2.
    let upstream = upstream.rsplit_once('-').map_or(upstream, |(upstream, _revision)| upstream);
    let kernel = upstream.replace("~rc", "-rc").parse().ok()?;
    let hash = field("SHA256").filter(|hash| hash.len() == 64 && hash.bytes().all(|b| b.is_ascii_hexdigit()))?;
    Some(Package {
        name: name.to_owned(),
        version: version.to_owned(),
        kernel,
        size_bytes: field("Size")?.parse().ok()?,
        hash: hash.to_ascii_lowercase(),
    })
}

/// Returns the newest package that is within `wanted` and not too old.
pub fn choose(packages: &[Package], wanted: Option<&Version>) -> Result<Package, Error> {
    let fits = |package: &&Package| {
        package.kernel >= MIN_VERSION && wanted.is_none_or(|wanted| package.kernel.is_within(wanted))
    };
    if let Some(package) = packages.iter().filter(fits).max_by(|a, b| a.kernel.cmp(&b.kernel)) {
        return Ok(package.clone());
    }
    if let Some(wanted) = wanted.filter(|wanted| **wanted < MIN_VERSION && !MIN_VERSION.is_within(wanted)) {
        return Err(Error::TooOld(wanted.to_string()));
    }
    let usable: Vec<String> = packages
        .iter()
        .filter(|package| package.kernel >= MIN_VERSION)
        .map(|package| package.kernel.to_string())
        .collect();
    Err(Error::NoSuchVersion {
        wanted: wanted.map_or_else(|| format!("of {MIN_VERSION} or newer"), ToString::to_string),
        available: if usable.is_empty() { "none that is new enough".to_owned() } else { usable.join(", ") },
    })
}

/// Parses the percentage in a line that apt writes to its status descriptor.
pub fn downloaded(line: &str) -> Option<f64> {
    let mut fields = line.strip_prefix("dlstatus:")?.split(':');
    fields.nth(1)?.parse().ok().filter(|percent| (0.0..=100.0).contains(percent))
}

/// An apt that keeps its whole state in one directory.
pub(super) struct Apt<'a> {
    directory: PathBuf,
    mirror: String,
    interrupted: &'a AtomicBool,
}

impl<'a> Apt<'a> {
    /// Sets up `directory`. `mirror` overrides the host's mirror.
    pub fn new(directory: &Path, mirror: Option<&str>, interrupted: &'a AtomicBool) -> Result<Self, Error> {
        let mirror =
            mirror.map(str::to_owned).or_else(mirror_of_this_host).unwrap_or_else(|| DEFAULT_MIRROR.to_owned());
        let apt = Self { directory: directory.to_owned(), mirror, interrupted };
        // The host's proxies and similar settings are used; its hooks and preferences are not.
        let mut dump = Command::new("apt-config");
        dump.args(["dump", "Acquire"]);
        let host = apt.job("reading apt's settings", dump).output().unwrap_or_default();
        prepare(directory, &host, ONLY_KERNELS).map_err(Error::io("create", directory))?;
        Ok(apt)
    }

    /// Reads the index and returns the kernel sources in it.
    pub fn index(&self) -> Result<Vec<Package>, Error> {
        let [first, second] = SUITES;
        let answer = match self.read_index(first) {
            Err(Error::Command { .. }) => self.read_index(second),
            answer => answer,
        };
        answer.map_err(|error| match error {
            Error::Command { tail, .. } => {
                // The first line is the cause, the others are what apt concludes from it.
                let first = tail.lines().next().unwrap_or_default();
                let why = first.trim_start_matches("E: ").trim_end_matches('.').to_owned();
                Error::Index { mirror: self.mirror.clone(), why }
            }
            other => other,
        })
    }

    fn read_index(&self, suites: [&str; 2]) -> Result<Vec<Package>, Error> {
        let line = |suite: &str| format!("deb [signed-by={KEYRING}] {} {suite} main\n", self.mirror);
        self.write("sources.list", &suites.map(line).concat())?;
        // Without this, apt treats an unreachable mirror as a warning, and an empty index as a success.
        let mut update = self.apt("apt-get");
        update.args(["-qq", "--allow-releaseinfo-change", "-oAPT::Update::Error-Mode=any", "update"]);
        self.job("reading the package index", update).run(|_| ())?;
        let mut names = self.apt("apt-cache");
        names.args(["pkgnames", "linux-source-"]);
        let names = self.job("searching the package index", names).output()?;
        let numbered = |name: &&str| name["linux-source-".len()..].starts_with(|first: char| first.is_ascii_digit());
        let names: Vec<&str> = names.lines().filter(|n| n.starts_with("linux-source-")).filter(numbered).collect();
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let mut show = self.apt("apt-cache");
        show.arg("show").args(names);
        Ok(packages(&self.job("reading the package index", show).output()?))
    }

    /// Downloads a package file into `directory`, checked by apt; `percent` receives the progress.
    pub fn download(&self, package: &Package, directory: &Path, mut percent: impl FnMut(f64)) -> Result<(), Error> {
        let mut download = self.apt("apt-get");
        download
            .args(["-qq", "-oAPT::Status-Fd=1", "download", &format!("{}={}", package.name, package.version)])
            .current_dir(directory);
        let mut job = self.job("downloading the source", download);
        directory.clone_into(&mut job.place);
        job.run(|line| {
            if let Some(done) = downloaded(line) {
                percent(done);
            }
        })
    }

    fn apt(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env("APT_CONFIG", self.directory.join("apt.conf"));
        command
    }

    fn job(&self, what: &'static str, command: Command) -> Job<'a> {
        Job { what, command, interrupted: self.interrupted, log: None, place: self.directory.clone() }
    }

    fn write(&self, name: &str, text: &str) -> Result<(), Error> {
        let path = self.directory.join(name);
        std::fs::write(&path, text).map_err(Error::io("write", &path))
    }
}

fn mirror_of_this_host() -> Option<String> {
    let os_release = std::fs::read_to_string("/etc/os-release").ok()?;
    let mut paths = vec![PathBuf::from("/etc/apt/sources.list")];
    let mut parts: Vec<PathBuf> = std::fs::read_dir("/etc/apt/sources.list.d")
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .collect();
    parts.sort();
    paths.extend(parts.into_iter().filter(|p| p.extension().is_some_and(|e| e == "list" || e == "sources")));
    let texts: Vec<String> = paths.iter().filter_map(|path| std::fs::read_to_string(path).ok()).collect();
    host_mirror(&os_release, texts.iter().map(String::as_str))
}

/// Settings that reduce the index to what kernel sources need: these are the same for all architectures, and need
/// no other metadata.
const ONLY_KERNELS: &str = "\
APT::Architecture \"amd64\";
Acquire::PDiffs \"false\";
Acquire::IndexTargets::deb::DEP-11::DefaultEnabled \"false\";
Acquire::IndexTargets::deb::DEP-11-icons-small::DefaultEnabled \"false\";
Acquire::IndexTargets::deb::DEP-11-icons::DefaultEnabled \"false\";
Acquire::IndexTargets::deb::Contents-deb::DefaultEnabled \"false\";
";

/// Sets up a private apt in `directory`, to be used with `APT_CONFIG=DIRECTORY/apt.conf`: its state, cache and
/// sources (`sources.list`) are there, and the host's are neither read nor changed. `host` is the output of
/// `apt-config dump Acquire`, of which only proxies and similar settings are used. `more` are further settings.
pub fn prepare(directory: &Path, host: &str, more: &str) -> std::io::Result<()> {
    for part in ["lists/partial", "cache/archives/partial"] {
        std::fs::create_dir_all(directory.join(part))?;
    }
    std::fs::write(directory.join("apt.conf"), settings(directory, host) + more)
}

fn settings(directory: &Path, host: &str) -> String {
    let directory = directory.display();
    let own = format!(
        "Dir::State \"{directory}\";\n\
         Dir::State::Lists \"{directory}/lists\";\n\
         Dir::State::status \"/dev/null\";\n\
         Dir::Cache \"{directory}/cache\";\n\
         Dir::Etc::main \"/dev/null\";\n\
         Dir::Etc::parts \"/dev/null\";\n\
         Dir::Etc::sourcelist \"{directory}/sources.list\";\n\
         Dir::Etc::sourceparts \"/dev/null\";\n\
         Dir::Etc::preferences \"/dev/null\";\n\
         Dir::Etc::preferencesparts \"/dev/null\";\n\
         Dir::Log \"/dev/null\";\n\
         APT::Sandbox::User \"root\";\n\
         Acquire::Languages \"none\";\n\
         Acquire::Retries \"2\";\n\
         Debug::NoLocking \"true\";\n"
    );
    let way_out = |line: &&str| {
        ["Acquire::http", "Acquire::https", "Acquire::ForceIPv"].iter().any(|prefix| line.starts_with(prefix))
            && line.ends_with("\";")
    };
    host.lines().filter(way_out).fold(own, |all, line| all + line + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEBIAN: &str = "PRETTY_NAME=\"Debian\"\nID=debian\n";
    const SHOW: &str = "\
Package: linux-source-7.3
Source: linux
Version: 7.3.4-1~bpo13+1
Description-en: Linux kernel source
 with a second line
Size: 166780612
SHA256: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa

Package: linux-source-6.12
Version: 6.12.43-1
Size: 1
SHA256: bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb

Package: linux-source-7.10
Version: 7.10~rc2-1~exp1
Size: 2
SHA256: cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc

Package: linux-source
Version: 7.3.4-1
Size: 3
SHA256: dddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd
";

    #[test]
    fn kernel_sources_are_read_from_the_index_newest_first() {
        let found = packages(SHOW);
        let kernels: Vec<_> = found.iter().map(|package| package.kernel.to_string()).collect();
        assert_eq!(kernels, ["7.10-rc2", "7.3.4", "6.12.43"]);
        assert_eq!((found[1].size_bytes, found[1].version.as_str()), (166_780_612, "7.3.4-1~bpo13+1"));
    }

    #[test]
    fn the_newest_source_is_chosen_and_errors_list_alternatives() {
        let found = packages(SHOW);
        let wanted = |text: &str| choose(&found, Some(&text.parse().expect("a version")));
        assert_eq!(choose(&found, None).expect("one").name, "linux-source-7.10");
        assert_eq!(wanted("7.3").expect("one").name, "linux-source-7.3");
        assert_eq!(wanted("7.3.4").expect("one").name, "linux-source-7.3");
        assert!(matches!(wanted("6.12"), Err(Error::TooOld(_))));
        let error = wanted("7.4").expect_err("not there").to_string();
        assert!(
            error.contains("7.10-rc2, 7.3.4") && !error.contains("6.12") && error.contains("--source"),
            "{error}"
        );
        assert!(matches!(choose(&[], None), Err(Error::NoSuchVersion { .. })));
    }

    #[test]
    fn a_configured_debian_mirror_is_used() {
        let old = "# deb http://old.example/debian x main\ndeb-src http://src.example/debian x main\n\
                   deb [arch=amd64 signed-by=/k.gpg] https://site.example/debian/ bookworm main\n";
        let new = "Types: deb\nURIs: http://vendor.example/apt http://mirror.example/debian\nSuites: bookworm\n";
        let security = "deb http://sec.example/debian-security bookworm-security main\n";
        assert_eq!(host_mirror(DEBIAN, [security, old].into_iter()).as_deref(), Some("https://site.example/debian/"));
        assert_eq!(host_mirror(DEBIAN, [new].into_iter()).as_deref(), Some("http://mirror.example/debian"));
        assert_eq!(host_mirror(DEBIAN, [security, "deb", "deb [", "deb []"].into_iter()), None);
        assert_eq!(host_mirror("ID=ubuntu\n", [old].into_iter()), None);
    }

    #[test]
    fn download_progress_is_read_from_status_lines() {
        assert_eq!(downloaded("dlstatus:1:33.3:Retrieving file 1 of 1 (5s remaining)"), Some(33.3));
        for line in ["", "dlstatus:1", "dlstatus:1:x:", "pmstatus:1:20:", "dlstatus:1:1e9:"] {
            assert_eq!(downloaded(line), None, "{line}");
        }
    }

    #[test]
    fn apt_proxies_are_kept_and_hooks_are_not() {
        let host = "Acquire \"\";\nAcquire::http::Proxy \"http://proxy.example:3128\";\nAcquire::Languages:: \"en\";\n\
                    APT::Update::Post-Invoke:: \"rm x\";\n";
        let text = settings(Path::new("/d"), host);
        assert!(text.contains("Acquire::http::Proxy \"http://proxy.example:3128\";"));
        assert!(!text.contains("\"en\"") && !text.contains("Post-Invoke"));
        assert!(text.contains("Dir::State::Lists \"/d/lists\";"));
    }
}
