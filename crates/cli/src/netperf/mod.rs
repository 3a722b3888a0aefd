//! `landspeed netperf`: netperf's command line and output, with landspeed's engine, for flent and for scripts.

mod args;
mod interim;
mod keys;
mod kind;
mod table;
mod units;

use std::net::IpAddr;
use std::sync::atomic::AtomicBool;

use landspeed_flow::client::{self, Request, RunEvent, Target};
use landspeed_model::{ErrorEntry, Family, RunDocument, Status, TcpInfo};
use landspeed_sys::clock;

pub use args::{Args, why_refused};

use self::args::Plan;
use self::interim::{Interim, Reading};
use self::keys::Report;
use crate::run::{self, RemoteEnd, live};
use crate::{CommandOutcome, keep};

/// Subcommand name; a program called by this name is the subcommand.
pub const NAME: &str = "netperf";

/// Environment variable of netperf that asks for the last `tcp_info` on standard error.
const DUMP_TCP_INFO: &str = "DUMP_TCP_INFO";

/// Runs one netperf test against `serve` and prints its result.
pub fn main(args: &Args) -> anyhow::Result<CommandOutcome> {
    if args.version {
        outln!("Netperf version 2.7.0 (landspeed {})", env!("CARGO_PKG_VERSION"));
        return Ok(CommandOutcome::Clean);
    }
    let plan = args.plan().map_err(|why| anyhow::anyhow!("netperf: {why}"))?;
    if plan.lists_keys {
        for key in keys::KEYS {
            outln!("{}", key.name);
        }
        return Ok(CommandOutcome::Clean);
    }
    let interrupted = landspeed_sys::process::catch_interrupts();
    let mut interim = args.demo.map(|every_ns| Interim::new(every_ns, plan.unit, plan.keys.is_some()));
    let mut start_unix_ns = None;
    let run = measure(&plan, interrupted, &mut |event| {
        let (Some(interim), RunEvent::Progress(progress)) = (&mut interim, event) else { return };
        let start = *start_unix_ns.get_or_insert_with(|| clock::realtime_ns().saturating_sub(progress.t_ns));
        out!("{}", interim.until(Reading::of(args.test, progress), start));
    });
    let report = Report { run: &run, test: args.test, unit: plan.unit };
    if run.status == Status::Failed {
        for error in &run.errors {
            errln!("netperf: {}", message(error, &plan));
        }
        return Ok(CommandOutcome::Findings);
    }
    if let (Some(interim), Some(start), Some(t_ns), Some(amount)) =
        (&mut interim, start_unix_ns, report.elapsed_ns(), report.amount())
    {
        out!("{}", interim.rest(Reading { t_ns, amount }, start));
    }
    match &plan.keys {
        Some(keys) => out!("{}", report.lines(keys)),
        None => out!("{}", table::table(&report, args.headings == 1, args.verbosity)),
    }
    for error in &run.errors {
        errln!("netperf: {}", message(error, &plan));
    }
    if std::env::var_os(DUMP_TCP_INFO).is_some()
        && let Some(info) = last_tcp_info(&report)
    {
        err!("{}", tcp_info(info));
    }
    keep::keep(&run);
    Ok(if run.status == Status::Complete { CommandOutcome::Clean } else { CommandOutcome::Findings })
}

fn measure(plan: &Plan, interrupted: &AtomicBool, observe: &mut dyn FnMut(&RunEvent<'_>)) -> RunDocument {
    let mut request = Request {
        target: plan.server.clone(),
        parameters: plan.parameters.clone(),
        key: None,
        command: landspeed_sys::process::command_line(),
        data: None,
        local_port: None,
        start_ns: None,
    };
    if let Some(data) = &plan.data {
        match data_address(data, plan, interrupted) {
            Ok(address) => request.data = Some(address),
            Err(why) => return client::not_started_document(&request, why),
        }
    }
    run::measure(&request, &RemoteEnd::Landspeed, false, interrupted, live::View::silent(), observe)
}

/// Resolves the data address, in the family of the control connection's.
fn data_address(data: &Target, plan: &Plan, interrupted: &AtomicBool) -> Result<IpAddr, ErrorEntry> {
    let family = plan.parameters.family;
    let control = plan.server.addresses(family, interrupted).map_err(|error| error.entry())?;
    let family = if control[0].is_ipv6() { Family::V6 } else { Family::V4 };
    let data = data.addresses(family, interrupted).map_err(|error| error.entry())?;
    Ok(data[0].ip())
}

/// Formats an error with what to do, in two lines.
fn message(error: &ErrorEntry, plan: &Plan) -> String {
    let port = plan.server.port.unwrap_or(args::DEFAULT_PORT);
    let advice = match error.code.as_str() {
        // The advice of `run` has options that netperf does not have.
        "connection-refused" | "not-landspeed" | "timeout" => Some(format!(
            "Start `landspeed serve --listen {port}` there (netserver speaks another protocol), or give the port of a server: \
             -p 5210, of flent --netperf-control-port 5210."
        )),
        _ => error.advice.clone(),
    };
    advice.map_or_else(|| error.message.clone(), |advice| format!("{}\n{advice}", error.message))
}

fn last_tcp_info<'a>(report: &Report<'a>) -> Option<&'a TcpInfo> {
    report.local()?.samples.iter().rev().find_map(|sample| sample.tcp.as_deref())
}

/// Formats `tcp_info` as netperf does: pairs of a field of the kernel's structure and its value.
fn tcp_info(info: &TcpInfo) -> String {
    format!(
        "tcpi_rto {} tcpi_ato {} tcpi_pmtu {} tcpi_rcv_ssthresh {}\n\
         tcpi_rtt {} tcpi_rttvar {} tcpi_snd_ssthresh {} tcpi_snd_cwnd {}\n\
         tcpi_reordering {} tcpi_total_retrans {}\n",
        info.rto_us,
        info.ato_us,
        info.pmtu_bytes,
        info.rcv_ssthresh_bytes,
        info.rtt_us,
        info.rttvar_us,
        info.snd_ssthresh,
        info.snd_cwnd,
        info.reordering,
        info.total_retrans
    )
}
