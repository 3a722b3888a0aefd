//! Requested and effective parameters of a test.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Transport and kind of a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// TCP bulk transfer.
    Tcp,
    /// UDP bulk transfer at a configured rate.
    Udp,
    /// Request/response over TCP.
    TcpRr,
    /// Request/response over UDP.
    UdpRr,
}

/// Direction of the data, from the client's point of view.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// Client to server.
    Upload,
    /// Server to client (`--reverse`).
    Download,
    /// Both directions simultaneously (`--bidir`).
    Both,
}

impl Direction {
    /// Returns the single directions: one, or two for [`Direction::Both`].
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
    /// First address the name resolves to.
    #[default]
    Any,
    /// IPv4 only.
    V4,
    /// IPv6 only.
    V6,
}

/// System call by which the sender passes data to the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SendMode {
    /// `send(2)`: the kernel copies.
    #[default]
    Copy,
    /// `sendfile(2)` from a memfd.
    Sendfile,
    /// `vmsplice(2)` + `splice(2)` through a pipe.
    Splice,
    /// `send(2)` with `MSG_ZEROCOPY`; completions are read from the error queue.
    Zerocopy,
}

/// System call by which the receiver reads data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ReceiveMode {
    /// `recv(2)`: the kernel copies to user memory.
    #[default]
    Copy,
    /// `recv(2)` with `MSG_TRUNC`: the kernel counts and discards the data.
    Discard,
}

/// Whether `--pace` applies to each stream or to all streams of a direction together.
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
    /// Allocate on the node of the core that runs the thread.
    Local,
    /// Allocate only on the given node.
    Bind(u32),
    /// Prefer the given node.
    Preferred(u32),
}

/// UDP parameters of a test.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UdpParameters {
    /// UDP payload of each datagram, bytes.
    pub payload_bytes: u32,
    /// Packets sent back to back in a burst; the mean rate stays the same. 1 spaces every packet.
    pub burst_packets: u32,
    /// Each burst is sent at its scheduled time, which occupies a core if gaps are short; otherwise packets due
    /// within 0.25 ms are sent together.
    pub exact_departures: bool,
    /// Whether generic segmentation offload (GSO) may be used.
    pub gso: bool,
    /// Whether generic receive offload (GRO) may be used.
    pub gro: bool,
}

impl Default for UdpParameters {
    /// Evenly spaced packets of 1448 bytes payload: they fit a 1500-byte MTU, with some bytes to spare for tunnels.
    fn default() -> Self {
        Self { payload_bytes: 1448, burst_packets: 1, exact_departures: true, gso: true, gro: true }
    }
}

/// Load of request/response tests.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RrMode {
    /// Closed loop: the next request is sent when the response has arrived.
    ClosedLoop,
    /// Open loop: requests are sent on a schedule; latency is measured from the scheduled time.
    OpenLoop,
    /// Each transaction is connect, request, response and close (TCP only).
    Connect,
}

/// Request/response parameters of a test.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RrParameters {
    /// Closed loop, open loop or connect.
    pub mode: RrMode,
    /// Open loop: rate of each stream, requests/s.
    pub rate_per_s: Option<f64>,
    /// Request and response sizes, one measurement each.
    pub sizes: Vec<RrSize>,
}

/// One request/response size pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RrSize {
    /// Size of a request, bytes.
    pub request_bytes: u32,
    /// Size of a response, bytes.
    pub response_bytes: u32,
}

/// All parameters of a test; used for the requested and for the effective ones.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Parameters {
    /// Transport and kind of test.
    pub protocol: Protocol,
    /// Direction of the data.
    pub direction: Direction,
    /// Number of parallel streams in each direction.
    pub streams: u32,
    /// Length of the measurement after `omit_ns`, nanoseconds; `None` if `bytes` limits it.
    pub time_ns: Option<u64>,
    /// Bytes to send in each direction, sum of its streams; `None` if `time_ns` limits it.
    pub bytes: Option<u64>,
    /// Time at the start excluded from the steady phase (`--omit`), nanoseconds.
    pub omit_ns: u64,
    /// Sampling interval of stream counters, nanoseconds.
    pub interval_ns: u64,
    /// Sampling interval of host counters, nanoseconds (not shorter than the kernel's accounting tick).
    pub host_interval_ns: u64,
    /// Size of each write and read, bytes.
    pub write_bytes: u64,
    /// Requested `SO_SNDBUF`/`SO_RCVBUF`, bytes; `None` leaves autotuning on.
    pub window_bytes: Option<u64>,
    /// Requested MSS (`TCP_MAXSEG`), bytes; `None` leaves it to the kernel.
    pub mss_bytes: Option<u32>,
    /// Congestion control (`cubic`); `None` uses the default of the host.
    pub congestion: Option<String>,
    /// Requested `TCP_NOTSENT_LOWAT`, bytes: the sender writes only while less than this is unsent; `None` leaves it to
    /// `net.ipv4.tcp_notsent_lowat`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notsent_lowat_bytes: Option<u32>,
    /// Whether `TCP_NODELAY` is set (Nagle's algorithm off).
    pub nodelay: bool,
    /// DSCP code point, 0..=63.
    pub dscp: Option<u8>,
    /// DSCP of each stream of a direction in turn, 0..=63, instead of `dscp`; the latency probe has the first. Empty: all
    /// streams have `dscp`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stream_dscp: Vec<u8>,
    /// Whether Multipath TCP is used.
    pub mptcp: bool,
    /// Pacing rate (`SO_MAX_PACING_RATE` for TCP), bits/s; `None` without one.
    pub pace_bps: Option<u64>,
    /// Whether `pace_bps` applies to each stream or to a direction.
    pub pace_scope: PaceScope,
    /// Application rate of each stream, payload bits/s: TCP writes or UDP datagrams are scheduled at this rate.
    pub rate_bps: Option<u64>,
    /// System call by which the sender passes data to the kernel.
    pub send: SendMode,
    /// System call by which the receiver reads data.
    pub receive: ReceiveMode,
    /// Maximum read rate of the receiver, bits/s per stream (to reproduce a slow reader).
    pub read_rate_bps: Option<u64>,
    /// Cores of the client's stream threads, one per stream, cyclically repeated; empty: not pinned.
    pub client_cpus: Vec<u32>,
    /// Cores of the server's stream threads, one per stream, cyclically repeated; empty: not pinned.
    pub server_cpus: Vec<u32>,
    /// The client pins its stream threads according to the CPUs that serve their receive queues; `client_cpus` is
    /// empty.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub client_cpus_auto: bool,
    /// The server pins its stream threads according to the CPUs that serve their receive queues; `server_cpus` is
    /// empty.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub server_cpus_auto: bool,
    /// NUMA policy of the client's stream threads.
    pub client_numa: Option<NumaPolicy>,
    /// NUMA policy of the server's stream threads.
    pub server_numa: Option<NumaPolicy>,
    /// Address family of the connection.
    pub family: Family,
    /// Local address the client binds to.
    pub bind: Option<String>,
    /// UDP parameters; `None` for other protocols.
    pub udp: Option<UdpParameters>,
    /// Request/response parameters; `None` for other protocols.
    pub rr: Option<RrParameters>,
    /// Latency probes during bulk streams, requests/s; `None` without probes.
    pub probe_rate_per_s: Option<f64>,
    /// Whether latency probes beside TCP streams are UDP datagrams.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub probe_udp: bool,
    /// Whether the path MTU is probed with don't-fragment packets before the test.
    pub probe_mtu: bool,
    /// Title given by the user, copied into the document.
    pub title: Option<String>,
    /// Length of the path as given by the user, metres; for goodput × distance (Land Speed Record).
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
            notsent_lowat_bytes: None,
            nodelay: false,
            dscp: None,
            stream_dscp: Vec::new(),
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
            probe_udp: false,
            probe_mtu: false,
            title: None,
            distance_m: None,
        }
    }
}
