//! Placement of the threads of both hosts, based on the CPUs that serve the flows' receive queues.

use landspeed_model::{Parameters, TuneupPlacement};

use crate::facts::{EndFacts, Facts, FlowFacts};

/// Maximum number of placements tried with one verdict.
const MAX_PLACEMENTS: usize = 4;
/// Number of cores considered on a host with many.
const MAX_CANDIDATE_CORES: usize = 4;

/// Cores for the threads of client and server; an empty list leaves them to the scheduler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Placement {
    pub client: Vec<u32>,
    pub server: Vec<u32>,
    /// Reason why it may help.
    pub reason: String,
}

impl Placement {
    fn new(client: Vec<u32>, server: Vec<u32>, reason: impl Into<String>) -> Self {
        Self { client, server, reason: reason.into() }
    }

    /// Description such as `client core 1, server core 0`, or `no pinning`.
    pub fn description(&self) -> String {
        match (self.client.as_slice(), self.server.as_slice()) {
            ([], []) => "no pinning".to_owned(),
            (client, server) => format!("client {}, server {}", cores(client), cores(server)),
        }
    }

    pub fn key(&self) -> String {
        format!("cpus={:?}/{:?}", self.client, self.server)
    }
}

/// Description such as `core 1`, `cores 0,2`, `unpinned`.
pub(crate) fn cores(list: &[u32]) -> String {
    match list {
        [] => "unpinned".to_owned(),
        [one] => format!("core {one}"),
        many => format!("cores {}", crate::command::comma_separated(many)),
    }
}

/// Placements that differ from that of `parameters`, most promising first.
pub(crate) fn placements(facts: &Facts, parameters: &Parameters) -> Vec<Placement> {
    let streams = parameters.streams.max(1) as usize;
    let now = (&parameters.client_cpus, &parameters.server_cpus);
    let mut found = Vec::new();
    if !now.0.is_empty() || !now.1.is_empty() {
        found.push(Placement::new(Vec::new(), Vec::new(), "the scheduler may find free cores"));
    }
    if facts.same_host {
        found.extend(on_one_host(facts, streams));
    } else {
        found.extend(on_two_hosts(facts, now, streams));
    }
    found.retain(|placement| (&placement.client, &placement.server) != now);
    found.truncate(MAX_PLACEMENTS);
    found
}

/// Client and server on the same host: each gets its own cores.
fn on_one_host(facts: &Facts, streams: usize) -> Vec<Placement> {
    let cores = candidate_cores(&facts.client, &[]);
    if cores.len() < 2 {
        return Vec::new();
    }
    let reason = "each end has its own cores";
    if streams > 1 {
        let all = &facts.client.cores;
        let (front, back) = all.split_at(all.len() / 2);
        return vec![
            Placement::new(first(front, streams), first(back, streams), reason),
            Placement::new(first(back, streams), first(front, streams), reason),
        ];
    }
    let pairs = cores.iter().flat_map(|client| cores.iter().map(move |server| (*client, *server)));
    pairs
        .filter(|(client, server)| client != server)
        .map(|(client, server)| Placement::new(vec![client], vec![server], reason))
        .collect()
}

/// One host at a time: on another core than the CPU that serves its queue, and on the same.
fn on_two_hosts(facts: &Facts, now: (&Vec<u32>, &Vec<u32>), streams: usize) -> Vec<Placement> {
    let mut found = Vec::new();
    let ends = [(facts.client_sends, &facts.client, true), (!facts.client_sends, &facts.server, false)];
    // The receiver first, because it needs more time per packet.
    let mut ends: Vec<_> = ends.into_iter().collect();
    ends.sort_by_key(|(sends, _, _)| *sends);
    for (sends, end, is_client) in ends {
        let serving_cpus = serving_cpus(&facts.flows, is_client);
        if serving_cpus.is_empty() || end.cores.len() < 2 {
            continue;
        }
        let packets = if sends { "ACKs" } else { "packets" };
        let beside = first(&candidate_cores(end, &serving_cpus), streams);
        let served = crate::command::comma_separated(&serving_cpus);
        let options = [
            (beside, format!("CPU {served} handles the flow's {packets}: the thread gets another core nearby")),
            (
                serving_cpus.clone(),
                format!("CPU {served} handles the flow's {packets}: the thread shares its caches"),
            ),
        ];
        for (cores, reason) in options.into_iter().filter(|(cores, _)| !cores.is_empty()) {
            found.push(if is_client {
                Placement::new(cores, now.1.clone(), reason)
            } else {
                Placement::new(now.0.clone(), cores, reason)
            });
        }
    }
    found
}

/// CPUs that serve the flows' receive queues on one host, without duplicates.
fn serving_cpus(flows: &[FlowFacts], client: bool) -> Vec<u32> {
    let mut cpus: Vec<u32> =
        flows.iter().filter_map(|flow| if client { flow.client_queue_cpu } else { flow.server_queue_cpu }).collect();
    cpus.sort_unstable();
    cpus.dedup();
    cpus
}

/// A few cores, those on the interface's NUMA node if known, without those in `taken`.
fn candidate_cores(end: &EndFacts, taken: &[u32]) -> Vec<u32> {
    let near = if end.numa_local_cores.is_empty() { &end.cores } else { &end.numa_local_cores };
    let free = near.iter().filter(|core| !taken.contains(core)).copied();
    let most = if taken.is_empty() { MAX_CANDIDATE_CORES } else { near.len() };
    free.take(most).collect()
}

fn first(cores: &[u32], most: usize) -> Vec<u32> {
    cores[..most.min(cores.len())].to_vec()
}

/// A placement that must be slower, with a description; `None` if a host has only one core.
pub(crate) fn bad_placement(facts: &Facts, parameters: &Parameters) -> Option<(Parameters, String)> {
    let mut bad = parameters.clone();
    if facts.same_host {
        let core = *facts.client.cores.first().filter(|_| facts.client.cores.len() > 1)?;
        (bad.client_cpus, bad.server_cpus) = (vec![core], vec![core]);
        return Some((bad, format!("both ends on core {core}")));
    }
    let crowded = |end: &EndFacts, client: bool| {
        let serving_cpus = serving_cpus(&facts.flows, client);
        serving_cpus.first().or_else(|| end.cores.first()).copied().filter(|_| end.cores.len() > 1)
    };
    let (client, server) = (crowded(&facts.client, true)?, crowded(&facts.server, false)?);
    (bad.client_cpus, bad.server_cpus) = (vec![client], vec![server]);
    Some((bad, format!("all threads on the CPU that serves the flow: client core {client}, server core {server}")))
}

/// CPUs on which the flows are processed, with collisions: flows that share a CPU although there are others.
pub(crate) fn placed(facts: &Facts) -> Vec<TuneupPlacement> {
    let queue_cpu = |flow: &FlowFacts| {
        if facts.client_sends { flow.server_queue_cpu } else { flow.client_queue_cpu }
    };
    let several = facts.receiver().cores.len() > 1;
    let of = |flow: &FlowFacts| {
        let cpu = queue_cpu(flow);
        let same =
            |other: &&FlowFacts| several && cpu.is_some() && other.stream != flow.stream && queue_cpu(other) == cpu;
        TuneupPlacement {
            stream: flow.stream,
            client_cpu: flow.client_cpu,
            server_cpu: flow.server_cpu,
            receive_queue_cpu: cpu,
            napi_id: flow.napi_id,
            collides_with: facts.flows.iter().filter(same).map(|other| other.stream).collect(),
        }
    };
    facts.flows.iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(cores: u32) -> EndFacts {
        EndFacts { cores: (0..cores).collect(), ..EndFacts::default() }
    }

    #[test]
    fn client_and_server_on_one_host_get_separate_cores() {
        let facts = Facts { same_host: true, client: host(2), server: host(2), ..Facts::default() };
        let crowded = Parameters { client_cpus: vec![0], server_cpus: vec![0], ..Parameters::default() };
        let found: Vec<_> =
            placements(&facts, &crowded).into_iter().map(|placement| (placement.client, placement.server)).collect();
        assert_eq!(found, [(vec![], vec![]), (vec![0], vec![1]), (vec![1], vec![0])]);
        let (bad, _) = bad_placement(&facts, &Parameters::default()).expect("two cores");
        assert_eq!((bad.client_cpus, bad.server_cpus), (vec![0], vec![0]));
    }

    #[test]
    fn placements_include_the_queue_cpu_and_another_core() {
        let flow = FlowFacts { client_queue_cpu: Some(2), server_queue_cpu: Some(5), ..FlowFacts::default() };
        let server = EndFacts { numa_local_cores: vec![4, 5, 6, 7], ..host(8) };
        let facts = Facts { client_sends: true, client: host(8), server, flows: vec![flow], ..Facts::default() };
        let found: Vec<_> = placements(&facts, &Parameters::default())
            .into_iter()
            .map(|placement| (placement.client, placement.server))
            .collect();
        assert_eq!(found, [(vec![], vec![4]), (vec![], vec![5]), (vec![0], vec![]), (vec![2], vec![])]);
    }

    #[test]
    fn flows_on_the_same_cpu_collide_if_others_exist() {
        let flow = |stream, cpu| FlowFacts { stream, server_queue_cpu: Some(cpu), ..FlowFacts::default() };
        let mut facts = Facts {
            client_sends: true,
            server: host(4),
            flows: vec![flow(0, 1), flow(1, 1), flow(2, 3)],
            ..Facts::default()
        };
        let collisions = |facts: &Facts| placed(facts).into_iter().map(|flow| flow.collides_with).collect::<Vec<_>>();
        assert_eq!(collisions(&facts), [vec![1], vec![0], vec![]]);
        facts.server = host(1);
        assert_eq!(collisions(&facts), [vec![], vec![], vec![]] as [Vec<u32>; 3]);
    }

    #[test]
    fn single_core_hosts_have_no_bad_placement() {
        let facts = Facts { same_host: true, client: host(1), server: host(1), ..Facts::default() };
        assert!(bad_placement(&facts, &Parameters::default()).is_none());
        assert!(placements(&facts, &Parameters::default()).is_empty());
    }
}
