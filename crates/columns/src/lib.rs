//! Packets as columns of a Parquet file: what a capture said of each one, for DuckDB and its like, and the compact form in
//! which a header trace is kept.
//!
//! [`Writer`] takes frames with their rows; [`Stream`] reads such a file back as a capture that
//! [`landspeed_wire::capture::Reader`] understands. Inside a row group packets are sorted by flow and direction, because
//! numbers of one direction differ from each other by little; the column `number` has the capture's order.
#![forbid(unsafe_code)]

mod rebuild;
mod record;
mod schema;
mod stream;
mod writer;

pub use schema::Detail;
pub use stream::Stream;
pub use writer::Writer;

/// What went wrong with a file of columns.
#[derive(Debug, thiserror::Error)]
pub enum ColumnsError {
    /// The Parquet library says so.
    #[error("{0}")]
    Parquet(#[from] parquet::errors::ParquetError),
    /// A Parquet file of something else.
    #[error("this Parquet file has no column `{0}`: it does not hold packets")]
    Lacks(&'static str),
    /// Its parts contradict each other.
    #[error("this Parquet file is damaged: its parts contradict each other")]
    Damaged,
    /// A column of another type than is written here.
    #[error("column `{0}` of this Parquet file is of another type than a packet's")]
    Type(&'static str),
}
