//! Warnings about rates of ports and links that are off by more than 1e-4.

use landspeed_model::{KernelInfo, QueueRole, Warning};

use crate::guest::{Drain, GuestReport};
use crate::plan::{Egress, Plan};
use crate::scenario::ETHERNET_HEADER;

/// Relative precision of rates.
const PRECISION: f64 = 1e-4;
/// Maximum delay of a sample, nanoseconds: three clock reads of a process.
const SAMPLE_LATE_NS: u64 = 1_000;
/// Maximum size of a host's super-packet, bytes.
const SUPER_PACKET: u64 = 65_536;

/// Returns warnings about the rates of a run.
pub fn warnings(plan: &Plan, report: &GuestReport, kernel: &KernelInfo) -> Vec<Warning> {
    let mut warnings: Vec<Warning> = report
        .queues
        .iter()
        .filter_map(|queue| {
            let port = &plan.nodes[queue.node].ports[queue.port];
            if queue.carried.is_some() {
                return None;
            }
            let largest = match port.egress.role {
                QueueRole::Switch => u64::from(port.mtu + ETHERNET_HEADER),
                QueueRole::Host => SUPER_PACKET,
                QueueRole::Wire => return None,
            };
            drained(&port.egress, queue.drain, largest)
        })
        .collect();
    if !plan.exact_links {
        warnings.extend(rounded(plan, kernel));
    }
    warnings
}

/// Returns a warning if a port did not drain at its rate while it was backlogged.
fn drained(egress: &Egress, drain: Drain, largest: u64) -> Option<Warning> {
    let room = egress.rate_bps as f64 / 8e9;
    let due = drain.busy_ns as f64 * room;
    // At both ends of a span a frame may be split, and the sample is late.
    let cut = (drain.spans * 2) as f64 * (largest as f64 + SAMPLE_LATE_NS as f64 * room);
    let off = drain.bytes as f64 - due;
    (off.abs() > due * PRECISION + cut).then(|| Warning {
        code: "port-rate".to_owned(),
        message: format!(
            "{} drained {} bytes in {:.3} ms of backlog, expected {due:.0}: {:+.4} %",
            egress.name,
            drain.bytes,
            drain.busy_ns as f64 / 1e6,
            off / due * 100.0
        ),
    })
}

/// Returns a warning if the kernel rounds the time of each frame to whole nanoseconds, with the error of the
/// worst link.
fn rounded(plan: &Plan, kernel: &KernelInfo) -> Option<Warning> {
    let ports = || plan.nodes.iter().flat_map(|node| &node.ports);
    let error = |egress: &Egress, frame: u64| {
        let ns = (frame as f64 + f64::from(egress.overhead)) * 8e9 / egress.rate_bps as f64;
        ns / ns.floor().max(1.0) - 1.0
    };
    let worst = ports().map(|port| (error(&port.egress, u64::from(port.mtu + ETHERNET_HEADER)), &port.egress));
    let (error, egress) = worst.max_by(|a, b| a.0.total_cmp(&b.0))?;
    (error > PRECISION || egress.rate_bps > 10_000_000_000).then(|| Warning {
        code: "kernel-rounds-rates".to_owned(),
        message: format!(
            "the kernel {} ({}) is of an earlier landspeed and rounds frame times to nanoseconds: the rate of {} is up to {:+.4} % \
             off with full frames, more with short ones, and ports above 10 Gb/s are too slow; rebuild it: landspeed lab \
             kernel build",
            kernel.release,
            kernel.build_id,
            egress.name,
            error * 100.0
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{EgressKind, Impairments};

    fn port(rate_bps: u64) -> Egress {
        Egress {
            name: "west->east".to_owned(),
            role: QueueRole::Switch,
            rate_bps,
            overhead: 24,
            kind: EgressKind::Wire(Impairments::default()),
        }
    }

    #[test]
    fn a_port_that_drains_at_its_rate_is_not_reported() {
        let drain = Drain { busy_ns: 100_000_000, bytes: 1_250_000_000, spans: 1 };
        assert_eq!(drained(&port(100_000_000_000), drain, 1514), None);
        let one_frame_less = Drain { bytes: drain.bytes - 1538, ..drain };
        assert_eq!(drained(&port(100_000_000_000), one_frame_less, 1514), None);
        assert_eq!(drained(&port(100_000_000_000), Drain::default(), 1514), None, "it never had a backlog");
    }

    #[test]
    fn a_slow_port_is_reported_with_its_error() {
        let drain = Drain { busy_ns: 100_000_000, bytes: 1_197_500_000, spans: 1 };
        let warning = drained(&port(100_000_000_000), drain, 1514).expect("4.2 % too slow");
        assert!(warning.message.ends_with("-4.2000 %"), "{}", warning.message);
    }
}
