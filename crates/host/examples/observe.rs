//! Prints a snapshot of this host, then its counters over one second: `cargo run -p landspeed-host --example
//! observe -- [PEER]`.

use std::net::{IpAddr, SocketAddr};

use landspeed_host::{HostSampler, cpu_use_between, snapshot};
use landspeed_sys::clock::{monotonic_ns, sleep_until};

fn main() {
    let peer = std::env::args().nth(1).and_then(|text| text.parse::<IpAddr>().ok());
    let host = snapshot(peer.map(|ip| SocketAddr::new(ip, 0)));
    println!("{}", serde_json::to_string_pretty(&host).expect("plain data"));
    let t0_ns = monotonic_ns();
    let mut sampler = HostSampler::new(host.nic.as_ref().map(|nic| nic.name.as_str()), t0_ns);
    for n in 1..=10 {
        sleep_until(t0_ns + n * 100_000_000);
        sampler.sample(monotonic_ns());
    }
    let series = sampler.finish(monotonic_ns(), t0_ns);
    println!("{}", serde_json::to_string_pretty(&series).expect("plain data"));
    println!("{:?}", cpu_use_between(&series, 0, i64::MAX));
}
