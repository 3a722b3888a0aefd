//! Highest UDP rate without loss.

use std::rc::Rc;

use anyhow::Result;

use crate::bench::Bench;
use crate::bench::case::{Case, Measure, Role};
use crate::bench::net::{datagrams_dropped, free_port};
use crate::bench::row::{Better, Unit};
use crate::bench::search::{self, Probe};
use crate::bench::tools::{Bulk, Found, Offer, Tools};

/// Duration of one run of the search, seconds: a round has up to thirteen.
const PROBE_S: u32 = 1;

/// Loss-free rate of datagrams of `size` bytes, and the goodput of an unlimited sender. The loss is the larger of
/// the tool's count and the kernel's: a tool may not notice a loss.
pub fn loss_free(bench: &Bench, name: &str, size: u64, target: f64) -> Case {
    let (tools, tolerated) = (&bench.tools, bench.tolerated_loss);
    let buffer = largest_buffer().to_string();
    Case::new(name)
        .metric("loss-free goodput", Unit::Bps, Better::Higher, Some(target))
        .metric("loss-free datagrams", Unit::PacketsPerS, Better::Higher, Some(target))
        .metric("goodput flat out, losing", Unit::Bps, Better::Higher, Some(target.min(2.0)))
        .with(Role::Ours, "landspeed", &tools.ours(), search(size, tolerated, &[]))
        .with(Role::Rival, "iperf3 --gsro", &gsro(tools), search(size, tolerated, &["--gsro"]))
        // iperf3's best case: the largest buffer that this host allows, which landspeed requests by default.
        .with(
            Role::Rival,
            &format!("iperf3 --gsro -w {buffer}"),
            &gsro(tools),
            search(size, tolerated, &["--gsro", "-w", &buffer]),
        )
        .with(Role::RivalVariant, "iperf3", &tools.iperf3, search(size, tolerated, &[]))
        .with(Role::RivalVariant, "xfr", &tools.xfr, search(size, tolerated, &[]))
}

/// Returns the largest socket buffer that an unprivileged program may request in both directions, bytes.
fn largest_buffer() -> u64 {
    let limit = |name: &str| std::fs::read_to_string(format!("/proc/sys/net/core/{name}")).ok()?.trim().parse().ok();
    limit("rmem_max").zip(limit("wmem_max")).map_or(212_992, |(receive, send): (u64, u64)| receive.min(send))
}

/// Returns iperf3 if it supports GSO and GRO.
fn gsro(tools: &Tools) -> Found<dyn Bulk> {
    tools
        .iperf3
        .clone()
        .and_then(|iperf3| if tools.iperf3_is_new { Ok(iperf3) } else { Err("this iperf3 has no --gsro".to_owned()) })
}

/// Starts a tool's server once; each run is a search for the highest loss-free rate.
pub fn search(size: u64, tolerated: f64, extra: &[&str]) -> impl FnOnce(Rc<dyn Bulk>) -> Result<Measure> + use<> {
    let extra: Vec<String> = extra.iter().map(ToString::to_string).collect();
    move |tool| {
        let port = free_port()?;
        let server = tool.serve(port)?;
        Ok(Box::new(move || {
            let _alive = &server;
            let extra: Vec<&str> = extra.iter().map(String::as_str).collect();
            let found = search::highest(|rate_bps| {
                let before = datagrams_dropped()?;
                let run = tool.udp(port, PROBE_S, Offer { size, rate_bps }, &extra)?;
                let lost = run.lost.max(datagrams_dropped()?.saturating_sub(before));
                let sent = run.sent_bps / 8.0 / size as f64 * f64::from(PROBE_S);
                let lost = if lost as f64 <= tolerated * sent { 0 } else { lost };
                Ok(Probe { sent_bps: run.sent_bps, goodput_bps: run.goodput_bps, lost })
            })?;
            Ok(vec![found.loss_free_bps, found.loss_free_bps / 8.0 / size as f64, found.unlimited_bps])
        }))
    }
}
