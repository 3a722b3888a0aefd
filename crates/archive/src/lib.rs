//! Results kept, found and exported: an index, compressed documents, series as Parquet.
#![forbid(unsafe_code)]
