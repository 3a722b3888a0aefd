//! Options of `tuneup`, and the initial settings.

use landspeed_flow::client::Target;
use landspeed_model::{Direction, PaceScope, Parameters};
use landspeed_units::{BitRate, Bytes, Nanos};

use crate::connection::ConnectionArgs;
use crate::options;
use crate::output::OutputArgs;
use crate::run::{ReceiveArg, SendArg};

const EXAMPLES: &str = "\
Examples:
  landspeed tuneup dtn.example                          find faster settings, within five minutes
  landspeed tuneup dtn.example -R --budget 10m          from the server
  landspeed tuneup dtn.example -w 4M -l 64K --cpus 3    begin with the settings in use today
  landspeed tuneup dtn.example --dry-run                what would be tried, from one test
  landspeed tuneup dtn.example --map                    which cores for threads and interrupts
  landspeed tuneup dtn.example --json tuneup.json --report tuneup.html

Exit status: 0 it ran to its end, 1 it was interrupted or the baseline moved, 2 failure.";

/// Options of `tuneup`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Server: HOST, HOST:PORT, 192.0.2.1:5210, [2001:db8::1]:5210, fe80::1%eth0
    pub target: Target,
    /// Server's port, if it is not in the address
    #[arg(short, long)]
    port: Option<u16>,
    /// Receive: data moves from the server to here
    #[arg(short = 'R', long)]
    reverse: bool,
    /// Time for everything, the tests at the end included
    #[arg(long, value_name = "TIME", value_parser = options::time, default_value = "5m")]
    pub budget: Nanos,
    /// Measure once, and list the changes that would be tried
    #[arg(long)]
    pub dry_run: bool,
    /// Draw a map of cores: the receiving thread on each against its interrupts on each (with --allow-host-changes), or against
    /// the sending thread on each. CORES of both hosts, 0,2 or 0-3 [default: at most 8 of each]
    #[arg(long, value_name = "CORES", num_args = 0..=1, require_equals = true, default_missing_value = "",
          value_parser = parse_cores, conflicts_with = "dry_run")]
    pub map: Option<Cores>,
    /// Also change settings of both hosts for the tests (qdisc, buffer limits, offloads), and roll them back at the end. Needs
    /// root here, and a server with --allow-host-changes
    #[arg(long)]
    pub allow_host_changes: bool,
    /// Begin the random order of the tests here [default: another one each time]
    #[arg(long)]
    pub seed: Option<u64>,
    /// Length of each compared test [default: 20 RTTs, 1 s to 10 s]
    #[arg(short, long, value_parser = options::time)]
    pub time: Option<Nanos>,
    /// Leave out the first part of each test [default: 20 RTTs, 0.25 s to 5 s]
    #[arg(short = 'O', long, value_parser = options::time)]
    pub omit: Option<Nanos>,

    /// Parallel streams
    #[arg(short = 'P', long = "parallel", value_name = "N", default_value_t = 1, help_heading = "First settings",
          value_parser = clap::value_parser!(u32).range(1..=128))]
    streams: u32,
    /// Bytes per write [default: 1M]
    #[arg(short, long, value_name = "SIZE", help_heading = "First settings")]
    len: Option<Bytes>,
    /// Socket buffers, both ends: turns autotuning off
    #[arg(short, long, value_name = "SIZE", help_heading = "First settings")]
    window: Option<Bytes>,
    /// Maximum segment size
    #[arg(short = 'M', long, value_name = "BYTES", help_heading = "First settings")]
    mss: Option<u32>,
    /// Congestion control of the senders
    #[arg(short = 'C', long, value_name = "NAME", help_heading = "First settings")]
    congestion: Option<String>,
    /// Pacing in the kernel (SO_MAX_PACING_RATE), each stream
    #[arg(long, value_name = "RATE", value_parser = options::rate, help_heading = "First settings")]
    pace: Option<BitRate>,
    /// The pacing rate is for all streams together
    #[arg(long, requires = "pace", help_heading = "First settings")]
    pace_total: bool,
    /// How bytes are handed to the kernel
    #[arg(long, value_enum, default_value = "copy", help_heading = "First settings")]
    send: SendArg,
    /// What the receiver does: copy to its memory, or count and drop in the kernel. It stays so
    #[arg(long, value_enum, default_value = "copy", help_heading = "First settings")]
    receive: ReceiveArg,
    /// Cores of the stream threads here: 0,2 or 0-3, one for each stream in turn
    #[arg(short = 'A', long, value_name = "LIST", value_parser = options::cores, help_heading = "First settings")]
    cpus: Option<Cores>,
    /// Cores of the stream threads at the server
    #[arg(long, value_name = "LIST", value_parser = options::cores, help_heading = "First settings")]
    peer_cpus: Option<Cores>,

    #[command(flatten)]
    pub connection: ConnectionArgs,

    #[command(flatten)]
    pub output: OutputArgs,
}

type Cores = Vec<u32>;

/// Parses a list of cores; an empty text selects suitable cores.
fn parse_cores(text: &str) -> Result<Cores, String> {
    if text.is_empty() { Ok(Cores::new()) } else { options::cores(text) }
}

impl Args {
    /// Returns host and port of the server.
    pub fn server(&self) -> Target {
        Target { host: self.target.host.clone(), port: self.port.or(self.target.port) }
    }

    /// Returns the initial settings.
    pub fn parameters(&self) -> Parameters {
        let defaults = Parameters::default();
        Parameters {
            direction: if self.reverse { Direction::Download } else { Direction::Upload },
            streams: self.streams,
            write_bytes: self.len.map_or(defaults.write_bytes, Bytes::get),
            window_bytes: self.window.map(Bytes::get),
            mss_bytes: self.mss,
            congestion: self.congestion.clone(),
            pace_bps: self.pace.map(BitRate::bps),
            pace_scope: if self.pace_total { PaceScope::Total } else { PaceScope::Stream },
            send: self.send.mode(),
            receive: self.receive.mode(),
            client_cpus: self.cpus.clone().unwrap_or_default(),
            server_cpus: self.peer_cpus.clone().unwrap_or_default(),
            family: self.connection.family(),
            bind: self.connection.bind.clone(),
            ..defaults
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use landspeed_model::{Family, ReceiveMode, SendMode};
    use landspeed_tuneup::run_options;

    use super::*;

    #[derive(Parser)]
    struct Tuneup {
        #[command(flatten)]
        args: Args,
    }

    #[derive(Parser)]
    struct Run {
        #[command(flatten)]
        args: crate::run::Args,
    }

    #[test]
    fn run_options_preserve_all_settings() {
        let settings = Parameters {
            direction: Direction::Download,
            streams: 4,
            write_bytes: 128 << 10,
            window_bytes: Some(3 << 19),
            mss_bytes: Some(1200),
            congestion: Some("bbr".to_owned()),
            pace_bps: Some(9_412_345_678),
            pace_scope: PaceScope::Total,
            send: SendMode::Zerocopy,
            receive: ReceiveMode::Discard,
            client_cpus: vec![0, 2],
            server_cpus: vec![5],
            family: Family::V6,
            bind: Some("2001:db8::1".to_owned()),
            ..Parameters::default()
        };
        let words = |name: &str| [vec![name.to_owned(), "dtn.example".to_owned()], run_options(&settings)].concat();
        let run = Run::try_parse_from(words("run")).expect("options of run").args.parameters().0;
        assert_eq!(run, settings);
        let tuneup = Tuneup::try_parse_from(words("tuneup")).expect("options of tuneup").args.parameters();
        assert_eq!(tuneup, settings);
    }
}
