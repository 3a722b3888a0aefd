//! Tests between hosts.

mod attempt;
mod cell;
pub mod command;
mod engine;
pub mod options;
mod plan;
mod survey;

pub use attempt::{Unmeasured, try_run};
pub use engine::run;
pub use plan::Hosts;
