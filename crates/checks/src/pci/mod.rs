//! Checks of the device on its PCI bus, one per file.

use landspeed_model::PciFacts;

use crate::check::{Check, Group};

mod iommu;
mod link_speed;
mod link_width;
mod memory_node;
mod payload;
mod read_request;
mod relaxed_ordering;
mod slot_bandwidth;
mod virtual_functions;

const GROUP: Group = Group::Pci;

/// Checks of this group, by code.
pub(crate) static CHECKS: &[&Check] = &[
    &link_width::CHECK,
    &link_speed::CHECK,
    &slot_bandwidth::CHECK,
    &read_request::CHECK,
    &relaxed_ordering::CHECK,
    &payload::CHECK,
    &memory_node::CHECK,
    &iommu::CHECK,
    &virtual_functions::CHECK,
];

/// Share of a link's bits that carries transactions rather than ACKs and flow control: 57.88 of 62.96 Gb/s in
/// the model of Neugebauer et al., Understanding PCIe performance for end host networking, SIGCOMM 2018.
const TRANSACTIONS: f64 = 0.92;

/// Bytes of framing, sequence number, header and checksum around each memory write with a 64-bit address, in the same model.
const OVERHEAD_BYTES: f64 = 24.0;

/// Maximum payload that most servers negotiate, bytes.
const TYPICAL_PAYLOAD_BYTES: u32 = 256;

/// Returns the data rate that a link can carry per direction, bits/s, before descriptors and interrupts are
/// subtracted. `speed_gts` is per lane: 2.5 and 5 GT/s are coded 8b/10b, 8 to 32 GT/s 128b/130b, 64 GT/s and
/// more in units of 256 bytes of which 242 are free (PCI Express Base Specification).
fn usable_bps(speed_gts: f64, lanes: u32, payload_bytes: u32) -> f64 {
    let raw = speed_gts * 1e9 * f64::from(lanes);
    let payload = f64::from(payload_bytes.max(1));
    let packets = payload / (payload + OVERHEAD_BYTES);
    match speed_gts {
        gts if gts < 8.0 => raw * 8.0 / 10.0 * TRANSACTIONS * packets,
        gts if gts < 64.0 => raw * 128.0 / 130.0 * TRANSACTIONS * packets,
        _ => raw * 242.0 / 256.0 * packets,
    }
}

/// Returns a note for a bandwidth that is based on an assumed payload size: only root may read the real one.
fn assumed(pci: &PciFacts) -> &'static str {
    if pci.max_payload_bytes.known().is_some() { "" } else { " (assuming a payload of 256 bytes)" }
}

/// Returns the same for the current state of a device's link; `None` if it is unknown.
fn usable_now(pci: &PciFacts) -> Option<f64> {
    let payload = pci.max_payload_bytes.known().copied().unwrap_or(TYPICAL_PAYLOAD_BYTES);
    Some(usable_bps(*pci.speed_gts.known()?, *pci.width.known()?, payload))
}

/// Formats a link as `8 GT/s x16`, without the parts that are unknown.
fn link_text(speed_gts: Option<f64>, lanes: Option<u32>) -> String {
    match (speed_gts, lanes) {
        (Some(gts), Some(lanes)) => format!("{gts} GT/s x{lanes}"),
        (Some(gts), None) => format!("{gts} GT/s"),
        (None, Some(lanes)) => format!("x{lanes}"),
        (None, None) => "an unknown link".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usable_bandwidth_matches_the_model() {
        let gigabits = |gts, lanes, payload| (usable_bps(gts, lanes, payload) / 1e9).round();
        // Neugebauer et al. show some 50 Gb/s for Gen3 x8.
        assert!((gigabits(8.0, 8, 256) - 53.0).abs() < 0.1);
        assert!(gigabits(8.0, 16, 256) > 100.0, "100 Gb/s needs 16 lanes of the third generation");
        assert!(gigabits(16.0, 8, 256) > 100.0, "or eight of the fourth");
        assert!(gigabits(8.0, 16, 128) < 100.0, "small payloads cost enough to miss it");
        assert!(gigabits(5.0, 8, 256) < 40.0, "40 Gb/s needs the third generation, as the deck of 2012 says");
        assert!(gigabits(64.0, 16, 256) > 800.0);
    }
}
