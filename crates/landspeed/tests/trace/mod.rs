//! `landspeed trace` as it is used: on captures of the lab, whose counters are the truth, and on files that are none.

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

use std::process::{Command, Output};

use serde_json::Value;

/// The program.
fn program() -> Command {
    Command::new(env!("CARGO_BIN_EXE_landspeed"))
}

/// Runs `trace` with arguments to its end.
fn trace(arguments: &[&str]) -> Output {
    program().arg("trace").args(arguments).output().expect("the program runs")
}

/// Its document.
fn document(arguments: &[&str]) -> Value {
    let output = trace(&[arguments, &["--json", "-"]].concat());
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|why| panic!("{arguments:?}: {why}: {}", String::from_utf8_lossy(&output.stderr)))
}
