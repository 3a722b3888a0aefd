//! Options of `report`.

use std::path::PathBuf;

use landspeed_report::Limit;

use crate::options;
use crate::output::Sink;

const EXAMPLES: &str = "\
Examples:
  landspeed report run.json -o run.html
  landspeed report buffers.sweep -o buffers.html --svg figures/
  landspeed report before=a.json after=b.json -o both.html
                                         runs over each other, up to 20
  landspeed report comparison.json --markdown - --quiet
  landspeed report kernels.sweep -o table.html --limit 10G --limit nic=T110:8G
  landspeed report sweep.json --csv values.csv --gnuplot plots/

Operands: files, directories, PLAN.sweep, SWEEP.json:FACTOR=LEVEL, archive queries (archive:QUERY), each also as NAME=OPERAND.

Exit status: 0 clean, 1 a document was not drawn, 2 failure.";

/// Options of `report`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Saved documents
    #[arg(required = true, value_name = "OPERAND")]
    pub operands: Vec<String>,
    /// Write the interactive page: one HTML file that needs nothing else (- for standard output)
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<Sink>,
    /// Write each figure as SVG
    #[arg(long, value_name = "DIR")]
    pub svg: Option<PathBuf>,
    /// Write each figure as PNG
    #[cfg(feature = "png")]
    #[arg(long, value_name = "DIR")]
    pub png: Option<PathBuf>,
    /// Write the figures as Markdown tables (- for standard output)
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<Sink>,
    /// Write every value as CSV, in base units (- for standard output)
    #[arg(long, value_name = "FILE")]
    pub csv: Option<Sink>,
    /// Write data and a script for gnuplot for each figure
    #[arg(long, value_name = "DIR")]
    pub gnuplot: Option<PathBuf>,
    /// Write the figures as a JSON document (- for standard output)
    #[arg(short = 'J', long, value_name = "FILE")]
    pub json: Option<Sink>,
    /// Show rates as a share of this limit: 10G, or FACTOR=LEVEL:8G for cells with that level
    #[arg(long = "limit", value_name = "RATE", value_parser = limit)]
    pub limits: Vec<Limit>,
    /// Print nothing
    #[arg(short, long)]
    pub quiet: bool,
}

/// Parses a limit: `10G`, or `nic=T110:8G` for one level.
fn limit(text: &str) -> Result<Limit, String> {
    let Some((factor, rest)) = text.split_once('=') else {
        return Ok(Limit { level: None, rate: options::rate(text)? });
    };
    let (level, rate) =
        rest.rsplit_once(':').ok_or_else(|| format!("`{text}` has no rate; write {text}:10G, or 10G for all"))?;
    Ok(Limit { level: Some((factor.to_owned(), level.to_owned())), rate: options::rate(rate)? })
}

impl Args {
    /// Returns the outputs that are single files.
    pub fn sinks(&self) -> Vec<&Sink> {
        [&self.output, &self.markdown, &self.csv, &self.json].into_iter().flatten().collect()
    }

    /// Returns the output directories, with one file per figure.
    pub fn directories(&self) -> Vec<&PathBuf> {
        let all = [&self.svg, &self.gnuplot].into_iter().flatten();
        #[cfg(feature = "png")]
        let all = all.chain(&self.png);
        all.collect()
    }

    /// Whether the summary is printed.
    pub fn prints(&self) -> bool {
        !self.quiet && !self.sinks().contains(&&Sink::Stdout)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_may_apply_to_one_level() {
        let all = limit("10G").unwrap();
        assert_eq!((all.level, all.rate.bps()), (None, 10_000_000_000));
        let one = limit("nic=T110:8G").unwrap();
        assert_eq!((one.level, one.rate.bps()), (Some(("nic".to_owned(), "T110".to_owned())), 8_000_000_000));
        assert!(limit("nic=T110").unwrap_err().contains("write nic=T110:10G"));
        assert!(limit("0").is_err());
    }
}
