//! End-to-end tests of the program.

mod advice;
mod archive;
mod check;
mod common;
mod demo;
mod dropin;
mod emulate;
mod golden;
mod hostile;
mod install;
mod iperf3;
mod lab;
mod ledger;
mod machine;
mod recipes;
mod report;
mod slurm;
mod sweep;
mod tap;
mod trace;
mod tune;
mod tuneup;
mod verdicts;
mod watch;
mod watch_causes;
mod watch_screen;
