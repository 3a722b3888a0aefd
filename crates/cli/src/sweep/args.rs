//! Options of `sweep`.

use std::path::PathBuf;

use landspeed_sweep::PrecisionTarget;
use landspeed_units::Nanos;

use crate::options;
use crate::output::OutputArgs;

const EXAMPLES: &str = "\
Examples:
  landspeed sweep --new buffer.toml               write a commented plan
  landspeed sweep buffer.toml --dry-run           cells, runs, time, memory
  landspeed sweep buffer.toml --report buffer.html
  landspeed sweep buffer.toml --until 'ci<2%' --budget 30m
  landspeed sweep buffer.toml                     after Ctrl-C: only what is missing
  landspeed sweep buffer.toml --engine slurm --partition short --slurm-option=--time=1:00:00

Results are in buffer.sweep/. Exit status: 0 complete, 1 runs are missing or a criterion is not met, 2 failure.";

/// Options of `sweep`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Args {
    #[command(subcommand)]
    pub command: Option<Command>,
    /// Plan file
    #[arg(required_unless_present = "new")]
    pub plan: Option<PathBuf>,
    /// Write a commented plan to start from
    #[arg(long, value_name = "PLAN", conflicts_with = "plan")]
    pub new: Option<PathBuf>,
    /// Directory of the results [default: PLAN.sweep]
    #[arg(short, long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Most blocks [default: as the plan says]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub blocks: Option<u32>,
    /// Stop when the 95 % interval of every cell's median is this narrow: ci<2%
    #[arg(long, value_name = "PRECISION")]
    pub until: Option<PrecisionTarget>,
    /// Start no run after this time
    #[arg(long, value_name = "TIME", value_parser = options::time)]
    pub budget: Option<Nanos>,
    /// Seed of the order and of the runs [default: as the plan says]
    #[arg(long)]
    pub seed: Option<u64>,
    /// Runs at once [default: lab as many as cores and memory allow, hosts 1]
    #[arg(short, long, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub jobs: Option<u16>,
    /// Directory of the lab's kernels
    #[arg(long, value_name = "DIR")]
    pub cache: Option<PathBuf>,
    /// Where runs of the lab are made
    #[arg(long, value_enum, default_value = "local", help_heading = "Clusters")]
    pub engine: Engine,
    #[command(flatten)]
    pub slurm: SlurmArgs,
    #[command(flatten)]
    pub kubernetes: KubernetesArgs,
    /// Print cells, runs, estimated time and memory, and what would change on hosts; then exit
    #[arg(long)]
    pub dry_run: bool,
    /// Run even if the estimate is longer than 10 minutes
    #[arg(short, long)]
    pub yes: bool,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// Where runs of the lab are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Engine {
    /// On this machine
    Local,
    /// As job arrays of Slurm; the results' directory is on a file system that all nodes see
    Slurm,
}

/// Options of the engine `slurm`.
#[derive(Debug, Clone, Default, clap::Args)]
#[group(id = "slurm-options")]
pub struct SlurmArgs {
    /// Slurm partition [default: the cluster's]
    #[arg(long, value_name = "NAME", help_heading = "Clusters")]
    pub partition: Option<String>,
    /// Option of sbatch, such as --slurm-option=--time=2:00:00; repeatable
    #[arg(long, value_name = "OPTION", allow_hyphen_values = true, help_heading = "Clusters")]
    pub slurm_option: Vec<String>,
}

/// Options of the export.
#[derive(Debug, Clone, clap::Args)]
#[group(id = "kubernetes-options")]
pub struct KubernetesArgs {
    /// Print a manifest for another system: the runs become an Indexed Job
    #[arg(long, value_enum, value_name = "SYSTEM", conflicts_with_all = ["dry_run", "json"],
          help_heading = "Clusters")]
    pub export: Option<System>,
    /// Container image of the workers: any that mounts the volume, for landspeed is one static binary
    #[arg(
        long,
        value_name = "IMAGE",
        default_value = "busybox:stable",
        requires = "export",
        help_heading = "Clusters"
    )]
    pub image: String,
    /// PersistentVolumeClaim that holds the sweep's directory
    #[arg(
        long,
        value_name = "NAME",
        default_value = "landspeed-sweep",
        requires = "export",
        help_heading = "Clusters"
    )]
    pub claim: String,
}

/// Systems that a sweep can be exported to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum System {
    /// An Indexed Job (batch/v1) as JSON, which kubectl reads as it reads YAML
    Kubernetes,
}

/// Subcommands of `sweep`.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Make runs of a bundle: what engines start on their workers
    #[command(hide = true)]
    Worker(WorkerArgs),
}

/// Options of `sweep worker`.
#[derive(Debug, clap::Args)]
pub struct WorkerArgs {
    /// Directory of the sweep
    pub bundle: PathBuf,
    /// Which runs of its runs.json, from 0
    #[arg(required_unless_present = "tasks")]
    pub index: Vec<usize>,
    /// File with a line of runs for each task; the task is SLURM_ARRAY_TASK_ID or JOB_COMPLETION_INDEX, from 0
    #[arg(long, value_name = "FILE", conflicts_with = "index")]
    pub tasks: Option<PathBuf>,
    /// Directory of the lab's kernels
    #[arg(long, value_name = "DIR")]
    pub cache: Option<PathBuf>,
    /// Name of this worker in documents [default: the node's name]
    #[arg(long)]
    pub name: Option<String>,
}
