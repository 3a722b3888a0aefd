//! Advice that cannot run in the lab's kernel as printed.

/// Parts of command lines that cannot succeed there, or not on every host, each with the reason. The shell
/// parses them.
pub const UNSUPPORTED_IN_LAB: &[(&str, &str)] = &[
    // Hardware.
    ("/sys/devices/system/cpu/", "the lab's CPU has no frequencies, idle states, threads or known weaknesses"),
    ("cpupower ", "the lab's CPU has one frequency"),
    ("kernel.numa_balancing", "the lab's machine has one NUMA node"),
    ("vm.zone_reclaim_mode", "the lab's machine has one NUMA node"),
    ("numactl ", "the lab's machine has one NUMA node"),
    ("/queues/", "the lab's machine has one CPU: its kernel steers no packets"),
    ("/proc/irq/", "the lab's interfaces have no interrupts"),
    ("/sys/bus/pci/", "the lab's machine has no PCI"),
    ("lspci ", "the lab's machine has no PCI"),
    ("ethtool -a ", "a virtual interface has no pause frames"),
    ("ethtool -c ", "a virtual interface has no coalescing"),
    ("ethtool -g ", "a virtual interface has no rings"),
    ("ethtool -G ", "a virtual interface has no rings"),
    ("ethtool -m ", "a virtual interface has no optics"),
    ("ethtool -x ", "a virtual interface has no indirection table"),
    ("ethtool -X ", "a virtual interface has no indirection table"),
    // Kernel features.
    ("/sys/fs/cgroup/", "the first control group has no limits"),
    ("modprobe ", "the lab's kernel has no modules"),
    ("nft ", "the lab's kernel has no packet filter"),
    ("tc -s filter ", "no interface there has filters"),
    ("vmstat ", "the lab's kernel counts no paging"),
    ("net.ipv4.tcp_tw_recycle", "no kernel has it: that is the finding"),
    // Services, and programs that are not installed on every host.
    ("bpftool ", "not on every host"),
    ("chronyc ", "no clock is synchronised there"),
    ("networkctl ", "systemd does not run there"),
    ("systemctl ", "systemd does not run there"),
    ("tuned-adm ", "tuned does not run there"),
    ("sudo ", "not on every host; the guest is root"),
    ("/etc/sysctl.conf", "not on every host"),
    // Placeholders for the user.
    ("PEER", "the peer's name"),
    ("ip netns exec", "the namespace and a command"),
    ("tc qdisc del dev X root", "the interface, which has one"),
    // Not commands.
    ("ip broadcast", "an expression of a filter"),
];

/// Beginning of options for runs of half a minute and more; the tests of `cli` parse them.
pub const LONG_RUN_OPTION: &str = "--time ";

/// Commands with placeholders as in the source, and as filled in on a host.
pub const PLACEHOLDERS: &[(&str, &str)] = &[
    ("cpupower frequency-set -u {}MHz", "cpupower frequency-set -u 3600MHz"),
    ("ethtool -G {nic} rx {most}", "ethtool -G ens1f0np0 rx 4096"),
    ("ethtool -K {} {} on", "ethtool -K ens1f0np0 gro on"),
    ("ethtool -S IFACE", "ethtool -S ens1f0np0"),
    ("ethtool -X {} default", "ethtool -X ens1f0np0 default"),
    ("ip link set {0} up", "ip link set ens1f0np0 up"),
    ("ip link set {} up", "ip link set ens1f0np0 up"),
    ("modprobe tcp_{}", "modprobe tcp_bbr"),
    ("sudo chown -R $(id -u) {}", "sudo chown -R $(id -u) /home/user/archive"),
    ("sudo setcap cap_net_raw+ep {}", "sudo setcap cap_net_raw+ep /usr/bin/true"),
    ("sysctl -w net.core.netdev_max_backlog={to}", "sysctl -w net.core.netdev_max_backlog=65536"),
    ("sysctl -w {assignment}", "sysctl -w net.ipv4.tcp_rmem='4096 131072 12582912'"),
    ("sysctl -w net.core.rmem_max={need}", "sysctl -w net.core.rmem_max=301496"),
    ("tc -s filter show dev {nic} ingress", "tc -s filter show dev ens1f0np0 ingress"),
    ("tuned-adm profile {NAME}", "tuned-adm profile landspeed"),
];

/// Returns why a command line cannot succeed in the lab's kernel, if it cannot.
pub fn unsupported_in_lab(line: &str) -> Option<&'static str> {
    UNSUPPORTED_IN_LAB.iter().find(|(part, _)| line.contains(part)).map(|(_, why)| *why)
}
