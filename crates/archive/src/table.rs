//! Encoding of small tables as Parquet.

use std::sync::Arc;

use landspeed_model::Metric;
use parquet::basic::{Compression, GzipLevel};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

use crate::{ArchiveError, Row};

/// A column: name and values, where `None` is null.
pub enum Column {
    /// UTF-8 text.
    Text(&'static str, Vec<Option<String>>),
    /// 64-bit integers.
    Integer(&'static str, Vec<Option<i64>>),
    /// Timestamps, nanoseconds since the Unix epoch.
    Time(&'static str, Vec<Option<i64>>),
    /// 64-bit floating-point numbers.
    Real(&'static str, Vec<Option<f64>>),
}

impl Column {
    fn len(&self) -> usize {
        match self {
            Self::Text(_, values) => values.len(),
            Self::Integer(_, values) | Self::Time(_, values) => values.len(),
            Self::Real(_, values) => values.len(),
        }
    }
}

/// Minimum number of rows for compression: for smaller tables an encoder of 300 KB per column would save a few
/// bytes, because dictionaries and runs are short already.
const MIN_COMPRESSED_ROWS: usize = 10_000;

/// Encodes columns of equal length as a Parquet file.
pub fn write(name: &str, columns: &[Column]) -> Result<Vec<u8>, ArchiveError> {
    encode(name, columns).map_err(|why| ArchiveError::Columns(why.to_string()))
}

fn encode(name: &str, columns: &[Column]) -> Result<Vec<u8>, ParquetError> {
    let fields = columns.iter().map(|column| match column {
        Column::Text(name, _) => format!(" OPTIONAL BYTE_ARRAY {name} (STRING);"),
        Column::Integer(name, _) => format!(" OPTIONAL INT64 {name};"),
        Column::Time(name, _) => format!(" OPTIONAL INT64 {name} (TIMESTAMP(NANOS,true));"),
        Column::Real(name, _) => format!(" OPTIONAL DOUBLE {name};"),
    });
    let fields = fields.collect::<Vec<_>>().concat();
    let schema = Arc::new(parse_message_type(&format!("message {name} {{{fields}}}"))?);
    let compression = match columns.first().map_or(0, Column::len) {
        MIN_COMPRESSED_ROWS.. => Compression::GZIP(GzipLevel::try_new(1)?),
        _ => Compression::UNCOMPRESSED,
    };
    let properties = WriterProperties::builder()
        .set_compression(compression)
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_created_by(format!("landspeed {}", env!("CARGO_PKG_VERSION")))
        .build();
    let mut file = SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties))?;
    let mut group = file.next_row_group()?;
    for column in columns {
        let Some(mut writer) = group.next_column()? else { break };
        match column {
            Column::Text(_, values) => {
                let (values, levels) = split(values.iter().map(|text| text.as_deref().map(ByteArray::from)));
                writer.typed::<ByteArrayType>().write_batch(&values, Some(&levels), None)?;
            }
            Column::Integer(_, values) | Column::Time(_, values) => {
                let (values, levels) = split(values.iter().copied());
                writer.typed::<Int64Type>().write_batch(&values, Some(&levels), None)?;
            }
            Column::Real(_, values) => {
                let (values, levels) = split(values.iter().copied());
                writer.typed::<DoubleType>().write_batch(&values, Some(&levels), None)?;
            }
        }
        writer.close()?;
    }
    group.close()?;
    file.into_inner()
}

/// Returns the non-null values, and the definition level (0 or 1) of each row.
fn split<T>(values: impl Iterator<Item = Option<T>>) -> (Vec<T>, Vec<i16>) {
    let mut there = Vec::new();
    let levels = values.map(|value| value.map_or(0, |value| (there.push(value), 1).1)).collect();
    (there, levels)
}

/// Encodes records as a Parquet file: one row per record, metrics as columns, settings and host facts as JSON
/// text.
///
/// # Errors
/// If the file cannot be encoded.
pub fn records_table(rows: &[Row]) -> Result<Vec<u8>, ArchiveError> {
    let text = |of: fn(&Row) -> Option<String>| rows.iter().map(of).collect::<Vec<_>>();
    let json = |values| serde_json::to_string(values).unwrap_or_default();
    let mut columns = vec![
        Column::Text("id", text(|row| Some(row.id.to_string()))),
        Column::Text("kind", text(|row| Some(row.kind.clone()))),
        Column::Time("started", rows.iter().map(|row| row.started_ns).collect()),
        Column::Text("title", text(|row| row.record.title.clone())),
        Column::Text("flow", text(|row| row.record.flow.clone())),
        Column::Text("target", text(|row| row.record.target.clone())),
        Column::Text("client", text(|row| row.client.clone())),
        Column::Text("server", text(|row| row.server.clone())),
        Column::Text("kernel", text(|row| row.record.kernel.clone())),
        Column::Text("cause", text(|row| row.record.cause.clone())),
        Column::Text("status", text(|row| Some(row.record.status.word().to_owned()))),
        Column::Text("tool", text(|row| Some(row.record.tool.clone()))),
        Column::Integer("seed", rows.iter().map(|row| row.record.seed.map(|seed| seed as i64)).collect()),
        Column::Text("digest", text(|row| row.record.digest.clone())),
        Column::Text("tags", text(|row| Some(row.tags.join(" ")))),
        Column::Text("settings", rows.iter().map(|row| Some(json(&row.record.settings))).collect()),
        Column::Text("hosts", rows.iter().map(|row| Some(json(&row.record.hosts))).collect()),
    ];
    columns.extend(
        Metric::ALL.map(|metric| {
            Column::Real(metric.field(), rows.iter().map(|row| row.record.figures.get(metric)).collect())
        }),
    );
    write("records", &columns)
}
