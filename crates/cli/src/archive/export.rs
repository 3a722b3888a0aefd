//! `landspeed archive export`.

use std::path::PathBuf;

use anyhow::{Context as _, bail, ensure};
use landspeed_archive::{Archive, Query, Reading, Row};
use landspeed_results::Document;
use landspeed_sys::file;

use super::{advised, filter::Filter, open};
use crate::output::Sink;
use crate::{CommandOutcome, text};

/// Options of `archive export`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  landspeed archive export --format csv > all.csv
  landspeed archive export --host dtn1 --format parquet -o dtn1.parquet
  landspeed archive export --last 1d --format openmetrics -o landspeed.prom
  landspeed archive export --tag rrul --format flent -o plots/
  landspeed archive export --tag before --series series/
  duckdb -c \"SELECT stream, avg(goodput_bps) FROM 'series/*.parquet' WHERE phase = 'steady' GROUP BY stream\"")]
pub struct Args {
    #[command(flatten)]
    filter: Filter,
    /// Format of the records
    #[arg(long, value_enum, value_name = "FORMAT", required_unless_present = "series")]
    format: Option<Format>,
    /// File to write (- for standard output)
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    output: Sink,
    /// Copy intervals and samples of each document to DIR, one Parquet file each
    #[arg(long, value_name = "DIR")]
    series: Option<PathBuf>,
}

/// Formats of records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// Comma-separated values (RFC 4180)
    Csv,
    /// Apache Parquet
    Parquet,
    /// OpenMetrics, for Prometheus
    Openmetrics,
    /// Data file of flent (.flent.gz): of one run; into an existing directory, of each
    Flent,
}

/// Exports records or series.
pub fn main(args: &Args) -> anyhow::Result<CommandOutcome> {
    let query = args.filter.query()?;
    let archive = open()?;
    if let Some(directory) = &args.series {
        series(&archive, &query, directory)?;
    }
    let Some(format) = args.format else { return Ok(CommandOutcome::Clean) };
    if format != Format::Flent {
        args.output.check()?;
    }
    let rows = archive.rows(&query).map_err(advised)?;
    let content = match format {
        Format::Csv => landspeed_archive::csv(&rows).into_bytes(),
        Format::Openmetrics => landspeed_archive::openmetrics(&rows).into_bytes(),
        Format::Parquet => parquet(&rows)?,
        Format::Flent => return flent(&archive, &query, &args.output),
    };
    args.output.write_bytes(&content)?;
    if args.output != Sink::Stdout {
        errln!("{} in {}", text::plural(rows.len() as u64, "record"), args.output);
    }
    Ok(CommandOutcome::Clean)
}

/// Writes the runs as data files of flent.
fn flent(archive: &Archive, query: &Query, output: &Sink) -> anyhow::Result<CommandOutcome> {
    let directory = match output {
        Sink::File(path) if path.is_dir() => Some(path),
        Sink::File(_) => None,
        Sink::Stdout => bail!("--format flent: a data file is no text\nName a file or a directory with -o."),
    };
    let (mut written, mut refused) = (Vec::new(), 0);
    for listed in archive.documents(query, None).map_err(advised)?.iter().filter(|listed| listed.kind == "run") {
        let bytes = archive.document(&listed.id).map_err(advised)?;
        let Some(Document::Run(run)) = Reading::of(&bytes).map_err(advised)?.document else { continue };
        match landspeed_archive::flent(&run) {
            Ok(file) => written.push((listed.id.to_string(), file)),
            Err(why) => {
                errln!("landspeed: warning: run {} is not written: {why}", listed.id.short());
                refused += 1;
            }
        }
    }
    ensure!(!written.is_empty(), "no run of TCP matches\nLook for runs with 'landspeed archive list --kind run'.");
    if directory.is_none() {
        ensure!(
            written.len() == 1,
            "{} runs match, and {output} is one file\nName a directory that exists, or select one run.",
            written.len()
        );
        output.check()?;
    }
    for (id, file) in &written {
        match directory {
            Some(directory) => Sink::File(directory.join(format!("{id}.flent.gz"))).write_bytes(file)?,
            None => output.write_bytes(file)?,
        }
    }
    errln!("{} in {output}", text::plural(written.len() as u64, "data file"));
    Ok(if refused == 0 { CommandOutcome::Clean } else { CommandOutcome::Findings })
}

#[cfg(feature = "columns")]
fn parquet(rows: &[Row]) -> anyhow::Result<Vec<u8>> {
    landspeed_archive::records_table(rows).map_err(advised)
}

#[cfg(not(feature = "columns"))]
fn parquet(_: &[Row]) -> anyhow::Result<Vec<u8>> {
    bail!("this build writes no Parquet files\nBuild landspeed with the feature `columns`, or use --format csv.")
}

fn series(archive: &Archive, query: &Query, directory: &std::path::Path) -> anyhow::Result<()> {
    if cfg!(not(feature = "columns")) {
        bail!("this build keeps no series\nBuild landspeed with the feature `columns`.");
    }
    file::create_directory(directory).with_context(|| format!("cannot create {}", directory.display()))?;
    let documents = archive.documents(query, None).map_err(advised)?;
    let mut copied = 0;
    for document in &documents {
        if let Some(series) = archive.series_file(&document.id) {
            let to = directory.join(format!("{}.parquet", document.id));
            file::copy(&series, &to).with_context(|| format!("cannot write {}", to.display()))?;
            copied += 1;
        }
    }
    ensure!(copied > 0, "no document that matches has series\nRuns and lab runs have them: --kind run.");
    errln!("series of {} in {}", text::plural(copied, "document"), directory.display());
    Ok(())
}
