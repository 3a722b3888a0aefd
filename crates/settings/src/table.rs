//! The table: one entry for each field of the parameters and for each flag.

use landspeed_model::Protocol;

use crate::setting::{Acts, Agreement, FieldValue, Form, Iperf3Key, Range, Setting, Unit};

const ALL: &[Protocol] = &[Protocol::Tcp, Protocol::Udp, Protocol::TcpRr, Protocol::UdpRr];
const BULK: &[Protocol] = &[Protocol::Tcp, Protocol::Udp];
const BULK_TCP: &[Protocol] = &[Protocol::Tcp];
const BULK_UDP: &[Protocol] = &[Protocol::Udp];
const OVER_TCP: &[Protocol] = &[Protocol::Tcp, Protocol::TcpRr];
const RR: &[Protocol] = &[Protocol::TcpRr, Protocol::UdpRr];
const TCP_RR: &[Protocol] = &[Protocol::TcpRr];

const SECOND_NS: u64 = 1_000_000_000;
/// Maximum number of parallel streams in each direction.
pub const MAX_STREAMS: u32 = 1024;
/// Maximum number of iperf3 (`MAX_STREAMS`).
const MAX_IPERF3_STREAMS: u64 = 128;
/// Maximum duration of a test, nanoseconds (30 days).
pub const MAX_TIME_NS: u64 = 30 * 86_400 * SECOND_NS;
/// Maximum memory for the write buffers of a test on one host, bytes.
pub const MAX_BUFFERS: u64 = 1 << 30;
/// Largest UDP payload over IPv4, bytes (65535 − 20 − 8); IPv6 allows slightly more, but one limit is easier to explain.
pub const MAX_UDP_PAYLOAD: u32 = 65_507;
const RATE: Range = Range::Integers { min: 8, max: u64::MAX, text: "at least 8 bit/s" };
const CORES: Range = Range::Length { max: 1024, text: "at most 1024 cores" };

const fn iperf3(key: &'static str, option: &'static str, max: u64) -> Iperf3Key {
    Iperf3Key { key, option, max }
}

const fn flag(value: bool) -> Form {
    Form::Flag(FieldValue::Bool(value))
}

const fn word(value: &'static str) -> Form {
    Form::Flag(FieldValue::Word(value))
}

/// A setting without restrictions: the entries of the table name what differs.
const PLAIN: Setting = Setting {
    name: "",
    short: None,
    field: "",
    form: Form::Value,
    unit: Unit::Text,
    range: Range::Any,
    protocols: ALL,
    instead: "",
    acts: Acts::Both,
    needs: None,
    agreement: Agreement::Same,
    iperf3: None,
};

/// The settings, in the order of the options of `run`.
pub const SETTINGS: &[Setting] = &[
    Setting { name: "protocol", field: "protocol", form: Form::Hidden, ..PLAIN },
    Setting {
        name: "reverse",
        short: Some('R'),
        field: "direction",
        form: word("download"),
        unit: Unit::Flag,
        protocols: BULK,
        instead: "request/response always uses both directions",
        iperf3: Some(iperf3("reverse", "--reverse", 0)),
        ..PLAIN
    },
    Setting {
        name: "bidir",
        field: "direction",
        form: word("both"),
        unit: Unit::Flag,
        protocols: BULK,
        instead: "request/response always uses both directions",
        iperf3: Some(iperf3("bidirectional", "--bidir", 0)),
        ..PLAIN
    },
    Setting {
        name: "parallel",
        short: Some('P'),
        field: "streams",
        unit: Unit::Count,
        range: Range::Integers { min: 1, max: MAX_STREAMS as u64, text: "1 to 1024 streams" },
        iperf3: Some(iperf3("parallel", "--parallel", MAX_IPERF3_STREAMS)),
        ..PLAIN
    },
    Setting {
        name: "time",
        short: Some('t'),
        field: "time_ns",
        unit: Unit::Nanoseconds,
        range: Range::Integers { min: 1_000_000, max: MAX_TIME_NS, text: "1ms to 30 days" },
        agreement: Agreement::AtMost,
        iperf3: Some(iperf3("time", "--time", 86_400)),
        ..PLAIN
    },
    Setting {
        name: "bytes",
        short: Some('n'),
        field: "bytes",
        unit: Unit::Bytes,
        range: Range::Integers { min: 1, max: 1 << 60, text: "1 byte to 1EiB" },
        protocols: BULK,
        instead: "use --time",
        agreement: Agreement::AtMost,
        iperf3: Some(iperf3("num", "--bytes", 1 << 60)),
        ..PLAIN
    },
    Setting {
        name: "omit",
        short: Some('O'),
        field: "omit_ns",
        unit: Unit::Nanoseconds,
        range: Range::Integers { min: 0, max: 3600 * SECOND_NS, text: "at most one hour" },
        iperf3: Some(iperf3("omit", "--omit", 600)),
        ..PLAIN
    },
    Setting {
        name: "len",
        short: Some('l'),
        field: "write_bytes",
        unit: Unit::Bytes,
        range: Range::Integers { min: 1, max: 64 << 20, text: "1 byte to 64MiB per write" },
        protocols: BULK_TCP,
        instead: "use --sizes",
        iperf3: Some(iperf3("len", "--length", 1 << 20)),
        ..PLAIN
    },
    Setting {
        name: "len",
        short: Some('l'),
        field: "udp.payload_bytes",
        unit: Unit::Bytes,
        range: Range::Integers { min: 1, max: MAX_UDP_PAYLOAD as u64, text: "a UDP payload of at most 65507 bytes" },
        protocols: BULK_UDP,
        instead: "use --sizes",
        iperf3: Some(iperf3("len", "--length", MAX_UDP_PAYLOAD as u64)),
        ..PLAIN
    },
    Setting {
        name: "rate",
        short: Some('b'),
        field: "rate_bps",
        unit: Unit::BitsPerSecond,
        range: RATE,
        protocols: BULK,
        agreement: Agreement::AtMost,
        iperf3: Some(iperf3("bandwidth", "--bitrate", 1 << 52)),
        acts: Acts::Sender,
        ..PLAIN
    },
    Setting {
        name: "rate",
        short: Some('b'),
        field: "rr.rate_per_s",
        unit: Unit::PerSecond,
        range: Range::Fractions { min: 1e-3, max: 1e7, text: "0.001 to 10000000 requests per second" },
        protocols: RR,
        acts: Acts::Sender,
        ..PLAIN
    },
    Setting {
        name: "window",
        short: Some('w'),
        field: "window_bytes",
        unit: Unit::Bytes,
        // The kernel doubles the value in an int.
        range: Range::Integers { min: 1024, max: i32::MAX as u64 / 2, text: "1KiB to 1GiB" },
        iperf3: Some(iperf3("window", "--window", 512 << 20)),
        ..PLAIN
    },
    Setting {
        name: "mss",
        short: Some('M'),
        field: "mss_bytes",
        unit: Unit::Bytes,
        range: Range::Integers { min: 88, max: 65_495, text: "88 to 65495 bytes" },
        protocols: OVER_TCP,
        instead: "use --len",
        iperf3: Some(iperf3("MSS", "--set-mss", 9 * 1024)),
        ..PLAIN
    },
    Setting {
        name: "congestion",
        short: Some('C'),
        field: "congestion",
        range: Range::Name { text: "a name of at most 15 letters, such as cubic or bbr" },
        protocols: OVER_TCP,
        instead: "use --rate",
        iperf3: Some(iperf3("congestion", "--congestion", 0)),
        acts: Acts::Sender,
        ..PLAIN
    },
    Setting {
        name: "notsent-lowat",
        field: "notsent_lowat_bytes",
        unit: Unit::Bytes,
        range: Range::Integers { min: 1, max: i32::MAX as u64, text: "1 byte to 2GiB" },
        protocols: BULK_TCP,
        acts: Acts::Sender,
        ..PLAIN
    },
    Setting {
        name: "nodelay",
        short: Some('N'),
        field: "nodelay",
        form: flag(true),
        unit: Unit::Flag,
        protocols: OVER_TCP,
        iperf3: Some(iperf3("nodelay", "--no-delay", 0)),
        acts: Acts::Sender,
        ..PLAIN
    },
    Setting {
        name: "mptcp",
        short: Some('m'),
        field: "mptcp",
        form: flag(true),
        unit: Unit::Flag,
        protocols: OVER_TCP,
        iperf3: Some(iperf3("mptcp", "--mptcp", 0)),
        ..PLAIN
    },
    Setting {
        name: "pace",
        field: "pace_bps",
        unit: Unit::BitsPerSecond,
        range: RATE,
        protocols: BULK_TCP,
        instead: "use --rate",
        agreement: Agreement::AtMost,
        iperf3: Some(iperf3("fqrate", "--fq-rate", 1 << 52)),
        acts: Acts::Sender,
        ..PLAIN
    },
    Setting {
        name: "pace-total",
        field: "pace_scope",
        form: word("total"),
        unit: Unit::Flag,
        protocols: BULK_TCP,
        needs: Some("pace"),
        acts: Acts::Sender,
        ..PLAIN
    },
    Setting {
        name: "send",
        field: "send",
        protocols: BULK_TCP,
        iperf3: Some(iperf3("zerocopy", "--zerocopy", 1)),
        acts: Acts::Sender,
        ..PLAIN
    },
    Setting {
        name: "receive",
        field: "receive",
        protocols: BULK_TCP,
        iperf3: Some(iperf3("skip_rx_copy", "--skip-rx-copy", 1)),
        acts: Acts::Receiver,
        ..PLAIN
    },
    Setting {
        name: "read-rate",
        field: "read_rate_bps",
        unit: Unit::BitsPerSecond,
        range: RATE,
        protocols: BULK_TCP,
        agreement: Agreement::AtMost,
        acts: Acts::Receiver,
        ..PLAIN
    },
    Setting {
        name: "burst",
        field: "udp.burst_packets",
        unit: Unit::Count,
        range: Range::Integers { min: 1, max: 65_536, text: "1 to 65536 packets" },
        protocols: BULK_UDP,
        instead: "add -u",
        iperf3: Some(iperf3("burst", "--bitrate", 1000)),
        acts: Acts::Sender,
        ..PLAIN
    },
    Setting {
        name: "coarse",
        field: "udp.exact_departures",
        form: flag(false),
        unit: Unit::Flag,
        protocols: BULK_UDP,
        instead: "add -u",
        acts: Acts::Sender,
        ..PLAIN
    },
    Setting {
        name: "no-gso",
        field: "udp.gso",
        form: flag(false),
        unit: Unit::Flag,
        protocols: BULK_UDP,
        instead: "add -u",
        acts: Acts::Sender,
        ..PLAIN
    },
    Setting {
        name: "no-gro",
        field: "udp.gro",
        form: flag(false),
        unit: Unit::Flag,
        protocols: BULK_UDP,
        instead: "add -u",
        acts: Acts::Receiver,
        ..PLAIN
    },
    Setting {
        name: "connect",
        field: "rr.mode",
        form: word("connect"),
        unit: Unit::Flag,
        protocols: TCP_RR,
        ..PLAIN
    },
    Setting { name: "sizes", field: "rr.sizes", unit: Unit::Parts, protocols: RR, instead: "use --len", ..PLAIN },
    Setting {
        name: "probe",
        field: "probe_rate_per_s",
        form: Form::OptionalValue,
        unit: Unit::PerSecond,
        range: Range::Fractions { min: 0.1, max: 10_000.0, text: "0.1 to 10000 per second" },
        protocols: BULK,
        ..PLAIN
    },
    Setting {
        name: "probe-udp",
        field: "probe_udp",
        form: flag(true),
        unit: Unit::Flag,
        protocols: BULK_TCP,
        needs: Some("probe"),
        ..PLAIN
    },
    Setting {
        name: "cpus",
        short: Some('A'),
        field: "client_cpus",
        unit: Unit::Cores,
        range: CORES,
        acts: Acts::Client,
        ..PLAIN
    },
    Setting {
        name: "cpus",
        short: Some('A'),
        field: "client_cpus_auto",
        form: Form::Auto,
        unit: Unit::Flag,
        acts: Acts::Client,
        ..PLAIN
    },
    Setting {
        name: "peer-cpus",
        field: "server_cpus",
        unit: Unit::Cores,
        range: CORES,
        iperf3: Some(iperf3("server_affinity", "--affinity", 1024)),
        acts: Acts::Server,
        ..PLAIN
    },
    Setting {
        name: "peer-cpus",
        field: "server_cpus_auto",
        form: Form::Auto,
        unit: Unit::Flag,
        acts: Acts::Server,
        ..PLAIN
    },
    Setting { name: "numa", field: "client_numa", unit: Unit::Parts, acts: Acts::Client, ..PLAIN },
    Setting { name: "peer-numa", field: "server_numa", unit: Unit::Parts, acts: Acts::Server, ..PLAIN },
    Setting {
        name: "v4",
        short: Some('4'),
        field: "family",
        form: word("v4"),
        unit: Unit::Flag,
        acts: Acts::Client,
        ..PLAIN
    },
    Setting {
        name: "v6",
        short: Some('6'),
        field: "family",
        form: word("v6"),
        unit: Unit::Flag,
        acts: Acts::Client,
        ..PLAIN
    },
    Setting {
        name: "bind",
        short: Some('B'),
        field: "bind",
        range: Range::Length { max: 256, text: "an address of this host" },
        acts: Acts::Client,
        ..PLAIN
    },
    Setting {
        name: "dscp",
        field: "dscp",
        unit: Unit::Count,
        range: Range::Integers { min: 0, max: 63, text: "0 to 63 (the TOS byte divided by four)" },
        iperf3: Some(iperf3("TOS", "--tos", 255)),
        ..PLAIN
    },
    Setting {
        name: "stream-dscp",
        field: "stream_dscp",
        unit: Unit::Classes,
        range: Range::Length { max: 64, text: "at most 64 of 0 to 63, separated by commas" },
        protocols: BULK,
        ..PLAIN
    },
    Setting { name: "probe-mtu", field: "probe_mtu", form: flag(true), unit: Unit::Flag, ..PLAIN },
    Setting {
        name: "interval",
        short: Some('i'),
        field: "interval_ns",
        unit: Unit::Nanoseconds,
        range: Range::Integers { min: 1_000_000, max: 10 * SECOND_NS, text: "1ms to 10s" },
        agreement: Agreement::AtLeast,
        ..PLAIN
    },
    Setting {
        name: "host-interval",
        field: "host_interval_ns",
        form: Form::Hidden,
        unit: Unit::Nanoseconds,
        range: Range::Integers { min: 1_000_000, max: u64::MAX, text: "at least 1ms" },
        agreement: Agreement::AtLeast,
        ..PLAIN
    },
    Setting {
        name: "title",
        short: Some('T'),
        field: "title",
        range: Range::Length { max: 1024, text: "at most 1024 bytes" },
        iperf3: Some(iperf3("title", "--title", 0)),
        acts: Acts::Client,
        ..PLAIN
    },
    Setting {
        name: "distance",
        field: "distance_m",
        unit: Unit::Metres,
        range: Range::Fractions { min: f64::MIN_POSITIVE, max: f64::MAX, text: "above 0" },
        acts: Acts::Client,
        ..PLAIN
    },
];

/// The settings of this name: several if the protocols have separate fields; none if the name is unknown.
pub fn by_name(name: &str) -> impl Iterator<Item = &'static Setting> {
    SETTINGS.iter().filter(move |setting| setting.name == name)
}
