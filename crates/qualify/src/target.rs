//! Target for a whole path, and the parameters derived from it.

use landspeed_calc::{
    CUBIC_BETA, ETHERNET_OVERHEAD_BYTES, Framing, InputError, IpVersion, PathInput, cubic_loss_budget,
    window_segments,
};
use landspeed_model::{QualifyCongestion, QualifyDerived, QualifyTarget};
use landspeed_units::{BitRate, Nanos};

use crate::sprt::Sprt;

/// Share of lost packets in a round trip that BBRv3 tolerates when it probes for bandwidth (draft-ietf-ccwg-bbr, `BBRLossThresh`).
pub const BBR_LOSS_THRESHOLD: f64 = 0.02;

/// Target for the whole path (RFC 8337 section 5.1).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Target {
    /// Target data rate: TCP payload.
    pub rate: BitRate,
    /// RTT of the whole path without queues.
    pub rtt: Nanos,
    /// MTU of the whole path, bytes.
    pub mtu_bytes: u32,
    /// Version of the Internet Protocol.
    pub ip_version: IpVersion,
    /// Congestion control of the senders.
    pub congestion: QualifyCongestion,
}

impl Target {
    /// A target for CUBIC over IPv4 at MTU 1500.
    pub const fn new(rate: BitRate, rtt: Nanos) -> Self {
        Self { rate, rtt, mtu_bytes: 1500, ip_version: IpVersion::V4, congestion: QualifyCongestion::Cubic }
    }

    /// Returns the parameters that the target implies.
    ///
    /// # Errors
    /// If the target is impossible.
    pub fn derive(&self) -> Result<QualifyDerived, InputError> {
        let path =
            PathInput { mtu: self.mtu_bytes, ip_version: self.ip_version, ..PathInput::new(self.rate, self.rtt) };
        path.check()?;
        let (rate_bps, rtt_s) = (self.rate.bps() as f64, self.rtt.as_secs_f64());
        let mss_bytes = f64::from(path.framing().mss_bytes());
        let header_bytes = self.mtu_bytes - path.framing().mss_bytes();
        let window = window_packets(rate_bps, rtt_s, f64::from(self.mtu_bytes), f64::from(header_bytes));
        let run_length = match self.congestion {
            QualifyCongestion::Reno => reno_run_length(window),
            QualifyCongestion::Cubic => cubic_run_length(window, rtt_s),
            QualifyCongestion::Bbr => bbr_run_length(),
        };
        let sprt = Sprt::of_run_length(run_length);
        Ok(QualifyDerived {
            header_bytes,
            window_packets: window as u64,
            run_length_packets: run_length.round() as u64,
            packets_per_s: rate_bps / (8.0 * mss_bytes),
            accept_packets: sprt.trials_to_accept(0),
            alpha: Sprt::ALPHA,
            beta: Sprt::BETA,
        })
    }

    /// Returns the target as it is written into a document.
    pub fn document(&self) -> QualifyTarget {
        QualifyTarget {
            rate_bps: self.rate.bps(),
            rtt_ns: self.rtt.get(),
            mtu_bytes: self.mtu_bytes,
            congestion: self.congestion,
        }
    }

    /// Returns the UDP payload of a packet of the target MTU, bytes.
    pub fn udp_payload_bytes(&self) -> u32 {
        const UDP_HEADER_BYTES: u32 = 8;
        self.mtu_bytes.saturating_sub(self.ip_version.header_bytes() + UDP_HEADER_BYTES)
    }

    pub(crate) fn framing(&self) -> Framing {
        Framing { mtu_bytes: self.mtu_bytes, ip_version: self.ip_version, timestamps: true }
    }
}

/// The target window: `⌈rate × RTT / (8 × (MTU − headers))⌉` packets (RFC 8337 section 5.2).
pub fn window_packets(rate_bps: f64, rtt_s: f64, mtu_bytes: f64, header_bytes: f64) -> f64 {
    window_segments(rate_bps, rtt_s, mtu_bytes - header_bytes).ceil().max(1.0)
}

/// Reno's target run length: `3 × window²` packets (RFC 8337 section 5.2).
///
/// It is the number of packets in one sawtooth from the window to twice the window with delayed ACKs: `2 × window` RTTs of
/// `1.5 × window` packets on average. Losses that are no closer keep the path full after each reduction.
pub fn reno_run_length(window_packets: f64) -> f64 {
    3.0 * window_packets * window_packets
}

/// CUBIC's target run length: the packets between losses with which the window is the target window right after a reduction, as in
/// [`reno_run_length`].
///
/// The window then varies between `W` and `W / β`, and is `W / β × (3 + β) / 4` on average (the model of RFC 9438 section 5). The
/// loss rate for that average is [`cubic_loss_budget`]'s, which includes the Reno-friendly region: the run length is at most 0.41 of
/// [`reno_run_length`].
pub fn cubic_run_length(window_packets: f64, rtt_s: f64) -> f64 {
    let average = window_packets / CUBIC_BETA * (3.0 + CUBIC_BETA) / 4.0;
    1.0 / cubic_loss_budget(average, rtt_s)
}

/// BBRv3's target run length: `1 / 0.02` packets, from [`BBR_LOSS_THRESHOLD`].
pub fn bbr_run_length() -> f64 {
    1.0 / BBR_LOSS_THRESHOLD
}

/// Returns the rate on an Ethernet link that the target data rate needs, bits/s: `rate × (MTU + 38) / (MTU − headers)`.
pub fn wire_rate_bps(target: &Target) -> f64 {
    target.rate.bps() as f64 / target.framing().efficiency()
}

/// Returns the highest target data rate of an Ethernet link, bits/s.
pub fn highest_target_bps(target: &Target, line_rate_bps: f64) -> f64 {
    target.framing().goodput_bps(line_rate_bps)
}

/// Packets per second of the target MTU that an Ethernet link carries.
pub(crate) fn line_packets_per_s(target: &Target, line_rate_bps: f64) -> f64 {
    line_rate_bps / (8.0 * f64::from(target.mtu_bytes + ETHERNET_OVERHEAD_BYTES))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(rate: &str, rtt: &str, mtu_bytes: u32, congestion: QualifyCongestion) -> Target {
        Target { mtu_bytes, congestion, ..Target::new(rate.parse().expect("a rate"), rtt.parse().expect("a time")) }
    }

    #[test]
    fn window_and_run_length_follow_the_rfcs_example() {
        // RFC 8337 section 9, table 1: 2.5 Mb/s over 50 ms, MTU 1500, headers of 64 bytes.
        let window = window_packets(2.5e6, 0.05, 1500.0, 64.0);
        assert!((window - 11.0).abs() < f64::EPSILON, "⌈15625 / 1436⌉");
        assert!((reno_run_length(window) - 363.0).abs() < f64::EPSILON, "3 × 11²");
    }

    #[test]
    fn reno_needs_billions_of_packets_between_losses() {
        let derived = target("10G", "92ms", 1500, QualifyCongestion::Reno).derive().expect("sound");
        // 115e6 / 1448 = 79419.9
        assert_eq!((derived.header_bytes, derived.window_packets), (52, 79_420));
        assert_eq!(derived.run_length_packets, 18_922_609_200);
        assert!((derived.packets_per_s - 863_259.7).abs() < 0.1);
    }

    #[test]
    fn cubic_needs_millions_of_packets_between_losses() {
        let derived = target("10G", "92ms", 9000, QualifyCongestion::Cubic).derive().expect("sound");
        assert_eq!(derived.window_packets, 12_853, "⌈115e6 / 8948⌉");
        // The average window is 12853 / 0.7 × 0.925 = 16984; 0.092 / (16984 / 1.054)^(4/3) = 2.26e-7.
        assert!((derived.run_length_packets as f64 / 4.42e6 - 1.0).abs() < 0.01, "{}", derived.run_length_packets);
    }

    #[test]
    fn cubic_needs_no_more_than_reno() {
        for (rate, rtt) in [("1M", "1ms"), ("1G", "10ms"), ("10G", "92ms"), ("100G", "1ms")] {
            let [reno, cubic] = [QualifyCongestion::Reno, QualifyCongestion::Cubic]
                .map(|congestion| target(rate, rtt, 1500, congestion).derive().expect("sound").run_length_packets);
            assert!(cubic <= reno, "{rate} {rtt}: {cubic} {reno}");
        }
    }

    #[test]
    fn bbr_tolerates_two_per_cent() {
        assert_eq!(
            target("10G", "92ms", 9000, QualifyCongestion::Bbr).derive().expect("sound").run_length_packets,
            50
        );
    }

    #[test]
    fn impossible_targets_are_refused() {
        assert!(target("0", "92ms", 1500, QualifyCongestion::Reno).derive().is_err());
        assert!(target("10G", "2h", 1500, QualifyCongestion::Reno).derive().is_err());
        assert!(target("10G", "92ms", 40, QualifyCongestion::Reno).derive().is_err());
    }

    #[test]
    fn a_10g_link_carries_9_41_gigabits_of_data() {
        let ten = target("10G", "92ms", 1500, QualifyCongestion::Cubic);
        assert!((highest_target_bps(&ten, 10e9) / 1e9 - 9.415).abs() < 0.001);
        assert!((wire_rate_bps(&ten) / 1e9 - 10.62).abs() < 0.01);
    }
}
