//! `landspeed trace` from the command line: on captures of the lab, checked against its counters, and on
//! invalid files.

mod agreement;
mod cores;
mod corpus;
mod files;
mod oracles;
mod pictures;
mod placed;
mod road;
mod truth;
mod udp;
mod xplot;

use std::process::Output;

use serde_json::Value;

use crate::common::landspeed;

/// Runs `trace` with arguments to its end.
fn trace(arguments: &[&str]) -> Output {
    landspeed().arg("trace").args(arguments).output().expect("the program runs")
}

/// Returns the trace document.
fn document(arguments: &[&str]) -> Value {
    let output = trace(&[arguments, &["--json", "-"]].concat());
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|why| panic!("{arguments:?}: {why}: {}", String::from_utf8_lossy(&output.stderr)))
}
