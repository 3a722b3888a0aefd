//! Integration tests: header prediction, captures, dissection and filters.

mod alike;
mod captures;
mod filter;
mod oracle;
