//! CPU costs of hosts: from the scenario to integer picoseconds.

use landspeed_emulation::ReceiveSettings;
use serde::{Deserialize, Serialize};

use crate::scenario::{DEFAULT_BUDGET, DEFAULT_RING, ETHERNET_HEADER, HostCpu};

/// Time for which the guest's GRO waits for further segments, nanoseconds. All frames of a poll arrive at the same time.
pub const GRO_NS: u64 = 1;
/// Largest segment that TCP passes down, bytes of payload.
const SUPER_PACKET: u64 = 65_536;

/// A host whose CPU costs time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedCpu {
    /// Index of the host in the plan.
    pub host: usize,
    /// Whether softirqs and applications share one core.
    pub shared: bool,
    /// Maximum of the random delay with which an idle core begins to work, nanoseconds.
    pub noise_ns: u64,
    /// Receive path, if it has one.
    pub receive: Option<PlannedReceive>,
    /// Cost of read calls.
    pub read: PlannedCall,
    /// Cost of send calls.
    pub send: PlannedCall,
    /// Seed of its random draws.
    pub seed: u64,
}

/// Receive path of a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedReceive {
    /// Node of the receive path, by index: port 0 leads to the host, port 1 to the link.
    pub node: usize,
    /// Descriptors of the ring.
    pub ring: u32,
    /// Cost of a frame, picoseconds.
    pub packet_ps: u64,
    /// Cost of a byte of a frame, picoseconds.
    pub byte_ps: u64,
    /// Cost of a packet that GRO passes on, picoseconds.
    pub merged_ps: u64,
    /// Time from the first waiting frame to the interrupt, nanoseconds.
    pub moderation_ns: u64,
    /// Number of waiting frames that cause the interrupt earlier; 0 for none.
    pub moderation_packets: u32,
    /// Maximum number of frames of a poll.
    pub budget: u32,
    /// Whether GRO merges TCP segments.
    pub gro: bool,
}

/// Cost of system calls of one direction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedCall {
    /// Cost of a call, or of a datagram, picoseconds.
    pub call_ps: u64,
    /// Cost of a byte that is copied, picoseconds.
    pub byte_ps: u64,
    /// Cost of a frame, picoseconds.
    pub packet_ps: u64,
    /// Cost of a segment that TCP passes down, picoseconds.
    pub super_packet_ps: u64,
    /// Largest such segment, bytes of payload; 0: a frame.
    pub super_packet_bytes: u64,
}

/// A system call of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostCall {
    /// Whether it sends; otherwise it reads.
    pub sends: bool,
    /// Whether it copies its data between kernel and application.
    pub copies: bool,
    /// Payload that the call moves, bytes.
    pub bytes: u64,
    /// Datagrams; 0 for TCP.
    pub datagrams: u64,
    /// Largest payload of a frame, bytes; 0 if unknown.
    pub mss_bytes: u64,
}

impl PlannedCpu {
    /// Plans the costs of a host. `tso`: whether its TCP passes down segments longer than a frame.
    pub fn new(cpu: &HostCpu, host: usize, tso: bool, seed: u64) -> Self {
        let clock = cpu.clock.unwrap_or(1.0);
        let ps = |ns: Option<f64>| (ns.unwrap_or(0.0) * 1e3 / clock).round() as u64;
        let ns = |time: Option<crate::scenario::Time>| time.map_or(0, |time| time.0.get());
        let receive = cpu.receive.as_ref().map(|cost| PlannedReceive {
            node: 0,
            ring: cost.ring.unwrap_or(DEFAULT_RING),
            packet_ps: ps(cost.packet_ns),
            byte_ps: ps(cost.byte_ns),
            merged_ps: ps(cost.merged_ns),
            moderation_ns: ns(cost.moderation),
            moderation_packets: cost.moderation_packets.unwrap_or(0),
            budget: cost.budget.unwrap_or(DEFAULT_BUDGET),
            gro: cost.gro.unwrap_or(true),
        });
        let read = cpu.read.clone().unwrap_or_default();
        let send = cpu.send.clone().unwrap_or_default();
        Self {
            host,
            shared: cpu.cores == Some(1),
            noise_ns: ns(cpu.noise),
            receive,
            read: PlannedCall { call_ps: ps(read.call_ns), byte_ps: ps(read.byte_ns), ..PlannedCall::default() },
            send: PlannedCall {
                call_ps: ps(send.call_ns),
                byte_ps: ps(send.byte_ns),
                packet_ps: ps(send.packet_ns),
                super_packet_ps: ps(send.super_packet_ns),
                super_packet_bytes: if tso { SUPER_PACKET } else { 0 },
            },
            seed,
        }
    }

    /// Returns the cost of a call, picoseconds.
    pub fn cost_ps(&self, call: &HostCall) -> u64 {
        let cost = if call.sends { &self.send } else { &self.read };
        let copied = if call.copies { call.bytes } else { 0 };
        let frames = match call.datagrams {
            0 if call.mss_bytes > 0 => call.bytes.div_ceil(call.mss_bytes),
            datagrams => datagrams,
        };
        let segments = match (call.datagrams, cost.super_packet_bytes) {
            (0, 0) => frames,
            (0, most) => call.bytes.div_ceil(most),
            (datagrams, _) => datagrams,
        };
        cost.call_ps * call.datagrams.max(1)
            + cost.byte_ps * copied
            + cost.packet_ps * frames
            + cost.super_packet_ps * segments
    }
}

impl PlannedReceive {
    /// Returns the maximum time of a frame on the receive path, nanoseconds: behind a full ring and the frames of two polls.
    pub fn longest_ns(&self, mtu: u32) -> u64 {
        let frame_ps = self.packet_ps + self.byte_ps * u64::from(mtu + ETHERNET_HEADER) + self.merged_ps;
        let frames = u64::from(self.ring) + 2 * u64::from(self.budget);
        self.moderation_ns.saturating_add(frames.saturating_mul(frame_ps) / 1_000)
    }

    /// Returns the settings of the model.
    pub fn settings(&self, noise_ns: u64) -> ReceiveSettings {
        ReceiveSettings {
            ring: self.ring.max(1) as usize,
            packet_ps: self.packet_ps,
            byte_ps: self.byte_ps,
            merged_ps: self.merged_ps,
            moderation_ns: self.moderation_ns,
            moderation_packets: if self.moderation_packets == 0 {
                usize::MAX
            } else {
                self.moderation_packets as usize
            },
            budget: self.budget.max(1) as usize,
            gro: self.gro,
            noise_ns,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{CallCost, SendCost};

    fn planned(clock: f64, tso: bool) -> PlannedCpu {
        let cpu = HostCpu {
            clock: Some(clock),
            read: Some(CallCost { call_ns: Some(500.0), byte_ns: Some(0.1) }),
            send: Some(SendCost {
                call_ns: Some(100.0),
                byte_ns: Some(0.2),
                packet_ns: Some(10.0),
                super_packet_ns: Some(1000.0),
            }),
            ..HostCpu::default()
        };
        PlannedCpu::new(&cpu, 0, tso, 0)
    }

    const CALL: HostCall = HostCall { sends: true, copies: true, bytes: 131_072, datagrams: 0, mss_bytes: 1448 };

    #[test]
    fn costs_of_calls_add_up() {
        // 131072 bytes are 91 frames of 1448 bytes and 2 segments of 64 KiB.
        let copied = 100_000 + 131_072 * 200 + 91 * 10_000 + 2 * 1_000_000;
        assert_eq!(planned(1.0, true).cost_ps(&CALL), copied);
        let not_copied = HostCall { copies: false, ..CALL };
        assert_eq!(planned(1.0, true).cost_ps(&not_copied), copied - 131_072 * 200);
        assert_eq!(planned(1.0, false).cost_ps(&CALL), copied + 89 * 1_000_000, "without TSO");
        let read = HostCall { sends: false, ..CALL };
        assert_eq!(planned(1.0, true).cost_ps(&read), 500_000 + 131_072 * 100);
        assert_eq!(planned(0.5, true).cost_ps(&read), 2 * (500_000 + 131_072 * 100), "half the clock");
        let datagrams = HostCall { sends: false, bytes: 3000, datagrams: 3, ..CALL };
        assert_eq!(planned(1.0, true).cost_ps(&datagrams), 3 * 500_000 + 3000 * 100);
    }
}
