//! Changes that clients of `serve --allow-host-changes` may make.

use std::time::Duration;

use landspeed_flow::server::{HeldChanges, HostChanger};
use landspeed_model::{Change, ErrorEntry, Target};

use super::holder::{Holder, need_privilege};
use crate::trust::TrustArgs;

/// Prefixes of sysctls that affect transfers. Other `net.` sysctls control access, forwarding and filtering;
/// other `vm.` sysctls can trigger the OOM killer.
const SYSCTLS: &[&str] = &[
    "net.core.busy_",
    "net.core.default_qdisc",
    "net.core.dev_weight",
    "net.core.gro_",
    "net.core.netdev_",
    "net.core.optmem_max",
    "net.core.rmem_",
    "net.core.rps_",
    "net.core.wmem_",
    "net.ipv4.tcp_",
    "net.ipv4.udp_",
    "kernel.numa_balancing",
    "kernel.timer_migration",
    "vm.zone_reclaim_mode",
];

/// Sysctls with these prefixes that protect the host against attacks, or contain keys.
const PROTECTIVE: &[&str] = &[
    "net.ipv4.tcp_challenge_ack_limit",
    "net.ipv4.tcp_fastopen_key",
    "net.ipv4.tcp_invalid_ratelimit",
    "net.ipv4.tcp_l3mdev_accept",
    "net.ipv4.tcp_max_orphans",
    "net.ipv4.tcp_max_syn_backlog",
    "net.ipv4.tcp_rfc1337",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.udp_l3mdev_accept",
];

/// Changes this host on behalf of clients of a server.
#[derive(Debug, Clone, Copy)]
pub struct ClientService {
    trust: TrustArgs,
}

impl ClientService {
    /// Checks that this process may change the host, and rolls back transactions left by a crashed server.
    pub fn new(trust: TrustArgs) -> Result<Self, ErrorEntry> {
        need_privilege()?;
        Holder::with(Duration::ZERO, trust, objection)?;
        Ok(Self { trust })
    }
}

impl HostChanger for ClientService {
    fn begin(&self, limit: Duration) -> Result<Box<dyn HeldChanges>, ErrorEntry> {
        Ok(Box::new(Holder::with(limit, self.trust, objection)?))
    }
}

/// Returns why a client may not make a change; `None` if it may.
fn objection(change: &Change) -> Option<String> {
    let why = match &change.target {
        Target::Sysctl { name } => {
            let dotted = name.replace('/', ".");
            let known = SYSCTLS.iter().any(|beginning| dotted.starts_with(beginning));
            if known && !PROTECTIVE.contains(&dotted.as_str()) {
                return landspeed_tune::objection(change);
            }
            "clients of a server may set sysctls that bear on a transfer only"
        }
        Target::EgressRate { .. } => "clients of a server may not limit other services of its host",
        _ => return landspeed_tune::objection(change),
    };
    Some(why.to_owned())
}

#[cfg(test)]
mod tests {
    use landspeed_tune::parse_setting;

    use super::*;

    fn refused(setting: &str) -> bool {
        objection(&parse_setting(setting).expect("a setting")).is_some()
    }

    #[test]
    fn clients_may_tune_transfers() {
        for setting in [
            "net.core.rmem_max=67108864",
            "net.core.default_qdisc=fq",
            "net.core.netdev_max_backlog=10000",
            "net.core.rps_sock_flow_entries=32768",
            "net.ipv4.tcp_rmem=4096 131072 67108864",
            "net.ipv4.tcp_wmem=4096 65536 67108864",
            "net.ipv4.tcp_mem=10000 20000 30000",
            "net.ipv4.tcp_congestion_control=bbr",
            "net.ipv4.tcp_allowed_congestion_control=reno cubic bbr",
            "net.ipv4.tcp_mtu_probing=1",
            "vm.zone_reclaim_mode=0",
            "kernel.numa_balancing=0",
            "eth0:qdisc=fq",
            "eth0:txqueuelen=10000",
            "eth0:rx-ring=4096",
            "eth0:rx-0/rps_cpus=ff",
            "irq:45/mlx5_comp0=0-7",
            "cpufreq:policy0/governor=performance",
        ] {
            assert!(!refused(setting), "{setting}");
        }
    }

    #[test]
    fn clients_cannot_weaken_the_host() {
        for setting in [
            "net.ipv4.ip_forward=1",
            "net.ipv4.conf.all.rp_filter=0",
            "net.ipv4.conf/all/accept_redirects=1",
            "net/ipv4/tcp_syncookies=0",
            "net.ipv4.tcp_syncookies=0",
            "net.ipv4.tcp_fastopen_key=0",
            "net.core.bpf_jit_harden=0",
            "net.netfilter.nf_conntrack_max=1",
            "kernel.core_pattern=|/tmp/x",
            "vm.min_free_kbytes=100000000",
            "eth0:cgroup/system.slice/ssh.service=64kbit",
        ] {
            assert!(refused(setting), "{setting}");
        }
    }
}
