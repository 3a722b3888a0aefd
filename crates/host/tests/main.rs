//! Tests with live, recorded and hostile hosts.

mod hostile;
mod hosts;
mod live;
mod recorded;
