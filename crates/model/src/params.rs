//! What was asked for, and what was in force.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which transport a test measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// TCP bulk transfer.
    Tcp,
    /// UDP datagrams at a rate.
    Udp,
    /// Request/response over TCP.
    TcpRr,
    /// Request/response over UDP.
    UdpRr,
}

/// Which way data moves, seen from the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// Client to server.
    Upload,
    /// Server to client (`--reverse`).
    Download,
    /// Both at once (`--bidir`).
    Both,
}

impl Direction {
    /// The single directions this one is made of.
    pub fn parts(self) -> &'static [Direction] {
        match self {
            Self::Upload => &[Self::Upload],
            Self::Download => &[Self::Download],
            Self::Both => &[Self::Upload, Self::Download],
        }
    }
}

/// Address family to use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Family {
    /// Whatever the name resolves to first.
    #[default]
    Any,
    /// IPv4 only.
    V4,
    /// IPv6 only.
    V6,
}

/// How the sender hands bytes to the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SendMode {
    /// `send(2)`: the kernel copies.
    #[default]
    Copy,
    /// `sendfile(2)` from a memory file.
    Sendfile,
    /// `vmsplice(2)` + `splice(2)` through a pipe.
    Splice,
    /// `send(2)` with `MSG_ZEROCOPY`, completions reaped.
    Zerocopy,
}

/// What the receiver does with arriving bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ReceiveMode {
    /// `recv(2)`: the kernel copies to user memory.
    #[default]
    Copy,
    /// `recv(2)` with `MSG_TRUNC`: bytes are counted and dropped in the kernel.
    Discard,
}

/// Whether `--pace` is for each stream or for all streams of a direction together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PaceScope {
    /// Each stream is paced at the rate.
    #[default]
    Stream,
    /// The rate is divided evenly among the streams of a direction.
    Total,
}

/// NUMA memory policy of the stream threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase", tag = "policy", content = "node")]
pub enum NumaPolicy {
    /// Allocate on the node of the core the thread runs on.
    Local,
    /// Allocate only on this node.
    Bind(u32),
    /// Prefer this node.
    Preferred(u32),
}

/// UDP parameters of a test.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UdpParameters {
    /// UDP payload of each datagram, bytes.
    pub payload_bytes: u32,
    /// Packets that leave together; the mean rate is kept. 1 spaces every packet.
    pub burst_packets: u32,
    /// Every burst leaves at its own time, which takes a core at short gaps; otherwise what has come due within
    /// 0.25 ms leaves together.
    pub exact_departures: bool,
    /// Whether generic segmentation offload may be used.
    pub gso: bool,
    /// Whether generic receive offload may be used.
    pub gro: bool,
}

impl Default for UdpParameters {
    /// One 1448-byte payload at a time, evenly spaced: fits a 1500-byte MTU with room for tunnels.
    fn default() -> Self {
        Self { payload_bytes: 1448, burst_packets: 1, exact_departures: true, gso: true, gro: true }
    }
}

/// How request/response load is offered.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RrMode {
    /// The next request leaves when the response has arrived.
    ClosedLoop,
    /// Requests leave on a schedule; latency counts from the intended time.
    OpenLoop,
    /// Each transaction is connect, request, response, close (TCP only).
    Connect,
}

/// Request/response parameters of a test.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RrParameters {
    /// How load is offered.
    pub mode: RrMode,
    /// Open loop: requests per second of each stream.
    pub rate_per_s: Option<f64>,
    /// Request and response sizes in bytes, one measurement each.
    pub sizes: Vec<RrSize>,
}

/// One request/response size pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RrSize {
    /// Request bytes.
    pub request_bytes: u32,
    /// Response bytes.
    pub response_bytes: u32,
}

/// Everything that shapes a test. The same type records what was asked for and what was in force.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Parameters {
    /// Transport and kind of test.
    pub protocol: Protocol,
    /// Which way data moves.
    pub direction: Direction,
    /// Parallel streams in each direction.
    pub streams: u32,
    /// Length of the measurement after `omit_ns`, nanoseconds; `None` when bytes bound it.
    pub time_ns: Option<u64>,
    /// Bytes to send in each direction, over all its streams; `None` when time bounds it.
    pub bytes: Option<u64>,
    /// Leading part kept out of the steady phase, nanoseconds.
    pub omit_ns: u64,
    /// Sampling interval of stream counters, nanoseconds.
    pub interval_ns: u64,
    /// Sampling interval of host counters, nanoseconds (never finer than the kernel's own accounting).
    pub host_interval_ns: u64,
    /// Bytes per write (and per read).
    pub write_bytes: u64,
    /// `SO_SNDBUF`/`SO_RCVBUF` asked for, bytes; `None` leaves autotuning on.
    pub window_bytes: Option<u64>,
    /// `TCP_MAXSEG`, bytes.
    pub mss_bytes: Option<u32>,
    /// Congestion control name.
    pub congestion: Option<String>,
    /// `TCP_NODELAY`.
    pub nodelay: bool,
    /// DSCP code point, 0..=63.
    pub dscp: Option<u8>,
    /// Multipath TCP.
    pub mptcp: bool,
    /// Pacing rate (`SO_MAX_PACING_RATE` for TCP), bits/s.
    pub pace_bps: Option<u64>,
    /// What `pace_bps` applies to.
    pub pace_scope: PaceScope,
    /// Application rate limit: TCP writes or UDP datagrams are scheduled at this rate per stream, bits/s of payload.
    pub rate_bps: Option<u64>,
    /// How bytes are handed to the kernel.
    pub send: SendMode,
    /// What the receiver does with them.
    pub receive: ReceiveMode,
    /// The receiver reads no faster than this, bits/s per stream (to reproduce a slow reader).
    pub read_rate_bps: Option<u64>,
    /// Cores of the client's stream threads, one per stream, repeated if shorter.
    pub client_cpus: Vec<u32>,
    /// Cores of the server's stream threads.
    pub server_cpus: Vec<u32>,
    /// The client places its stream threads by the CPUs that serve their receive queues; `client_cpus` is empty.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub client_cpus_auto: bool,
    /// The server does.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub server_cpus_auto: bool,
    /// Memory policy of the client's stream threads.
    pub client_numa: Option<NumaPolicy>,
    /// Memory policy of the server's stream threads.
    pub server_numa: Option<NumaPolicy>,
    /// Address family.
    pub family: Family,
    /// Local address the client binds.
    pub bind: Option<String>,
    /// UDP specifics.
    pub udp: Option<UdpParameters>,
    /// Request/response specifics.
    pub rr: Option<RrParameters>,
    /// Probe latency while bulk streams run: requests per second of the prober.
    pub probe_rate_per_s: Option<f64>,
    /// Prove the path MTU with don't-fragment probes before the test.
    pub probe_mtu: bool,
    /// Free text carried into the document.
    pub title: Option<String>,
    /// Length of the path as given, metres: for goodput × distance, the metric of the Land Speed Record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub distance_m: Option<f64>,
}

impl Default for Parameters {
    fn default() -> Self {
        Self {
            protocol: Protocol::Tcp,
            direction: Direction::Upload,
            streams: 1,
            time_ns: Some(10_000_000_000),
            bytes: None,
            omit_ns: 0,
            interval_ns: 100_000_000,
            host_interval_ns: 100_000_000,
            write_bytes: 1024 * 1024,
            window_bytes: None,
            mss_bytes: None,
            congestion: None,
            nodelay: false,
            dscp: None,
            mptcp: false,
            pace_bps: None,
            pace_scope: PaceScope::Stream,
            rate_bps: None,
            send: SendMode::Copy,
            receive: ReceiveMode::Copy,
            read_rate_bps: None,
            client_cpus: Vec::new(),
            server_cpus: Vec::new(),
            client_cpus_auto: false,
            server_cpus_auto: false,
            client_numa: None,
            server_numa: None,
            family: Family::Any,
            bind: None,
            udp: None,
            rr: None,
            probe_rate_per_s: None,
            probe_mtu: false,
            title: None,
            distance_m: None,
        }
    }
}
