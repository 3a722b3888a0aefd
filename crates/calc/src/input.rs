//! The path for which advice is requested.

use landspeed_units::{BitRate, Bytes, Nanos, Ratio};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::answers::Unit;
use crate::distance::LIGHT_IN_VACUUM_M_PER_S;
use crate::framing::{Framing, IpVersion};
use crate::text::value_text;

/// A path and the transfer planned over it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PathInput {
    /// The line rate of the narrowest link in bit/s, from 1 b/s to 1 Pb/s.
    pub rate: BitRate,
    /// The round-trip time without queues in ns, from 1 ns to one hour.
    pub rtt: Nanos,
    /// The path MTU in bytes, from 576 (IPv4) or 1280 (IPv6) to 65535.
    pub mtu: u32,
    /// Version of the Internet Protocol.
    pub ip_version: IpVersion,
    /// The share of packets lost, below 1; absent or zero means none.
    pub loss: Option<Ratio>,
    /// Number of parallel flows, from 1 to 65535.
    pub flows: u32,
    /// Size of the transfer in bytes, if given.
    pub bytes: Option<Bytes>,
    /// The distance between the hosts in metres, if known.
    pub distance_m: Option<f64>,
}

/// An impossible path parameter.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum InputError {
    /// The rate is zero or above 1 Pb/s.
    #[error("a rate of {} is out of range: give one from 1 b/s to 1000 Tb/s, for example 10G", .0)]
    Rate(BitRate),
    /// The RTT is zero or above one hour.
    #[error("an RTT of {} is out of range: give one from 1 ns to 1 h, for example 92ms", .0)]
    Rtt(Nanos),
    /// The MTU is below the minimum or above 65535.
    #[error("an MTU of {mtu} cannot carry TCP here: give one from {min} to 65535, for example 1500 or 9000")]
    Mtu {
        /// The MTU given, in bytes.
        mtu: u32,
        /// The smallest accepted with this IP version, in bytes.
        min: u32,
    },
    /// The loss ratio is not below 1.
    #[error("at a loss of {} nothing gets through: give a share below 100%, for example 0.0046% or 1/22000", .0)]
    Loss(Ratio),
    /// The number of flows is zero or above 65535.
    #[error("invalid number of flows {0}: give 1 to 65535, for example 8")]
    Flows(u32),
    /// The size of the transfer is zero.
    #[error("there is nothing to move: give a size, for example 1T")]
    NoBytes,
    /// The distance is not a positive finite number of metres.
    #[error("{0} m is not a distance: give a positive number of metres")]
    Distance(f64),
    /// Light in vacuum cannot cover the distance within half the RTT.
    #[error(
        "{} is farther than light in vacuum travels in half an RTT of {rtt} ({}): check the RTT and the distance",
        value_text(*distance_m, Unit::Metres),
        value_text(*farthest_m, Unit::Metres)
    )]
    FasterThanLight {
        /// The given distance, metres.
        distance_m: f64,
        /// The given RTT.
        rtt: Nanos,
        /// Distance of light in vacuum in half the RTT, metres.
        farthest_m: f64,
    },
}

impl PathInput {
    const MAX_RATE: BitRate = BitRate::from_bps(1_000_000_000_000_000);
    const MAX_RTT: Nanos = Nanos::from_secs(3600);
    const MAX_MTU_BYTES: u32 = 65_535;
    const MAX_FLOWS: u32 = 65_535;

    /// One flow over IPv4 at MTU 1500, without loss.
    pub const fn new(rate: BitRate, rtt: Nanos) -> Self {
        Self { rate, rtt, mtu: 1500, ip_version: IpVersion::V4, loss: None, flows: 1, bytes: None, distance_m: None }
    }

    /// Encapsulation of the segments, with timestamps as by default in Linux.
    pub const fn framing(&self) -> Framing {
        Framing { mtu_bytes: self.mtu, ip_version: self.ip_version, timestamps: true }
    }

    /// Rejects impossible parameters, and values that the answers could not represent.
    ///
    /// # Errors
    /// The first impossible parameter.
    pub fn check(&self) -> Result<(), InputError> {
        if self.rate == BitRate::ZERO || self.rate > Self::MAX_RATE {
            return Err(InputError::Rate(self.rate));
        }
        if self.rtt == Nanos::ZERO || self.rtt > Self::MAX_RTT {
            return Err(InputError::Rtt(self.rtt));
        }
        let min = self.ip_version.min_mtu_bytes();
        if !(min..=Self::MAX_MTU_BYTES).contains(&self.mtu) {
            return Err(InputError::Mtu { mtu: self.mtu, min });
        }
        if let Some(loss) = self.loss
            && !(0.0..1.0).contains(&loss.get())
        {
            return Err(InputError::Loss(loss));
        }
        if !(1..=Self::MAX_FLOWS).contains(&self.flows) {
            return Err(InputError::Flows(self.flows));
        }
        if self.bytes == Some(Bytes::ZERO) {
            return Err(InputError::NoBytes);
        }
        self.distance_m.map_or(Ok(()), |distance_m| self.check_distance(distance_m))
    }

    fn check_distance(&self, distance_m: f64) -> Result<(), InputError> {
        if !distance_m.is_finite() || distance_m <= 0.0 {
            return Err(InputError::Distance(distance_m));
        }
        let farthest_m = self.rtt.as_secs_f64() / 2.0 * LIGHT_IN_VACUUM_M_PER_S;
        if distance_m > farthest_m {
            return Err(InputError::FasterThanLight { distance_m, rtt: self.rtt, farthest_m });
        }
        Ok(())
    }
}
