//! The Debian package. `dpkg-deb` builds it from the staged tree: the tree is finished already, so debhelper (`dh`, 60 packages) and cargo-deb
//! (compiled first, with a second list of files) would only copy it, and `dpkg-deb` is reproducible by itself (SOURCE_DATE_EPOCH).

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::build::{Build, SUMMARY, VERSION, format_date, maintainer, output};
use super::sbom;
use super::stage::{Stage, gzip};

/// What the package says about itself.
const DESCRIPTION: &str = " landspeed measures how fast data moves between two hosts, what limits it, and
 what to change: goodput at the receiver, retransmits, RTT and queueing delay,
 with one cause and the readings that show it. It tests against its own server
 and against iperf3, audits and tunes hosts, watches transfers that are already
 running, captures and analyses packets, and emulates paths.
 .
 The server (landspeed.service) is not enabled by the installation.
";

/// Builds the Debian package.
pub fn build(build: &Build<'_>) -> Result<PathBuf> {
    let stage = Stage::installed(build, "deb", "/usr")?;
    stage.gzip_pages()?;
    let revision = format!("{VERSION}-{}", build.revision);
    let docs = "usr/share/doc/landspeed";
    stage.copy(&build.root.join("README.md"), &format!("{docs}/README.md"))?;
    stage.copy(&build.root.join("packaging/deb/copyright"), &format!("{docs}/copyright"))?;
    let changelog = stage.copy(&build.root.join("CHANGELOG.md"), &format!("{docs}/changelog"))?;
    let entry = format!(
        "landspeed ({revision}) unstable; urgency=medium\n\n  * Version {VERSION}: see changelog.gz.\n\n -- {}  {}\n",
        maintainer(),
        format_date(build.epoch, "%a, %d %b %Y %H:%M:%S +0000")?
    );
    let debian = stage.write(&format!("{docs}/changelog.Debian"), entry)?;
    let notices = stage.write(&format!("{docs}/third-party.txt"), sbom::notices(build)?)?;
    gzip(&[changelog, debian, notices])?;
    stage.copy(&build.root.join("packaging/deb/lintian-overrides"), "usr/share/lintian/overrides/landspeed")?;

    let files = stage.files()?;
    let mut sums = String::new();
    let mut bytes = 0;
    for file in &files {
        let below = file.strip_prefix(&stage.path).context("a file outside the tree")?;
        let contents = std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
        bytes += contents.len().div_ceil(1024);
        if !below.starts_with("etc") {
            let _ = writeln!(sums, "{}  {}", md5(file)?, below.display());
        }
    }
    stage.write("DEBIAN/md5sums", sums)?;
    stage.write("DEBIAN/conffiles", "/etc/landspeed/serve.toml\n")?;
    for script in ["postinst", "prerm", "postrm"] {
        stage.copy(&build.root.join("packaging/deb").join(script), &format!("DEBIAN/{script}"))?;
    }
    let architecture = build.machine.debian;
    let control = format!(
        "Package: landspeed\nVersion: {revision}\nSection: net\nPriority: optional\nArchitecture: {architecture}\n\
         Maintainer: {}\nInstalled-Size: {bytes}\nSuggests: iperf3, tcpdump\n\
         Description: {SUMMARY}\n{DESCRIPTION}",
        maintainer()
    );
    stage.write("DEBIAN/control", control)?;
    let scripts = ["DEBIAN/postinst", "DEBIAN/prerm", "DEBIAN/postrm", "usr/bin/landspeed"];
    stage.finish(|below| scripts.iter().any(|script| below == Path::new(script)))?;

    let package = build.root.join(&build.scratch).join(format!("landspeed_{revision}_{architecture}.deb"));
    let mut dpkg = Command::new("dpkg-deb");
    dpkg.env("SOURCE_DATE_EPOCH", build.epoch.to_string()).arg("--root-owner-group");
    // Readable for every release of Debian and Ubuntu, unlike zstd.
    dpkg.args(if build.fast { ["-Zgzip", "-z1"] } else { ["-Zxz", "-z6"] });
    output(dpkg.arg("--build").arg(&stage.path).arg(&package))?;
    Ok(package)
}

/// MD5 in hexadecimal: what `dpkg --verify` compares.
fn md5(file: &Path) -> Result<String> {
    // The name is not repeated, so that no name is escaped.
    let mut sum = Command::new("md5sum");
    let line = output(sum.arg("--").arg(file))?;
    Ok(line.trim_start_matches('\\').chars().take(32).collect())
}
