//! The receive window announced in a direction, and what limits the sender of the opposite direction.

use landspeed_model::{TraceEventKind, ZeroWindow};
use landspeed_wire::{Flags, TcpHeader};

use super::{FlowDirection, LastData, PacketContext};

/// Maximum number of zero-window periods in the document.
pub(super) const MAX_PERIODS: usize = 100;
/// Maximum window scale (RFC 7323).
const MAX_SCALE: u8 = 14;
/// Time for a sender to react to an opened window, in addition to the RTT, nanoseconds.
const REACTION_NS: u64 = 10_000_000;
/// Number of bursts, after one that ended in the middle of the sender's queue, that are assumed to end there too.
const PACED_BURSTS: u8 = 16;

/// Time with nothing in flight whose cause is not known yet.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Gap {
    /// Time with the window closed or smaller than a segment, nanoseconds.
    shut_ns: u64,
    /// Time since the window opened, nanoseconds.
    open_ns: u64,
}

impl FlowDirection {
    /// Accounts for a receive window announced in this direction. Returns whether it changed.
    #[inline]
    pub fn announce(&mut self, window: u16, flags: Flags, context: PacketContext) -> bool {
        let plain = !flags.has(Flags(Flags::SYN.0 | Flags::RST.0));
        if plain && self.repeats_window(window) {
            return false;
        }
        self.window_field = plain.then_some(window);
        let syn = flags.has(Flags::SYN);
        // At most 2^30 bytes (RFC 7323).
        let bytes = u32::from(window) << if syn { 0 } else { self.scale.unwrap_or(0) };
        let moved = self.window != Some(bytes);
        if syn && flags.has(Flags::ACK) && bytes == 0 {
            // A SYN proxy opens the window when its own connection to the server is established.
            self.window_closes(context);
        }
        if plain {
            if bytes == 0 {
                self.window_closes(context);
            } else if self.is_closed() {
                self.window_opens(context);
            }
            if self.scale.is_some() {
                self.window_min = Some(self.window_min.map_or(bytes, |least| least.min(bytes)));
                self.window_max = Some(self.window_max.map_or(bytes, |most| most.max(bytes)));
            }
        }
        self.window = Some(bytes);
        moved
    }

    /// Returns whether the window field equals that of the previous segment; for segments other than SYN and RST.
    #[inline]
    pub fn repeats_window(&self, window: u16) -> bool {
        self.window_field == Some(window)
    }

    #[cold]
    fn window_closes(&mut self, context: PacketContext) {
        // Also if it is closed in the first segment.
        if !self.is_closed() {
            self.zero_windows = self.zero_windows.saturating_add(1);
            self.rare().closed_since = Some((context.since_ns, context.frame));
            self.event(TraceEventKind::ZeroWindow, context, None);
        }
    }

    #[cold]
    fn window_opens(&mut self, context: PacketContext) {
        if let Some(period) = self.closed_period(context.since_ns) {
            let rare = self.rare();
            rare.closed_since = None;
            rare.closed_ns += period.duration_ns;
            if rare.periods.len() < MAX_PERIODS {
                rare.periods.push(period);
            }
            self.event(TraceEventKind::WindowOpened, context, None);
        }
    }

    /// Returns the current zero-window period up to `until_ns`, if any.
    pub(super) fn closed_period(&self, until_ns: u64) -> Option<ZeroWindow> {
        let (start_ns, frame) = self.rare.as_ref()?.closed_since?;
        Some(ZeroWindow { start_ns, duration_ns: until_ns.saturating_sub(start_ns), frame })
    }

    /// Returns whether the window is open, and stays open with this window field.
    #[inline]
    pub fn stays_open(&self, window: u16) -> bool {
        window != 0 && !self.is_closed()
    }

    #[inline]
    fn is_closed(&self) -> bool {
        self.rare.as_ref().is_some_and(|rare| rare.closed_since.is_some())
    }

    /// Counts a segment with data that ends where the peer's window ends.
    #[inline]
    pub fn count_window_full(&mut self, peer: &Self) {
        if self.acked != 0 && peer.known_window().is_some_and(|window| window > 0 && self.in_flight() >= window) {
            self.window_full = self.window_full.saturating_add(1);
        }
    }

    /// Attributes the time between two packets of the connection to the limit of this direction.
    #[inline]
    pub fn account_time(&mut self, span_ns: u64, peer: &Self, mss: u64) {
        if self.data_packets > 0 && self.acked > 0 {
            self.attribute_time(span_ns, peer, mss);
        }
    }

    fn attribute_time(&mut self, span_ns: u64, peer: &Self, mss: u64) {
        let in_flight = self.next.saturating_sub(self.acked);
        if in_flight == 0 {
            self.account_gap(span_ns, peer, mss);
        } else if self.acked < self.recovery {
            self.limits.recovery_ns += span_ns;
        } else {
            match peer.known_window() {
                Some(window) if window < in_flight + 2 * mss => self.limits.receiver_window_ns += span_ns,
                Some(_) => self.limits.sending_ns += span_ns,
                None => {
                    self.limits.sending_ns += span_ns;
                    self.fit_scale(in_flight, peer);
                }
            }
        }
    }

    /// Accounts for time with nothing in flight. Its cause is known at the next data segment.
    #[inline]
    fn account_gap(&mut self, span_ns: u64, peer: &Self, mss: u64) {
        // A sender waits until the window fits a segment, or half of the largest window announced (RFC 9293,
        // 3.8.6.2.1).
        let enough = peer.window_max.map_or(mss, |most| mss.min(u64::from(most) / 2)).max(1);
        if peer.known_window().is_some_and(|window| window < enough) {
            self.gap.shut_ns += span_ns + std::mem::take(&mut self.gap.open_ns);
        } else {
            self.gap.open_ns += span_ns;
        }
    }

    /// Attributes the time with nothing in flight, at the next data segment.
    pub(super) fn settle_gap(&mut self, payload: u32) {
        let Gap { shut_ns, open_ns } = std::mem::take(&mut self.gap);
        let paced = self.had_more() && self.is_full(payload);
        let limits = &mut self.limits;
        let soon = self.rtt.typical_ns().unwrap_or(0).saturating_add(REACTION_NS);
        if shut_ns > 0 && (open_ns <= soon || self.probed) {
            limits.receiver_window_ns += shut_ns;
            *(if open_ns <= soon { &mut limits.receiver_window_ns } else { &mut limits.idle_ns }) += open_ns;
        } else if paced {
            limits.idle_ns += shut_ns;
            limits.pacing_ns += open_ns;
        } else {
            limits.idle_ns += shut_ns + open_ns;
        }
        self.probed = false;
    }

    /// Returns whether time with nothing in flight remains to be attributed.
    #[inline]
    pub(super) fn has_gap(&self) -> bool {
        self.gap.open_ns | self.gap.shut_ns != 0
    }

    /// Returns the unattributed time at the end: with a closed window that the sender probed, and otherwise.
    pub(super) fn unsettled_gap(&self) -> (u64, u64) {
        let Gap { shut_ns, open_ns } = self.gap;
        if self.probed { (shut_ns, open_ns) } else { (0, shut_ns + open_ns) }
    }

    /// Returns whether the sender had more data after its last segment: that was full-sized, and without PSH, which
    /// marks the end of the queue. Applications may write full segments too; then some recent segment without PSH is
    /// required.
    fn had_more(&mut self) -> bool {
        let Some(LastData { length, .. }) = self.last_data else { return false };
        let full = self.is_full(length);
        if full && !self.pushed {
            self.bursts_since_cut = 1;
            return true;
        }
        let recent = (1..PACED_BURSTS).contains(&self.bursts_since_cut);
        self.bursts_since_cut = self.bursts_since_cut.saturating_add(u8::from(self.bursts_since_cut > 0));
        full && recent
    }

    /// Returns whether the payload is one full segment, or several in a super-packet.
    fn is_full(&self, payload: u32) -> bool {
        let options = if self.timestamps { 12 } else { 0 };
        let segment = self.mss.map_or(self.largest, |mss| self.largest.min(u32::from(mss).saturating_sub(options)));
        segment > 0 && payload > 0 && (payload.is_multiple_of(segment) || payload == self.largest)
    }

    /// Raises the lower bound of the peer's unknown window scale until the window covers the data in flight.
    fn fit_scale(&mut self, in_flight: u64, peer: &Self) {
        let Some(window) = peer.window.map(u64::from).filter(|&window| window > 0 && window < in_flight) else {
            return;
        };
        while self.peer_scale_min < MAX_SCALE && window << self.peer_scale_min < in_flight {
            self.peer_scale_min += 1;
        }
    }

    /// Returns the latest window announced, bytes; unscaled if the scale is unknown.
    pub fn window(&self) -> Option<u64> {
        self.window.map(u64::from)
    }

    /// Returns the latest window announced, bytes, if its scale is known; a zero window needs none.
    #[inline]
    pub fn known_window(&self) -> Option<u64> {
        self.window().filter(|&window| window == 0 || self.scale.is_some())
    }

    /// Returns whether the announced window is zero.
    #[inline]
    pub fn is_window_closed(&self) -> bool {
        self.window == Some(0)
    }

    /// Returns the announced MSS, or 1448 if there is none, bytes.
    pub fn mss(&self) -> u64 {
        self.mss.map_or(1448, u64::from)
    }

    /// Processes the window scale option of a SYN in this direction (RFC 7323): it takes effect if both sides send
    /// it.
    pub fn negotiate_scale(&mut self, tcp: &TcpHeader, peer: &mut Self) {
        if tcp.options.incomplete {
            return;
        }
        match (tcp.options.window_scale, peer.announced_scale) {
            (None, _) => (self.scale, peer.scale) = (Some(0), Some(0)),
            (Some(own), Some(theirs)) => {
                (self.scale, peer.scale) = (Some(own.min(MAX_SCALE)), Some(theirs.min(MAX_SCALE)));
            }
            // A SYN-ACK has the option only if the SYN had it.
            (Some(own), None) if tcp.flags.has(Flags::ACK) && peer.scale != Some(0) => {
                self.scale = Some(own.min(MAX_SCALE));
            }
            (Some(_), None) => {}
        }
        self.window_field = None;
        peer.window_field = None;
    }
}
