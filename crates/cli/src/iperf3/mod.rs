//! `landspeed iperf3`: iperf3's command line and output, with landspeed's engine.

mod args;
mod command_line;
mod server;

use std::io::Write;

use anyhow::Context as _;
use landspeed_flow::client::{self, Request};
use landspeed_iperf3::auth::PublicKey;
use landspeed_iperf3::convert::{self, ReportOptions};
use landspeed_iperf3::report::Reporter;
use landspeed_iperf3::{Credentials, Extras};
use landspeed_model::{ErrorEntry, Protocol, RunDocument, Status};
use landspeed_sys::file;

pub use args::Args;
pub use command_line::{NAME, command_line};

use crate::run::{self, RemoteEnd, live};
use crate::terminal;
use crate::{CommandOutcome, keep};

/// Runs a client or a server.
pub fn main(args: &Args) -> anyhow::Result<CommandOutcome> {
    if args.version {
        outln!("iperf {} (landspeed {})", convert::RELEASE, env!("CARGO_PKG_VERSION"));
        return Ok(CommandOutcome::Clean);
    }
    if args.daemon && !server::is_detached() {
        return server::detach(args);
    }
    if let Some(path) = &args.pidfile {
        // Same format as iperf3: the PID and a NUL.
        file::create(path)
            .and_then(|mut file| write!(file, "{}\0", std::process::id()))
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    let ended = if args.server { server::main(args) } else { client(args) };
    if let Some(path) = &args.pidfile {
        let _ = file::remove(path);
    }
    ended
}

/// Converts a run document to iperf3's JSON (`run --format iperf3-json`).
pub fn json(run: &RunDocument, interval_ns: u64, server: (String, u16)) -> anyhow::Result<String> {
    anyhow::ensure!(
        matches!(run.requested.protocol, Protocol::Tcp | Protocol::Udp),
        "--format iperf3-json: iperf3 has no words for request/response"
    );
    let options = ReportOptions { interval_ns, server, ..ReportOptions::default() };
    Ok(serde_json::to_string_pretty(&convert::document(run, &options))? + "\n")
}

/// Opens the output: `--logfile`, or standard output.
fn output(args: &Args) -> anyhow::Result<Box<dyn Write + Send>> {
    let Some(path) = &args.logfile else { return Ok(Box::new(terminal::stdout())) };
    // iperf3 appends to an existing file.
    let file = file::append(path).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(Box::new(terminal::Printable(file)))
}

fn client(args: &Args) -> anyhow::Result<CommandOutcome> {
    let out = output(args)?;
    let mut parameters = args.parameters().map_err(|why| anyhow::anyhow!(why))?;
    for setting in landspeed_settings::reset_inapplicable(&mut parameters) {
        if let Some(iperf3) = setting.iperf3 {
            let protocol = landspeed_settings::protocol_name(parameters.protocol);
            errln!("warning: {} does not apply to {protocol}: ignored", iperf3.option);
        }
    }
    let request = Request {
        target: args.target(),
        parameters,
        key: None,
        command: landspeed_sys::process::command_line(),
        data: None,
        local_port: args.cport,
        start_ns: None,
    };
    let options = ReportOptions {
        interval_ns: args.interval_ns(),
        blocks: args.blockcount.unwrap_or(0),
        extra_data: args.extra_data.clone(),
        server: (request.target.host.clone(), args.port),
        remote_after_omit: false,
    };
    let mut reporter = Reporter::new(args.report_format(), &options, out);
    let run = match remote_end(args, reporter.is_live()) {
        Ok(remote) => {
            let interrupted = landspeed_sys::process::catch_interrupts();
            run::measure(&request, &remote, false, interrupted, live::View::silent(), &mut |event| {
                reporter.event(event, interrupted);
            })
        }
        Err(message) => client::not_started_document(
            &request,
            ErrorEntry { code: "bad-credentials".to_owned(), message, advice: None },
        ),
    };
    let written = reporter.finish(&run).context("cannot write the report");
    if run.status != Status::Failed {
        keep::keep(&run);
    }
    if let Some(error) = written? {
        errln!("iperf3: error - {error}");
    }
    Ok(if run.status == Status::Complete { CommandOutcome::Clean } else { CommandOutcome::Findings })
}

fn remote_end(args: &Args, live: bool) -> Result<RemoteEnd, String> {
    let credentials = match (&args.username, &args.rsa_public_key_path) {
        (Some(user), Some(path)) => Some(Credentials {
            user: user.clone(),
            key: PublicKey::open(path, args.trust.policy()).map_err(|error| error.to_string())?,
            password: run::iperf3::password(user)?,
            pkcs1: args.use_pkcs1_padding,
        }),
        _ => None,
    };
    Ok(RemoteEnd::Iperf3(Extras {
        credentials,
        server_output: args.get_server_output,
        narrow_counters: false,
        unlimited_time: args.is_endless(),
        keep_alive: args.cntl_ka,
        offloads: args.gsro,
        report_ns: live.then(|| args.interval_ns()),
    }))
}
