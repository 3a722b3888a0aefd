//! Options of `qualify`.

use landspeed_flow::client::Target as Server;
use landspeed_model::{Direction, Parameters, QualifyCongestion};
use landspeed_qualify::Target;
use landspeed_units::{BitRate, Nanos};

use crate::connection::ConnectionArgs;
use crate::options;
use crate::output::Sink;

const EXAMPLES: &str = "\
Examples:
  landspeed qualify border.example --target 9G --target-rtt 92ms
  landspeed qualify border.example --target 9G --target-rtt 92ms --target-mtu 9000 --for bbr
  landspeed qualify border.example --target 1G --target-rtt 10ms --gentle --json section.json
  landspeed calc --rate 10G --rtt 92ms --section     what it must show, without a test

Exit status: 0 pass, 1 fail or inconclusive, 2 failure.";

/// Options of `qualify`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Server at the other end of the section: HOST, HOST:PORT, 192.0.2.1:5210, [2001:db8::1]:5210
    #[arg(value_name = "HOST")]
    target: Server,
    /// Server's port, if it is not in the address
    #[arg(short, long)]
    port: Option<u16>,
    /// Test the direction from the server to here
    #[arg(short = 'R', long)]
    reverse: bool,
    /// Target data rate of the whole path: TCP payload
    #[arg(long = "target", value_name = "RATE", value_parser = options::rate)]
    target_rate: BitRate,
    /// RTT of the whole path without queues, with its unit: 92ms
    #[arg(long, value_name = "RTT", value_parser = options::rtt)]
    target_rtt: Nanos,
    /// MTU of the whole path, bytes
    #[arg(long, value_name = "MTU", default_value_t = 1500)]
    target_mtu: u32,
    /// Congestion control of the senders on the whole path
    #[arg(long = "for", value_name = "NAME", value_enum, default_value = "cubic")]
    model: ModelArg,
    /// Longest time that each test sends
    #[arg(short, long, value_name = "TIME", value_parser = options::time, default_value = "60s")]
    pub time: Nanos,
    /// Send at most a tenth of the time: short streams, with pauses
    #[arg(long)]
    pub gentle: bool,

    #[command(flatten)]
    pub connection: ConnectionArgs,

    /// Write the JSON document (- for standard output)
    #[arg(short = 'J', long, value_name = "FILE", help_heading = "Output")]
    pub json: Option<Sink>,
    /// Print errors only
    #[arg(short, long, help_heading = "Output")]
    pub quiet: bool,
}

/// Congestion control of the long path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum ModelArg {
    /// RFC 8337's own model: the strictest
    Reno,
    /// Linux's default (RFC 9438)
    Cubic,
    /// BBRv3 (draft-ietf-ccwg-bbr): tolerates 2% loss
    Bbr,
}

impl ModelArg {
    pub fn congestion(self) -> QualifyCongestion {
        match self {
            Self::Reno => QualifyCongestion::Reno,
            Self::Cubic => QualifyCongestion::Cubic,
            Self::Bbr => QualifyCongestion::Bbr,
        }
    }
}

impl Args {
    /// Returns host and port of the server.
    pub fn server(&self) -> Server {
        Server { host: self.target.host.clone(), port: self.port.or(self.target.port) }
    }

    /// Returns the target for the whole path.
    pub fn target(&self) -> Target {
        Target {
            mtu_bytes: self.target_mtu,
            congestion: self.model.congestion(),
            ..Target::new(self.target_rate, self.target_rtt)
        }
    }

    pub fn direction(&self) -> Direction {
        if self.reverse { Direction::Download } else { Direction::Upload }
    }

    /// Returns the parameters that all streams share.
    pub fn parameters(&self) -> Parameters {
        Parameters {
            direction: self.direction(),
            family: self.connection.family(),
            bind: self.connection.bind.clone(),
            ..Parameters::default()
        }
    }

    /// Whether the results are printed.
    pub fn prints(&self) -> bool {
        !self.quiet && self.json != Some(Sink::Stdout)
    }
}
