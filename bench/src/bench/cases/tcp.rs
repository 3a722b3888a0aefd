//! One TCP stream at full speed.

use std::rc::Rc;

use anyhow::Result;

use crate::bench::Bench;
use crate::bench::case::{Case, Measure, Role};
use crate::bench::net::free_port;
use crate::bench::row::{Better, Unit};
use crate::bench::tools::{Bulk, Found, Tools};

/// Data is copied on both sides, as most programs do.
pub fn copy(bench: &Bench, name: &str, congestion: &'static str) -> Case {
    let (tools, seconds) = (&bench.tools, bench.seconds);
    if let Err(why) = bench.set_congestion_control(congestion) {
        return Case::new(name).without("all", &why);
    }
    goodput(name, 1.2)
        .with(Role::Ours, "landspeed", &tools.ours(), stream(seconds, &["--send", "copy", "--receive", "copy"]))
        .with(Role::Rival, "iperf3", &tools.iperf3, stream(seconds, &[]))
        .with(Role::Rival, "iperf3 -l 1M", &tools.iperf3, stream(seconds, &["-l", "1M"]))
        .with(Role::Rival, "neper", &neper(tools), stream(seconds, &[]))
        .with(Role::Rival, "kperf", &tools.kperf, stream(seconds, &[]))
        .with(Role::Rival, "nuttcp", &tools.nuttcp, stream(seconds, &[]))
        .with(Role::Rival, "xfr", &tools.xfr, stream(seconds, &["--no-zerocopy"]))
}

/// Two concurrent streams, copied on both sides.
pub fn copy_two(bench: &Bench, name: &str) -> Case {
    let (tools, seconds) = (&bench.tools, bench.seconds);
    if let Err(why) = bench.set_congestion_control("cubic") {
        return Case::new(name).without("all", &why);
    }
    goodput(name, 1.2)
        .with(Role::Ours, "landspeed -P 2", &tools.ours(), stream(seconds, &["-P", "2"]))
        .with(Role::Rival, "iperf3 -P 2", &tools.iperf3, stream(seconds, &["-P", "2"]))
        .with(Role::Rival, "neper -F 2 -T 2", &neper(tools), stream(seconds, &["-F", "2", "-T", "2"]))
        .with(Role::Rival, "xfr -P 2", &tools.xfr, stream(seconds, &["-P", "2", "--no-zerocopy"]))
}

/// Zero-copy send, and a receiver that discards the data without copying it.
pub fn zerocopy_discard(bench: &Bench, name: &str, congestion: &'static str, target: f64) -> Case {
    let (tools, seconds) = (&bench.tools, bench.seconds);
    if let Err(why) = bench.set_congestion_control(congestion) {
        return Case::new(name).without("all", &why);
    }
    let ours = tools.ours();
    let iperf3 = if tools.iperf3_is_new { "iperf3 -Z --skip-rx-copy" } else { "iperf3 -Z" };
    let discard = |mode: &'static str| stream(seconds, &["--receive", "discard", "--send", mode]);
    goodput(name, target)
        .with(Role::Ours, "landspeed splice discard", &ours, discard("splice"))
        .with(Role::OursVariant, "landspeed sendfile discard", &ours, discard("sendfile"))
        .with(Role::OursVariant, "landspeed MSG_ZEROCOPY discard", &ours, discard("zerocopy"))
        .with(Role::OursVariant, "landspeed copy discard", &ours, discard("copy"))
        .with(Role::Rival, iperf3, &tools.iperf3, stream(seconds, &iperf3.split(' ').skip(1).collect::<Vec<_>>()))
        .with(Role::Rival, "neper -Z --skip-rx-copy", &neper(tools), stream(seconds, &["-Z", "--skip-rx-copy"]))
        .with(Role::Rival, "kperf zerocopy", &tools.kperf, stream(seconds, &["--msg-zerocopy", "--msg-trunc"]))
        .with(Role::RivalVariant, "xfr -Z", &tools.xfr, stream(seconds, &["-Z"]))
}

fn neper(tools: &Tools) -> Found<dyn Bulk> {
    tools.neper.clone().map(|neper| neper as Rc<dyn Bulk>)
}

/// A case whose metric is goodput; `target` is a ratio to the best rival.
pub fn goodput(name: &str, target: f64) -> Case {
    Case::new(name).metric("goodput", Unit::Bps, Better::Higher, Some(target))
}

/// Starts a tool's server once; each run is a client with the options `extra`.
pub fn stream(seconds: u32, extra: &[&'static str]) -> impl FnOnce(Rc<dyn Bulk>) -> Result<Measure> + use<> {
    let extra = extra.to_vec();
    move |tool| {
        let port = free_port()?;
        let server = tool.serve(port)?;
        Ok(Box::new(move || {
            let _alive = &server;
            Ok(vec![tool.tcp(port, seconds, &extra)?.goodput_bps])
        }))
    }
}
