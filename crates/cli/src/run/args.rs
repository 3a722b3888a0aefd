//! Options of `run`, and the parameters derived from them.

use std::path::PathBuf;

use anyhow::Context as _;
use landspeed_flow::client::Target;
use landspeed_flow::rr::ProbePlan;
use landspeed_model::{
    Direction, PaceScope, Parameters, Protocol, ReceiveMode, RrMode, RrParameters, RrSize, RunDocument, SendMode,
    UdpParameters,
};
use landspeed_units::{BitRate, Bytes, Nanos};

use crate::connection;
use crate::options::{self, CoreChoice, RateLimit};
use crate::output::Sink;

const EXAMPLES: &str = "\
Examples:
  landspeed run dtn.example                              TCP, ten seconds, to the server
  landspeed run dtn.example -R -P 4 --report run.html    four streams from the server, drawn
  landspeed run dtn.example --send splice --receive discard --cpus 2 --peer-cpus 2
  landspeed run dtn.example -u -b 300m --burst 65        UDP in bursts of 65 packets
  landspeed run dtn.example --rr --rate 10000 -l 64/1k   open loop, 64 B requests, 1 KiB responses
  landspeed run dtn.example --rrul -t 60                 latency under load in both directions
  landspeed run old.example --iperf3 -R                  against an iperf3 server, from it
  landspeed run b.example --from a.example               between two servers, from a to b
  landspeed run '[fe80::1%eth0]:5210' --probe-mtu        a link-local address with its zone

The short options of iperf3 mean the same here. A bare size is in bytes, K/M/G are powers of 1024
for sizes and of 1000 for rates; a bare time is in seconds.";

/// DSCP of the streams of each direction in the RRUL test: CS0, CS1, CS5, EF.
const RRUL_DSCP: [u8; 4] = [0, 8, 40, 46];

/// Options of `run`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Server: HOST, HOST:PORT, 192.0.2.1:5210, [2001:db8::1]:5210, fe80::1%eth0
    pub target: Target,
    /// Server's port, if it is not in the address
    #[arg(short, long)]
    port: Option<u16>,
    /// Client: another `landspeed serve --allow-third-party`, HOST or HOST:PORT [default: this host]
    #[arg(long, value_name = "HOST", conflicts_with_all = ["iperf3", "tap"])]
    pub from: Option<Target>,

    /// Receive: data moves from the server to here
    #[arg(short = 'R', long, help_heading = "Traffic", conflicts_with = "bidir")]
    reverse: bool,
    /// Both directions at once
    #[arg(long, help_heading = "Traffic")]
    bidir: bool,
    /// Realtime Response Under Load: four streams each way with DSCP CS0, CS1, CS5 and EF, and latency probes over UDP. The
    /// same as --bidir -P 4 --stream-dscp cs0,cs1,cs5,ef --probe --probe-udp
    #[arg(long, help_heading = "Traffic", conflicts_with_all = ["reverse", "bidir", "streams", "udp", "rr", "stream_dscp",
          "dscp", "probe_udp", "iperf3"])]
    rrul: bool,
    /// Parallel streams in each direction, each on its own thread
    #[arg(short = 'P', long = "parallel", value_name = "N", default_value_t = 1, help_heading = "Traffic",
          value_parser = clap::value_parser!(u32).range(1..=1024))]
    streams: u32,
    /// Length of the measurement [default: 10 s]
    #[arg(short, long, value_parser = options::time, help_heading = "Traffic", allow_hyphen_values = true)]
    time: Option<Nanos>,
    /// Send this many bytes in each direction instead of for a time
    #[arg(short = 'n', long, help_heading = "Traffic", allow_hyphen_values = true)]
    bytes: Option<Bytes>,
    /// Send this many writes (UDP: datagrams) in each direction instead of for a time
    #[arg(short = 'k', long, help_heading = "Traffic", conflicts_with = "bytes")]
    blocks: Option<u64>,
    /// Leave the first part of the transfer out of the figures; it is added to the time
    #[arg(short = 'O', long, value_parser = options::time, help_heading = "Traffic", allow_hyphen_values = true)]
    omit: Option<Nanos>,
    /// Bytes per write [default: 1M], UDP payload [default: 1448], or request/response sizes
    #[arg(short, long, value_name = "SIZE", help_heading = "Traffic", allow_hyphen_values = true)]
    len: Option<String>,
    /// Rate the sending application offers, each stream: payload bits/s (UDP default 1M; `unlimited`), or
    /// requests per second with --rr
    #[arg(short = 'b', long, value_name = "RATE", help_heading = "Traffic", allow_hyphen_values = true)]
    rate: Option<String>,

    /// Socket buffers, both ends: turns autotuning off
    #[arg(short, long, value_name = "SIZE", help_heading = "TCP", allow_hyphen_values = true)]
    window: Option<Bytes>,
    /// Maximum segment size
    #[arg(short = 'M', long, value_name = "BYTES", help_heading = "TCP")]
    mss: Option<u32>,
    /// Congestion control of the senders
    #[arg(short = 'C', long, value_name = "NAME", help_heading = "TCP")]
    congestion: Option<String>,
    /// Write only while less than this is unsent in the socket (TCP_NOTSENT_LOWAT): keeps the send queue short
    #[arg(long, value_name = "SIZE", help_heading = "TCP", allow_hyphen_values = true)]
    notsent_lowat: Option<Bytes>,
    /// Send small writes at once (TCP_NODELAY)
    #[arg(short = 'N', long, help_heading = "TCP")]
    nodelay: bool,
    /// Multipath TCP
    #[arg(short = 'm', long, help_heading = "TCP")]
    mptcp: bool,
    /// Pacing in the kernel (SO_MAX_PACING_RATE), each stream
    #[arg(long, value_name = "RATE", value_parser = options::rate, help_heading = "TCP", allow_hyphen_values = true)]
    pace: Option<BitRate>,
    /// The pacing rate is for all streams of a direction together
    #[arg(long, requires = "pace", help_heading = "TCP")]
    pace_total: bool,
    /// How bytes are handed to the kernel
    #[arg(long, value_enum, default_value = "copy", help_heading = "TCP")]
    send: SendArg,
    /// Zero copy, as iperf3 has it: --send sendfile
    #[arg(short = 'Z', long, help_heading = "TCP")]
    zerocopy: bool,
    /// What the receiver does: copy to its memory, or count and drop in the kernel
    #[arg(long, value_enum, default_value = "copy", help_heading = "TCP")]
    receive: ReceiveArg,
    /// The receiver reads no faster than this: what a slow disk does
    #[arg(long, value_name = "RATE", value_parser = options::rate, help_heading = "TCP", allow_hyphen_values = true)]
    read_rate: Option<BitRate>,

    /// UDP instead of TCP
    #[arg(short, long, help_heading = "UDP and request/response")]
    udp: bool,
    /// UDP packets that leave back to back each time
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "UDP and request/response",
          value_parser = clap::value_parser!(u32).range(1..=65536))]
    burst: u32,
    /// UDP: send what comes due within 0.25 ms together: less exact, much cheaper
    #[arg(long, help_heading = "UDP and request/response")]
    coarse: bool,
    /// UDP: no segmentation offload at the sender
    #[arg(long, help_heading = "UDP and request/response")]
    no_gso: bool,
    /// UDP: no coalescing at the receiver
    #[arg(long, help_heading = "UDP and request/response")]
    no_gro: bool,
    /// Request/response instead of bulk data (TCP, or UDP with -u)
    #[arg(long, help_heading = "UDP and request/response", conflicts_with_all = ["reverse", "bidir", "bytes", "blocks"])]
    rr: bool,
    /// Request/response sizes: 64, 64/1k, 1,64,1k or 1..1M (powers of two)
    #[arg(
        long,
        value_name = "SIZES",
        requires = "rr",
        help_heading = "UDP and request/response",
        conflicts_with = "len"
    )]
    sizes: Option<String>,
    /// A new connection for each request (TCP)
    #[arg(long, requires = "rr", conflicts_with = "rate", help_heading = "UDP and request/response")]
    connect: bool,
    /// Measure latency beside the bulk streams: probes per second
    #[arg(long, value_name = "PER_SECOND", num_args = 0..=1, require_equals = true, default_missing_value = "100",
          conflicts_with = "rr", help_heading = "UDP and request/response")]
    probe: Option<f64>,
    /// The probes beside TCP are UDP datagrams: a lost segment does not delay the probes after it
    #[arg(long, help_heading = "UDP and request/response")]
    probe_udp: bool,

    /// Cores of the stream threads here: 0,2 or 0-3, one for each stream in turn; auto: beside the CPUs that serve the
    /// streams' receive queues
    #[arg(short = 'A', long, value_name = "LIST", value_parser = options::core_choice, help_heading = "Placement")]
    cpus: Option<CoreChoice>,
    /// Cores of the stream threads at the server
    #[arg(long, value_name = "LIST", value_parser = options::core_choice, help_heading = "Placement")]
    peer_cpus: Option<CoreChoice>,
    /// Memory of the stream threads here: local, bind:NODE or preferred:NODE
    #[arg(long, value_name = "POLICY", value_parser = options::numa, help_heading = "Placement")]
    numa: Option<landspeed_model::NumaPolicy>,
    /// Memory of the stream threads at the server
    #[arg(long, value_name = "POLICY", value_parser = options::numa, help_heading = "Placement")]
    peer_numa: Option<landspeed_model::NumaPolicy>,

    /// IPv4 only
    #[arg(short = '4', long, conflicts_with = "v6", help_heading = "Network")]
    v4: bool,
    /// IPv6 only
    #[arg(short = '6', long, help_heading = "Network")]
    v6: bool,
    /// Local address to send from
    #[arg(short = 'B', long, value_name = "ADDRESS", help_heading = "Network")]
    bind: Option<String>,
    /// Local port of the first data socket; the others have the ports after it
    #[arg(long, value_name = "PORT", help_heading = "Network", conflicts_with = "from",
          value_parser = clap::value_parser!(u16).range(1..))]
    pub cport: Option<u16>,
    /// DSCP of everything the test sends: 0 to 63, or ef, cs1, af41, le
    #[arg(long, value_parser = options::dscp, help_heading = "Network")]
    dscp: Option<u8>,
    /// DSCP of each stream of a direction in turn, such as cs0,cs1,cs5,ef; the probes have the first
    #[arg(long, value_name = "DSCP", value_parser = options::dscp, value_delimiter = ',', conflicts_with = "dscp",
          help_heading = "Network")]
    stream_dscp: Vec<u8>,
    /// Prove the path MTU in both directions first, with don't-fragment probes
    #[arg(long, help_heading = "Network")]
    probe_mtu: bool,
    /// Test against an iperf3 server (3.1 or later), port 5201: the local end is measured in full, the remote end is limited
    /// to iperf3's summary
    #[arg(long, help_heading = "iperf3", conflicts_with_all = ["tap", "key_file", "rr", "probe", "probe_mtu"])]
    pub iperf3: bool,
    #[command(flatten)]
    pub with_iperf3: super::iperf3::Args,
    /// File with the pre-shared key of the server; with --from, of both servers
    #[arg(long, value_name = "FILE", help_heading = "Network")]
    pub key_file: Option<PathBuf>,
    #[command(flatten)]
    pub trust: crate::trust::TrustArgs,
    /// At the end, ask over the path (UDP to port 9 of the server) for the invalid seconds of a `landspeed emulate --between`.
    /// Nothing authenticates the answer, so it changes no verdict
    #[arg(long, help_heading = "Network", conflicts_with = "from")]
    pub ask_path: bool,

    /// Sampling interval, 1ms to 10s [default: 100 ms]; from 200ms on, also that of the lines printed [default: 1 s]
    #[arg(short, long, value_parser = options::time, help_heading = "Output", allow_hyphen_values = true)]
    pub interval: Option<Nanos>,
    /// Write the document here (- for standard output)
    #[arg(short = 'J', long, value_name = "FILE", help_heading = "Output")]
    pub json: Option<Sink>,
    /// What --json writes: landspeed's document, or one that reads like iperf3's
    #[arg(long, value_enum, default_value = "landspeed", requires = "json", help_heading = "Output")]
    format: FormatArg,
    /// Write events as they happen, one JSON object a line: progress each --interval (at most five a second), the document last
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub jsonl: Option<Sink>,
    /// Draw the result: one HTML file that needs nothing else
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub report: Option<PathBuf>,
    /// Capture both ends to NAME.client.pcapng (this host) and NAME.server.pcapng (the server), and analyse them. Needs
    /// CAP_NET_RAW here and `landspeed serve --allow-tap` there
    #[arg(long, value_name = "NAME", help_heading = "Output")]
    pub tap: Option<PathBuf>,
    /// Text to carry in the document
    #[arg(long, short = 'T', help_heading = "Output")]
    title: Option<String>,
    /// Length of the path, such as 4000km: adds goodput × distance, the metric of the Land Speed Record
    #[arg(long, value_name = "DISTANCE", value_parser = options::metres, help_heading = "Output")]
    distance: Option<f64>,
    /// Print evidence, CPU cost, accounting, each stream and all notes, too
    #[arg(short, long, help_heading = "Output", conflicts_with = "quiet")]
    pub verbose: bool,
    /// Print nothing
    #[arg(short, long, help_heading = "Output")]
    pub quiet: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum FormatArg {
    /// `landspeed schema run`
    Landspeed,
    /// What `iperf3 -J` writes, with reports each second unless -i says otherwise
    Iperf3Json,
}

/// How bytes are handed to the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum SendArg {
    /// send(2), the kernel copies
    Copy,
    /// sendfile(2) from memory
    Sendfile,
    /// vmsplice(2) and splice(2)
    Splice,
    /// MSG_ZEROCOPY
    Zerocopy,
}

/// What the receiver does with them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum ReceiveArg {
    /// recv(2), the kernel copies
    Copy,
    /// MSG_TRUNC, the kernel drops
    Discard,
}

impl SendArg {
    /// Returns the send mode as a parameter.
    pub fn mode(self) -> SendMode {
        match self {
            Self::Copy => SendMode::Copy,
            Self::Sendfile => SendMode::Sendfile,
            Self::Splice => SendMode::Splice,
            Self::Zerocopy => SendMode::Zerocopy,
        }
    }
}

impl ReceiveArg {
    /// Returns the receive mode as a parameter.
    pub fn mode(self) -> ReceiveMode {
        match self {
            Self::Copy => ReceiveMode::Copy,
            Self::Discard => ReceiveMode::Discard,
        }
    }
}

impl Args {
    /// Returns host and port of the server.
    pub fn server(&self) -> Target {
        Target { host: self.target.host.clone(), port: self.port.or(self.target.port) }
    }

    /// Encodes the document in the requested format.
    pub fn encode(&self, document: &RunDocument) -> anyhow::Result<Vec<u8>> {
        let server = self.server();
        let default = if self.iperf3 { landspeed_iperf3::DEFAULT_PORT } else { landspeed_flow::client::DEFAULT_PORT };
        let mut text = match self.format {
            FormatArg::Landspeed => serde_json::to_vec(document).context("cannot encode the document")?,
            FormatArg::Iperf3Json => {
                let interval_ns = self.interval.map_or(1_000_000_000, Nanos::get);
                let place = (server.host, server.port.unwrap_or(default));
                return Ok(crate::iperf3::json(document, interval_ns, place)?.into_bytes());
            }
        };
        text.push(b'\n');
        Ok(text)
    }

    /// Returns the requested parameters, as far as they can be parsed, and an error if they are invalid.
    pub fn parameters(&self) -> (Parameters, Result<(), String>) {
        let mut parameters = self.plain_parameters();
        let sound = self.read_sizes_and_rates(&mut parameters).and_then(|()| self.check(&parameters));
        (parameters, sound)
    }

    /// Validates the parameters. With `--iperf3`, the iperf3 client does: its datagram headers are shorter and it
    /// lacks some options.
    fn check(&self, parameters: &Parameters) -> Result<(), String> {
        if self.iperf3 {
            return Ok(());
        }
        landspeed_flow::validate::check(parameters).map_err(|invalid| invalid.to_string())
    }

    fn plain_parameters(&self) -> Parameters {
        let protocol = match (self.udp, self.rr) {
            (false, false) => Protocol::Tcp,
            (true, false) => Protocol::Udp,
            (false, true) => Protocol::TcpRr,
            (true, true) => Protocol::UdpRr,
        };
        let interval_ns = self.interval.map_or(100_000_000, Nanos::get);
        Parameters {
            protocol,
            direction: match (self.reverse, self.bidir || self.rrul) {
                (true, _) => Direction::Download,
                (_, true) => Direction::Both,
                _ => Direction::Upload,
            },
            streams: if self.rrul { RRUL_DSCP.len() as u32 } else { self.streams },
            time_ns: match (self.time, self.bytes.is_some() || self.blocks.is_some()) {
                (Some(time), _) => Some(time.get()),
                (None, true) => None,
                (None, false) => Some(10_000_000_000),
            },
            bytes: self.bytes.map(Bytes::get),
            omit_ns: self.omit.map_or(0, Nanos::get),
            interval_ns,
            // The kernel accounts CPU time in ticks: below 0.1 s, shares are mostly rounding errors.
            host_interval_ns: interval_ns.max(100_000_000),
            window_bytes: self.window.map(Bytes::get),
            mss_bytes: self.mss,
            congestion: self.congestion.clone(),
            notsent_lowat_bytes: self.notsent_lowat.map(|size| u32::try_from(size.get()).unwrap_or(u32::MAX)),
            nodelay: self.nodelay,
            dscp: self.dscp,
            stream_dscp: if self.rrul { RRUL_DSCP.to_vec() } else { self.stream_dscp.clone() },
            mptcp: self.mptcp,
            pace_bps: self.pace.map(BitRate::bps),
            pace_scope: if self.pace_total { PaceScope::Total } else { PaceScope::Stream },
            send: match self.send {
                SendArg::Copy if self.zerocopy => SendMode::Sendfile,
                send => send.mode(),
            },
            receive: self.receive.mode(),
            read_rate_bps: self.read_rate.map(BitRate::bps),
            client_cpus: CoreChoice::list(self.cpus.as_ref()),
            server_cpus: CoreChoice::list(self.peer_cpus.as_ref()),
            client_cpus_auto: self.cpus == Some(CoreChoice::Auto),
            server_cpus_auto: self.peer_cpus == Some(CoreChoice::Auto),
            client_numa: self.numa,
            server_numa: self.peer_numa,
            family: connection::family(self.v4, self.v6),
            bind: self.bind.clone(),
            probe_rate_per_s: self.probe.or(self.rrul.then_some(ProbePlan::RATE_PER_S)),
            probe_udp: self.probe_udp || self.rrul,
            probe_mtu: self.probe_mtu,
            title: self.title.clone(),
            distance_m: self.distance,
            ..Parameters::default()
        }
    }

    fn read_sizes_and_rates(&self, p: &mut Parameters) -> Result<(), String> {
        match p.protocol {
            Protocol::Tcp => {
                p.rate_bps = self.rate_limit()?.and_then(|RateLimit(rate)| rate).map(BitRate::bps);
                if let Some(size) = self.size()? {
                    p.write_bytes = size;
                }
            }
            Protocol::Udp => {
                // iperf3's default: a test started by mistake should not flood a production network.
                let rate = self.rate_limit()?.unwrap_or(RateLimit(Some(BitRate::from_bps(1_000_000))));
                p.rate_bps = rate.0.map(BitRate::bps);
                let defaults = UdpParameters::default();
                let payload = self.size()?.unwrap_or(u64::from(defaults.payload_bytes));
                p.write_bytes = payload;
                p.udp = Some(UdpParameters {
                    payload_bytes: u32::try_from(payload).unwrap_or(u32::MAX),
                    ..self.udp_options()
                });
            }
            Protocol::TcpRr | Protocol::UdpRr => p.rr = Some(self.transactions()?),
        }
        // The check refuses UDP's options with the other protocols.
        if p.udp.is_none() && self.udp_options() != UdpParameters::default() {
            p.udp = Some(self.udp_options());
        }
        if let Some(blocks) = self.blocks {
            p.bytes = Some(blocks.saturating_mul(p.write_bytes));
        }
        Ok(())
    }

    fn udp_options(&self) -> UdpParameters {
        UdpParameters {
            burst_packets: self.burst,
            exact_departures: !self.coarse,
            gso: !self.no_gso,
            gro: !self.no_gro,
            ..UdpParameters::default()
        }
    }

    fn size(&self) -> Result<Option<u64>, String> {
        let parse = |text: &String| text.parse::<Bytes>().map(Bytes::get).map_err(|e| format!("--len: {e}"));
        self.len.as_ref().map(parse).transpose()
    }

    fn rate_limit(&self) -> Result<Option<RateLimit>, String> {
        self.rate.as_deref().map(options::rate_or_unlimited).transpose().map_err(|e| format!("--rate: {e}"))
    }

    fn transactions(&self) -> Result<RrParameters, String> {
        use landspeed_flow::rr::Transport;
        let transport = if self.udp { Transport::Udp } else { Transport::Tcp };
        let sizes = match self.sizes.as_ref().or(self.len.as_ref()) {
            Some(text) => {
                landspeed_flow::rr::sizes::parse_for(text, transport).map_err(|e| format!("--sizes: {e}"))?
            }
            None => vec![RrSize { request_bytes: 64, response_bytes: 64 }],
        };
        let rate_per_s = match self.rate.as_deref() {
            None | Some("unlimited" | "max") => None,
            Some(text) => Some(requests_per_second(text)?),
        };
        let mode = match (self.connect, rate_per_s) {
            (true, _) => RrMode::Connect,
            (false, Some(_)) => RrMode::OpenLoop,
            (false, None) => RrMode::ClosedLoop,
        };
        Ok(RrParameters { mode, rate_per_s, sizes })
    }
}

/// Parses a number of requests per second, with the suffixes of rates.
fn requests_per_second(text: &str) -> Result<f64, String> {
    text.parse::<f64>()
        .ok()
        .or_else(|| text.parse::<BitRate>().ok().map(|r| r.bps() as f64))
        .filter(|rate| rate.is_finite() && *rate > 0.0)
        .ok_or_else(|| format!("--rate: `{text}` is not a number of requests per second; write 1000 or 10k"))
}
