//! iperf3 compatibility: two clients against the same server, and two servers against the same client.

use std::rc::Rc;

use anyhow::Result;

use super::tcp::stream;
use super::udp::search;
use crate::bench::Bench;
use crate::bench::case::{Case, Role};
use crate::bench::child::Running;
use crate::bench::row::{Better, Unit};
use crate::bench::tools::{Bulk, Found, Landspeed, Offer, Transfer};

/// A client of one tool with the server of another.
struct ToolPair {
    client: Rc<dyn Bulk>,
    server: Rc<dyn Bulk>,
    /// Client options that select the server's protocol.
    protocol_options: &'static [&'static str],
}

impl Bulk for ToolPair {
    fn serve(&self, port: u16) -> Result<Option<Running>> {
        self.server.serve(port)
    }

    fn tcp(&self, port: u16, seconds: u32, extra: &[&str]) -> Result<Transfer> {
        self.client.tcp(port, seconds, &[self.protocol_options, extra].concat())
    }

    fn udp(&self, port: u16, seconds: u32, offer: Offer, extra: &[&str]) -> Result<Transfer> {
        self.client.udp(port, seconds, offer, &[self.protocol_options, extra].concat())
    }
}

/// `landspeed serve` on its port for iperf3 clients.
struct Iperf3Listener(Rc<Landspeed>);

impl Bulk for Iperf3Listener {
    fn serve(&self, port: u16) -> Result<Option<Running>> {
        self.0.serve_iperf3(port).map(Some)
    }

    fn tcp(&self, port: u16, seconds: u32, extra: &[&str]) -> Result<Transfer> {
        self.0.tcp(port, seconds, extra)
    }

    fn udp(&self, port: u16, seconds: u32, offer: Offer, extra: &[&str]) -> Result<Transfer> {
        self.0.udp(port, seconds, offer, extra)
    }
}

/// Returns landspeed's client and iperf3's client, both against an iperf3 server.
fn clients(bench: &Bench) -> (Found<dyn Bulk>, Found<dyn Bulk>) {
    let both = bench.tools.ours().and_then(|ours| Ok((ours, bench.tools.iperf3.clone()?)));
    let ours = both.map(|(client, server)| {
        Rc::new(ToolPair { client, server, protocol_options: &["--iperf3"] }) as Rc<dyn Bulk>
    });
    (ours, bench.tools.iperf3.clone())
}

/// Returns landspeed's server and iperf3's server, both with an iperf3 client.
fn servers(bench: &Bench) -> (Found<dyn Bulk>, Found<dyn Bulk>) {
    let both = bench.tools.landspeed.clone().and_then(|ours| Ok((ours, bench.tools.iperf3.clone()?)));
    let ours = both.map(|(ours, client)| {
        let server = Rc::new(Iperf3Listener(ours)) as Rc<dyn Bulk>;
        Rc::new(ToolPair { client, server, protocol_options: &[] }) as Rc<dyn Bulk>
    });
    (ours, bench.tools.iperf3.clone())
}

/// One TCP stream to or from an iperf3 server.
pub fn client_tcp(bench: &Bench, name: &str, way: &'static [&'static str]) -> Case {
    let (ours, theirs) = clients(bench);
    tcp(bench, name, way, "client", &ours, &theirs)
}

/// One TCP stream from or to an iperf3 client.
pub fn server_tcp(bench: &Bench, name: &str, way: &'static [&'static str]) -> Case {
    let (ours, theirs) = servers(bench);
    tcp(bench, name, way, "server", &ours, &theirs)
}

fn tcp(
    bench: &Bench,
    name: &str,
    way: &'static [&'static str],
    role: &str,
    ours: &Found<dyn Bulk>,
    theirs: &Found<dyn Bulk>,
) -> Case {
    Case::new(name)
        .metric("goodput", Unit::Bps, Better::Higher, Some(1.0))
        .with(Role::Ours, &format!("landspeed as {role}"), ours, stream(bench.seconds, way))
        .with(Role::Rival, &format!("iperf3 as {role}"), theirs, stream(bench.seconds, way))
}

/// UDP to an iperf3 server.
pub fn client_udp(bench: &Bench, name: &str, size: u64) -> Case {
    let (ours, theirs) = clients(bench);
    udp(bench, name, size, "client", &ours, &theirs)
}

/// UDP from an iperf3 client.
pub fn server_udp(bench: &Bench, name: &str, size: u64) -> Case {
    let (ours, theirs) = servers(bench);
    udp(bench, name, size, "server", &ours, &theirs)
}

fn udp(bench: &Bench, name: &str, size: u64, role: &str, ours: &Found<dyn Bulk>, theirs: &Found<dyn Bulk>) -> Case {
    let tolerated = bench.tolerated_loss;
    Case::new(name)
        .metric("loss-free goodput", Unit::Bps, Better::Higher, Some(1.0))
        .metric("loss-free datagrams", Unit::PacketsPerS, Better::Higher, Some(1.0))
        .metric("goodput flat out, losing", Unit::Bps, Better::Higher, None)
        .with(Role::Ours, &format!("landspeed as {role}"), ours, search(size, tolerated, &[]))
        .with(Role::Rival, &format!("iperf3 as {role}"), theirs, search(size, tolerated, &[]))
}
