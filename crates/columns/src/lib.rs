//! Packets as columns of a Parquet file: the data of a capture for DuckDB and similar tools, and the compact
//! format of header traces.
//!
//! [`Writer`] takes frames with their rows; [`Stream`] reads such a file back as a capture that
//! [`landspeed_wire::capture::Reader`] can read. Inside a row group packets are sorted by flow and direction,
//! because the numbers of one direction have small differences; the column `number` has the order of the
//! capture.
#![forbid(unsafe_code)]

mod rebuild;
mod record;
mod schema;
mod stream;
mod writer;

pub use schema::Detail;
pub use stream::Stream;
pub use writer::Writer;

/// Errors of reading or writing a Parquet file of packets.
#[derive(Debug, thiserror::Error)]
pub enum ColumnsError {
    /// Error of the Parquet library.
    #[error("{0}")]
    Parquet(#[from] parquet::errors::ParquetError),
    /// A Parquet file without the named column: not a file of packets.
    #[error("this Parquet file has no column `{0}`: it does not hold packets")]
    MissingColumn(&'static str),
    /// The contents of the file are inconsistent.
    #[error("this Parquet file is damaged: its parts contradict each other")]
    Damaged,
    /// A row group has so many packets.
    #[error(
        "this Parquet file has {0} packets in one row group, the maximum is 1048576: write it again with smaller groups"
    )]
    Group(usize),
    /// The named column has an unexpected type.
    #[error("column `{0}` of this Parquet file is of another type than a packet's")]
    Type(&'static str),
}
