//! `landspeed serve`.

mod third_party;

use std::io::Write as _;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use ipnet::IpNet;
use landspeed_flow::client::DEFAULT_PORT;
use landspeed_flow::control::channel::Key;
use landspeed_flow::server::{ChangeHook, Limits, Port, Server, ServerConfig, ServerEvent, TapHook};
use landspeed_iperf3::auth::{DEFAULT_SKEW_S, Users};
use landspeed_iperf3::server::{self, Iperf3Service};
use landspeed_metrics::{Endpoint, Samples};
use landspeed_sys::trust::{Content, read_text};
use landspeed_units::{BitRate, Bytes, Nanos};
use serde::Deserialize;

use self::third_party::Allowed;
use crate::host_changes::ClientService as ChangesForClients;
use crate::tap::attend::ClientService;
use crate::{CommandOutcome, metrics, options, terminal, trust};

const EXAMPLES: &str = "\
Examples:
  landspeed serve                                        for all clients, TCP and UDP on port 5210
  landspeed serve --allow 192.0.2.0/24 --max-rate 20G --max-tests 4
  landspeed serve --max-rate 5G --max-total-rate 20G     5 Gb/s for each test, 20 Gb/s in all
  landspeed serve --max-tests 1 --queue                  one test at a time, others wait in order
  landspeed serve --new-key site.key                     make a key, then:
  landspeed serve --key-file site.key                    for clients with this key only
  landspeed serve --key-file site.key --allow-third-party 192.0.2.0/24
  landspeed serve --metrics 127.0.0.1:9210               and metrics for Prometheus
  landspeed serve --config /etc/landspeed/serve.toml

One port carries everything: one firewall rule for TCP and one for UDP are enough. iperf3 clients
connect to port 5201.";

/// Options of `serve`. A key of the configuration file is the long option's name with underscores.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Address and port, port, or address to listen on; repeatable [default: all addresses, port 5210]
    #[arg(short, long, value_name = "ADDRESS", value_parser = listen_address)]
    listen: Vec<SocketAddr>,
    /// Concurrent tests [default: 128]
    #[arg(long, value_name = "N")]
    max_tests: Option<usize>,
    /// Concurrent tests of one address, or of one IPv6 /64 [default: 3/4 of all, fewer while others test]
    #[arg(long, value_name = "N")]
    max_tests_per_host: Option<usize>,
    /// Let clients wait in order while the server is busy, at most N [default: 16]; without it they are refused
    #[arg(long, value_name = "N", num_args = 0..=1, require_equals = true, default_missing_value = "16",
          value_parser = clap::value_parser!(u16).range(..=1024))]
    queue: Option<u16>,
    /// Longest wait of a client in the queue [default: 10 min]
    #[arg(long, value_name = "TIME", value_parser = options::time)]
    queue_time: Option<Nanos>,
    /// Longest test [default: 1 h]
    #[arg(long, value_name = "TIME", value_parser = options::time, allow_hyphen_values = true)]
    max_duration: Option<Nanos>,
    /// Highest rate of one test in one direction
    #[arg(long, value_name = "RATE", value_parser = options::rate, allow_hyphen_values = true)]
    max_rate: Option<BitRate>,
    /// Highest rate of all tests together in one direction; each test reserves its part when it is accepted
    #[arg(long, value_name = "RATE", value_parser = options::rate, allow_hyphen_values = true)]
    max_total_rate: Option<BitRate>,
    /// Serve only clients of this network; repeatable
    #[arg(long, value_name = "CIDR", value_parser = network)]
    allow: Vec<IpNet>,
    /// File with the pre-shared key that clients need
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
    #[command(flatten)]
    trust: trust::TrustArgs,
    /// Create a key in FILE (readable only by you) and exit
    #[arg(long, value_name = "FILE", exclusive = true)]
    new_key: Option<PathBuf>,
    /// Without a key: accept a test's data connections from other addresses than its control connection's
    #[arg(long)]
    data_from_anywhere: bool,
    /// Let all clients audit this host (landspeed check --peer); clients with the key always may
    #[arg(long)]
    describe: bool,
    /// Capture a test's headers for clients that ask (landspeed run --tap), at most SIZE [default: 64M]. Needs
    /// CAP_NET_RAW
    #[arg(long, value_name = "SIZE", num_args = 0..=1, require_equals = true, default_missing_value = "64M")]
    allow_tap: Option<Bytes>,
    /// Let clients change settings of this host for their measurement (landspeed tuneup --allow-host-changes); everything
    /// is rolled back when they leave. Needs root
    #[arg(long)]
    allow_host_changes: bool,
    /// Test against other servers for clients that ask (landspeed run --from): servers in this network; repeatable. Without
    /// CIDR, any server, which needs --key-file
    #[arg(long, value_name = "CIDR", num_args = 0..=1, default_missing_value = third_party::ANY,
          value_parser = third_party::allowed)]
    allow_third_party: Vec<Allowed>,
    /// Port for iperf3 clients, on the same addresses [default: 5201; none with --key-file or where the kernel chooses
    /// the port]
    #[arg(long, value_name = "PORT", conflicts_with = "no_iperf3")]
    iperf3_port: Option<u16>,
    /// Do not serve iperf3 clients
    #[arg(long)]
    no_iperf3: bool,
    /// Serve only iperf3 clients of these users: lines of USER,SHA256("{USER}PASSWORD")
    #[arg(long, value_name = "FILE", requires = "rsa_private_key_path")]
    authorized_users_path: Option<PathBuf>,
    /// Private key (PEM) for iperf3 clients' credentials
    #[arg(long, value_name = "FILE", requires = "authorized_users_path")]
    rsa_private_key_path: Option<PathBuf>,
    /// Largest clock difference to an iperf3 client [default: 10 s]
    #[arg(long, value_name = "TIME", value_parser = options::time, requires = "authorized_users_path")]
    time_skew_threshold: Option<Nanos>,
    /// Accept credentials with PKCS#1 padding, as iperf3 before 3.17 sends
    #[arg(long, requires = "authorized_users_path")]
    use_pkcs1_padding: bool,
    /// Serve metrics for Prometheus at http://ADDRESS/metrics, such as 127.0.0.1:9210 (docs/metrics.md)
    #[arg(long, value_name = "ADDRESS", value_parser = metrics::address)]
    metrics: Option<SocketAddr>,
    /// Configuration file (TOML); options on the command line override it
    #[arg(short, long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Do not log single tests
    #[arg(short, long)]
    quiet: bool,
}

/// The configuration file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    listen: Vec<String>,
    max_tests: Option<usize>,
    max_tests_per_host: Option<usize>,
    queue: Option<u16>,
    queue_time: Option<ConfigTime>,
    max_duration: Option<ConfigTime>,
    max_rate: Option<ConfigRate>,
    max_total_rate: Option<ConfigRate>,
    #[serde(default)]
    allow: Vec<String>,
    key_file: Option<PathBuf>,
    #[serde(default)]
    data_from_anywhere: bool,
    #[serde(default)]
    describe: bool,
    allow_tap: Option<ConfigSize>,
    #[serde(default)]
    allow_host_changes: bool,
    #[serde(default)]
    allow_third_party: Vec<String>,
    iperf3_port: Option<u16>,
    #[serde(default)]
    no_iperf3: bool,
    authorized_users_path: Option<PathBuf>,
    rsa_private_key_path: Option<PathBuf>,
    time_skew_threshold: Option<ConfigTime>,
    #[serde(default)]
    use_pkcs1_padding: bool,
    metrics: Option<String>,
}

/// A time in the configuration file, in the syntax of the command line.
#[derive(Debug, Deserialize)]
#[serde(try_from = "String")]
struct ConfigTime(Nanos);

impl TryFrom<String> for ConfigTime {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        options::time(&text).map(Self)
    }
}

/// A size in the configuration file, in the syntax of the command line.
#[derive(Debug, Deserialize)]
#[serde(try_from = "String")]
struct ConfigSize(Bytes);

impl TryFrom<String> for ConfigSize {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse().map(Self).map_err(|error: landspeed_units::ParseError| error.to_string())
    }
}

/// A rate in the configuration file, in the syntax of the command line.
#[derive(Debug, Deserialize)]
#[serde(try_from = "String")]
struct ConfigRate(BitRate);

impl TryFrom<String> for ConfigRate {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        options::rate(&text).map(Self)
    }
}

fn listen_address(text: &str) -> Result<SocketAddr, String> {
    let any = IpAddr::V6(Ipv6Addr::UNSPECIFIED);
    text.parse::<SocketAddr>()
        .ok()
        .or_else(|| text.trim_start_matches(':').parse::<u16>().ok().map(|port| SocketAddr::new(any, port)))
        .or_else(|| {
            let bare = text.strip_prefix('[').and_then(|t| t.strip_suffix(']')).unwrap_or(text);
            bare.parse::<IpAddr>().ok().map(|ip| SocketAddr::new(ip, DEFAULT_PORT))
        })
        .ok_or_else(|| format!("`{text}` is not an address; write 5210, 192.0.2.1, 192.0.2.1:5210 or [::]:5210"))
}

/// Parses a network or a single address.
pub(crate) fn network(text: &str) -> Result<IpNet, String> {
    text.parse::<IpNet>()
        .ok()
        .or_else(|| text.parse::<IpAddr>().ok().map(IpNet::from))
        .ok_or_else(|| format!("`{text}` is not a network; write 192.0.2.0/24, 2001:db8::/32 or one address"))
}

/// Serves until `over` returns true, then waits up to 5 s for running tests.
pub fn until(server: Server, over: impl Fn() -> bool + Send + 'static) -> anyhow::Result<()> {
    let (stop, counts) = (server.stop_flag(), server.counts());
    let watcher = std::thread::spawn(move || {
        while !over() {
            std::thread::park_timeout(Duration::from_millis(20));
        }
        stop.store(true, Ordering::Relaxed);
    });
    server.run().context("the server failed")?;
    let _ = watcher.join();
    // Sessions check the flag, notify their clients, and end.
    for _ in 0..50 {
        if counts.running.load(Ordering::Relaxed) == 0 {
            break;
        }
        std::thread::park_timeout(Duration::from_millis(100));
    }
    Ok(())
}

/// Serves until interrupted.
pub fn main(args: &Args) -> anyhow::Result<CommandOutcome> {
    if let Some(path) = &args.new_key {
        return new_key(path);
    }
    let (config, users, iperf3, metrics) = configuration(args)?;
    // Before the server, which counts the free descriptors and divides them.
    let endpoint = metrics.map(|addr| metrics::open(addr, "serve")).transpose()?;
    let reserved = endpoint.as_ref().map(Endpoint::reserve_descriptors);
    let max_tests = config.limits.max_tests;
    let interrupted = landspeed_sys::process::catch_interrupts();
    let quiet = args.quiet;
    let key = config.key.is_some();
    let log = Log { quiet, key, users };
    let server =
        Server::bind(config, &iperf3, move |event| log.log_event(&event)).map_err(|error| match error.advice() {
            Some(advice) => anyhow!("{error}; {advice}"),
            None => anyhow!("{error}"),
        })?;
    drop(reserved);
    let counts = server.counts();
    let exported = server.counts();
    let collect = move |samples: &mut Samples| metrics::serve::collect(&exported, max_tests, samples);
    let _endpoint = match endpoint {
        Some(endpoint) => {
            line(&metrics::announcement(&endpoint)?);
            Some(endpoint.start(collect).context("cannot start a thread for the metrics")?)
        }
        None => None,
    };
    until(server, || interrupted.load(Ordering::Relaxed))?;
    let tests = counts.completed.load(Ordering::Relaxed);
    line(&format!("landspeed: stopped after {tests} test{}", if tests == 1 { "" } else { "s" }));
    Ok(CommandOutcome::Clean)
}

/// Returns the configuration, whether iperf3 clients need a user, the ports for iperf3 clients, and the address of the
/// metrics.
fn configuration(args: &Args) -> anyhow::Result<(ServerConfig, bool, Vec<Port>, Option<SocketAddr>)> {
    let file = match &args.config {
        None => File::default(),
        Some(path) => {
            let text = read_text(path, "configuration file", Content::Public, args.trust.policy())?;
            toml::from_str(&text).map_err(|error| config_error(path, &text, &error))?
        }
    };
    let origin = args.config.as_deref().unwrap_or(Path::new("")).display();
    let parse_all = |texts: &[String], what: &str| -> anyhow::Result<Vec<SocketAddr>> {
        texts.iter().map(|t| listen_address(t).map_err(|e| anyhow!("{origin}: {what}: {e}"))).collect()
    };
    let mut listen = if args.listen.is_empty() { parse_all(&file.listen, "listen")? } else { args.listen.clone() };
    if listen.is_empty() {
        // If IPv6 is disabled, listens on IPv4 only.
        let v6 = SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), DEFAULT_PORT);
        let probe = std::net::UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0));
        listen.push(if probe.is_ok() { v6 } else { SocketAddr::from(([0, 0, 0, 0], DEFAULT_PORT)) });
    }
    let allow = if args.allow.is_empty() {
        file.allow
            .iter()
            .map(|t| network(t).map_err(|e| anyhow!("{origin}: allow: {e}")))
            .collect::<Result<_, _>>()?
    } else {
        args.allow.clone()
    };
    let defaults = Limits::default();
    let limits = Limits {
        max_tests: args.max_tests.or(file.max_tests).unwrap_or(defaults.max_tests),
        max_tests_per_host: args.max_tests_per_host.or(file.max_tests_per_host),
        max_duration_ns: args
            .max_duration
            .or(file.max_duration.as_ref().map(|n| n.0))
            .map_or(defaults.max_duration_ns, Nanos::get),
        max_rate_bps: args.max_rate.or(file.max_rate.as_ref().map(|r| r.0)).map(BitRate::bps),
        max_total_rate_bps: args.max_total_rate.or(file.max_total_rate.as_ref().map(|r| r.0)).map(BitRate::bps),
        max_waiting: args.queue.or(file.queue).map_or(defaults.max_waiting, |most| usize::from(most.min(1024))),
        max_wait_ns: args
            .queue_time
            .or(file.queue_time.as_ref().map(|n| n.0))
            .map_or(defaults.max_wait_ns, Nanos::get),
    };
    let of_file = |given: bool, option: &str, key: &str| {
        if given { option.to_owned() } else { format!("{origin}: {key}") }
    };
    if limits.max_tests == 0 {
        bail!(
            "{}: 0 admits no tests; the minimum is 1",
            of_file(args.max_tests.is_some(), "--max-tests", "max_tests")
        );
    }
    if limits.max_tests_per_host == Some(0) {
        let place = of_file(args.max_tests_per_host.is_some(), "--max-tests-per-host", "max_tests_per_host");
        bail!("{place}: 0 admits no tests; the minimum is 1");
    }
    let key_file = args.key_file.as_ref().or(file.key_file.as_ref());
    let key = key_file.map(|path| options::key(path, args.trust.policy())).transpose()?;
    let (users, iperf3) = iperf3(args, &file, &listen, key.is_some())?;
    let tap = args.allow_tap.or(file.allow_tap.map(|bytes| bytes.0));
    let tap = tap.map(|bytes| TapHook(Arc::new(ClientService::new(bytes.get()))));
    let data_from_anywhere = args.data_from_anywhere || file.data_from_anywhere;
    let describe = args.describe || file.describe;
    let permitted = args.allow_host_changes || file.allow_host_changes;
    let changes = if permitted { Some(host_changes(args.trust, key.is_some())?) } else { None };
    let third_party = if args.allow_third_party.is_empty() {
        let parse =
            |text: &String| third_party::allowed(text).map_err(|e| anyhow!("{origin}: allow_third_party: {e}"));
        file.allow_third_party.iter().map(parse).collect::<Result<Vec<_>, _>>()?
    } else {
        args.allow_third_party.clone()
    };
    let third_party = third_party::targets(&third_party, key.is_some())?;
    let config = ServerConfig { listen, limits, allow, key, data_from_anywhere, describe, tap, changes, third_party };
    let metrics = file.metrics.map(|text| metrics::address(&text).map_err(|e| anyhow!("{origin}: metrics: {e}")));
    Ok((config, users, iperf3, args.metrics.or(metrics.transpose()?)))
}

/// Returns the hook that changes this host for clients.
fn host_changes(trust: trust::TrustArgs, keyed: bool) -> anyhow::Result<ChangeHook> {
    let changer = ChangesForClients::new(trust).map_err(|why| {
        anyhow!("cannot serve with --allow-host-changes: {}; run it as root, or leave the option out", why.message)
    })?;
    if !keyed {
        errln!(
            "landspeed: warning: every client that this server admits may change settings of this host; --key-file limits \
             that to holders of a key"
        );
    }
    Ok(ChangeHook(Arc::new(changer)))
}

/// Returns whether iperf3 clients need a user, and the ports for them. iperf3 clients cannot use the pre-shared
/// key: a server with a key serves them only if a port for them or users are configured.
fn iperf3(args: &Args, file: &File, listen: &[SocketAddr], keyed: bool) -> anyhow::Result<(bool, Vec<Port>)> {
    let pair = |users: &Option<PathBuf>, key: &Option<PathBuf>| users.clone().zip(key.clone());
    let paths = pair(&args.authorized_users_path, &args.rsa_private_key_path)
        .or_else(|| pair(&file.authorized_users_path, &file.rsa_private_key_path));
    if paths.is_none() && (file.authorized_users_path.is_some() || file.rsa_private_key_path.is_some()) {
        bail!("authorized_users_path and rsa_private_key_path need each other");
    }
    let skew_s = args
        .time_skew_threshold
        .or(file.time_skew_threshold.as_ref().map(|n| n.0))
        .map_or(DEFAULT_SKEW_S, |skew| skew.get() / 1_000_000_000);
    let pkcs1 = args.use_pkcs1_padding || file.use_pkcs1_padding;
    let users =
        paths.map(|(users, key)| Users::open(&key, &users, skew_s, pkcs1, args.trust.policy())).transpose()?;
    let asked = args.iperf3_port.or(file.iperf3_port);
    let unasked_for = asked.is_none() && ((keyed && users.is_none()) || listen.iter().any(|addr| addr.port() == 0));
    if args.no_iperf3 || (file.no_iperf3 && args.iperf3_port.is_none()) || unasked_for {
        return Ok((false, Vec::new()));
    }
    let port = asked.unwrap_or(landspeed_iperf3::DEFAULT_PORT);
    let mut addresses: Vec<SocketAddr> = listen.iter().map(|addr| SocketAddr::new(addr.ip(), port)).collect();
    addresses.sort_unstable();
    addresses.dedup();
    let needs_user = users.is_some();
    let service = Arc::new(Iperf3Service::new(users));
    Ok((needs_user, vec![Port { listen: addresses, optional: asked.is_none(), service }]))
}

/// Formats a TOML error in one line: file, line number, message.
fn config_error(path: &Path, text: &str, error: &toml::de::Error) -> anyhow::Error {
    let message = error.message().lines().collect::<Vec<_>>().join(", ");
    match error.span().and_then(|span| text.get(..span.start)) {
        Some(before) => {
            let number = before.matches('\n').count();
            let line = text.lines().nth(number).unwrap_or_default().trim();
            anyhow!("{}:{}: {message}: `{line}`", path.display(), number + 1)
        }
        None => anyhow!("{}: {message}", path.display()),
    }
}

fn new_key(path: &Path) -> anyhow::Result<CommandOutcome> {
    let key = Key::generate().context("cannot create a key")?;
    let mut file = landspeed_sys::file::create_new_private(path)
        .with_context(|| format!("cannot create {} (an existing key is never overwritten)", path.display()))?;
    file.write_all(key.to_text().as_bytes()).with_context(|| format!("cannot write {}", path.display()))?;
    outln!("landspeed: new key in {}; copy it to the clients only", path.display());
    Ok(CommandOutcome::Clean)
}

/// Prints server events, one per line.
struct Log {
    quiet: bool,
    key: bool,
    users: bool,
}

impl Log {
    fn log_event(&self, event: &ServerEvent) {
        use landspeed_flow::address::display;
        match event {
            ServerEvent::Listening { protocol: server::NAME, addr } => {
                let who = if self.users { "iperf3 clients of authorized users" } else { "all iperf3 clients" };
                line(&format!("landspeed: listening on {addr} for {who}"));
            }
            ServerEvent::Listening { addr, .. } => {
                let who = if self.key { "clients with the key" } else { "all clients" };
                line(&format!("landspeed: listening on {addr} (TCP and UDP) for {who}"));
            }
            ServerEvent::NotListening { protocol, addr, why } => {
                line(&format!("landspeed: not listening on {addr} for {protocol} clients: {why}"));
            }
            ServerEvent::HostChanged { peer, what } => {
                event_line(NO_TEST, &format!("{}  host     {what}", display(*peer)));
            }
            ServerEvent::LeftOut { events, last_peer, host_changes: true } => {
                left_out(*events, "changes of this host", *last_peer);
            }
            _ if self.quiet => {}
            ServerEvent::LeftOut { events, last_peer, host_changes: false } => {
                left_out(*events, "tests and refusals", *last_peer);
            }
            ServerEvent::TestStarted { id, peer, what } => {
                event_line(short(id), &format!("{}  start    {what}", display(*peer)));
            }
            ServerEvent::Described { peer } => {
                event_line(NO_TEST, &format!("{}  described this host", display(*peer)));
            }
            ServerEvent::TestEnded { id, outcome, .. } => event_line(short(id), &format!("end      {outcome}")),
            ServerEvent::Refused { peer, why } => {
                let why = why.strip_prefix("the server refused: ").unwrap_or(why);
                event_line(NO_TEST, &format!("{}  refused  {why}", display(*peer)));
            }
        }
    }
}

/// Placeholder in the column of the test's id.
const NO_TEST: &str = "--------";

fn left_out(lines: u64, what: &str, last_peer: SocketAddr) {
    let peer = landspeed_flow::address::display(last_peer);
    event_line(NO_TEST, &format!("{peer}  log      {lines} lines on {what} left out; the last was of this client"));
}

/// Prints a line with the time (UTC) and the test's id.
fn event_line(id: &str, what: &str) {
    let now = std::time::UNIX_EPOCH + Duration::from_nanos(landspeed_sys::clock::realtime_ns());
    line(&format!("{}  {id}  {what}", humantime::format_rfc3339_seconds(now)));
}

/// Prints a line of the log. Write errors are ignored: they must not stop the server.
fn line(text: &str) {
    let _ = terminal::write_text(format!("{text}\n").as_bytes());
}

fn short(id: &str) -> &str {
    id.get(..8).unwrap_or(id)
}
