//! Collects all facts about a host that a check may use.

use landspeed_model::{FACTS_SCHEMA, Fact, Facts, NumaNode};
use landspeed_sys::clock::monotonic_ns;

use crate::host::{FactReader, Host, known};
use crate::parse::{Counters, field, named_values, paired_lines, softnet_rows};
use crate::sysctls;

mod cgroup;
mod cpu;
mod interface;
mod interrupts;
mod kernel;
mod pci;
mod services;
mod sysctl_files;

#[cfg(test)]
pub(crate) use cpu::list_text;
pub(crate) use services::SERVICE_NAMES;

/// Collects all facts about a host that a check may use. Never fails: an unknown fact has its reason.
pub fn collect(host: &dyn Host) -> Facts {
    let started_ns = monotonic_ns();
    let look = FactReader(host);
    let answers = host.kernel();
    let interfaces = interface::all(look, &answers);
    let drivers: Vec<_> = interfaces.iter().filter_map(|nic| nic.driver.known()).map(|d| d.name.clone()).collect();
    let names: Vec<_> = interfaces.iter().map(|nic| nic.name.as_str()).collect();
    let mut facts = Facts {
        schema: FACTS_SCHEMA.into(),
        taken: answers.taken.clone(),
        root: answers.root,
        hostname: look.fact("/proc/sys/kernel/hostname"),
        os: kernel::os(look),
        uptime_s: uptime(look),
        kernel: kernel::kernel(look, &answers),
        virtualization: kernel::virtualization(look),
        cpu: cpu::cpu(look, &answers),
        memory_bytes: memory(look),
        numa: numa(look),
        sysctls: sysctls::facts(look, &names),
        sysctl_files: sysctl_files::read(look),
        default_interface: answers.default_interface.clone(),
        interrupts: interrupts::read(look),
        softnet: softnet(look),
        counters: counters(look),
        services: services::read(look, &answers),
        cgroup: cgroup::read(look),
        time: kernel::time(look, &answers),
        modules: kernel::modules(look, &drivers),
        first_network_namespace: first_network_namespace(look),
        interfaces,
        ..Facts::default()
    };
    if !host.is_recorded() {
        facts.collect_ns = monotonic_ns().saturating_sub(started_ns).max(1);
    }
    facts
}

/// Returns whether a driver's statistic is kept. A NIC with 128 queues has thousands; of those of single
/// queues, only non-zero losses are.
pub(crate) fn is_kept_statistic(name: &str, value: u64) -> bool {
    const LOSS_WORDS: [&str; 10] =
        ["drop", "discard", "err", "timeout", "fail", "miss", "buff", "exceed", "busy", "full"];
    !is_of_one_queue(name) || value > 0 && LOSS_WORDS.iter().any(|loss| name.contains(loss))
}

/// Returns whether a name is that of one queue's counter: `rx3_packets`, `tx_queue_0_bytes`, `queue_7_tx_cnt`,
/// `ch12_poll`, `tx-4.packets`, `[3]: rx_bytes`, `rx_packets[3]`, `cpu5_rx_packets`. Priorities
/// (`rx_prio3_pause`) are not queues.
fn is_of_one_queue(name: &str) -> bool {
    const QUEUES: [&str; 6] = ["queue", "q", "ring", "channel", "txq", "rxq"];
    // After an underscore, numbers are packet sizes: `rx_64_bytes_phy`.
    const QUEUE_PREFIXES: [&str; 5] = ["rx", "tx", "ch", "cpu", "xsk"];
    let bytes = name.as_bytes();
    (0..bytes.len()).any(|at| {
        if !bytes[at].is_ascii_digit() || at > 0 && bytes[at - 1].is_ascii_digit() {
            return false;
        }
        let before = &name[..at];
        let bare = before.trim_end_matches(['_', '-']);
        let word = bare.rsplit(|c: char| !c.is_ascii_lowercase()).next().unwrap_or_default();
        before.ends_with('[') || QUEUES.contains(&word) || QUEUE_PREFIXES.contains(&word) && !before.ends_with('_')
    })
}

fn uptime(look: FactReader<'_>) -> Fact<u64> {
    const PATH: &str = "/proc/uptime";
    match look.fact(PATH) {
        Fact::Known(text) => {
            let seconds = text.split(['.', ' ']).next().and_then(|whole| whole.parse().ok());
            seconds.map_or_else(|| crate::host::unparsable(PATH, &text), Fact::Known)
        }
        Fact::Absent(why) => Fact::Absent(why),
        Fact::Unknown(why) => Fact::Unknown(why),
    }
}

fn memory(look: FactReader<'_>) -> Fact<u64> {
    match known(look.read("/proc/meminfo")) {
        Fact::Known(text) => field(&text, "MemTotal").map_or_else(
            || Fact::Unknown("/proc/meminfo has no MemTotal".into()),
            |kib| Fact::Known(kib.saturating_mul(1024)),
        ),
        Fact::Absent(why) => Fact::Absent(why),
        Fact::Unknown(why) => Fact::Unknown(why),
    }
}

fn numa(look: FactReader<'_>) -> Fact<Vec<NumaNode>> {
    const NODES: &str = "/sys/devices/system/node";
    let nodes = look.numbered(NODES, "node");
    if nodes.is_empty() {
        return Fact::Absent(format!("{NODES} has no nodes: this kernel was built without NUMA"));
    }
    let node = |(id, name)| Some(NumaNode { id, cpus: look.word(&format!("{NODES}/{name}/cpulist")).ok()? });
    Fact::Known(nodes.into_iter().filter_map(node).collect())
}

fn softnet(look: FactReader<'_>) -> Fact<landspeed_model::SoftnetFacts> {
    known(look.read("/proc/thread-self/net/softnet_stat")).map(|text| {
        let mut rows = Vec::new();
        softnet_rows(&text, &mut rows);
        let mut total = landspeed_model::SoftnetFacts::default();
        for row in rows {
            total.processed += u64::from(row.processed);
            total.dropped += u64::from(row.dropped);
            total.squeezed += u64::from(row.time_squeeze);
            total.steered += u64::from(row.received_rps);
        }
        total
    })
}

fn counters(look: FactReader<'_>) -> std::collections::BTreeMap<String, u64> {
    let mut counters = Counters::default();
    for name in ["snmp", "netstat"] {
        paired_lines(&look.read(&format!("/proc/thread-self/net/{name}")).unwrap_or_default(), &mut counters);
    }
    named_values(&look.read("/proc/thread-self/net/snmp6").unwrap_or_default(), &mut counters);
    counters.0
}

/// Returns whether this is the initial network namespace. The kernel registers `netdev_max_backlog` only there,
/// and `somaxconn` in each (net/core/sysctl_net_core.c).
fn first_network_namespace(look: FactReader<'_>) -> Fact<bool> {
    if look.exists("/proc/sys/net/core/netdev_max_backlog") {
        Fact::Known(true)
    } else if look.exists("/proc/sys/net/core/somaxconn") {
        Fact::Known(false)
    } else {
        Fact::Unknown("/proc/sys/net/core has neither netdev_max_backlog nor somaxconn".into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queue_counters_are_distinguished_from_device_counters() {
        let of_a_queue = [
            "rx0_packets",
            "tx15_bytes",
            "ch3_poll",
            "rx_queue_0_packets",
            "tx_queue_12_bytes",
            "queue_7_tx_cnt",
            "tx-4.packets",
            "rx-0.rx_bytes",
            "[3]: rx_ucast_packets",
            "rx_packets[11]",
            "cpu5_rx_packets",
        ];
        for name in of_a_queue {
            assert!(is_of_one_queue(name), "{name}");
            assert!(!is_kept_statistic(name, 5), "{name}");
        }
        let of_the_device = [
            "rx_packets",
            "rx_prio3_pause",
            "tx_prio0_packets",
            "rx_64_bytes_phy",
            "rx_1024_to_1518_bytes_phy",
            "rx_size_64",
            "rx_out_of_buffer",
            "bw_in_allowance_exceeded",
            "rx_pcs_symbol_err_phy",
            "port.rx_size_127",
            "vf_rx_packets",
        ];
        for name in of_the_device {
            assert!(is_kept_statistic(name, 0), "{name}");
        }
        assert!(is_kept_statistic("rx0_drops", 4) && !is_kept_statistic("rx0_drops", 0));
    }
}
