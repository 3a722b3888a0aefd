//! Filter programs, run on frames.

mod decisions;
mod expressions;
#[path = "../../../../fuzz/src/filters.rs"]
mod filters;
mod frames;
mod machine;
mod manual;
mod tcpdump;
