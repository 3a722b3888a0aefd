//! Departure jitter of datagrams at 1 Gb/s, from a capture on the interface.

use std::rc::Rc;

use anyhow::Result;

use crate::bench::Bench;
use crate::bench::capture::{self, Capture};
use crate::bench::case::{Case, Measure, Role};
use crate::bench::cases::ensure_rate_reached;
use crate::bench::net::free_port;
use crate::bench::row::{Better, Unit};
use crate::bench::tools::{Bulk, Offer};

const RATE_BPS: f64 = 1e9;
const SIZE: u64 = 1448;

/// Duration of a run, seconds: a capture of about 170,000 frames.
const RUN_S: u32 = 2;

/// Measures the 99th percentile of the difference between departure gaps and the nominal gap.
pub fn case(bench: &Bench, name: &str) -> Case {
    let tools = &bench.tools;
    let case = Case::new(name)
        .metric("p99 inter-departure error", Unit::Ns, Better::Lower, Some(1.0 / 3.0))
        .metric("p50 inter-departure error", Unit::Ns, Better::Lower, None)
        .metric("rate seen by the capture", Unit::Bps, Better::Higher, None);
    if let Some(why) = capture::unavailable() {
        return case.without("all tools", &why);
    }
    // nuttcp busy-waits on the clock: it takes a full core and paces well. Landspeed has no target against it.
    let case = case
        .with(Role::Ours, "landspeed", &tools.ours(), captured(0, &[]))
        .with(Role::OursVariant, "landspeed --coarse", &tools.ours(), captured(0, &["--coarse"]))
        .with(Role::Rival, "iperf3", &tools.iperf3, captured(0, &[]))
        .with(Role::RivalVariant, "nuttcp (spinning)", &tools.nuttcp, captured(1, &[]));
    case.with(Role::RivalVariant, "xfr", &tools.xfr, captured(0, &[]))
}

/// `data_port` is the offset of the tool's data port from its control port.
fn captured(data_port: u16, extra: &'static [&'static str]) -> impl FnOnce(Rc<dyn Bulk>) -> Result<Measure> {
    move |tool| {
        let port = free_port()?;
        let server = tool.serve(port)?;
        Ok(Box::new(move || {
            let _alive = &server;
            let capture = Capture::start(port + data_port)?;
            tool.udp(port, RUN_S, Offer { size: SIZE, rate_bps: Some(RATE_BPS) }, extra)?;
            let pacing = capture::pacing(&capture.stop()?, SIZE, RATE_BPS)?;
            ensure_rate_reached(pacing.mean_bps, RATE_BPS)?;
            Ok(vec![pacing.p99_error_ns, pacing.p50_error_ns, pacing.mean_bps])
        }))
    }
}
