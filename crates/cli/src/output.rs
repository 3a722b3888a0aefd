//! Output of results. Files are written completely or not at all.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow, ensure};
use landspeed_sys::file;
use serde::Serialize;

use crate::terminal;

/// Destination of an output: a file, or `-` for standard output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sink {
    Stdout,
    File(PathBuf),
}

impl std::str::FromStr for Sink {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(if text == "-" { Self::Stdout } else { Self::File(PathBuf::from(text)) })
    }
}

impl fmt::Display for Sink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stdout => f.write_str("standard output"),
            Self::File(path) => path.display().fmt(f),
        }
    }
}

impl Sink {
    /// Checks, before anything is measured, that the output can be written.
    pub fn check(&self) -> anyhow::Result<()> {
        let Self::File(path) = self else { return Ok(()) };
        if path.is_dir() {
            anyhow::bail!("cannot write {}: it is a directory", path.display());
        }
        let directory = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        if !directory.is_dir() {
            anyhow::bail!("cannot write {}: there is no directory {}", path.display(), directory.display());
        }
        file::check_writable(path).with_context(|| format!("cannot write {}", path.display()))
    }

    /// Writes bytes as they are; a terminal gets them escaped.
    pub fn write_bytes(&self, content: &[u8]) -> anyhow::Result<()> {
        match self {
            Self::Stdout => terminal::write_bytes(content).context("cannot write to standard output"),
            Self::File(_) => self.write(content),
        }
    }

    /// Writes text; control characters are escaped on standard output. On an error an existing file is unchanged.
    pub fn write(&self, content: &[u8]) -> anyhow::Result<()> {
        match self {
            Self::Stdout => terminal::write_text(content).context("cannot write to standard output"),
            Self::File(path) => file::write_atomically(path, content).map_err(|error| match error.kind() {
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                    anyhow!("cannot write {}: {error}\nFree some space, or write somewhere else.", path.display())
                }
                _ => anyhow!("cannot write {}: {error}", path.display()),
            }),
        }
    }
}

/// Where a document and its report go, and whether a summary is printed.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct OutputArgs {
    /// Write the JSON document (- for standard output)
    #[arg(short = 'J', long, value_name = "FILE", help_heading = "Output")]
    pub json: Option<Sink>,
    /// Write an HTML report
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub report: Option<PathBuf>,
    /// Print errors only
    #[arg(short, long, help_heading = "Output")]
    pub quiet: bool,
}

impl OutputArgs {
    /// Checks, before anything is measured, that the outputs can be written and go to different files.
    pub fn check(&self) -> anyhow::Result<()> {
        let report = self.report.clone().map(Sink::File);
        for sink in [&self.json, &report].into_iter().flatten() {
            sink.check()?;
        }
        if let (Some(json), Some(report)) = (&self.json, &report) {
            ensure!(json != report, "two outputs go to {json}: give each its own");
        }
        Ok(())
    }

    /// Whether the summary is printed on standard output.
    pub fn prints(&self) -> bool {
        !self.quiet && self.json != Some(Sink::Stdout)
    }

    /// Writes the document and the report. If one fails, the other is still written.
    pub fn write(
        &self,
        document: &impl Serialize,
        render: impl FnOnce() -> anyhow::Result<String>,
    ) -> anyhow::Result<()> {
        let json = || -> anyhow::Result<()> {
            let Some(sink) = &self.json else { return Ok(()) };
            let mut text = serde_json::to_vec(document).context("cannot encode the document")?;
            text.push(b'\n');
            sink.write(&text)
        };
        let report = || -> anyhow::Result<()> {
            let Some(path) = &self.report else { return Ok(()) };
            let html = render().context("cannot draw the report")?;
            Sink::File(path.clone()).write(html.as_bytes())?;
            if self.prints() {
                outln!("  report   {}", path.display());
            }
            Ok(())
        };
        match (json(), report()) {
            (Err(first), Err(second)) => Err(anyhow!("{first:#}; {second:#}")),
            (first, second) => first.and(second),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_disks_and_missing_directories_are_errors() {
        let sink = Sink::File("/dev/full".into());
        assert!(sink.write(b"{}").is_err());
        let missing: Sink = "/nonexistent/x.json".parse().expect("any text is a sink");
        assert!(missing.check().is_err());
    }
}
