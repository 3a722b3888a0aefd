//! A file of columns, read back as the bytes of a capture.

use std::collections::HashMap;
use std::io::{self, Read};
use std::net::IpAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};

use landspeed_trace::Endpoint;
use landspeed_wire::capture::write::{self, Interface, Packet, PacketDirection, Reception, Section};
use landspeed_wire::{Flags, LinkType, SackBlocks, TcpHeader, TcpOptions};
use parquet::column::reader::{ColumnReader, get_typed_column_reader};
use parquet::data_type::{ByteArray, ByteArrayType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, FileReader, SerializedFileReader};

use crate::ColumnsError;
use crate::rebuild;
use crate::record::{Flow, PAYLOAD_PREFIX_BYTES, Record};
use crate::schema::{COLUMNS, Values};

/// Maximum number of packets of a row group, which is in memory at once. This program writes 65,536; other writers default to
/// this number at most. A few bytes can stand for any number of equal values.
const MAX_GROUP: usize = 1 << 20;

/// A capture (pcapng) made from a file of columns, in the original order of the capture.
pub struct Stream<R: ChunkReader + 'static> {
    file: SerializedFileReader<R>,
    group: usize,
    records: std::vec::IntoIter<Record>,
    frame: Vec<u8>,
    bytes: Vec<u8>,
    at: usize,
    /// Whether each announced interface has Ethernet frames.
    interfaces: Vec<bool>,
}

impl<R: ChunkReader + 'static> Stream<R> {
    /// Opens a file and checks its columns.
    pub fn new(file: R) -> Result<Self, ColumnsError> {
        let opened = catch_unwind(AssertUnwindSafe(|| SerializedFileReader::new(file)));
        let file = opened.unwrap_or_else(|_| Err(ParquetError::General("its metadata cannot be".into())))?;
        let schema = file.metadata().file_metadata().schema_descr();
        let named = |name: &str| schema.columns().iter().any(|column| column.name() == name);
        if let Some(column) = COLUMNS.iter().find(|column| !column.analysed && !named(column.name)) {
            return Err(ColumnsError::MissingColumn(column.name));
        }
        let mut bytes = Vec::new();
        write::section(&mut bytes, &Section { application: Some("landspeed"), ..Section::default() });
        Ok(Self {
            file,
            group: 0,
            records: Vec::new().into_iter(),
            frame: Vec::new(),
            bytes,
            at: 0,
            interfaces: Vec::new(),
        })
    }

    /// Writes the next packet's block into `bytes`; returns `false` at the end.
    fn step(&mut self) -> Result<bool, ColumnsError> {
        self.bytes.clear();
        self.at = 0;
        let record = loop {
            if let Some(record) = self.records.next() {
                break record;
            }
            if self.group == self.file.num_row_groups() {
                return Ok(false);
            }
            self.records = records(&self.file, self.group)?.into_iter();
            self.group += 1;
        };
        let number = record.interface as usize;
        while self.interfaces.len() <= number {
            let name = format!("interface {}", self.interfaces.len());
            let ethernet = record.macs.is_some();
            let interface = Interface {
                name: &name,
                description: None,
                link: if ethernet { LinkType::ETHERNET } else { LinkType::RAW },
                snap_bytes: 0,
                mac: None,
                speed_bps: None,
                filter: None,
                system: None,
                comments: &[],
            };
            write::interface(&mut self.bytes, &interface);
            self.interfaces.push(ethernet);
        }
        rebuild::frame(&record, self.interfaces[number], &mut self.frame);
        let packet = Packet {
            interface: record.interface as u32,
            time_ns: record.time_ns as u64,
            original_bytes: record.wire as u32,
            data: &self.frame,
            vlan: None,
            direction: PacketDirection::In,
            reception: Reception::Unknown,
        };
        write::packet(&mut self.bytes, &packet);
        Ok(true)
    }
}

impl<R: ChunkReader + 'static> Read for Stream<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.at == self.bytes.len() {
            // The library trusts the file's metadata, and panics if it is wrong.
            let step = catch_unwind(AssertUnwindSafe(|| self.step())).unwrap_or(Err(ColumnsError::Damaged));
            if !step.map_err(io::Error::other)? {
                return Ok(0);
            }
        }
        let rest = &self.bytes[self.at..];
        let length = rest.len().min(buffer.len());
        buffer[..length].copy_from_slice(&rest[..length]);
        self.at += length;
        Ok(length)
    }
}

/// Columns of a row group by name, with one optional value per packet.
struct Group {
    numbers: HashMap<&'static str, Vec<Option<i64>>>,
    bytes: HashMap<&'static str, Vec<Option<ByteArray>>>,
}

impl Group {
    fn number(&self, name: &str, at: usize) -> Option<i64> {
        self.numbers.get(name)?.get(at).copied().flatten()
    }

    fn unsigned<T: TryFrom<i64> + Default>(&self, name: &str, at: usize) -> T {
        self.number(name, at).and_then(|number| T::try_from(number).ok()).unwrap_or_default()
    }

    fn text(&self, name: &str, at: usize) -> Option<&str> {
        std::str::from_utf8(self.bytes.get(name)?.get(at)?.as_ref()?.data()).ok()
    }

    fn record(&self, at: usize) -> Record {
        Record {
            number: self.number("number", at).unwrap_or(0),
            time_ns: self.number("time", at).unwrap_or(0).max(0),
            // A corrupt file may contain any number, and interfaces are announced one by one: limit it.
            interface: self.number("interface", at).unwrap_or(0).clamp(0, 255),
            wire: self.number("wire_bytes", at).unwrap_or(0).clamp(0, i64::from(u32::MAX)),
            macs: mac(self.text("destination_mac", at))
                .zip(mac(self.text("source_mac", at)))
                .map(|(to, from)| [to, from]),
            flow: self.flow(at),
            gap_ns: None,
        }
    }

    fn flow(&self, at: usize) -> Option<Flow> {
        let end = |address, port| {
            let address: IpAddr = self.text(address, at)?.parse().ok()?;
            let address = match address {
                IpAddr::V4(address) => address.to_ipv6_mapped(),
                IpAddr::V6(address) => address,
            };
            Some(Endpoint { address: address.to_bits(), port: self.unsigned(port, at) })
        };
        let protocol: u8 = self.unsigned("protocol", at);
        let mut flow = Flow {
            number: self.number("flow", at)?,
            source: end("source", "source_port")?,
            destination: end("destination", "destination_port")?,
            upward: false,
            protocol,
            hop_limit: self.unsigned("hop_limit", at),
            traffic_class: self.unsigned("traffic_class", at),
            identification: self.unsigned("identification", at),
            // No packet is larger, and lengths are added to it: limit it.
            payload: self.unsigned::<u32>("payload_bytes", at).min(16 << 20),
            tcp: None,
            head: ([0; PAYLOAD_PREFIX_BYTES], 0),
        };
        if protocol == 6 {
            flow.tcp = Some((self.tcp(at), None));
        } else if let Some(head) = self.bytes.get("datagram_head").and_then(|column| column.get(at)?.as_ref()) {
            let length = head.len().min(PAYLOAD_PREFIX_BYTES);
            flow.head.0[..length].copy_from_slice(&head.data()[..length]);
            flow.head.1 = length as u8;
        }
        Some(flow)
    }

    fn tcp(&self, at: usize) -> TcpHeader {
        let option = |name| self.number(name, at).and_then(|number| u32::try_from(number).ok());
        let ranges = [
            ("sack1_from", "sack1_to"),
            ("sack2_from", "sack2_to"),
            ("sack3_from", "sack3_to"),
            ("sack4_from", "sack4_to"),
        ];
        let sack: SackBlocks = ranges.into_iter().map_while(|(from, to)| option(from).zip(option(to))).collect();
        TcpHeader {
            source: 0,
            destination: 0,
            sequence: self.unsigned("sequence", at),
            acknowledgement: self.unsigned("acknowledgement", at),
            flags: Flags(self.unsigned("tcp_flags", at)),
            window: self.unsigned("window", at),
            payload: 0,
            options: TcpOptions {
                timestamps: option("timestamp").zip(option("timestamp_echo")),
                mss: option("mss").and_then(|mss| mss.try_into().ok()),
                window_scale: option("window_scale").and_then(|scale| scale.try_into().ok()),
                sack_permitted: option("sack_permitted") == Some(1),
                sack,
                multipath: None,
                incomplete: false,
            },
        }
    }
}

fn mac(text: Option<&str>) -> Option<[u8; 6]> {
    let mut mac = [0; 6];
    let mut parts = text?.split(':');
    for byte in &mut mac {
        *byte = u8::from_str_radix(parts.next()?, 16).ok()?;
    }
    Some(mac)
}

/// Returns the packets of a row group in the order of the capture.
fn records<R: ChunkReader + 'static>(
    file: &SerializedFileReader<R>,
    number: usize,
) -> Result<Vec<Record>, ColumnsError> {
    let group = file.get_row_group(number)?;
    let rows = usize::try_from(group.metadata().num_rows()).unwrap_or(0);
    if rows > MAX_GROUP {
        return Err(ColumnsError::Group(rows));
    }
    let mut columns = Group { numbers: HashMap::new(), bytes: HashMap::new() };
    for at in 0..group.num_columns() {
        let name = group.metadata().column(at).column_descr().name().to_owned();
        let Some(column) = COLUMNS.iter().find(|column| !column.analysed && column.name == name) else { continue };
        let reader = group.get_column_reader(at)?;
        match (column.values, reader) {
            (Values::Number(_) | Values::Time(_), reader @ ColumnReader::Int64ColumnReader(_)) => {
                let mut reader = get_typed_column_reader::<Int64Type>(reader);
                let (mut values, mut levels) = (Vec::new(), Vec::new());
                reader.read_records(rows, Some(&mut levels), None, &mut values)?;
                columns.numbers.insert(column.name, spread(values, &levels));
            }
            (Values::Text(_) | Values::Bytes(_), reader @ ColumnReader::ByteArrayColumnReader(_)) => {
                let mut reader = get_typed_column_reader::<ByteArrayType>(reader);
                let (mut values, mut levels) = (Vec::new(), Vec::new());
                reader.read_records(rows, Some(&mut levels), None, &mut values)?;
                columns.bytes.insert(column.name, spread(values, &levels));
            }
            _ => return Err(ColumnsError::Type(column.name)),
        }
    }
    let count = columns.numbers.get("number").map_or(0, Vec::len);
    let mut records: Vec<Record> = (0..count).map(|at| columns.record(at)).collect();
    records.sort_by_key(|record| record.number);
    Ok(records)
}

/// Assigns the values to the packets that have one, by definition level.
fn spread<T>(values: Vec<T>, levels: &[i16]) -> Vec<Option<T>> {
    if levels.is_empty() {
        return values.into_iter().map(Some).collect();
    }
    let mut values = values.into_iter();
    levels.iter().map(|&level| if level > 0 { values.next() } else { None }).collect()
}
