//! `landspeed calc`.

use std::fmt::Write as _;

use anyhow::Context as _;
use landspeed_calc::{Advice, AdviceItem, IpVersion, PathInput, advise};
use landspeed_qualify::Target;
use landspeed_units::{BitRate, Bytes, Nanos, Ratio};

use crate::output::Sink;
use crate::qualify::ModelArg;
use crate::{CommandOutcome, options};

const EXAMPLES: &str = "\
Examples:
  landspeed calc --rate 10G --rtt 92ms
  landspeed calc --rate 100G --rtt 92ms --mtu 9000 --flows 4 --loss 1/22000
  landspeed calc --rate 10G --rtt 500ms --distance 30000km --bytes 1TiB --sources
  landspeed calc --rate 10G --rtt 92ms --mtu 9000 --section --for bbr";

/// Options of `calc`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Rate of the narrowest link
    #[arg(short, long, value_parser = options::rate, allow_hyphen_values = true)]
    rate: BitRate,
    /// Round-trip time of the idle path, with its unit: 92ms
    #[arg(short = 't', long, value_parser = options::rtt, allow_hyphen_values = true)]
    rtt: Nanos,
    /// MTU of the path, bytes
    #[arg(short, long, default_value_t = 1500)]
    mtu: u32,
    /// IPv6 instead of IPv4
    #[arg(short = '6', long)]
    ipv6: bool,
    /// Packet loss ratio: 0.0046%, 1e-6 or 1/22000
    #[arg(short, long, allow_hyphen_values = true)]
    loss: Option<Ratio>,
    /// Parallel flows
    #[arg(short = 'P', long, default_value_t = 1)]
    flows: u32,
    /// Also print the time to transfer this much
    #[arg(short = 'n', long, allow_hyphen_values = true)]
    bytes: Option<Bytes>,
    /// Length of the path: 30000km
    #[arg(short, long, value_parser = options::metres, allow_hyphen_values = true)]
    distance: Option<f64>,
    /// Also print what every section of the path must show for one flow at the link's goodput (RFC 8337; landspeed qualify)
    #[arg(long)]
    section: bool,
    /// Congestion control of the senders
    #[arg(long = "for", value_name = "NAME", value_enum, default_value = "cubic", requires = "section")]
    model: ModelArg,
    /// Print each formula and its source
    #[arg(short, long)]
    sources: bool,
    /// Write the results as JSON (- for standard output)
    #[arg(short = 'J', long, value_name = "FILE")]
    json: Option<Sink>,
}

/// Evaluates the formulas and prints the results.
pub fn main(args: &Args) -> anyhow::Result<CommandOutcome> {
    let input = PathInput {
        mtu: args.mtu,
        ip_version: if args.ipv6 { IpVersion::V6 } else { IpVersion::V4 },
        loss: args.loss,
        flows: args.flows,
        bytes: args.bytes,
        distance_m: args.distance,
        ..PathInput::new(args.rate, args.rtt)
    };
    let mut advice = advise(&input)?;
    if args.section {
        advice.lines.extend(section(&input, args.model)?);
    }
    if let Some(sink) = &args.json {
        let text = serde_json::to_string_pretty(&advice).context("cannot encode the results")?;
        sink.write((text + "\n").as_bytes())?;
        if *sink == Sink::Stdout {
            return Ok(CommandOutcome::Clean);
        }
    }
    out!("{}", text(&advice, args.sources));
    if !args.sources {
        outln!("\n--sources prints each formula and its source.");
    }
    Ok(CommandOutcome::Clean)
}

/// Returns what every section of the path must show.
fn section(input: &PathInput, model: ModelArg) -> anyhow::Result<Vec<AdviceItem>> {
    let goodput_bps = input.framing().goodput_bps(input.rate.bps() as f64) / f64::from(input.flows);
    let target = Target {
        mtu_bytes: input.mtu,
        ip_version: input.ip_version,
        congestion: model.congestion(),
        ..Target::new(BitRate::from_bps(goodput_bps.round().max(1.0) as u64), input.rtt)
    };
    Ok(landspeed_qualify::items(&target, &target.derive()?))
}

fn text(advice: &Advice, sources: bool) -> String {
    let mut out = String::new();
    for item in &advice.lines {
        let _ = writeln!(out, "{:<46} {}", item.label, item.value_text);
        if let Some(note) = &item.note {
            let _ = writeln!(out, "    {note}");
        }
        if sources {
            let _ = writeln!(out, "    = {}\n    {}", item.formula, item.source);
        }
    }
    out
}
