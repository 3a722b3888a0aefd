//! The audit's scene in `landspeed demo`.

use std::path::Path;

use anyhow::Context as _;
use landspeed_host::LiveHost;
use landspeed_model::Goal;

use super::{audit, text, usual_role};
use crate::output::Sink;

/// The path the machine is judged for: a common one between two cities.
const RATE_BPS: u64 = 10_000_000_000;
const RTT_NS: u64 = 50_000_000;

/// Audits this machine, shows what weighs most, and writes the rest into a report. Findings are no failure of the demo.
pub fn main(out: &Path) -> anyhow::Result<()> {
    println!("── This host, judged for 10 Gb/s over 50 ms ──");
    println!(
        "Settings and counters only, nothing is changed; `landspeed check` shows each finding with its reason.\n"
    );
    let facts = landspeed_host::collect(&LiveHost::new());
    let goal = Goal { rate_bps: Some(RATE_BPS), rtt_ns: Some(RTT_NS), role: usual_role(&facts), interface: None };
    let document = audit(facts, &goal, &|_| true)?;
    print!("{}", text::headlines(&document));
    let path = out.join("check.html");
    let html = landspeed_report::render_audit(&document).context("cannot draw a report")?;
    Sink::File(path.clone()).write(html.as_bytes())?;
    Sink::File(out.join("check.json")).write(serde_json::to_string(&document)?.as_bytes())?;
    println!("  report   {}\n", path.display());
    Ok(())
}
