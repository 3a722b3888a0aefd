//! Driver information by the `SIOCETHTOOL` ioctl (linux/ethtool.h).
//!
//! The ioctl instead of the newer netlink family: every kernel has it, reading needs no privilege, and driver
//! statistics (`ethtool -S`) have no other interface. The crate `ethtool` is asynchronous and lacks them.

use std::fmt;
use std::io;

use landspeed_sys::interface::EthtoolSocket;

use crate::Coalescing;

mod settings;

pub use settings::CoalescingParameter;

const ETHTOOL_GDRVINFO: u32 = 0x03;
const ETHTOOL_GCOALESCE: u32 = 0x0e;
const ETHTOOL_GRINGPARAM: u32 = 0x10;
const ETHTOOL_GPAUSEPARAM: u32 = 0x12;
const ETHTOOL_GSTRINGS: u32 = 0x1b;
const ETHTOOL_GSTATS: u32 = 0x1d;
const ETHTOOL_GSSET_INFO: u32 = 0x37;
const ETHTOOL_GRXFHINDIR: u32 = 0x38;
const ETHTOOL_GFEATURES: u32 = 0x3a;
const ETHTOOL_SFEATURES: u32 = 0x3b;
const ETHTOOL_GCHANNELS: u32 = 0x3c;
const ETHTOOL_GLINKSETTINGS: u32 = 0x4c;

const ETH_SS_STATS: u32 = 1;
const ETH_SS_FEATURES: u32 = 4;
const ETH_GSTRING_LEN: usize = 32;
const SPEED_UNKNOWN: u32 = u32::MAX;

/// Maximum number of statistics or features of an interface. mlx5 with 128 channels has some 8,000.
const MAX_STRINGS: usize = 32_768;
/// Size of every response buffer, bytes: a header and twice [`MAX_STRINGS`] strings. Most kernels write as many
/// entries as the driver has at that moment, whatever number was requested, and a driver may gain channels
/// between two calls. Pages that are never touched cost nothing.
const REPLY_BYTES: usize = 16 + 2 * MAX_STRINGS * ETH_GSTRING_LEN;

/// Offloads with which a sender passes super-packets to the device, by the kernel's names.
pub const SEGMENTATION_OFFLOADS: &[&str] = &[
    "tx-tcp-segmentation",
    "tx-tcp-ecn-segmentation",
    "tx-tcp-mangleid-segmentation",
    "tx-tcp6-segmentation",
    "tx-udp-segmentation",
    "tx-gso-list",
];
/// Offloads with which a receiver merges frames, by the kernel's names.
pub const RECEIVE_MERGING_OFFLOADS: &[&str] = &["rx-gro"];

/// Maximum number of non-zero words in a request, including the command.
const REQUEST_WORDS: usize = 24;

/// A failed request to a driver. `EOPNOTSUPP` is normal: see [`EthtoolError::is_unsupported`].
#[derive(Debug)]
pub struct EthtoolError {
    /// Operation, such as `ring sizes`.
    pub operation: &'static str,
    /// Such as `eth0`.
    pub interface: String,
    /// Error of the ioctl.
    pub cause: io::Error,
}

impl EthtoolError {
    /// Returns whether the driver lacks the feature, as opposed to a failure.
    pub fn is_unsupported(&self) -> bool {
        matches!(self.cause.raw_os_error(), Some(libc::EOPNOTSUPP | libc::ENOTTY))
    }
}

impl fmt::Display for EthtoolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_unsupported() {
            write!(f, "the driver of {} offers no {}", self.interface, self.operation)
        } else {
            write!(f, "ethtool {} of {}: {}", self.operation, self.interface, self.cause)
        }
    }
}

impl std::error::Error for EthtoolError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.cause)
    }
}

/// Driver identification (`ethtool -i`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DriverInfo {
    /// Such as `mlx5_core`.
    pub driver: String,
    /// Driver version; for most drivers the kernel's version.
    pub version: String,
    /// Firmware version; may be empty.
    pub firmware: String,
    /// Bus address (`0000:65:00.0`); may be empty.
    pub bus: String,
}

/// Ring sizes (`ethtool -g`), each as (current, maximum).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Rings {
    /// Receive ring size, descriptors.
    pub rx: (u32, u32),
    /// Transmit ring size, descriptors.
    pub tx: (u32, u32),
}

/// Numbers of channels (`ethtool -l`), each as (current, maximum).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Channels {
    /// Receive-only channels.
    pub rx: (u32, u32),
    /// Transmit-only channels.
    pub tx: (u32, u32),
    /// Channels that receive and transmit.
    pub combined: (u32, u32),
}

/// Speed and duplex of a link.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LinkMode {
    /// Speed, bits/s; `None` when the link is down or has no speed.
    pub speed_bps: Option<u64>,
    /// Whether the link is full duplex; `None` if the driver does not know.
    pub full_duplex: Option<bool>,
}

/// Link-level flow control (IEEE 802.3x).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pause {
    /// Whether pause frames are autonegotiated.
    pub autonegotiate: bool,
    /// Whether received pause frames are obeyed.
    pub rx: bool,
    /// Whether pause frames are sent.
    pub tx: bool,
}

/// One offload feature (`ethtool -k`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Feature {
    /// The kernel's name: `tx-tcp-segmentation`, `rx-gro` …
    pub name: String,
    /// Whether the feature is enabled.
    pub active: bool,
    /// Whether the administrator can change it.
    pub changeable: bool,
}

/// Access to the driver of one interface, in the network namespace of the thread that created it.
pub struct Ethtool {
    socket: EthtoolSocket,
    interface: String,
}

impl Ethtool {
    /// Prepares requests about `interface`. Fails if the name is invalid; a missing interface fails at the first
    /// request.
    pub fn new(interface: &str) -> Result<Self, EthtoolError> {
        let socket = EthtoolSocket::open(interface, REPLY_BYTES);
        let fail = |cause| EthtoolError { operation: "socket", interface: interface.into(), cause };
        Ok(Self { socket: socket.map_err(fail)?, interface: interface.into() })
    }

    /// Returns name, version, firmware and bus address of the driver.
    pub fn driver(&mut self) -> Result<DriverInfo, EthtoolError> {
        // struct ethtool_drvinfo: cmd, then driver, version, fw_version and bus_info of 32 bytes each.
        let reply = self.ask("driver information", ETHTOOL_GDRVINFO, &[])?;
        let field = |i: usize| text(&reply[4 + 32 * i..4 + 32 * (i + 1)]);
        Ok(DriverInfo { driver: field(0), version: field(1), firmware: field(2), bus: field(3) })
    }

    /// Returns the link speed, bits/s; `None` when the link is down or has no speed.
    pub fn speed_bps(&mut self) -> Result<Option<u64>, EthtoolError> {
        self.link_mode().map(|link| link.speed_bps)
    }

    /// Returns link speed and duplex.
    pub fn link_mode(&mut self) -> Result<LinkMode, EthtoolError> {
        const OPERATION: &str = "link settings";
        // struct ethtool_link_settings: cmd, speed (Mb/s), seven bytes, link_mode_masks_nwords (i8). The first call
        // returns the number of mask words, negated; the second must pass it.
        const WORDS: usize = 15;
        let reply = self.ask(OPERATION, ETHTOOL_GLINKSETTINGS, &[])?;
        let words = (reply[WORDS] as i8).wrapping_neg();
        if words <= 0 {
            return Err(self.error(OPERATION, io::ErrorKind::InvalidData.into()));
        }
        let reply = self.ask(OPERATION, ETHTOOL_GLINKSETTINGS, &[(3, u32::from_ne_bytes([0, 0, 0, words as u8]))])?;
        let speed = word(reply, 1);
        let speed_bps = (speed != 0 && speed != SPEED_UNKNOWN).then(|| u64::from(speed) * 1_000_000);
        // DUPLEX_HALF 0, DUPLEX_FULL 1, DUPLEX_UNKNOWN 0xff.
        let full_duplex = match reply[8] {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        };
        Ok(LinkMode { speed_bps, full_duplex })
    }

    /// Returns interrupt coalescing by the ioctl: parameters that the driver lacks are 0. Prefer
    /// [`crate::EthtoolFamily`], where available.
    pub fn coalescing(&mut self) -> Result<Coalescing, EthtoolError> {
        // struct ethtool_coalesce: cmd, rx_coalesce_usecs, rx_max_coalesced_frames, two for interrupts, then the same for
        // transmit, stats_block_coalesce_usecs, use_adaptive_rx_coalesce, use_adaptive_tx_coalesce …
        let reply = self.ask("interrupt coalescing", ETHTOOL_GCOALESCE, &[])?;
        Ok(Coalescing {
            adaptive_rx: Some(word(reply, 10) != 0),
            adaptive_tx: Some(word(reply, 11) != 0),
            rx_us: Some(word(reply, 1)),
            rx_frames: Some(word(reply, 2)),
            tx_us: Some(word(reply, 5)),
            tx_frames: Some(word(reply, 6)),
        })
    }

    /// Returns the pause frame settings.
    pub fn pause(&mut self) -> Result<Pause, EthtoolError> {
        // struct ethtool_pauseparam: cmd, autoneg, rx_pause, tx_pause.
        let reply = self.ask("pause parameters", ETHTOOL_GPAUSEPARAM, &[])?;
        let on = |index| word(reply, index) != 0;
        Ok(Pause { autonegotiate: on(1), rx: on(2), tx: on(3) })
    }

    /// Returns the receive-side scaling indirection table: a receive queue per entry.
    pub fn rss_table(&mut self) -> Result<Vec<u32>, EthtoolError> {
        const OPERATION: &str = "receive-side scaling";
        // struct ethtool_rxfh_indir: cmd, size, then one u32 each. With a size of 0 the kernel returns the number of
        // entries.
        let reply = self.ask(OPERATION, ETHTOOL_GRXFHINDIR, &[])?;
        let size = word(reply, 1);
        if size == 0 || size as usize > MAX_STRINGS {
            return Err(self.error(OPERATION, io::ErrorKind::InvalidData.into()));
        }
        let reply = self.ask(OPERATION, ETHTOOL_GRXFHINDIR, &[(1, size)])?;
        let answered = word(reply, 1).min(size) as usize;
        Ok((0..answered).map(|entry| word(reply, 2 + entry)).collect())
    }

    /// Returns current and maximum ring sizes.
    pub fn rings(&mut self) -> Result<Rings, EthtoolError> {
        // struct ethtool_ringparam: cmd, rx_max, rx_mini_max, rx_jumbo_max, tx_max, rx, rx_mini, rx_jumbo, tx.
        let reply = self.ask("ring sizes", ETHTOOL_GRINGPARAM, &[])?;
        Ok(Rings { rx: (word(reply, 5), word(reply, 1)), tx: (word(reply, 8), word(reply, 4)) })
    }

    /// Returns current and maximum numbers of channels.
    pub fn channels(&mut self) -> Result<Channels, EthtoolError> {
        // struct ethtool_channels: cmd, max_rx, max_tx, max_other, max_combined, rx, tx, other, combined.
        let reply = self.ask("channel counts", ETHTOOL_GCHANNELS, &[])?;
        Ok(Channels {
            rx: (word(reply, 5), word(reply, 1)),
            tx: (word(reply, 6), word(reply, 2)),
            combined: (word(reply, 8), word(reply, 4)),
        })
    }

    /// Returns all offload features that this kernel supports.
    pub fn features(&mut self) -> Result<Vec<Feature>, EthtoolError> {
        let names = self.strings("feature names", ETH_SS_FEATURES)?;
        // struct ethtool_gfeatures: cmd, size; then {available, requested, active, never_changed} for each 32 features.
        let blocks = names.len().div_ceil(32);
        let reply = self.ask("features", ETHTOOL_GFEATURES, &[(1, blocks as u32)])?;
        let answered = (word(reply, 1) as usize).min(blocks);
        let bit =
            |feature: usize, column: usize| word(reply, 2 + feature / 32 * 4 + column) >> (feature % 32) & 1 == 1;
        let features = names.into_iter().enumerate().take(answered * 32).map(|(i, name)| Feature {
            name,
            active: bit(i, 2),
            changeable: bit(i, 0) && !bit(i, 3),
        });
        Ok(features.filter(|f| !f.name.is_empty()).collect())
    }

    /// Switches offloads on or off by the kernel's names, then reads them back. A name that this kernel does not
    /// know counts as off.
    ///
    /// # Errors
    /// If one of them is not in the wanted state afterwards; the error names it. The others are switched
    /// nevertheless.
    pub fn set_features(&mut self, names: &[&str], on: bool) -> Result<(), EthtoolError> {
        const OPERATION: &str = "feature change";
        let known = self.strings("feature names", ETH_SS_FEATURES)?;
        // struct ethtool_sfeatures: cmd, size; then {valid, requested} for each 32 features.
        let mut words: Vec<(usize, u32)> = vec![(1, known.len().div_ceil(32) as u32)];
        for block in 0..known.len().div_ceil(32) {
            let of_block = known.iter().skip(block * 32).take(32).enumerate();
            let valid = of_block
                .filter(|(_, name)| names.contains(&name.as_str()))
                .fold(0_u32, |mask, (bit, _)| mask | 1 << bit);
            words.extend([(2 + 2 * block, valid), (3 + 2 * block, if on { valid } else { 0 })]);
        }
        if words.len() > REQUEST_WORDS - 1 {
            return Err(self.error(OPERATION, io::Error::other("more features than this was written for")));
        }
        self.ask(OPERATION, ETHTOOL_SFEATURES, &words)?;
        let now = self.features()?;
        let wrong = |name: &&&str| now.iter().find(|f| f.name == **name).is_some_and(|f| f.active) != on;
        match names.iter().find(wrong) {
            None => Ok(()),
            Some(name) => {
                let state = if on { "on" } else { "off" };
                Err(self.error(OPERATION, io::Error::other(format!("{name} cannot be switched {state}"))))
            }
        }
    }

    /// Returns the names of the driver's statistics (`ethtool -S`), in the order of [`Ethtool::statistics`].
    pub fn statistics_names(&mut self) -> Result<Vec<String>, EthtoolError> {
        self.strings("statistics", ETH_SS_STATS)
    }

    /// Returns the driver's statistics. Fails if their number is not `names`, which means that the driver was
    /// reconfigured.
    pub fn statistics(&mut self, names: usize) -> Result<Vec<u64>, EthtoolError> {
        const OPERATION: &str = "statistics";
        if names == 0 {
            return Ok(Vec::new());
        }
        // struct ethtool_stats: cmd, n_stats, then one u64 each.
        let reply = self.ask(OPERATION, ETHTOOL_GSTATS, &[(1, names.min(MAX_STRINGS) as u32)])?;
        if word(reply, 1) as usize != names {
            return Err(self.error(OPERATION, io::Error::other("the driver's set of statistics changed")));
        }
        let counters = reply[8..].chunks_exact(8).take(names);
        Ok(counters.map(|c| join_u32s(word(c, 0), word(c, 1))).collect())
    }

    fn strings(&mut self, operation: &'static str, set: u32) -> Result<Vec<String>, EthtoolError> {
        // struct ethtool_sset_info: cmd, reserved, sset_mask (u64), then one u32 for each bit still set.
        let (low, high) = split_u64(1_u64 << set);
        let reply = self.ask(operation, ETHTOOL_GSSET_INFO, &[(2, low), (3, high)])?;
        if word(reply, 2) | word(reply, 3) == 0 {
            return Err(self.error(operation, io::Error::from_raw_os_error(libc::EOPNOTSUPP)));
        }
        let count = word(reply, 4) as usize;
        if count > MAX_STRINGS {
            return Err(self.error(operation, io::Error::other(format!("{count} names: too many to read"))));
        }
        if count == 0 {
            return Ok(Vec::new());
        }
        // struct ethtool_gstrings: cmd, string_set, len, then 32 bytes each.
        let reply = self.ask(operation, ETHTOOL_GSTRINGS, &[(1, set), (2, count as u32)])?;
        let answered = (word(reply, 2) as usize).min(count);
        Ok(reply[12..].chunks_exact(ETH_GSTRING_LEN).take(answered).map(text).collect())
    }

    /// Sends one request: `command` in the first word of the buffer, `arguments` as (index, value) of further
    /// words, all others zero. Returns the buffer as the kernel left it.
    fn ask(
        &mut self,
        operation: &'static str,
        command: u32,
        arguments: &[(usize, u32)],
    ) -> Result<&[u8], EthtoolError> {
        let mut head = [0_u32; REQUEST_WORDS];
        head[0] = command;
        for &(at, value) in arguments {
            head[at] = value;
        }
        let Self { socket, interface } = self;
        socket.ask(&head).map_err(|cause| EthtoolError { operation, interface: interface.clone(), cause })
    }

    fn error(&self, operation: &'static str, cause: io::Error) -> EthtoolError {
        EthtoolError { operation, interface: self.interface.clone(), cause }
    }
}

/// The `index`th 32-bit word.
fn word(bytes: &[u8], index: usize) -> u32 {
    let at = 4 * index;
    bytes.get(at..at + 4).and_then(|b| b.try_into().ok()).map_or(0, u32::from_ne_bytes)
}

fn join_u32s(first: u32, second: u32) -> u64 {
    let (a, b) = (first.to_ne_bytes(), second.to_ne_bytes());
    u64::from_ne_bytes([a[0], a[1], a[2], a[3], b[0], b[1], b[2], b[3]])
}

fn split_u64(value: u64) -> (u32, u32) {
    let b = value.to_ne_bytes();
    (u32::from_ne_bytes([b[0], b[1], b[2], b[3]]), u32::from_ne_bytes([b[4], b[5], b[6], b[7]]))
}

fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_has_features_and_no_rings() {
        let mut lo = Ethtool::new("lo").expect("a socket");
        let features = lo.features().expect("every device has features");
        let scatter = features.iter().find(|f| f.name == "tx-scatter-gather").expect("a feature lo has");
        assert!(scatter.active);
        let error = lo.rings().expect_err("loopback has no rings");
        assert!(error.is_unsupported(), "{error:?}");
        assert_eq!(error.to_string(), "the driver of lo offers no ring sizes");
        assert!(lo.pause().expect_err("no pause frames").is_unsupported());
        assert!(lo.coalescing().expect_err("no interrupts").is_unsupported());
        assert!(lo.rss_table().expect_err("no queues to choose").is_unsupported());
    }

    #[test]
    fn error_names_the_missing_interface() {
        let mut gone = Ethtool::new("nosuch0").expect("a possible name");
        let error = gone.driver().expect_err("no such interface");
        assert!(error.to_string().contains("nosuch0"), "{error}");
        assert!(!error.is_unsupported());
    }

    #[test]
    fn invalid_interface_names_are_refused() {
        for name in ["", "a-name-longer-than-fifteen", "nul\0"] {
            assert!(Ethtool::new(name).is_err(), "{name:?}");
        }
    }

    #[test]
    fn veth_reports_driver_speed_channels_and_statistics() {
        let outcome = landspeed_sys::netns::run_in_new_namespace(|| {
            let add = "link add a0 numtxqueues 3 numrxqueues 3 type veth peer name b0".split(' ');
            let made = std::process::Command::new("ip").args(add).status();
            if !made.is_ok_and(|status| status.success()) {
                return Err("ip cannot make a veth pair");
            }
            let mut nic = Ethtool::new("a0").expect("a socket");
            assert_eq!(nic.driver().expect("driver").driver, "veth");
            // Nominal speed of veth; the actual speed depends on the CPU.
            assert_eq!(nic.speed_bps().expect("speed"), Some(10_000_000_000));
            let channels = nic.channels().expect("channels");
            assert_eq!((channels.rx.1, channels.tx.1), (3, 3));
            assert_eq!(channels.combined, (0, 0));
            let names = nic.statistics_names().expect("names");
            assert!(names.iter().any(|name| name == "peer_ifindex"), "{names:?}");
            let values = nic.statistics(names.len()).expect("values");
            let peer = names.iter().position(|name| name == "peer_ifindex").and_then(|at| values.get(at));
            assert!(peer.is_some_and(|&index| index > 0), "{names:?} {values:?}");
            let error = nic.statistics(names.len() + 1).expect_err("another number");
            assert!(error.to_string().ends_with("the driver's set of statistics changed"), "{error}");
            Ok(())
        });
        landspeed_testkit::or_lab_kernel!(outcome);
    }

    #[test]
    fn every_interface_of_this_host_can_be_queried() {
        for entry in std::fs::read_dir("/sys/class/net").into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let Ok(mut nic) = Ethtool::new(&name) else { continue };
            let _ = (nic.driver(), nic.link_mode(), nic.rings(), nic.channels(), nic.coalescing(), nic.pause());
            if let Ok(table) = nic.rss_table() {
                assert!(!table.is_empty(), "{name} has a table of nothing");
            }
            if let Ok(names) = nic.statistics_names() {
                assert_eq!(nic.statistics(names.len()).map_or(names.len(), |s| s.len()), names.len());
            }
        }
    }
}
