//! CPU cost per byte at a fixed paced rate: CPU time of server and client together, measured from outside in the
//! same way for every tool, set-up and tear-down included.

use std::rc::Rc;

use anyhow::Result;
use nix::sys::signal::Signal;

use crate::bench::Bench;
use crate::bench::case::{Case, Measure, Role};
use crate::bench::cases::ensure_rate_reached;
use crate::bench::child::children_cpu_s;
use crate::bench::net::free_port;
use crate::bench::row::{Better, Unit};
use crate::bench::tools::{Bulk, Offer, Transfer};

/// TCP at 5 Gb/s, paced by the kernel (landspeed and `--fq-rate`) or by the program (`-b`).
pub fn tcp(bench: &Bench, name: &str) -> Case {
    let (tools, seconds) = (&bench.tools, bench.seconds);
    let at = |extra: &'static [&'static str]| cost(5e9, move |tool, port| tool.tcp(port, seconds, extra));
    case(name)
        .with(Role::Ours, "landspeed --pace 5G", &tools.ours(), at(&["--pace", "5G"]))
        .with(Role::Rival, "iperf3 -b 5G", &tools.iperf3, at(&["-b", "5G"]))
        .with(Role::Rival, "iperf3 --fq-rate 5G", &tools.iperf3, at(&["--fq-rate", "5G"]))
        .with(Role::Rival, "xfr -b 5G", &tools.xfr, at(&["-b", "5G", "--no-zerocopy"]))
}

/// UDP at 1 Gb/s in datagrams of 1448 bytes.
pub fn udp(bench: &Bench, name: &str) -> Case {
    const OFFER: Offer = Offer { size: 1448, rate_bps: Some(1e9) };
    let (tools, seconds) = (&bench.tools, bench.seconds);
    let paced = |extra: &'static [&'static str]| cost(1e9, move |tool, port| tool.udp(port, seconds, OFFER, extra));
    case(name)
        // Exact departures spin through gaps of 12 µs, which takes a full core by design: the target applies to
        // `--coarse`.
        .with(Role::Ours, "landspeed --coarse", &tools.ours(), paced(&["--coarse"]))
        .with(Role::OursVariant, "landspeed, exact", &tools.ours(), paced(&[]))
        .with(Role::Rival, "iperf3", &tools.iperf3, paced(&[]))
        .with(Role::RivalVariant, "nuttcp (spinning)", &tools.nuttcp, paced(&[]))
        .with(Role::RivalVariant, "xfr", &tools.xfr, paced(&[]))
}

fn case(name: &str) -> Case {
    Case::new(name).metric("CPU time", Unit::NsPerByte, Better::Lower, Some(0.8)).metric(
        "goodput",
        Unit::Bps,
        Better::Higher,
        None,
    )
}

/// Starts a new server for every run, because CPU time is known only for reaped processes. A run that misses the
/// rate is discarded: costs are compared at equal rates.
fn cost(
    rate_bps: f64,
    run: impl Fn(&dyn Bulk, u16) -> Result<Transfer> + 'static,
) -> impl FnOnce(Rc<dyn Bulk>) -> Result<Measure> {
    move |tool| {
        Ok(Box::new(move || {
            let port = free_port()?;
            let before = children_cpu_s()?;
            let server = tool.serve(port)?;
            let transfer = run(tool.as_ref(), port)?;
            server.map(|server| server.stop(Signal::SIGTERM)).transpose()?;
            ensure_rate_reached(transfer.goodput_bps, rate_bps)?;
            let cpu_ns = (children_cpu_s()? - before) * 1e9;
            Ok(vec![cpu_ns / transfer.bytes, transfer.goodput_bps])
        }))
    }
}
