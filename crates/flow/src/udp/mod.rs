//! UDP streams.
