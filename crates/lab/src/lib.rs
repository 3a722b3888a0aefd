//! Network paths in virtual time, with the real Linux TCP stack.
#![forbid(unsafe_code)]

pub mod boot;
pub mod cell;
pub mod gallery;
pub mod guest;
pub mod kernel;
pub mod outcome;
pub mod plan;
pub mod program;
pub mod scenario;
pub mod suite;
