//! One and two copying TCP streams over a veth link between two network namespaces.
//!
//! Receive packet steering (RPS) of both ends puts the work that a NIC's interrupt would do onto the other core than
//! the sender's, so that the path is closer to a wire than loopback, where the sender does it.

use std::net::Ipv4Addr;
use std::process::Command;
use std::rc::Rc;

use anyhow::{Context, Result, ensure};

use super::tcp::{goodput, stream};
use crate::bench::Bench;
use crate::bench::case::{Case, Role};
use crate::bench::tools::Place;

const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 98, 0, 1);
const SERVER: Ipv4Addr = Ipv4Addr::new(10, 98, 0, 2);
/// Cores for the receive work of the client's and the server's interface, as RPS writes them.
const CLIENT_CORES: &str = "1";
const SERVER_CORES: &str = "2";
/// Rounds: single runs vary by a factor of two.
const ROUNDS: u32 = 15;

/// A namespace with one end of a veth link; the other end is in the benchmark's. Both go at its drop.
struct Link {
    namespace: String,
}

impl Link {
    fn make() -> Result<Self> {
        let namespace = format!("lsbench-{}", std::process::id());
        run(&["ip", "netns", "add", &namespace])?;
        let link = Self { namespace };
        let name = link.namespace.as_str();
        run(&["ip", "link", "add", "lsb0", "type", "veth", "peer", "name", "lsb1", "netns", name])?;
        run(&["ip", "address", "add", &format!("{CLIENT}/24"), "dev", "lsb0"])?;
        run(&["ip", "-n", name, "address", "add", &format!("{SERVER}/24"), "dev", "lsb1"])?;
        run(&["ip", "link", "set", "lsb0", "up"])?;
        run(&["ip", "-n", name, "link", "set", "lo", "up"])?;
        run(&["ip", "-n", name, "link", "set", "lsb1", "up"])?;
        // /sys shows the interfaces of the namespace in which it was mounted: `ip netns exec` mounts it again.
        let steer =
            |device: &str, cores: &str| format!("echo {cores} > /sys/class/net/{device}/queues/rx-0/rps_cpus");
        run(&["ip", "netns", "exec", name, "sh", "-c", &steer("lsb1", SERVER_CORES)])?;
        let mounted = format!("mount -t sysfs sysfs /sys && {}", steer("lsb0", CLIENT_CORES));
        run(&["unshare", "--mount", "sh", "-c", &mounted])?;
        Ok(link)
    }

    /// Makes `congestion` the congestion control of new sockets at the server.
    fn set_congestion_control(&self, congestion: &str) -> Result<()> {
        let setting = format!("net.ipv4.tcp_congestion_control={congestion}");
        run(&["ip", "netns", "exec", &self.namespace, "sysctl", "-qw", &setting])
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        let _ = run(&["ip", "netns", "delete", &self.namespace]);
    }
}

fn run(words: &[&str]) -> Result<()> {
    let output =
        Command::new(words[0]).args(&words[1..]).output().with_context(|| format!("cannot run {}", words[0]))?;
    ensure!(output.status.success(), "{}: {}", words.join(" "), String::from_utf8_lossy(&output.stderr).trim());
    Ok(())
}

/// `streams` streams under `congestion`; data is copied on both sides.
pub fn copy(bench: &Bench, name: &str, congestion: &str, streams: &'static str) -> Case {
    if let Err(why) = bench.set_congestion_control(congestion) {
        return Case::new(name).without("all", &why);
    }
    let link = match Link::make().and_then(|link| link.set_congestion_control(congestion).map(|()| link)) {
        Ok(link) => Rc::new(link),
        Err(error) => return Case::new(name).without("all", &format!("{error:#}")),
    };
    let [landspeed, iperf3, neper] = bench.tools.at(&Place::in_namespace(&link.namespace, SERVER));
    let seconds = bench.seconds;
    let options = |more: &[&'static str]| [&["-P", streams], more].concat();
    goodput(name, 1.0)
        .rounds(ROUNDS)
        .keep(link)
        .with(
            Role::Ours,
            "landspeed",
            &landspeed,
            stream(seconds, &options(&["--send", "copy", "--receive", "copy"])),
        )
        .with(Role::Rival, "iperf3", &iperf3, stream(seconds, &options(&[])))
        .with(Role::Rival, "iperf3 -l 1M", &iperf3, stream(seconds, &options(&["-l", "1M"])))
        .with(Role::Rival, "neper", &neper, stream(seconds, &["-F", streams, "-T", streams]))
}
