//! Options of `mesh`.

use std::net::SocketAddr;
use std::path::PathBuf;

use crate::metrics;
use crate::output::OutputArgs;
use crate::trust::TrustArgs;

const EXAMPLES: &str = "\
Examples:
  landspeed mesh --new mesh.toml               write a commented inventory
  landspeed mesh mesh.toml --dry-run           pairs, load of hosts and links, the first tests
  landspeed mesh mesh.toml --once              test every pair once, print the matrix
  landspeed mesh mesh.toml --json matrix.json  until Ctrl-C; the file is written every few seconds
  landspeed mesh mesh.toml --show --report matrix.html
                                               the matrix as it is, without a test; and as a page
  landspeed mesh mesh.toml --metrics 127.0.0.1:9212
                                               figures of each pair for Prometheus

Each host runs landspeed serve --allow-third-party CIDR. The journal is in mesh.mesh/.
Exit status: 0 every pair measured, 1 some pairs failed or were skipped, 2 failure.";

/// Options of `mesh`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Inventory of hosts, tests, budgets and maintenance windows (TOML)
    #[arg(value_name = "FILE", required_unless_present = "new")]
    pub inventory: Option<PathBuf>,
    /// Write a commented inventory to start from
    #[arg(long, value_name = "FILE", exclusive = true)]
    pub new: Option<PathBuf>,
    /// Test every pair once; skip what cannot be tested now
    #[arg(long)]
    pub once: bool,
    /// Print pairs, worst-case load and the first tests, then exit
    #[arg(long, conflicts_with_all = ["once", "show"])]
    pub dry_run: bool,
    /// Print the matrix of the results so far, then exit
    #[arg(long, conflicts_with = "once")]
    pub show: bool,
    /// Directory of the journal and of results that the archive cannot take [default: INVENTORY.mesh]
    #[arg(short, long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Serve metrics for Prometheus at http://ADDRESS/metrics, such as 127.0.0.1:9212 (docs/metrics.md)
    #[arg(long, value_name = "ADDRESS", value_parser = metrics::address, conflicts_with_all = ["dry_run", "show"])]
    pub metrics: Option<SocketAddr>,
    #[command(flatten)]
    pub trust: TrustArgs,
    #[command(flatten)]
    pub output: OutputArgs,
}
