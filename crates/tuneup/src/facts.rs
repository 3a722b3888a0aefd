//! Properties of hosts and path, from the document of a test.

use landspeed_model::{Direction, HostSeries, HostSnapshot, RunDocument};

/// Properties of hosts and path on which candidates depend.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Facts {
    /// Whether the client sends.
    pub client_sends: bool,
    /// Whether client and server are on one machine, and so share its cores.
    pub same_host: bool,
    /// Whether data is sent over the loopback interface.
    pub loopback: bool,
    /// Properties of the client host.
    pub client: EndFacts,
    /// Properties of the server host.
    pub server: EndFacts,
    /// Goodput, bits/s; `None` if unknown.
    pub goodput_bps: Option<f64>,
    /// Minimum RTT, µs.
    pub min_rtt_us: Option<u32>,
    /// Number of retransmitted segments; `None` if unknown.
    pub retransmits: Option<u64>,
    /// Congestion control algorithm of the test.
    pub congestion: Option<String>,
    /// CPUs and queues of each stream.
    pub flows: Vec<FlowFacts>,
}

/// Properties of a host.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct EndFacts {
    /// Cores of the host, by CPU number.
    pub cores: Vec<u32>,
    /// CPUs on the NUMA node of the interface; empty on hosts with one node.
    pub numa_local_cores: Vec<u32>,
    /// Interface used by the test.
    pub interface: Option<String>,
    /// Link rate, bits/s, if the driver reports it.
    pub link_bps: Option<u64>,
    /// Queueing disciplines of the interface.
    pub qdiscs: Vec<String>,
    /// Offloads of the interface that are off and can be enabled.
    pub offloads_off: Vec<String>,
    /// Congestion controls that the kernel offers; some may need privilege.
    pub congestion_available: Vec<String>,
    /// Receive buffer limits of autotuning (`tcp_rmem`: minimum, default, maximum), bytes.
    pub rmem: Option<[u64; 3]>,
    /// Send buffer limits of autotuning (`tcp_wmem`: minimum, default, maximum), bytes.
    pub wmem: Option<[u64; 3]>,
    /// Maximum socket buffer that a program can request (`rmem_max`, `wmem_max`), bytes.
    pub window_max: Option<u64>,
    /// Interrupts of the interface that were handled during the test: number and action names.
    pub interrupts: Vec<(u32, String)>,
    /// Number of receive queues, if they are paired with transmit queues; otherwise 1.
    pub receive_queues: u32,
}

/// CPUs and queues of a stream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FlowFacts {
    /// Id of the stream.
    pub stream: u32,
    /// CPU that serves the client's receive queue of the stream.
    pub client_queue_cpu: Option<u32>,
    /// CPU that serves the server's receive queue of the stream.
    pub server_queue_cpu: Option<u32>,
    /// NAPI id of the receive queue at the receiver.
    pub napi_id: Option<u32>,
    /// CPU to which the client's thread is pinned.
    pub client_cpu: Option<u32>,
    /// CPU to which the server's thread is pinned.
    pub server_cpu: Option<u32>,
}

impl Facts {
    /// Extracts the properties from the document of a test in one direction.
    pub fn of(document: &RunDocument) -> Self {
        let client_sends = document.requested.direction == Direction::Upload;
        let hosts = (document.hosts.client.as_ref(), document.hosts.server.as_ref());
        let loopback = document.path.as_ref().is_some_and(|path| path.loopback);
        let flows = document.streams.iter().map(|stream| {
            let (sender, receiver) = (stream.sender.as_ref(), stream.receiver.as_ref());
            let (client, server) = if client_sends { (sender, receiver) } else { (receiver, sender) };
            FlowFacts {
                stream: stream.id,
                client_queue_cpu: client.and_then(|end| end.incoming_cpu),
                server_queue_cpu: server.and_then(|end| end.incoming_cpu),
                napi_id: receiver.and_then(|end| end.napi_id),
                client_cpu: client.and_then(|end| end.cpu),
                server_cpu: server.and_then(|end| end.cpu),
            }
        });
        Self {
            client_sends,
            same_host: landspeed_results::same_host(document),
            loopback,
            client: EndFacts::of(hosts.0, document.host_series.client.as_ref()),
            server: EndFacts::of(hosts.1, document.host_series.server.as_ref()),
            goodput_bps: document.summary.goodput_bps,
            min_rtt_us: document.summary.min_rtt_us,
            retransmits: document.summary.retransmits,
            congestion: document.streams.iter().find_map(|stream| stream.sender.as_ref()?.congestion.clone()),
            flows: flows.collect(),
        }
    }

    /// The sending host.
    pub fn sender(&self) -> &EndFacts {
        if self.client_sends { &self.client } else { &self.server }
    }

    /// The receiving host.
    pub fn receiver(&self) -> &EndFacts {
        if self.client_sends { &self.server } else { &self.client }
    }

    /// Rate of the slower link, bits/s, if known and not below the measured goodput.
    pub fn slower_link_bps(&self) -> Option<u64> {
        let slower = self.client.link_bps.into_iter().chain(self.server.link_bps).min()?;
        (slower as f64 > self.goodput_bps?).then_some(slower)
    }

    /// Bandwidth-delay product of measured goodput and minimum RTT, bytes.
    pub fn bdp_bytes(&self) -> Option<f64> {
        Some(self.goodput_bps? / 8.0 * f64::from(self.min_rtt_us?) * 1e-6)
    }
}

impl EndFacts {
    fn of(host: Option<&HostSnapshot>, series: Option<&HostSeries>) -> Self {
        let Some(host) = host else { return Self::default() };
        let nic = host.nic.as_ref();
        let cores: Vec<u32> = host.numa.iter().flat_map(|node| parse_cpu_list(&node.cpus)).collect();
        let near = nic.and_then(|nic| nic.numa_node).filter(|_| host.numa.len() > 1);
        let near = near.and_then(|near| host.numa.iter().find(|node| i64::from(node.id) == i64::from(near)));
        let three = |name: &str| -> Option<[u64; 3]> {
            let values: Option<Vec<u64>> =
                host.sysctls.get(name)?.split_whitespace().map(|word| word.parse().ok()).collect();
            values?.try_into().ok()
        };
        let one = |name: &str| host.sysctls.get(name)?.trim().parse::<u64>().ok();
        Self {
            cores: if cores.is_empty() { (0..host.cores_online).collect() } else { cores },
            numa_local_cores: near.map(|node| parse_cpu_list(&node.cpus)).unwrap_or_default(),
            interface: nic.map(|nic| nic.name.clone()),
            link_bps: nic.and_then(landspeed_model::NicSnapshot::line_rate_bps),
            qdiscs: nic.map(|nic| nic.qdiscs.clone()).unwrap_or_default(),
            offloads_off: nic
                .map(|nic| nic.offloads.iter().filter(|(_, on)| !**on).map(|(name, _)| name.clone()).collect())
                .unwrap_or_default(),
            congestion_available: host
                .sysctls
                .get("net.ipv4.tcp_available_congestion_control")
                .map_or_else(|| host.congestion_available.clone(), |list| split_words(list)),
            rmem: three("net.ipv4.tcp_rmem"),
            wmem: three("net.ipv4.tcp_wmem"),
            interrupts: series
                .iter()
                .flat_map(|series| &series.nic_interrupts)
                .filter_map(|line| Some((line.line.parse().ok()?, line.name.clone())))
                .collect(),
            receive_queues: nic.and_then(|nic| nic.channels).map_or(1, |(now, _)| now.max(1)),
            window_max: one("net.core.rmem_max").into_iter().chain(one("net.core.wmem_max")).min(),
        }
    }
}

fn split_words(list: &str) -> Vec<String> {
    list.split_whitespace().map(str::to_owned).collect()
}

/// Parses a CPU list such as `0-3,8`; skips invalid parts.
fn parse_cpu_list(text: &str) -> Vec<u32> {
    let range = |part: &str| -> Option<(u32, u32)> {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some((first.trim().parse().ok()?, last.trim().parse().ok()?))
    };
    let ranges = text.split(',').filter_map(range).filter(|(first, last)| last.saturating_sub(*first) < 4096);
    ranges.flat_map(|(first, last)| first..=last).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_cpu_lists_are_parsed() {
        assert_eq!(parse_cpu_list("0-2,7"), [0, 1, 2, 7]);
        assert_eq!(parse_cpu_list(" 4\n"), [4]);
        assert_eq!(parse_cpu_list("x,3-1,0-99999999"), Vec::<u32>::new());
    }
}
