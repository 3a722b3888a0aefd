//! The archive for any Linux: `tar -xzf … --strip-components=1 -C /usr/local`.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

use super::build::{Build, VERSION, output};
use super::sbom;
use super::stage::Stage;

/// Builds the tar archive.
pub fn build(build: &Build<'_>) -> Result<PathBuf> {
    let name = format!("landspeed-{VERSION}-{}-linux", build.machine.kernel);
    let stage = Stage::installed(build, "tarball", "/usr/local")?;
    let docs = "usr/local/share/doc/landspeed";
    // A configuration in /etc is the administrator's: this one is an example.
    let config = stage.path.join("etc");
    stage.copy(&config.join("landspeed/serve.toml"), &format!("{docs}/serve.toml"))?;
    std::fs::remove_dir_all(&config).context("cannot remove the configuration")?;
    for file in ["README.md", "CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT"] {
        stage.copy(&build.root.join(file), &format!("{docs}/{file}"))?;
    }
    stage.write(&format!("{docs}/third-party.txt"), sbom::notices(build)?)?;
    std::fs::rename(stage.path.join("usr/local"), stage.path.join(&name)).context("cannot rename the tree")?;
    stage.finish(|below| below.ends_with("bin/landspeed"))?;
    let archive = build.root.join(&build.scratch).join(format!("{name}.tar"));
    stage.tar(&name, &archive)?;
    let level = if build.fast { "-1" } else { "-9" };
    output(Command::new("gzip").args([level, "-n"]).arg(&archive))?;
    Ok(archive.with_extension("tar.gz"))
}
