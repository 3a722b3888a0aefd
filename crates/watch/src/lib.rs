//! Observation of existing TCP flows of this host: read with sock_diag, without affecting them, and assigned to
//! the processes that hold them.
//!
//! [`Watch`] owns the sockets, the clock and `/proc`. Its readings go to [`Flows`], a state machine over (time,
//! dump) that decides which flows are sampled and keeps their recent samples. [`Observation`] converts the
//! samples of one flow to the form that `landspeed-diagnose` judges; [`Watch::document`] takes the judge as an
//! argument.
#![forbid(unsafe_code)]

mod beside;
mod document;
mod flows;
mod history;
mod observation;
mod processes;
mod tracepoints;
mod watch;

pub use document::JudgeFn;
pub use flows::{Flows, Limits, MovedTotals, SampledFlow, ThreadTimes};
pub use history::Point;
pub use observation::{Observation, observe};
pub use processes::{Process, Processes};
pub use watch::{FlowStatus, LiveStatus, Options, Scope, Watch, WatchError};
