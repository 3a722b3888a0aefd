//! Sweeps in progress: their directory, the session that assigns runs, and the engines that make them.
//!
//! [`directory`] is all that drivers and workers share. A [`session::Session`] asks `landspeed-sweep` which run is
//! next and records what engines return: [`local`] and [`slurm`] make runs of [`lab::Lab`], [`hosts`] tests between
//! hosts; [`inline`] prepares a sweep of a scenario without a plan file; [`worker`] makes runs where an engine or
//! [`kubernetes`] starts it. Arguments and texts belong to the caller: it passes in [`progress::Progress`], and for
//! hosts the command `run` ([`hosts::command::RunCommand`]).
#![forbid(unsafe_code)]

mod bundle;
pub mod cells;
mod cross;
pub mod directory;
pub mod edit;
pub mod error;
mod evaluation;
pub mod hosts;
pub mod inline;
pub mod kubernetes;
pub mod lab;
pub mod local;
pub mod origin;
pub mod progress;
pub mod session;
pub mod setup;
pub mod slurm;
pub mod suite;
mod tasks;
pub mod traces;
mod verdicts;
pub mod worker;
