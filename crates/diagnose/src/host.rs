//! One host during the steady phase: busy cores by kind of time, and counter increases.

use landspeed_model::{Direction, EndCost, Ends, HostSeries, HostSnapshot, QdiscDelta, RunDocument};

/// Version of IP: the kernel counts each by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ip {
    /// IPv4 (`/proc/net/snmp`).
    V4,
    /// IPv6 (`/proc/net/snmp6`).
    V6,
}

/// One side of the test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// The host that started the test.
    Client,
    /// The host that accepted the test.
    Server,
}

impl End {
    /// Key in the document's `Ends`.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Server => "server",
        }
    }

    /// Returns the sender and the receiver of a direction.
    pub(crate) const fn roles(direction: Direction) -> (Self, Self) {
        match direction {
            Direction::Upload | Direction::Both => (Self::Client, Self::Server),
            Direction::Download => (Self::Server, Self::Client),
        }
    }

    fn of<T>(self, ends: &Ends<T>) -> Option<&T> {
        match self {
            Self::Client => ends.client.as_ref(),
            Self::Server => ends.server.as_ref(),
        }
    }
}

/// Readings of one host in the steady phase.
pub(crate) struct HostView<'a> {
    /// Client or server.
    pub end: End,
    /// Name in texts: `client` or `server`; for a watched flow `local host` or `remote host`.
    pub name: &'static str,
    /// Configuration of the host before the test.
    pub snapshot: Option<&'a HostSnapshot>,
    /// Counter increases and samples during the test.
    pub series: Option<&'a HostSeries>,
    /// CPU time and other costs of the test.
    pub cost: Option<&'a EndCost>,
    /// Mean use of each core in the steady phase; empty when it was not sampled.
    pub cores: Vec<CoreMean>,
}

/// Mean shares of one core's time, 0..=1.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct CoreMean {
    pub core: u32,
    /// All time but idle and I/O wait.
    pub busy: f64,
    /// System time, without interrupts.
    pub system: f64,
    /// Softirqs and hardware interrupts.
    pub softirq: f64,
    /// Steal time: CPU time taken by the hypervisor.
    pub steal: f64,
}

impl CoreMean {
    /// System and interrupt time: the kernel's cost of moving data.
    pub(crate) fn kernel(&self) -> f64 {
        self.system + self.softirq
    }
}

impl<'a> HostView<'a> {
    /// Returns the readings of one side of `document` within `span_ns`.
    pub(crate) fn new(document: &'a RunDocument, end: End, span_ns: (u64, u64)) -> Self {
        let series = end.of(&document.host_series);
        let cost = match end {
            End::Client => document.cost.client.as_ref(),
            End::Server => document.cost.server.as_ref(),
        };
        let cores = series.map(|series| mean_cores(series, span_ns)).unwrap_or_default();
        Self { end, name: end.name(), snapshot: end.of(&document.hosts), series, cost, cores }
    }

    /// Returns the name of the host in texts.
    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the core with the most busy time.
    pub(crate) fn busiest(&self) -> Option<&CoreMean> {
        self.cores.iter().max_by(|a, b| a.busy.total_cmp(&b.busy))
    }

    /// Returns the core with the most softirq time.
    pub(crate) fn most_interrupted(&self) -> Option<&CoreMean> {
        self.cores.iter().max_by(|a, b| a.softirq.total_cmp(&b.softirq))
    }

    /// Returns a core by number.
    pub(crate) fn core(&self, number: u32) -> Option<&CoreMean> {
        self.cores.iter().find(|core| core.core == number)
    }

    /// Mean busy share over all cores.
    pub(crate) fn busy(&self) -> Option<f64> {
        mean(self.cores.iter().map(|core| core.busy))
    }

    /// Mean steal time over all cores, as a share.
    pub(crate) fn steal(&self) -> Option<f64> {
        mean(self.cores.iter().map(|core| core.steal))
    }

    /// Value of a sysctl, as the kernel prints it.
    pub(crate) fn sysctl(&self, key: &str) -> Option<&'a str> {
        self.snapshot?.sysctls.get(key).map(String::as_str)
    }

    /// Last value of a sysctl (`min default max`), or its only one.
    pub(crate) fn sysctl_max(&self, key: &str) -> Option<u64> {
        self.sysctl(key)?.split_ascii_whitespace().last()?.parse().ok()
    }

    /// `net.ipv4.tcp_notsent_lowat`, if it is set to an effective value (the default is 2^32 − 1).
    pub(crate) fn notsent_lowat(&self) -> Option<u64> {
        self.sysctl_max("net.ipv4.tcp_notsent_lowat").filter(|&bytes| bytes > 0 && bytes < 1 << 31)
    }

    /// Sum of the increases of NIC counters whose name `matches`; 0 if none increased, `None` if the host was
    /// not sampled.
    pub(crate) fn nic_sum(&self, matches: impl Fn(&str) -> bool) -> Option<u64> {
        let series = self.series?;
        Some(
            series
                .nic
                .iter()
                .filter(|counter| counter.delta > 0 && matches(&counter.name))
                .fold(0_u64, |sum, counter| sum.saturating_add(counter.delta.unsigned_abs())),
        )
    }

    /// Packets that the queueing disciplines of the interface dropped instead of sending them, each counted once; 0 if none
    /// was read.
    pub(crate) fn egress_drops(&self) -> f64 {
        self.qdisc_drops(QdiscDelta::counts_egress_drops)
    }

    /// Received packets that filters of the interface (`ingress`, `clsact`) dropped before IP; 0 if none was read.
    pub(crate) fn ingress_drops(&self) -> f64 {
        self.qdisc_drops(QdiscDelta::counts_ingress_drops)
    }

    /// Packets that the interface or its queueing disciplines dropped instead of sending them; `None` if the disciplines
    /// were not read.
    pub(crate) fn local_drops(&self) -> Option<f64> {
        self.series.filter(|series| !series.qdiscs.is_empty())?;
        Some(self.egress_drops() + self.nic_sum(|name| name == "rtnl.tx_dropped")? as f64)
    }

    /// Sum of the drops of the queueing disciplines that `counts` selects.
    fn qdisc_drops(&self, counts: impl Fn(&QdiscDelta) -> bool) -> f64 {
        let qdiscs = self.series.into_iter().flat_map(|series| &series.qdiscs);
        qdiscs.filter(|qdisc| counts(qdisc)).map(|qdisc| qdisc.drops as f64).sum()
    }

    /// Increase of an SNMP counter; 0 if it did not increase, `None` if the host was not sampled.
    pub(crate) fn snmp(&self, name: &str) -> Option<i64> {
        let series = self.series?;
        Some(series.snmp.iter().find(|counter| counter.name == name).map_or(0, |counter| counter.delta))
    }

    /// Packets that IP received and neither delivered, forwarded nor counted as an error: a packet filter dropped them. A
    /// packet is what GRO made of several segments. `None` if the counters were not read.
    pub(crate) fn filtered_in(&self, ip: Ip) -> Option<f64> {
        let received = self.ip(ip, "InReceives").filter(|&packets| packets > 0)?;
        let accounted = [
            "InDelivers",
            "InDiscards",
            "InHdrErrors",
            "InAddrErrors",
            "InUnknownProtos",
            "ForwDatagrams",
            "InNoRoutes",
            "InTruncatedPkts",
        ];
        let of_version: &[&str] = match ip {
            Ip::V4 => &["IpExt.InCsumErrors", "TcpExt.IPReversePathFilter"],
            // Multicast for groups of other hosts is dropped without a count.
            Ip::V6 => &["Ip6InTooBigErrors", "Ip6InMcastPkts"],
        };
        let fragments = self.ip(ip, "ReasmReqds")? - self.ip(ip, "ReasmOKs")?;
        let accounted: i64 = accounted.iter().filter_map(|name| self.ip(ip, name)).sum();
        let of_version: i64 = of_version.iter().filter_map(|name| self.snmp(name)).sum();
        Some((received - accounted - of_version - fragments).max(0) as f64)
    }

    /// Packets that IP was asked to send and did not hand to the interface, and the packets it was asked to send: a packet
    /// filter dropped the difference. `None` if the counters were not read (`OutTransmits` is new in Linux 6.6).
    /// `OutDiscards` is no part of it: it counts every datagram whose send call failed, those that a qdisc dropped after
    /// `OutTransmits` too.
    pub(crate) fn filtered_out(&self, ip: Ip) -> Option<(f64, f64)> {
        let transmitted = self.ip(ip, "OutTransmits").filter(|&packets| packets > 0)?;
        let asked = self.ip(ip, "OutRequests")?;
        let forwarded = self.ip(ip, "ForwDatagrams")?;
        let fragments = self.ip(ip, "FragCreates")? - self.ip(ip, "FragOKs")?;
        let accounted = self.ip(ip, "OutNoRoutes")? + self.ip(ip, "FragFails")? - fragments - forwarded;
        Some(((asked - transmitted - accounted).max(0) as f64, asked as f64))
    }

    /// Increase of a counter of this version of IP, by its name in `/proc/net/snmp`.
    fn ip(&self, ip: Ip, name: &str) -> Option<i64> {
        match (ip, name) {
            (Ip::V4, "InNoRoutes" | "InTruncatedPkts") => self.snmp(&format!("IpExt.{name}")),
            (Ip::V4, _) => self.snmp(&format!("Ip.{name}")),
            (Ip::V6, "ForwDatagrams") => self.snmp("Ip6OutForwDatagrams"),
            (Ip::V6, _) => self.snmp(&format!("Ip6{name}")),
        }
    }

    /// Segments in a received packet, on average: GRO makes one packet of several segments.
    pub(crate) fn segments_per_packet(&self, data_segments: Option<f64>) -> f64 {
        let packets = self.snmp("Tcp.InSegs").unwrap_or(0) as f64;
        data_segments.filter(|_| packets > 0.0).map_or(1.0, |segments| (segments / packets).max(1.0))
    }

    /// Speed of the interface, bits/s, if it has a physical one.
    ///
    /// veth reports 10 Gb/s, and a virtio NIC often none or an arbitrary one; neither is a limit.
    pub(crate) fn line_rate_bps(&self) -> Option<f64> {
        Some(self.snapshot?.nic.as_ref()?.line_rate_bps()? as f64)
    }
}

/// Mean use of each core over `span_ns`, each sample weighted by its overlap with the span.
fn mean_cores(series: &HostSeries, span_ns: (u64, u64)) -> Vec<CoreMean> {
    let (from, to) = (span_ns.0 as f64, span_ns.1 as f64);
    let mut sums: Vec<(f64, CoreMean)> = Vec::new();
    for sample in &series.samples {
        let weight = (sample.end_ns as f64).min(to) - (sample.start_ns as f64).max(from);
        if weight <= 0.0 {
            continue;
        }
        if sums.len() < sample.cores.len() {
            sums.resize(sample.cores.len(), (0.0, CoreMean::default()));
        }
        for ((weights, sum), usage) in sums.iter_mut().zip(&sample.cores) {
            let Some(usage) = usage else { continue };
            let shares = [usage.busy(), usage.system, usage.softirq + usage.irq, usage.steal].map(f64::from);
            if shares.iter().any(|share| !share.is_finite()) {
                continue;
            }
            *weights += weight;
            sum.busy += shares[0] * weight;
            sum.system += shares[1] * weight;
            sum.softirq += shares[2] * weight;
            sum.steal += shares[3] * weight;
        }
    }
    sums.into_iter()
        .zip(0_u32..)
        .filter(|((weights, _), _)| *weights > 0.0)
        .map(|((weights, sum), core)| CoreMean {
            core,
            busy: sum.busy / weights,
            system: sum.system / weights,
            softirq: sum.softirq / weights,
            steal: sum.steal / weights,
        })
        .collect()
}

/// Mean of the finite values; `None` without any.
pub(crate) fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (count, sum) = values.filter(|value| value.is_finite()).fold((0_u32, 0.0), |(n, sum), v| (n + 1, sum + v));
    (count > 0).then(|| sum / f64::from(count)).filter(|mean| mean.is_finite())
}
