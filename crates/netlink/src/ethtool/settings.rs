//! Driver settings: rings, channels, coalescing, pause frames. Each change reads the driver's whole structure,
//! alters one field and writes it back. Needs `CAP_NET_ADMIN`. Drivers round and clamp, so read the value back.

use std::io;

use super::{
    ETHTOOL_GCHANNELS, ETHTOOL_GCOALESCE, ETHTOOL_GPAUSEPARAM, ETHTOOL_GRINGPARAM, Ethtool, EthtoolError, word,
};

// linux/ethtool.h
const ETHTOOL_SCOALESCE: u32 = 0x0f;
const ETHTOOL_SRINGPARAM: u32 = 0x11;
const ETHTOOL_SPAUSEPARAM: u32 = 0x13;
const ETHTOOL_SCHANNELS: u32 = 0x3d;

/// Length of each structure in 32-bit words, including the command.
const RING_WORDS: usize = 9;
const PAUSE_WORDS: usize = 4;
const CHANNEL_WORDS: usize = 9;
const COALESCE_WORDS: usize = 23;

/// A field of `struct ethtool_coalesce`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CoalescingParameter {
    /// `rx-usecs`: delay of receive interrupts, µs
    RxUsecs,
    /// `rx-frames`: frames per receive interrupt
    RxFrames,
    /// `tx-usecs`: delay of transmit interrupts, µs
    TxUsecs,
    /// `tx-frames`: frames per transmit interrupt
    TxFrames,
    /// `adaptive-rx`: adaptive receive coalescing, 0 or 1
    AdaptiveRx,
    /// `adaptive-tx`: adaptive transmit coalescing, 0 or 1
    AdaptiveTx,
}

impl CoalescingParameter {
    /// Parses a parameter name of `ethtool -C`.
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "rx-usecs" => Self::RxUsecs,
            "rx-frames" => Self::RxFrames,
            "tx-usecs" => Self::TxUsecs,
            "tx-frames" => Self::TxFrames,
            "adaptive-rx" => Self::AdaptiveRx,
            "adaptive-tx" => Self::AdaptiveTx,
            _ => return None,
        })
    }

    /// Whether the parameter is `on` or `off` rather than a number.
    pub fn is_switch(self) -> bool {
        matches!(self, Self::AdaptiveRx | Self::AdaptiveTx)
    }

    /// struct ethtool_coalesce: cmd, rx_coalesce_usecs, rx_max_coalesced_frames, two for interrupts, tx_coalesce_usecs,
    /// tx_max_coalesced_frames, two for interrupts, stats_block_coalesce_usecs, use_adaptive_rx, use_adaptive_tx, …
    fn index(self) -> usize {
        match self {
            Self::RxUsecs => 1,
            Self::RxFrames => 2,
            Self::TxUsecs => 5,
            Self::TxFrames => 6,
            Self::AdaptiveRx => 10,
            Self::AdaptiveTx => 11,
        }
    }
}

impl Ethtool {
    /// Sets ring sizes, descriptors; `None` leaves a size unchanged. Most drivers reset the link.
    pub fn set_rings(&mut self, rx: Option<u32>, tx: Option<u32>) -> Result<(), EthtoolError> {
        self.set_words("ring sizes", (ETHTOOL_GRINGPARAM, ETHTOOL_SRINGPARAM), RING_WORDS, &[(5, rx), (8, tx)])
    }

    /// Sets the number of combined channels. Most drivers reset the link.
    pub fn set_combined_channels(&mut self, combined: u32) -> Result<(), EthtoolError> {
        let fields = [(8, Some(combined))];
        self.set_words("channel counts", (ETHTOOL_GCHANNELS, ETHTOOL_SCHANNELS), CHANNEL_WORDS, &fields)
    }

    /// Sets pause frame handling; `None` leaves a direction unchanged.
    pub fn set_pause(&mut self, rx: Option<bool>, tx: Option<bool>) -> Result<(), EthtoolError> {
        // struct ethtool_pauseparam: cmd, autoneg, rx_pause, tx_pause.
        let fields = [(2, rx.map(u32::from)), (3, tx.map(u32::from))];
        self.set_words("pause frames", (ETHTOOL_GPAUSEPARAM, ETHTOOL_SPAUSEPARAM), PAUSE_WORDS, &fields)
    }

    /// Sets one coalescing parameter.
    pub fn set_coalescing(&mut self, parameter: CoalescingParameter, value: u32) -> Result<(), EthtoolError> {
        let fields = [(parameter.index(), Some(value))];
        self.set_words("coalescing", (ETHTOOL_GCOALESCE, ETHTOOL_SCOALESCE), COALESCE_WORDS, &fields)
    }

    /// Returns the value of one coalescing parameter.
    pub fn coalescing_parameter(&mut self, parameter: CoalescingParameter) -> Result<u32, EthtoolError> {
        self.ask("coalescing", ETHTOOL_GCOALESCE, &[]).map(|reply| word(reply, parameter.index()))
    }

    fn set_words(
        &mut self,
        operation: &'static str,
        (read, write): (u32, u32),
        words: usize,
        fields: &[(usize, Option<u32>)],
    ) -> Result<(), EthtoolError> {
        let reply = self.ask(operation, read, &[])?;
        let mut now: Vec<(usize, u32)> = (1..words).map(|index| (index, word(reply, index))).collect();
        for &(index, value) in fields {
            let Some(place) = now.iter_mut().find(|(at, _)| *at == index) else {
                return Err(self.error(operation, io::ErrorKind::InvalidInput.into()));
            };
            place.1 = value.unwrap_or(place.1);
        }
        self.ask(operation, write, &now).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_names_settings_the_driver_lacks() {
        let mut lo = Ethtool::new("lo").expect("a socket");
        for error in [lo.set_rings(Some(64), None), lo.set_combined_channels(1), lo.set_pause(Some(true), None)] {
            let error = error.expect_err("loopback has none of it");
            assert!(error.is_unsupported(), "{error}");
        }
        assert_eq!(CoalescingParameter::from_name("rx-usecs-irq"), None);
    }
}
