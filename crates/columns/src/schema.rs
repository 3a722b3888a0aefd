//! The columns: names, types, encodings and sources of their values.

use std::net::{IpAddr, Ipv6Addr};

use landspeed_trace::Endpoint;

use crate::record::Record;

/// Level of detail per packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// Header fields only: a header trace.
    Headers,
    /// Header fields and analysis: gaps, RTTs, data in flight.
    Analysis,
}

/// Parquet encoding of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnEncoding {
    /// Differences between consecutive values (`DELTA_BINARY_PACKED`).
    Differences,
    /// Dictionary, for columns with few distinct values.
    Dictionary,
}

/// Source of a column's values; `None` is null.
#[derive(Clone, Copy)]
pub enum Values {
    /// Integers.
    Number(fn(&Record) -> Option<i64>),
    /// Times, nanoseconds since the Unix epoch.
    Time(fn(&Record) -> Option<i64>),
    /// Text.
    Text(fn(&Record) -> Option<String>),
    /// Byte strings.
    Bytes(fn(&Record) -> Option<Vec<u8>>),
}

/// A column of the file.
pub struct Column {
    /// Name in the file's schema.
    pub name: &'static str,
    /// Encoding of the values.
    pub encoding: ColumnEncoding,
    /// Whether the values come from the analysis rather than from headers.
    pub analysed: bool,
    /// Source of the values.
    pub values: Values,
}

const fn header(name: &'static str, encoding: ColumnEncoding, values: Values) -> Column {
    Column { name, encoding, analysed: false, values }
}

const fn analysed(name: &'static str, encoding: ColumnEncoding, values: Values) -> Column {
    Column { name, encoding, analysed: true, values }
}

fn address(endpoint: Endpoint) -> String {
    let address = Ipv6Addr::from_bits(endpoint.address);
    address.to_ipv4_mapped().map_or(IpAddr::V6(address), IpAddr::V4).to_string()
}

fn mac(mac: [u8; 6]) -> String {
    mac.map(|byte| format!("{byte:02x}")).join(":")
}

fn sack(record: &Record, at: usize, high: bool) -> Option<i64> {
    let &(low, end) = record.tcp()?.options.sack.as_slice().get(at)?;
    Some(i64::from(if high { end } else { low }))
}

use ColumnEncoding::{Dictionary, Differences};
use Values::{Bytes, Number, Text, Time};

/// All columns, in file order.
pub const COLUMNS: &[Column] = &[
    header("number", Differences, Number(|r| Some(r.number))),
    header("time", Differences, Time(|r| Some(r.time_ns))),
    header("interface", Dictionary, Number(|r| Some(r.interface))),
    header("wire_bytes", Dictionary, Number(|r| Some(r.wire))),
    header("source_mac", Dictionary, Text(|r| Some(mac(r.macs?[1])))),
    header("destination_mac", Dictionary, Text(|r| Some(mac(r.macs?[0])))),
    header("flow", Dictionary, Number(|r| Some(r.flow.as_ref()?.number))),
    header("protocol", Dictionary, Number(|r| Some(i64::from(r.flow.as_ref()?.protocol)))),
    header("source", Dictionary, Text(|r| Some(address(r.flow.as_ref()?.source)))),
    header("source_port", Dictionary, Number(|r| Some(i64::from(r.flow.as_ref()?.source.port)))),
    header("destination", Dictionary, Text(|r| Some(address(r.flow.as_ref()?.destination)))),
    header("destination_port", Dictionary, Number(|r| Some(i64::from(r.flow.as_ref()?.destination.port)))),
    header("payload_bytes", Dictionary, Number(|r| Some(i64::from(r.flow.as_ref()?.payload)))),
    header("hop_limit", Dictionary, Number(|r| Some(i64::from(r.flow.as_ref()?.hop_limit)))),
    header("traffic_class", Dictionary, Number(|r| Some(i64::from(r.flow.as_ref()?.traffic_class)))),
    header("identification", Differences, Number(|r| Some(i64::from(r.flow.as_ref()?.identification)))),
    header("tcp_flags", Dictionary, Number(|r| Some(i64::from(r.tcp()?.flags.0)))),
    header("sequence", Differences, Number(|r| Some(i64::from(r.tcp()?.sequence)))),
    header("acknowledgement", Differences, Number(|r| Some(i64::from(r.tcp()?.acknowledgement)))),
    header("window", Dictionary, Number(|r| Some(i64::from(r.tcp()?.window)))),
    header("mss", Dictionary, Number(|r| r.tcp()?.options.mss.map(i64::from))),
    header("window_scale", Dictionary, Number(|r| r.tcp()?.options.window_scale.map(i64::from))),
    header("sack_permitted", Dictionary, Number(|r| r.tcp()?.options.sack_permitted.then_some(1))),
    header("timestamp", Differences, Number(|r| r.tcp()?.options.timestamps.map(|(value, _)| i64::from(value)))),
    header("timestamp_echo", Differences, Number(|r| r.tcp()?.options.timestamps.map(|(_, echo)| i64::from(echo)))),
    header("sack1_from", Differences, Number(|r| sack(r, 0, false))),
    header("sack1_to", Differences, Number(|r| sack(r, 0, true))),
    header("sack2_from", Differences, Number(|r| sack(r, 1, false))),
    header("sack2_to", Differences, Number(|r| sack(r, 1, true))),
    header("sack3_from", Differences, Number(|r| sack(r, 2, false))),
    header("sack3_to", Differences, Number(|r| sack(r, 2, true))),
    header("sack4_from", Differences, Number(|r| sack(r, 3, false))),
    header("sack4_to", Differences, Number(|r| sack(r, 3, true))),
    header(
        "datagram_head",
        Dictionary,
        Bytes(|r| {
            let (head, length) = &r.flow.as_ref()?.head;
            (*length > 0).then(|| head[..usize::from(*length)].to_vec())
        }),
    ),
    analysed("gap_ns", Differences, Number(|r| r.gap_ns)),
    analysed("class", Dictionary, Text(|r| Some(r.seen()?.class.name().to_owned()))),
    analysed("stream_offset", Differences, Number(|r| Some(r.seen()?.sequence))),
    analysed("acknowledged_offset", Differences, Number(|r| r.seen()?.acknowledgement)),
    analysed("window_bytes", Dictionary, Number(|r| Some(r.seen()?.window as i64))),
    analysed("duplicate_ack", Dictionary, Number(|r| Some(i64::from(r.seen()?.duplicate_ack)))),
    analysed("rtt_ns", Differences, Number(|r| r.seen()?.rtt_ns.map(|rtt_ns| rtt_ns as i64))),
    analysed("in_flight_bytes", Differences, Number(|r| Some(r.seen()?.in_flight as i64))),
];
