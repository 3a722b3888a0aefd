//! `landspeed iperf3 -s`.

use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, anyhow};
use landspeed_flow::address::display;
use landspeed_flow::server::{Limits, Port, Server, ServerConfig, ServerEvent};
use landspeed_iperf3::auth::{DEFAULT_SKEW_S, Users};
use landspeed_iperf3::convert::ReportOptions;
use landspeed_iperf3::document::Document;
use landspeed_iperf3::report::{ReportFormat, Reporter};
use landspeed_iperf3::server::{Iperf3Service, ServerOutput};
use landspeed_sys::clock;

use super::{Args, output};
use crate::{CommandOutcome, serve};

const RULE: &str = "-----------------------------------------------------------";

/// Serves until interrupted, or one test with `-1`.
pub fn main(args: &Args) -> anyhow::Result<CommandOutcome> {
    let out = Arc::new(Mutex::new(output(args)?));
    let interrupted = landspeed_sys::process::catch_interrupts();
    let json = json_output(args, &out);
    let form = json.is_some().then(|| args.report_format());
    let log = Log { out, tests: AtomicU64::new(1), port: args.port, one_off: args.one_off, form };
    let (config, port) = configuration(args, json)?;
    let server = Server::bind(config, &[port], move |event| log.write(&event)).map_err(|error| {
        let advice = error.advice().map(|advice| format!("; {advice}")).unwrap_or_default();
        anyhow!("unable to start listener for connections: {error}{advice}")
    })?;
    let (one_off, counts) = (args.one_off, server.counts());
    let idle_until_ns =
        args.idle_timeout.map(|seconds| clock::monotonic_ns().saturating_add(seconds * 1_000_000_000));
    let is_over = move || {
        let is_idle = || counts.running.load(Ordering::Relaxed) == 0;
        let waited = idle_until_ns.is_some_and(|until_ns| clock::monotonic_ns() >= until_ns);
        one_off && (counts.ended.load(Ordering::Relaxed) > 0 || (waited && is_idle()))
    };
    serve::until(server, move || interrupted.load(Ordering::Relaxed) || is_over())?;
    Ok(CommandOutcome::Clean)
}

type SharedOutput = Arc<Mutex<Box<dyn Write + Send>>>;

/// Writes a document to the output. Write errors are ignored: the server continues without its output.
fn write_document(out: &SharedOutput, form: ReportFormat, document: &Document) {
    let mut text = Vec::new();
    let options = ReportOptions::default();
    if Reporter::new(form, &options, &mut text).write_document(document).is_ok() {
        let mut out = out.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = out.write_all(&text).and_then(|()| out.flush());
    }
}

/// Returns the output of the tests' documents with -J and --json-stream.
fn json_output(args: &Args, out: &SharedOutput) -> Option<ServerOutput> {
    if !args.json && !args.json_stream {
        return None;
    }
    let (out, form) = (Arc::clone(out), args.report_format());
    let take = Box::new(move |document: &Document| write_document(&out, form, document));
    Some(ServerOutput { interval_ns: args.interval_ns(), take })
}

fn configuration(args: &Args, json: Option<ServerOutput>) -> anyhow::Result<(ServerConfig, Port)> {
    let ip = match &args.bind {
        Some(address) => address.parse::<IpAddr>().with_context(|| format!("-B {address}: no address"))?,
        None if args.version4 => Ipv4Addr::UNSPECIFIED.into(),
        // If IPv6 is disabled, listens on IPv4 only.
        None if std::net::UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0)).is_err() => Ipv4Addr::UNSPECIFIED.into(),
        None => Ipv6Addr::UNSPECIFIED.into(),
    };
    let users = match (&args.rsa_private_key_path, &args.authorized_users_path) {
        (Some(key), Some(users)) => {
            let skew_s = args.time_skew_threshold.unwrap_or(DEFAULT_SKEW_S);
            Some(Users::open(key, users, skew_s, args.use_pkcs1_padding, args.trust.policy())?)
        }
        _ => None,
    };
    let defaults = Limits::default();
    let config = ServerConfig {
        listen: Vec::new(),
        limits: Limits {
            max_duration_ns: args
                .server_max_duration
                .map_or(defaults.max_duration_ns, |s| s.saturating_mul(1_000_000_000)),
            max_rate_bps: args.server_bitrate_limit.filter(|rate| *rate > 0),
            ..defaults
        },
        allow: Vec::new(),
        key: None,
        data_from_anywhere: false,
        describe: false,
        tap: None,
        changes: None,
        third_party: None,
    };
    let service = Arc::new(Iperf3Service::configured(users, args.cntl_ka, json));
    Ok((config, Port { listen: vec![SocketAddr::new(ip, args.port)], optional: false, service }))
}

/// Prints iperf3's server messages, as far as they apply to several concurrent clients.
struct Log {
    out: SharedOutput,
    tests: AtomicU64,
    port: u16,
    one_off: bool,
    /// Format of the tests' documents, which take the place of the messages.
    form: Option<ReportFormat>,
}

impl Log {
    fn write(&self, event: &ServerEvent) {
        if let Some(form) = self.form {
            let error = match event {
                ServerEvent::TestEnded { outcome, .. } if !outcome.starts_with("complete") => outcome.clone(),
                ServerEvent::Refused { peer, why } => format!("{}: {why}", display(*peer)),
                _ => return,
            };
            write_document(&self.out, form, &Document { error: Some(error), ..Document::default() });
            return;
        }
        let banner = |test: u64| format!("{RULE}\nServer listening on {} (test #{test})\n{RULE}\n", self.port);
        let text = match event {
            ServerEvent::Listening { .. } => banner(self.tests.load(Ordering::Relaxed)),
            ServerEvent::TestStarted { peer, what, .. } => {
                let peer = display(*peer);
                let (host, port) = peer.rsplit_once(':').map_or((&*peer, ""), |(host, port)| (host, port));
                format!("Accepted connection from {}, port {port}\n{what}\n", host.trim_matches(['[', ']']))
            }
            ServerEvent::TestEnded { outcome, .. } => {
                let next = self.tests.fetch_add(1, Ordering::Relaxed) + 1;
                let again = if self.one_off { String::new() } else { banner(next) };
                format!("{outcome}\n{again}")
            }
            ServerEvent::Refused { peer, why } => format!("iperf3: error - {}: {why}\n", display(*peer)),
            ServerEvent::LeftOut { events, last_peer, .. } => {
                format!("iperf3: {events} messages left out, the last of {}\n", display(*last_peer))
            }
            _ => return,
        };
        // Write errors are ignored: the server continues without its log.
        let mut out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    }
}

/// Environment variable set for the background process that `-D` starts.
const DETACHED: &str = "LANDSPEED_IPERF3_DETACHED";

/// Whether this process is the background server.
pub fn is_detached() -> bool {
    std::env::var_os(DETACHED).is_some()
}

/// Implements `-D`: restarts this command in its own process group without a terminal.
pub fn detach(args: &Args) -> anyhow::Result<CommandOutcome> {
    let program = std::env::current_exe().context("this program's file is not known")?;
    // Report unwritable files here, while a terminal is attached.
    let _ = output(args)?;
    Command::new(program)
        .args(super::command_line().into_iter().skip(1))
        .env(DETACHED, "1")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .context("cannot start the server")?;
    Ok(CommandOutcome::Clean)
}
