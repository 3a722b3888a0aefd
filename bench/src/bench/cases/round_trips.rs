//! Request/response, one at a time, 64 bytes in each direction.

use crate::bench::Bench;
use crate::bench::case::{Case, Measure, Role};
use crate::bench::net::free_port;
use crate::bench::row::{Better, Unit};
use crate::bench::tools::{RoundTrips, Transport};

const SIZE: u32 = 64;

/// UDP without pinning: the scheduler places client and server.
pub fn udp(bench: &Bench, name: &str) -> Case {
    case(bench, name, Transport::Udp, None)
}

/// TCP without pinning: the scheduler places client and server.
pub fn tcp(bench: &Bench, name: &str) -> Case {
    case(bench, name, Transport::Tcp, None)
}

/// UDP with the server on core 0 and the client on core 1. A round trip on one core is several times faster than
/// one between cores, and without pinning the scheduler picks either.
pub fn udp_pinned(bench: &Bench, name: &str) -> Case {
    pinned(bench, name, Transport::Udp)
}

/// TCP with the server on core 0 and the client on core 1.
pub fn tcp_pinned(bench: &Bench, name: &str) -> Case {
    pinned(bench, name, Transport::Tcp)
}

fn pinned(bench: &Bench, name: &str, transport: Transport) -> Case {
    if bench.cores < 2 {
        return Case::new(name).without("all tools", "there is one core");
    }
    case(bench, name, transport, Some((0, 1)))
}

fn case(bench: &Bench, name: &str, transport: Transport, cores: Option<(usize, usize)>) -> Case {
    let (server_core, client_core) = cores.unzip();
    let seconds = bench.seconds;
    let values = |trips: RoundTrips| vec![trips.per_s, trips.p50_ns];
    Case::new(name)
        .metric("round trips", Unit::PerS, Better::Higher, Some(1.05))
        .metric("p50", Unit::Ns, Better::Lower, Some(1.0))
        .with(Role::Ours, "landspeed", &bench.tools.landspeed, |tool| {
            let port = free_port()?;
            let server = tool.serve_on(port, server_core, &[])?;
            Ok(Box::new(move || {
                let _alive = &server;
                Ok(values(tool.round_trips(port, seconds, SIZE, transport, client_core)?))
            }) as Measure)
        })
        .with(Role::Rival, "sockperf --full-rtt", &bench.tools.sockperf, |tool| {
            let port = free_port()?;
            let server = tool.serve(port, transport, server_core)?;
            Ok(Box::new(move || {
                let _alive = &server;
                Ok(values(tool.ping_pong(port, seconds, SIZE, transport, client_core)?))
            }) as Measure)
        })
        .with(Role::Rival, "neper", &bench.tools.neper, |tool| {
            let port = free_port()?;
            Ok(Box::new(move || Ok(values(tool.ping_pong(port, seconds, SIZE, transport, cores)?))) as Measure)
        })
}
