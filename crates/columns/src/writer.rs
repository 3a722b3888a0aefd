//! Writes frames and their rows to a Parquet file.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::Write;
use std::sync::Arc;

use landspeed_trace::Row;
use landspeed_wire::capture::Frame;
use parquet::basic::{Compression, Encoding, GzipLevel};
use parquet::data_type::{ByteArray, ByteArrayType, Int64Type};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::ColumnPath;

use crate::ColumnsError;
use crate::record::Record;
use crate::schema::{COLUMNS, Column, ColumnEncoding, Detail, Values};

/// Packets of a row group: 64 Ki records are some 20 MB until they are written.
const GROUP: usize = 65_536;

/// Writer of a Parquet file of packets.
pub struct Writer<W: Write + Send> {
    file: SerializedFileWriter<W>,
    columns: Vec<&'static Column>,
    group: Vec<Record>,
    packets: u64,
}

impl<W: Write + Send> Writer<W> {
    /// Creates a file without packets.
    pub fn new(file: W, detail: Detail) -> Result<Self, ColumnsError> {
        let columns: Vec<_> =
            COLUMNS.iter().filter(|column| !column.analysed || detail == Detail::Analysis).collect();
        let mut message = "message packets {".to_owned();
        let mut properties = WriterProperties::builder()
            .set_compression(Compression::GZIP(GzipLevel::try_new(4)?))
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_created_by(format!("landspeed {}", env!("CARGO_PKG_VERSION")));
        for Column { name, encoding, values, .. } in &columns {
            let kind = match values {
                Values::Number(_) | Values::Time(_) => "INT64",
                Values::Text(_) | Values::Bytes(_) => "BYTE_ARRAY",
            };
            let logical = match values {
                Values::Time(_) => " (TIMESTAMP(NANOS,true))",
                Values::Text(_) => " (STRING)",
                Values::Number(_) | Values::Bytes(_) => "",
            };
            let _ = write!(message, " OPTIONAL {kind} {name}{logical};");
            let path = ColumnPath::from(*name);
            properties = match encoding {
                ColumnEncoding::Dictionary => properties.set_column_dictionary_enabled(path, true),
                ColumnEncoding::Differences => properties
                    .set_column_dictionary_enabled(path.clone(), false)
                    .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED),
            };
        }
        message.push('}');
        let schema = Arc::new(parse_message_type(&message)?);
        let file = SerializedFileWriter::new(file, schema, Arc::new(properties.build()))?;
        Ok(Self { file, columns, group: Vec::with_capacity(GROUP), packets: 0 })
    }

    /// Adds a frame and its analysis.
    pub fn packet(&mut self, frame: &Frame<'_>, row: &Row) -> Result<(), ColumnsError> {
        self.group.push(Record::new(frame, row));
        self.packets += 1;
        if self.group.len() >= GROUP {
            self.write()?;
        }
        Ok(())
    }

    fn write(&mut self) -> Result<(), ColumnsError> {
        self.group.sort_unstable_by_key(Record::order);
        let mut group = self.file.next_row_group()?;
        let mut at = 0;
        while let Some(mut column) = group.next_column()? {
            match self.columns[at].values {
                Values::Number(value) | Values::Time(value) => {
                    let (values, levels) = split(self.group.iter().map(value));
                    column.typed::<Int64Type>().write_batch(&values, Some(&levels), None)?;
                }
                Values::Text(text) => {
                    // Few distinct values, each of them frequent: share the allocation.
                    let mut known: HashMap<String, ByteArray> = HashMap::new();
                    let shared = self.group.iter().map(|record| {
                        text(record).map(|text| {
                            known
                                .entry(text)
                                .or_insert_with_key(|text| ByteArray::from(text.as_bytes().to_vec()))
                                .clone()
                        })
                    });
                    let (values, levels) = split(shared);
                    column.typed::<ByteArrayType>().write_batch(&values, Some(&levels), None)?;
                }
                Values::Bytes(bytes) => {
                    let (values, levels) = split(self.group.iter().map(|record| bytes(record).map(ByteArray::from)));
                    column.typed::<ByteArrayType>().write_batch(&values, Some(&levels), None)?;
                }
            }
            column.close()?;
            at += 1;
        }
        group.close()?;
        self.group.clear();
        Ok(())
    }

    /// Writes the remaining packets and the footer. Returns the file and the number of its packets.
    pub fn finish(mut self) -> Result<(W, u64), ColumnsError> {
        if !self.group.is_empty() {
            self.write()?;
        }
        Ok((self.file.into_inner()?, self.packets))
    }
}

/// Splits optional values into the present ones, and whether each record has one (Parquet's definition level).
fn split<T>(values: impl Iterator<Item = Option<T>>) -> (Vec<T>, Vec<i16>) {
    let mut levels = Vec::with_capacity(GROUP);
    let values = values.inspect(|value| levels.push(i16::from(value.is_some()))).flatten().collect();
    (values, levels)
}
