//! The lab's scene of `landspeed demo`.

use std::path::Path;

use landspeed_lab::kernel::Cache;

use super::run::{self, Options};
use crate::Outcome;
use crate::output::Sink;

/// Three buffers, one path.
const SCENARIO: &str = include_str!("demo.toml");

/// Runs the scene if a kernel is built, and says how to get one if not.
pub fn main(out: &Path) -> anyhow::Result<Outcome> {
    println!("── A path of 40 ms in virtual time, with three buffers ──");
    if Cache::open(None).and_then(|cache| cache.find(None)).is_err() {
        println!(
            "The lab runs the real Linux TCP stack in virtual time: the same result every time, without root. It needs \
             a kernel, built once in about five minutes:\n\n  landspeed lab kernel build && landspeed lab gallery\n"
        );
        return Ok(Outcome::Clean);
    }
    println!("The real Linux TCP stack, infinite CPU, an exact network. Repeat it: the digits stay.\n");
    let options = Options {
        json: Some(Sink::File(out.join("lab.json"))),
        report: Some(out.join("lab.html")),
        ..Options::default()
    };
    run::run("the demo's scenario", SCENARIO, &options)
}
