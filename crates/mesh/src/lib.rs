//! Scheduled tests among many hosts.
//!
//! [`Inventory`] is what a person writes: hosts, shared links, tests, budgets and maintenance windows. [`Scheduler`] decides
//! which test starts when. The caller drives it with the time: [`Scheduler::poll`] returns the tests that start now,
//! [`Scheduler::finish`] takes their outcomes.
#![forbid(unsafe_code)]

mod budget;
mod history;
mod inventory;
mod load;
mod schedule;

pub use budget::{Amount, Budget, DAY_NS, Ledger};
pub use history::{Change, History, WEEK_NS};
pub use inventory::{
    Host, Inventory, Link, MAX_TEXT, MaintenanceWindow, MeshTest, Pair, RunOption, TEMPLATE, WindowTime, read,
    rfc3339,
};
pub use load::{LoadEstimate, ResourceLoad, TestCost, worst_case_bytes};
pub use schedule::{
    Blocked, HostState, Moment, Options, Outcome, PastTest, Scheduler, Start, TaskId, TaskState, Usage,
};
