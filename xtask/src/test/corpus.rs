//! The test captures of tcpdump and Wireshark, from Debian's source packages: hundreds of protocols, and many files made
//! to break readers. They stay under `target/`; nothing of them is part of this repository.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::setup::quiet;

/// Names the directory for the tests.
pub const VARIABLE: &str = "LANDSPEED_CAPTURES";
const MIRROR: &str = "http://deb.debian.org/debian";
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";
/// One of them is there.
const SUITES: [&str; 3] = ["bookworm", "stable", "oldstable"];
/// A source package and where its captures are.
const PACKAGES: [(&str, &str); 2] = [("tcpdump", "*/tests/*"), ("wireshark", "*/test/captures/*")];

/// Where the captures are; downloads them (50 MB, once) if they are not there yet.
pub fn captures(root: &Path, no_install: bool) -> Result<PathBuf> {
    let place = root.join("target").join("captures");
    if PACKAGES.iter().all(|(name, _)| place.join(name).is_dir()) {
        return Ok(place);
    }
    ensure!(!no_install, "they are not downloaded yet");
    ensure!(Path::new(KEYRING).exists(), "without Debian's keys their source packages cannot be checked");
    let scratch = tempfile::tempdir().context("cannot make a directory")?;
    let apt = Apt::new(scratch.path())?;
    // A mirror may hold the index of a suite and not its sources.
    let mut last = Ok(());
    for suite in SUITES {
        last = apt
            .read_index(suite)
            .and_then(|()| PACKAGES.iter().try_for_each(|(name, _)| apt.run(&["source", "--download-only", name])));
        if last.is_ok() {
            break;
        }
    }
    last?;
    for (name, inside) in PACKAGES {
        let original = apt.original(name)?;
        // In place only when it is whole.
        let unpacked = scratch.path().join(name);
        std::fs::create_dir_all(&unpacked).context("cannot make a directory")?;
        let mut tar = Command::new("tar");
        tar.arg("-xf").arg(&original).arg("-C").arg(&unpacked);
        quiet(tar.args(["--strip-components=1", "--wildcards", inside]))?;
        std::fs::create_dir_all(&place).context("cannot make a directory")?;
        // Two file systems, perhaps: a rename would not do.
        let new = place.join(format!("{name}.new"));
        quiet(Command::new("cp").arg("-rT").arg(&unpacked).arg(&new))?;
        std::fs::rename(new, place.join(name)).context("cannot put it in place")?;
    }
    Ok(place)
}

/// An apt with a state of its own: the machine's is neither read nor changed, only its ways out are kept.
struct Apt<'a> {
    directory: &'a Path,
}

impl<'a> Apt<'a> {
    fn new(directory: &'a Path) -> Result<Self> {
        for part in ["lists/partial", "cache/archives/partial", "source"] {
            std::fs::create_dir_all(directory.join(part)).context("cannot make a directory")?;
        }
        let said = Command::new("apt-config").args(["dump", "Acquire"]).output().context("cannot run apt-config")?;
        let said = String::from_utf8_lossy(&said.stdout);
        let ways_out = said.lines().filter(|line| {
            ["Acquire::http", "Acquire::ForceIPv"].iter().any(|way| line.starts_with(way)) && line.ends_with("\";")
        });
        let here = directory.display();
        let mut settings = format!(
            "Dir::State \"{here}\";\nDir::State::Lists \"{here}/lists\";\nDir::State::status \"/dev/null\";\n\
             Dir::Cache \"{here}/cache\";\nDir::Etc::main \"/dev/null\";\nDir::Etc::parts \"/dev/null\";\n\
             Dir::Etc::sourcelist \"{here}/sources.list\";\nDir::Etc::sourceparts \"/dev/null\";\n\
             Dir::Etc::preferences \"/dev/null\";\nDir::Etc::preferencesparts \"/dev/null\";\n\
             Dir::Log \"/dev/null\";\nAPT::Sandbox::User \"root\";\nAcquire::Languages \"none\";\n\
             Acquire::Retries \"2\";\nAcquire::http::Timeout \"20\";\nDebug::NoLocking \"true\";\n"
        );
        for way in ways_out {
            settings.push_str(way);
            settings.push('\n');
        }
        std::fs::write(directory.join("apt.conf"), settings).context("cannot write apt's settings")?;
        Ok(Self { directory })
    }

    fn read_index(&self, suite: &str) -> Result<()> {
        let line = format!("deb-src [signed-by={KEYRING}] {MIRROR} {suite} main\n");
        std::fs::write(self.directory.join("sources.list"), line).context("cannot write apt's sources")?;
        // Without this apt takes an unreachable mirror for a warning.
        self.run(&["--allow-releaseinfo-change", "-oAPT::Update::Error-Mode=any", "update"])
    }

    fn run(&self, arguments: &[&str]) -> Result<()> {
        let mut apt = Command::new("apt-get");
        apt.env("APT_CONFIG", self.directory.join("apt.conf")).current_dir(self.directory.join("source"));
        quiet(apt.arg("-qq").args(arguments))
    }

    /// The tarball of a package as its authors made it.
    fn original(&self, name: &str) -> Result<PathBuf> {
        let files = std::fs::read_dir(self.directory.join("source")).context("cannot read the download")?;
        let is = |path: &PathBuf| {
            let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let signature = path.extension().is_some_and(|extension| extension == "asc");
            file.starts_with(&format!("{name}_")) && file.contains(".orig.tar") && !signature
        };
        files.flatten().map(|entry| entry.path()).find(is).with_context(|| format!("no source of {name} came"))
    }
}
