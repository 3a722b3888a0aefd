//! Limits of an analysis.

/// Limits on memory and on the document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Maximum number of flows in memory.
    pub flows: usize,
    /// Maximum number of flows listed in the document.
    pub listed: usize,
    /// Minimum width of a bin, nanoseconds.
    pub bin_ns: u64,
    /// Gap that ends a packet train, nanoseconds.
    pub train_gap_ns: u64,
    /// Rate above which bins count as bursts, bits/s; `None` turns burst detection off.
    pub burst_bps: Option<u64>,
    /// Window scale (shift count) assumed for connections without a captured handshake.
    pub window_scale: Option<u8>,
    /// Number of packets examined for copies of a mirror port; if there are some, all packets are examined.
    pub look_for_copies: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            flows: 1_000_000,
            listed: 100,
            bin_ns: 1_000_000,
            train_gap_ns: 20_000,
            burst_bps: None,
            window_scale: None,
            look_for_copies: 16_384,
        }
    }
}
