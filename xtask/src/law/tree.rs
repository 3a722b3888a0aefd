//! Input of the rules: the workspace's files and its crates' dependencies, read once.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use super::paths::Code;

/// The workspace: text files and packages.
#[derive(Debug, Default)]
pub struct Tree {
    /// Text files that git tracks or would track. Binary files are left out.
    pub files: Vec<File>,
    /// Members of the workspace.
    pub packages: Vec<Package>,
}

/// One text file.
#[derive(Debug)]
pub struct File {
    /// Path relative to the workspace.
    pub path: PathBuf,
    /// Contents, as UTF-8 text.
    pub text: String,
    /// Parsed Rust source; `None` for other files.
    pub code: Option<Code>,
}

impl File {
    /// Creates a file at `path` with this text, parsed if it is Rust.
    pub fn new(path: impl Into<PathBuf>, text: impl Into<String>) -> Result<Self> {
        let (path, text) = (path.into(), text.into());
        let code = match path.extension() {
            Some(extension) if extension == "rs" => {
                Some(Code::parse(&text, is_test_file(&path)).with_context(|| format!("in {}", path.display()))?)
            }
            _ => None,
        };
        Ok(Self { path, text, code })
    }

    /// Returns the crate that the file belongs to (`flow` for `crates/flow/src/lib.rs`, `xtask`), if any.
    pub fn crate_name(&self) -> Option<&str> {
        let mut parts = self.path.iter().map(|part| part.to_str().unwrap_or_default());
        match parts.next()? {
            "crates" => parts.next(),
            "xtask" => Some("xtask"),
            _ => None,
        }
    }
}

/// Whether the whole file is test code: an integration test, a benchmark, or a `tests.rs`.
fn is_test_file(path: &Path) -> bool {
    path.iter().any(|part| part == "tests" || part == "benches") || path.ends_with("tests.rs")
}

/// A workspace member and its dependencies.
#[derive(Debug, Clone, Deserialize)]
pub struct Package {
    /// Name in its manifest, such as `landspeed-flow`.
    pub name: String,
    /// Dependencies of every kind.
    pub dependencies: Vec<Dependency>,
}

impl Package {
    /// Returns the name used in the table of edges: `flow` for `landspeed-flow`.
    pub fn short_name(&self) -> &str {
        short_name(&self.name)
    }
}

/// One dependency.
#[derive(Debug, Clone, Deserialize)]
pub struct Dependency {
    /// Package name.
    pub name: String,
    /// `None` for a normal dependency, else `dev` or `build`.
    pub kind: Option<String>,
    /// Path; set only for members of this workspace.
    pub path: Option<PathBuf>,
}

impl Dependency {
    /// Whether it is a development dependency.
    pub fn is_dev(&self) -> bool {
        self.kind.as_deref() == Some("dev")
    }
}

/// Returns `flow` for `landspeed-flow`; other names unchanged.
pub fn short_name(package: &str) -> &str {
    package.strip_prefix("landspeed-").unwrap_or(package)
}

/// Returns the workspace's directory.
pub fn root() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().unwrap_or(manifest).to_path_buf()
}

impl Tree {
    /// Reads the workspace at `root`.
    pub fn read(root: &Path) -> Result<Self> {
        let listed = output(Command::new("git").current_dir(root).args([
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
        ]))?;
        let mut names: Vec<&str> = listed.split('\0').filter(|name| !name.is_empty()).collect();
        names.sort_unstable();
        names.dedup();
        let mut files = Vec::new();
        for name in names {
            // Not readable: deleted but not yet committed. Not UTF-8: a binary file.
            let Ok(bytes) = std::fs::read(root.join(name)) else { continue };
            let Ok(text) = String::from_utf8(bytes) else { continue };
            files.push(File::new(name, text)?);
        }
        ensure!(!files.is_empty(), "no files at {}", root.display());
        Ok(Self { files, packages: packages(root)? })
    }

    /// Returns the parsed Rust files.
    pub fn rust_files(&self) -> impl Iterator<Item = (&File, &Code)> {
        self.files.iter().filter_map(|file| Some((file, file.code.as_ref()?)))
    }
}

fn packages(root: &Path) -> Result<Vec<Package>> {
    #[derive(Deserialize)]
    struct Metadata {
        packages: Vec<Package>,
    }
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let json =
        output(Command::new(cargo).current_dir(root).args(["metadata", "--no-deps", "--format-version", "1"]))?;
    Ok(serde_json::from_str::<Metadata>(&json).context("cargo metadata")?.packages)
}

fn output(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("cannot run {}", command.get_program().display()))?;
    ensure!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr).trim());
    String::from_utf8(output.stdout).with_context(|| format!("{command:?} printed something that is not UTF-8"))
}
