//! Metrics for Prometheus: a [`Family`] declares a metric, [`Samples`] has its values at one moment and is written as
//! OpenMetrics or Prometheus text, and an [`Endpoint`] answers scrapers over HTTP on one thread.
#![forbid(unsafe_code)]

mod endpoint;
mod family;
mod process;
mod request;
mod samples;

pub use endpoint::{Endpoint, EndpointError, MAX_CONNECTIONS, ReservedDescriptors, RunningEndpoint};
pub use family::{Family, Kind};
pub use process::process_families;
pub use request::MAX_REQUEST;
pub use samples::{Format, Samples, Value};
