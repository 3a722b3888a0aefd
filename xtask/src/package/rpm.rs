//! The RPM package: `rpmbuild` packs the staged tree as `packaging/rpm/landspeed.spec` says.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

use super::build::{Build, SUMMARY, VERSION, format_date, maintainer, output};
use super::sbom;
use super::stage::Stage;

/// Builds the RPM package.
pub fn build(build: &Build<'_>) -> Result<PathBuf> {
    let stage = Stage::installed(build, "rpm", "/usr")?;
    stage.gzip_pages()?;
    let docs = "usr/share/doc/landspeed";
    for name in ["README.md", "CHANGELOG.md"] {
        stage.copy(&build.root.join(name), &format!("{docs}/{name}"))?;
    }
    for name in ["LICENSE-APACHE", "LICENSE-MIT"] {
        stage.copy(&build.root.join(name), &format!("usr/share/licenses/landspeed/{name}"))?;
    }
    stage.write("usr/share/licenses/landspeed/third-party.txt", sbom::notices(build)?)?;
    stage.finish(|below| below.ends_with("bin/landspeed"))?;

    // rpmbuild's macros take no path with a space, so it works in a separate directory and copies the tree.
    let work = tempfile::Builder::new()
        .prefix("landspeed-rpm-")
        .tempdir_in(without_spaces())
        .context("cannot create a directory")?;
    let (revision, machine) = (build.revision, build.machine.kernel);
    let define = |name: &str, value: &str| format!("--define={name} {value}");
    let path = |name: &str| work.path().join(name).display().to_string();
    let mut rpmbuild = Command::new("rpmbuild");
    rpmbuild.args(["-bb", "--quiet", "--nodeps", &format!("--target={machine}-linux")]);
    rpmbuild.args([
        define("_topdir", &path("top")),
        define("_tmppath", &path("tmp")),
        define("_dbpath", &path("db")),
        define("landspeed_version", VERSION),
        define("landspeed_revision", &revision.to_string()),
        define("landspeed_summary", SUMMARY),
        define("landspeed_packager", &maintainer()),
        define("landspeed_date", &format_date(build.epoch, "%a %b %d %Y")?),
        define("_binary_payload", if build.fast { "w1.gzdio" } else { "w6.xzdio" }),
    ]);
    rpmbuild.env("SOURCE_DATE_EPOCH", build.epoch.to_string()).env("LANDSPEED_STAGE", &stage.path);
    rpmbuild.arg(build.root.join("packaging/rpm/landspeed.spec"));
    std::fs::create_dir(work.path().join("tmp")).context("cannot create a directory")?;
    output(&mut rpmbuild)?;
    let name = format!("landspeed-{VERSION}-{revision}.{machine}.rpm");
    let package = build.root.join(&build.scratch).join(&name);
    let built = work.path().join("top/RPMS").join(machine).join(&name);
    std::fs::copy(&built, &package).with_context(|| format!("cannot copy {}", built.display()))?;
    Ok(package)
}

/// The directory for temporary files, or /var/tmp if its name has a space.
fn without_spaces() -> PathBuf {
    let usual = std::env::temp_dir();
    if usual.to_string_lossy().contains(char::is_whitespace) { PathBuf::from("/var/tmp") } else { usual }
}
