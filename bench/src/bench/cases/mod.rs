//! Benchmark cases, one file per kind.

mod concurrent;
mod cpu;
mod emulate;
mod iperf3;
mod lab;
mod paced;
mod round_trips;
mod sampling;
mod sweep;
mod tap;
mod tcp;
mod trace;
mod udp;
mod veth;
mod watch;

use anyhow::{Result, ensure};

use super::Bench;
use super::case::Case;
use super::row::Unit;

/// Builds a case with the given name.
type Build = fn(&Bench, &str) -> Case;

/// All cases, in the order in which they run.
pub const ALL: &[(&str, Build)] = &[
    ("tcp-copy-cubic", |bench, name| tcp::copy(bench, name, "cubic")),
    ("tcp-copy-bbr", |bench, name| tcp::copy(bench, name, "bbr")),
    ("tcp-copy-two", tcp::copy_two),
    ("veth-copy-cubic", |bench, name| veth::copy(bench, name, "cubic", "1")),
    ("veth-copy-bbr", |bench, name| veth::copy(bench, name, "bbr", "1")),
    ("veth-copy-two-cubic", |bench, name| veth::copy(bench, name, "cubic", "2")),
    ("veth-copy-two-bbr", |bench, name| veth::copy(bench, name, "bbr", "2")),
    ("tcp-zerocopy-cubic", |bench, name| tcp::zerocopy_discard(bench, name, "cubic", 1.5)),
    ("tcp-zerocopy-bbr", |bench, name| tcp::zerocopy_discard(bench, name, "bbr", 1.1)),
    ("udp-8948", |bench, name| udp::loss_free(bench, name, 8948, 1.2)),
    ("udp-1448", |bench, name| udp::loss_free(bench, name, 1448, 2.0)),
    ("udp-64", |bench, name| udp::loss_free(bench, name, 64, 3.0)),
    ("rr-udp", round_trips::udp),
    ("rr-tcp", round_trips::tcp),
    ("rr-udp-pinned", round_trips::udp_pinned),
    ("rr-tcp-pinned", round_trips::tcp_pinned),
    ("udp-paced", paced::case),
    ("cpu-tcp", cpu::tcp),
    ("cpu-udp", cpu::udp),
    ("concurrent", concurrent::case),
    ("sampling", sampling::case),
    ("iperf3-client-up", |bench, name| iperf3::client_tcp(bench, name, &[])),
    ("iperf3-client-down", |bench, name| iperf3::client_tcp(bench, name, &["-R"])),
    ("iperf3-client-udp-8948", |bench, name| iperf3::client_udp(bench, name, 8948)),
    ("iperf3-client-udp-1448", |bench, name| iperf3::client_udp(bench, name, 1448)),
    ("iperf3-server-up", |bench, name| iperf3::server_tcp(bench, name, &[])),
    ("iperf3-server-down", |bench, name| iperf3::server_tcp(bench, name, &["-R"])),
    ("iperf3-server-udp-8948", |bench, name| iperf3::server_udp(bench, name, 8948)),
    ("iperf3-server-udp-1448", |bench, name| iperf3::server_udp(bench, name, 1448)),
    ("tap", tap::case),
    ("watch-idle", watch::idle),
    ("watch-busy", watch::busy),
    ("lab-single", lab::single),
    ("lab-long-fat", lab::long_fat),
    ("lab-memory", lab::memory),
    ("lab-cross", lab::cross),
    ("lab-boot", lab::boot),
    ("lab-two", lab::two),
    ("emulate-64", |bench, name| emulate::rate(bench, name, 64)),
    ("emulate-1500", |bench, name| emulate::rate(bench, name, 1514)),
    ("emulate-9000", |bench, name| emulate::rate(bench, name, 9014)),
    ("emulate-1600ms", emulate::long),
    ("emulate-delay-own", emulate::delay_own),
    ("emulate-delay-equal", emulate::delay_equal),
    ("sweep", sweep::case),
    ("sweep-slurm", sweep::slurm),
    ("trace-bulk", trace::bulk),
    ("trace-many", trace::many),
    ("trace-tshark", trace::tshark),
    ("trace-two-taps", trace::two_taps),
    ("trace-memory", trace::memory),
];

/// Returns an error if a run reached only nine tenths of the requested rate or less. (A pacer that also counts
/// headers stays above that.)
fn ensure_rate_reached(measured_bps: f64, requested_bps: f64) -> Result<()> {
    ensure!(
        measured_bps > 0.9 * requested_bps,
        "held {} of {}",
        Unit::Bps.show(measured_bps),
        Unit::Bps.show(requested_bps)
    );
    Ok(())
}
