//! Chooses cores for stream threads from kernel data (`--cpus auto`).

use landspeed_host::{CpuLocation, Files, cpu_locations};
use landspeed_model::Parameters;
use landspeed_sys::{socket, thread};

use super::plan::{Side, StreamPlan};

/// Location of the streams' peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Peer {
    /// On another host: a local CPU processes each stream's receive queue.
    Remote,
    /// On this host, where packets are processed on the sender's core: the client takes the first cores, the server
    /// the last.
    Local,
}

/// Assigns a core to each stream if the parameters request it. The connections have exchanged their first
/// bytes, so the kernel reports which CPU processes their receive queues.
pub(super) fn place(streams: &mut [StreamPlan], parameters: &Parameters, side: Side) {
    let wanted = match side {
        Side::Client => parameters.client_cpus_auto,
        Side::Server => parameters.server_cpus_auto,
    };
    if !wanted {
        return;
    }
    let sites = cpu_locations(&Files::live(), &thread::allowed_cores());
    let serving: Vec<Option<u32>> =
        streams.iter().map(|stream| stream.socket.fd().and_then(socket::incoming_cpu)).collect();
    let here = |stream: &StreamPlan| {
        let (local, peer) = stream.socket.addresses();
        local.zip(peer).is_some_and(|(local, peer)| local.ip() == peer.ip() || peer.ip().is_loopback())
    };
    let peer = if streams.iter().any(here) { Peer::Local } else { Peer::Remote };
    let cores = choose_cores(&serving, &sites, peer, side);
    for (stream, core) in streams.iter_mut().zip(cores) {
        stream.core = Some(core);
    }
}

/// Chooses a core for each stream by the CPU that processes its receive queue: not that CPU, but on its NUMA
/// node, with a separate physical core per stream while there are enough. Returns nothing on a host with one
/// core.
fn choose_cores(serving: &[Option<u32>], sites: &[CpuLocation], peer: Peer, side: Side) -> Vec<u32> {
    if sites.len() < 2 {
        return Vec::new();
    }
    let mut ordered = sites.to_vec();
    if (peer, side) == (Peer::Local, Side::Server) {
        ordered.reverse();
    }
    let site_of = |cpu: u32| sites.iter().find(|site| site.cpu == cpu);
    let mut chosen: Vec<CpuLocation> = Vec::with_capacity(serving.len());
    for own in serving {
        let avoided = |same: &dyn Fn(&CpuLocation) -> bool| {
            peer == Peer::Remote && serving.iter().flatten().filter_map(|cpu| site_of(*cpu)).any(same)
        };
        let node = own.filter(|_| peer == Peer::Remote).and_then(site_of).map(|site| site.node);
        let cost = |site: &CpuLocation| {
            (
                chosen.iter().filter(|other| other.cpu == site.cpu).count(),
                avoided(&|serving| serving.cpu == site.cpu),
                chosen.iter().filter(|other| other.physical == site.physical).count(),
                node.is_some_and(|node| node != site.node),
                avoided(&|serving| serving.physical == site.physical),
            )
        };
        if let Some(best) = ordered.iter().min_by_key(|site| cost(site)).copied() {
            chosen.push(best);
        }
    }
    chosen.into_iter().map(|site| site.cpu).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns two NUMA nodes of two physical cores with two threads each: CPUs 0 to 3 and 4 to 7, siblings
    /// adjacent.
    fn sites() -> Vec<CpuLocation> {
        (0..8).map(|cpu| CpuLocation { cpu, physical: cpu / 2 * 2, node: cpu / 4 }).collect()
    }

    fn choose_remote(serving: &[Option<u32>], sites: &[CpuLocation]) -> Vec<u32> {
        choose_cores(serving, sites, Peer::Remote, Side::Server)
    }

    #[test]
    fn a_thread_gets_another_physical_core_of_the_same_node() {
        assert_eq!(choose_remote(&[Some(5)], &sites()), [6]);
        assert_eq!(choose_remote(&[Some(0)], &sites()), [2]);
        assert_eq!(choose_remote(&[None], &sites()), [0]);
    }

    #[test]
    fn streams_do_not_share_cores_while_others_are_free() {
        let cores = choose_remote(&[Some(0), Some(0), Some(4), Some(4)], &sites());
        assert_eq!(cores[0], 2);
        assert!(cores.iter().all(|core| ![0, 4].contains(core)), "{cores:?}");
        let mut distinct = cores.clone();
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!(distinct.len(), 4, "{cores:?}");
        let many = choose_remote(&[Some(0); 16], &sites());
        assert!((0..8).all(|core| many.iter().filter(|chosen| **chosen == core).count() == 2), "{many:?}");
    }

    #[test]
    fn client_and_server_on_one_host_get_different_cores() {
        let two = &sites()[..2];
        assert_eq!(choose_cores(&[Some(0)], two, Peer::Local, Side::Client), [0]);
        assert_eq!(choose_cores(&[Some(0)], two, Peer::Local, Side::Server), [1]);
    }

    #[test]
    fn no_core_is_chosen_on_a_host_with_one_core() {
        assert!(choose_remote(&[Some(0)], &sites()[..1]).is_empty());
    }
}
