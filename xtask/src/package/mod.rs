//! `cargo xtask package`: packages of one built program. All of them contain what `make install` installs; nothing in them depends on
//! the time or the place of the build.

mod build;
mod deb;
mod image;
mod rpm;
mod sbom;
mod stage;
mod tarball;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::machine;
use build::{Build, VERSION, epoch, machine_of, output, set_mode, sha256};

/// Kinds of packages.
#[derive(Debug, Clone, Copy, PartialEq, clap::ValueEnum)]
enum Kind {
    /// Debian and Ubuntu
    Deb,
    /// RHEL, Fedora, SUSE
    Rpm,
    /// A container image, as an archive of the OCI image layout
    Oci,
    /// A tar archive for any Linux
    Tarball,
    /// The crates in the program, as CycloneDX JSON
    Sbom,
}

impl Kind {
    /// The programs that build it, with their Debian packages.
    fn programs(self) -> &'static [(&'static str, &'static str)] {
        const MAKE: (&str, &str) = ("make", "make");
        const TAR: (&str, &str) = ("tar", "tar");
        const GZIP: (&str, &str) = ("gzip", "gzip");
        match self {
            Self::Deb => &[MAKE, GZIP, ("dpkg-deb", "dpkg"), ("md5sum", "coreutils")],
            Self::Rpm => &[MAKE, GZIP, ("rpmbuild", "rpm")],
            Self::Oci => &[TAR, GZIP],
            Self::Tarball => &[MAKE, TAR, GZIP],
            Self::Sbom => &[],
        }
    }
}

/// Options of `cargo xtask package`.
#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// Kinds; without one, all of them
    kinds: Vec<Kind>,
    /// The program, which must be static; without it, target/dist/landspeed
    #[arg(long)]
    binary: Option<PathBuf>,
    /// Directory of the packages; without it, target/packages
    #[arg(long)]
    out: Option<PathBuf>,
    /// Revision of the deb and the rpm of this version
    #[arg(long, default_value_t = 1)]
    revision: u32,
    /// Compress little (tests)
    #[arg(long)]
    fast: bool,
}

/// Packages the program.
pub fn run(options: &Options) -> Result<()> {
    let root = crate::law::root();
    // Each once, in this order.
    let mut kinds = vec![Kind::Deb, Kind::Rpm, Kind::Oci, Kind::Tarball, Kind::Sbom];
    kinds.retain(|kind| options.kinds.is_empty() || options.kinds.contains(kind));
    for (program, package) in kinds.iter().flat_map(|kind| kind.programs()) {
        ensure!(
            machine::find(program).is_some(),
            "{program} is not installed\nInstall it: apt-get install {package}"
        );
    }
    let [binary, out] = [(&options.binary, "target/dist/landspeed"), (&options.out, "target/packages")]
        .map(|(given, default)| given.clone().map_or_else(|| Ok(root.join(default)), std::path::absolute));
    let (binary, out) =
        (binary.context("cannot find the working directory")?, out.context("cannot find the working directory")?);
    let elf = std::fs::read(&binary).with_context(|| {
        format!("cannot read {}\nBuild it with `make dist`, or name it with --binary", binary.display())
    })?;
    if let Some(interpreter) = crate::dist::interpreter(&elf).with_context(|| binary.display().to_string())? {
        bail!(
            "{} is not static: it needs {interpreter}\nThe packages depend on no library; `make dist` builds one",
            binary.display()
        );
    }
    std::fs::create_dir_all(&out).with_context(|| format!("cannot create {}", out.display()))?;
    std::fs::create_dir_all(root.join("target")).context("cannot create target/")?;
    let scratch = tempfile::Builder::new().prefix("package-").tempdir_in(root.join("target"));
    let scratch = scratch.context("cannot create a directory in target/")?;
    let relative = Path::new("target").join(scratch.path().file_name().context("a directory without a name")?);
    let build = Build {
        root: &root,
        revision: options.revision,
        fast: options.fast,
        epoch: epoch(&root)?,
        machine: machine_of(&elf)?,
        scratch: relative,
    };
    let program = scratch.path().join("landspeed");
    std::fs::copy(&binary, &program).with_context(|| format!("cannot copy {}", binary.display()))?;
    set_mode(&program, 0o755)?;
    let version = output(Command::new(&program).arg("--version"))
        .with_context(|| format!("{} is not landspeed", binary.display()))?;
    ensure!(
        version.trim() == format!("landspeed {VERSION}"),
        "{} is {}, and the workspace is {VERSION}\nBuild it anew: make dist",
        binary.display(),
        version.trim()
    );

    for kind in kinds {
        let package = match kind {
            Kind::Deb => deb::build(&build)?,
            Kind::Rpm => rpm::build(&build)?,
            Kind::Oci => image::build(&build)?,
            Kind::Tarball => tarball::build(&build)?,
            Kind::Sbom => sbom::build(&build)?,
        };
        publish(&package, &out)?;
    }
    let sums = scratch.path().join("SHA256SUMS");
    std::fs::write(&sums, checksums(&out)?).context("cannot write SHA256SUMS")?;
    publish(&sums, &out)?;
    Ok(())
}

/// Moves a finished file into the directory of the packages, whole or not at all.
fn publish(file: &Path, out: &Path) -> Result<()> {
    let there = out.join(file.file_name().context("a package without a name")?);
    let write = || -> Result<()> {
        let mut new = tempfile::Builder::new().prefix(".landspeed-").tempfile_in(out)?;
        std::io::copy(&mut std::fs::File::open(file)?, &mut new)?;
        set_mode(new.path(), 0o644)?;
        new.flush()?;
        new.persist(&there)?;
        Ok(())
    };
    write().with_context(|| format!("cannot write {}", there.display()))?;
    println!("{}", there.display());
    Ok(())
}

/// Lines for `sha256sum --check`, one for each package in the directory, sorted by name.
fn checksums(directory: &Path) -> Result<String> {
    let mut lines = Vec::new();
    for entry in std::fs::read_dir(directory).with_context(|| format!("cannot read {}", directory.display()))? {
        let file = entry?.path();
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.starts_with("landspeed") {
            let bytes = std::fs::read(&file).with_context(|| format!("cannot read {}", file.display()))?;
            lines.push((name, sha256(&bytes)));
        }
    }
    lines.sort();
    let lines: Vec<String> = lines.iter().map(|(name, sum)| format!("{sum}  {name}")).collect();
    Ok(lines.join("\n") + "\n")
}
