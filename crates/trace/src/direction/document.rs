//! Conversion of a direction to its part of the document.

use landspeed_model::{Retransmits, TraceDirection};

use super::FlowDirection;
use super::window::MAX_PERIODS;

impl FlowDirection {
    /// Returns the direction for the document. `peer` is the opposite direction; `end_ns` is the time of the
    /// connection's last packet from the start of the capture, nanoseconds.
    pub fn document(&self, peer: &Self, end_ns: u64) -> TraceDirection {
        let mut limits = self.limits;
        let (shut_ns, idle_ns) = self.unsettled_gap();
        limits.receiver_window_ns += shut_ns;
        limits.idle_ns += idle_ns;
        limits.total_ns =
            limits.idle_ns + limits.pacing_ns + limits.recovery_ns + limits.receiver_window_ns + limits.sending_ns;
        let rare = self.rare.as_deref();
        let open_period = self.closed_period(end_ns);
        let periods = rare.map_or(&[][..], |rare| &rare.periods);
        let fits = (periods.len() < MAX_PERIODS).then_some(open_period).flatten();
        let known = self.scale.is_some();
        let holes = rare.map_or(&[][..], |rare| &rare.holes);
        let outstanding: u64 = holes.iter().map(|hole| hole.end.min(self.acked).saturating_sub(hole.start)).sum();
        TraceDirection {
            packets: self.packets,
            wire_bytes: self.wire_bytes,
            payload_bytes: self.payload_bytes,
            unique_bytes: self.unique_bytes,
            pure_acks: self.pure_acks,
            mss: self.mss,
            window_scale: self.announced_scale,
            sack_permitted: self.sack_permitted,
            timestamps: self.timestamps,
            closed: self.closed,
            resets: rare.map_or(0, |rare| rare.resets),
            goodput_bps: self.goodput_bps(),
            lost_network: None,
            lost_receiver: None,
            undetermined_receiver: None,
            lost_paws: None,
            ecn: self.ecn.document(&peer.ecn),
            retransmits: rare.map_or_else(Retransmits::default, |rare| rare.retransmits),
            out_of_order: u64::from(self.out_of_order),
            duplicates: u64::from(self.duplicates),
            missing_bytes: self.missing_bytes + outstanding + self.never_seen(),
            probes: u64::from(self.probes),
            duplicate_acks: self.duplicate_acks,
            dsacks: u64::from(self.dsacks),
            zero_windows: u64::from(self.zero_windows),
            zero_window_ns: rare.map_or(0, |rare| rare.closed_ns)
                + open_period.map_or(0, |period| period.duration_ns),
            zero_window_periods: periods.iter().copied().chain(fits).collect(),
            window_min_bytes: self.window_min.map(u64::from),
            window_max_bytes: self.window_max.map(u64::from),
            window_scale_in_force: self.scale,
            window_scale_at_least: (!known && peer.peer_scale_min > 0).then_some(peer.peer_scale_min),
            reneged: rare.map_or(0, |rare| rare.reneged),
            rto: rare.map(|rare| rare.rto).filter(|rto| rto.count > 0),
            in_flight_max_bytes: self.in_flight_max,
            in_flight_unsacked_max_bytes: Some(self.unsacked_max),
            window_full: peer.scale.is_some().then_some(u64::from(self.window_full)),
            packets_per_ack: (self.advancing_acks > 0).then(|| self.data_packets as f64 / self.advancing_acks as f64),
            stretch_acks: self.stretch_acks,
            rtt: self.rtt.samples.document(),
            rtt_sack: rare.and_then(|rare| rare.sack_rtt.document()),
            rtt_timestamps: self.timestamp_rtt.as_ref().and_then(|stamps| stamps.samples.document()),
            limits: (limits.total_ns > 0).then_some(limits),
            numbered: None,
        }
    }
}
