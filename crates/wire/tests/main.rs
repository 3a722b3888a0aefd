//! Frames, header traces and filters.

mod alike;
mod captures;
mod filter;
mod oracle;
