//! A TCP connection at the tap.

use landspeed_model::{TraceEventKind, TraceHandshake};
use landspeed_wire::{FastHeader, Flags, TcpHeader};

use crate::direction::{AckEffect, AckInfo, FlowDirection, PacketContext, SegmentInfo, SendOrder};
use crate::intake::ParsedFrame;
use crate::multipath::Subflow;
use crate::row::{Class, RowTcp};

/// State of both directions: index 0 is from the lower endpoint of the key to the higher. Fields that every
/// packet needs come first.
#[derive(Debug, Clone, Default)]
#[repr(C, align(64))]
pub struct Connection {
    last_ns: u64,
    syn_ack_ns: Option<u64>,
    server_rtt_ns: Option<u64>,
    client_rtt_ns: Option<u64>,
    /// Initial sequence number of the client.
    client_isn: Option<u32>,
    directions: [FlowDirection; 2],
    syn: Option<(bool, u64)>,
    syns: u32,
    /// Times of the first SYN, and of the ACK that completes the handshake, nanoseconds.
    first_syn_ns: Option<u64>,
    connected_ns: Option<u64>,
    /// Multipath TCP options; `None` without any.
    multipath: Option<Box<Subflow>>,
}

/// Time and frame number of a packet.
#[derive(Debug, Clone, Copy)]
pub struct PacketTime {
    /// Nanoseconds since the Unix epoch.
    pub time_ns: u64,
    /// Nanoseconds since the start of the capture.
    pub since_ns: u64,
    /// Number of the frame, from 1.
    pub frame: u64,
}

/// Analysis result of a segment.
#[derive(Debug, Clone, Copy, Default)]
pub struct SegmentResult {
    /// Class of the segment.
    pub class: Class,
    /// Effect of its ACK on the opposite direction.
    pub ack_effect: AckEffect,
}

impl Connection {
    /// Creates a connection without packets. `window_scale` is assumed for both directions without a captured
    /// handshake.
    pub fn new(window_scale: Option<u8>) -> Self {
        let mut connection = Self::default();
        connection.directions.iter_mut().for_each(|direction| direction.assume_scale(window_scale));
        connection
    }

    /// Accounts for a segment. `histograms_left` is the number of RTT histograms that may still be allocated.
    #[inline]
    pub fn account(&mut self, seen: &ParsedFrame, histograms_left: &mut u32) -> SegmentResult {
        let ParsedFrame { time_ns, wire, upward, ref tcp, .. } = *seen;
        let span_ns = if self.last_ns == 0 { 0 } else { time_ns.saturating_sub(self.last_ns) };
        self.last_ns = self.last_ns.max(time_ns);
        let [up, down] = &mut self.directions;
        let mss = up.mss().min(down.mss());
        up.account_time(span_ns, down, mss);
        down.account_time(span_ns, up, mss);
        let (from, to) = if upward { (up, down) } else { (down, up) };
        let identification = seen.identification;
        let mark = SendOrder { identification, timestamp: tcp.options.timestamps.map(|(value, _)| value) };
        let info = SegmentInfo { time_ns, wire, mark, pushed: tcp.flags.has(Flags::PSH) };
        let round_trip_ns = self.server_rtt_ns.zip(self.client_rtt_ns).map_or(0, |(one, two)| one + two);
        if let Some(option) = tcp.options.multipath {
            self.multipath.get_or_insert_default().account(option, tcp.flags, upward);
        }
        let ParsedFrame { number: frame, since_ns, .. } = *seen;
        let handshake_ns =
            self.syn.and_then(|(client, _)| if client == upward { self.client_rtt_ns } else { self.server_rtt_ns });
        let to_sender_ns = [handshake_ns, to.min_rtt_ns()].into_iter().flatten().min();
        let sequence = tcp.sequence;
        let context =
            PacketContext { frame, since_ns, packet_gap_ns: span_ns, round_trip_ns, to_sender_ns, sequence };
        from.count_ecn(seen.traffic_class, tcp.flags, to);
        let class = from.account(tcp, info, context, to.is_window_closed());
        if class == Class::New && tcp.payload > 0 {
            from.count_window_full(to);
        }
        if let Some((value, echo)) = tcp.options.timestamps {
            if tcp.payload > 0 {
                from.stamp(Some(value), time_ns);
            }
            if tcp.flags.has(Flags::ACK) {
                to.echo(Some(echo), time_ns, histograms_left);
            }
        }
        if tcp.flags.has(Flags::SYN) {
            from.negotiate_scale(tcp, to);
        }
        let context = PacketContext { sequence: tcp.acknowledgement, ..context };
        let window_changed = from.announce(tcp.window, tcp.flags, context);
        let mut ack_effect = AckEffect::default();
        // A SYN-ACK or RST left over from an earlier connection acknowledges numbers that this one did not send.
        let is_stray = tcp.flags.has(Flags(Flags::SYN.0 | Flags::RST.0)) && !to.has_sent(tcp.acknowledgement);
        if tcp.flags.has(Flags::ACK) && !is_stray {
            let handshake = Flags(Flags::SYN.0 | Flags::FIN.0 | Flags::RST.0);
            let by = AckInfo {
                acknowledgement: tcp.acknowledgement,
                sack: tcp.options.sack.as_slice(),
                bare: tcp.payload == 0 && !tcp.flags.has(handshake),
                time_ns,
                window_changed,
            };
            ack_effect = to.acknowledged(by, mss, histograms_left);
            from.count_ack(ack_effect);
            if ack_effect.reneged {
                from.event(TraceEventKind::Reneging, context, None);
            }
        }
        if !is_stray && class != Class::Copy {
            self.handshake_step(tcp, upward, time_ns);
        }
        SegmentResult { class, ack_effect }
    }

    /// Accounts for a packet that the network duplicated.
    pub fn duplicate(&mut self, seen: &ParsedFrame) {
        let ParsedFrame { number: frame, since_ns, wire, ref tcp, .. } = *seen;
        let context = PacketContext { frame, since_ns, sequence: tcp.sequence, ..PacketContext::default() };
        self.directions[usize::from(!seen.upward)].duplicate(tcp, wire, context);
    }

    /// Fast path for a plain segment with the next sequence number, or a pure ACK: same result as
    /// [`account`](Self::account). Returns `false`, without changing anything, for other segments: those between the
    /// SYN-ACK and the client's first ACK, those with earlier timestamps, and those out of order.
    #[inline(always)]
    pub fn account_expected(
        &mut self,
        fast_header: &FastHeader<'_>,
        at: PacketTime,
        wire: u32,
        upward: bool,
        histograms_left: &mut u32,
    ) -> bool {
        let time_ns = at.time_ns;
        let shaking = self.syn_ack_ns.is_some() && self.client_rtt_ns.is_none();
        let [up, down] = &mut self.directions;
        let expected = if upward {
            up.expects(fast_header) && !(down.is_window_closed() && fast_header.payload == 1)
        } else {
            down.expects(fast_header) && !(up.is_window_closed() && fast_header.payload == 1)
        };
        if !expected || shaking || self.last_ns == 0 || time_ns < self.last_ns {
            return false;
        }
        let span_ns = time_ns - self.last_ns;
        self.last_ns = time_ns;
        let mss = up.mss().min(down.mss());
        up.account_time(span_ns, down, mss);
        down.account_time(span_ns, up, mss);
        let (from, to) = if upward { (up, down) } else { (down, up) };
        let mark = SendOrder { identification: fast_header.identification, timestamp: fast_header.timestamp };
        from.account_expected(fast_header, SegmentInfo { time_ns, wire, mark, pushed: fast_header.pushed });
        if fast_header.payload > 0 {
            from.count_window_full(to);
            from.stamp(fast_header.timestamp, time_ns);
        }
        to.echo(fast_header.echo, time_ns, histograms_left);
        let context = || PacketContext { frame: at.frame, since_ns: at.since_ns, ..PacketContext::default() };
        let window_changed =
            !from.repeats_window(fast_header.window) && from.announce(fast_header.window, Flags::ACK, context());
        if fast_header.payload > 0 && to.acknowledges_nothing_new(fast_header) {
            return true;
        }
        let sack = fast_header.sack();
        let by = AckInfo {
            acknowledgement: fast_header.acknowledgement,
            sack: sack.as_slice(),
            bare: fast_header.payload == 0,
            time_ns,
            window_changed,
        };
        let ack_effect = to.acknowledged(by, mss, histograms_left);
        from.count_ack(ack_effect);
        if ack_effect.reneged {
            from.event(
                TraceEventKind::Reneging,
                PacketContext { sequence: fast_header.acknowledgement, ..context() },
                None,
            );
        }
        true
    }

    /// Reads a byte of each cache line that a segment needs, to prefetch it; the value is meaningless.
    pub fn prefetch(&self) -> u64 {
        self.last_ns ^ self.directions[0].prefetch() ^ self.directions[1].prefetch()
    }

    /// Returns the row of a segment that was accounted for.
    pub fn row(&self, tcp: &TcpHeader, upward: bool, passed: SegmentResult) -> RowTcp {
        let [up, down] = &self.directions;
        let (from, to) = if upward { (up, down) } else { (down, up) };
        let sequence = from.relative(tcp.sequence).unwrap_or(0);
        let numbers =
            i64::from(tcp.payload) + i64::from(tcp.flags.has(Flags::SYN)) + i64::from(tcp.flags.has(Flags::FIN));
        let mut sack = [(0, 0); 4];
        let mut sacks = 0;
        for (slot, &(low, high)) in sack.iter_mut().zip(tcp.options.sack.as_slice()) {
            let Some(range) = to.relative(low).zip(to.relative(high)) else { break };
            *slot = range;
            sacks += 1;
        }
        RowTcp {
            flags: tcp.flags,
            class: passed.class,
            duplicate_ack: passed.ack_effect.duplicate,
            sequence,
            end: sequence + numbers,
            acknowledgement: tcp.flags.has(Flags::ACK).then(|| to.relative(tcp.acknowledgement)).flatten(),
            window: from.window().unwrap_or(0),
            sack,
            sacks,
            timestamps: tcp.options.timestamps,
            rtt_ns: passed.ack_effect.rtt_ns(),
            in_flight: if tcp.payload > 0 { from.in_flight() } else { to.in_flight() },
        }
    }

    fn handshake_step(&mut self, tcp: &TcpHeader, upward: bool, time_ns: u64) {
        match (tcp.flags.has(Flags::SYN), tcp.flags.has(Flags::ACK)) {
            (true, false) => {
                self.syns += 1;
                self.first_syn_ns.get_or_insert(time_ns);
                self.syn = Some((upward, time_ns));
                self.client_isn = Some(tcp.sequence);
            }
            (true, true) => {
                // With more than one SYN, it is unknown which one the SYN-ACK answers.
                if let Some((_, syn_ns)) = self.syn
                    && self.syns == 1
                    && self.syn_ack_ns.is_none()
                {
                    self.server_rtt_ns = Some(time_ns.saturating_sub(syn_ns));
                }
                self.syn.get_or_insert((!upward, time_ns));
                self.client_isn.get_or_insert(tcp.acknowledgement.wrapping_sub(1));
                self.syn_ack_ns = Some(time_ns);
                self.directions[usize::from(!upward)].begin_ecn_count();
            }
            (false, true) if self.client_rtt_ns.is_none() => {
                if let (Some((client, _)), Some(sent_ns)) = (self.syn, self.syn_ack_ns)
                    && client == upward
                {
                    self.client_rtt_ns = Some(time_ns.saturating_sub(sent_ns));
                    self.connected_ns = Some(time_ns);
                    self.directions[usize::from(!upward)].begin_ecn_count();
                }
            }
            _ => {}
        }
    }

    /// Returns how far a segment's sequence and ACK number are from those of the connection.
    pub fn distance(&self, tcp: &TcpHeader, upward: bool) -> u64 {
        let [up, down] = &self.directions;
        let (from, to) = if upward { (up, down) } else { (down, up) };
        let acked = if tcp.flags.has(Flags::ACK) { to.distance(tcp.acknowledgement) } else { 0 };
        from.distance(tcp.sequence) + acked
    }

    /// Returns the multipath options of the connection, if it has any.
    pub fn multipath(&self) -> Option<&Subflow> {
        self.multipath.as_deref()
    }

    /// Returns the directions: from the lower endpoint to the higher, and back.
    pub fn directions(&self) -> &[FlowDirection; 2] {
        &self.directions
    }

    /// Returns whether the lower endpoint is the client, and the handshake; `None` without a captured handshake.
    pub fn handshake(&self) -> Option<(bool, TraceHandshake)> {
        let (upward, latest_ns) = self.syn?;
        let handshake = TraceHandshake {
            client: None,
            client_sequence: self.client_isn,
            server_rtt_ns: self.server_rtt_ns,
            client_rtt_ns: self.client_rtt_ns,
            syn_retransmits: self.syns.saturating_sub(1),
            syn_span_ns: self.first_syn_ns.map_or(0, |first_ns| latest_ns.saturating_sub(first_ns)),
            answered: Some(self.syn_ack_ns.is_some()),
            connect_ns: self
                .connected_ns
                .zip(self.first_syn_ns)
                .map(|(end_ns, first_ns)| end_ns.saturating_sub(first_ns)),
        };
        Some((upward, handshake))
    }
}
