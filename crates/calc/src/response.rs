//! Response of congestion control to loss: window for a loss rate, loss rate for a window, recovery after one
//! loss.
//!
//! All formulas assume that a fraction `p` of the packets triggers a window reduction, evenly spaced, and that
//! there are no timeouts; both make them optimistic for random loss above a few per cent.

/// `√(3/2)`: Mathis, Semke, Mahdavi, Ott: The Macroscopic Behavior of the TCP Congestion Avoidance Algorithm, CCR 1997,
/// for periodic loss and an ACK per segment (with delayed ACKs it is `√(3/4)`).
pub const MATHIS_CONSTANT: f64 = 1.224_744_871_391_589;

/// The constant of Reno's response function, rounded as in RFC 3649 and RFC 9438 section 5.1.
pub const RENO_CONSTANT: f64 = 1.2;

/// CUBIC's constant C, in segments/s³ (RFC 9438 section 5.1): higher values grow the window faster.
pub const CUBIC_C: f64 = 0.4;

/// CUBIC's multiplicative decrease factor: the share of the window kept after a loss (RFC 9438 section 4.6).
pub const CUBIC_BETA: f64 = 0.7;

/// The rate of Reno under loss: `MSS × 8 / RTT × √(3/2) / √p` (Mathis et al. 1997; see [`MATHIS_CONSTANT`]).
pub fn mathis_rate_bps(mss_bytes: f64, rtt_s: f64, loss: f64) -> f64 {
    window_rate_bps(MATHIS_CONSTANT / loss.sqrt(), mss_bytes, rtt_s)
}

/// Reno's average window in segments: `1.2 / √p` (RFC 5681's algorithm; RFC 9438 section 5.1, tables 1 and 2).
pub fn reno_window_segments(loss: f64) -> f64 {
    RENO_CONSTANT / loss.sqrt()
}

/// CUBIC's average window in segments: `(C (3 + β) / (4 (1 − β)))^¼ × (RTT / p)^¾` (RFC 9438 section 5, figure 6),
/// and never below Reno's (the Reno-friendly region, section 4.3).
pub fn cubic_window_segments(rtt_s: f64, loss: f64) -> f64 {
    (cubic_factor() * (rtt_s / loss).powf(0.75)).max(reno_window_segments(loss))
}

/// The rate at a window: `W × MSS × 8 / RTT`.
pub fn window_rate_bps(window_segments: f64, mss_bytes: f64, rtt_s: f64) -> f64 {
    window_segments * mss_bytes * 8.0 / rtt_s
}

/// The window for a rate, in segments: `rate × RTT / (8 × MSS)`.
pub fn window_segments(rate_bps: f64, rtt_s: f64, mss_bytes: f64) -> f64 {
    rate_bps * rtt_s / (8.0 * mss_bytes)
}

/// The largest loss rate at which Reno's average window is at least `W`: `(1.2 / W)²`, at most 1 (RFC 9438
/// section 5.2, table 3).
pub fn reno_loss_budget(window_segments: f64) -> f64 {
    (RENO_CONSTANT / window_segments).powi(2).min(1.0)
}

/// The largest loss rate at which CUBIC's average window is at least `W`: `RTT / (W / 1.054)^(4/3)`, never below
/// Reno's and at most 1 (RFC 9438 section 5.2, table 3; the inverse of [`cubic_window_segments`]).
pub fn cubic_loss_budget(window_segments: f64, rtt_s: f64) -> f64 {
    let cubic = rtt_s / (window_segments / cubic_factor()).powf(4.0 / 3.0);
    cubic.max(reno_loss_budget(window_segments)).min(1.0)
}

/// The time Reno takes to regain its window after one loss: half a window at one segment per RTT, `W / 2 × RTT`
/// (RFC 5681 section 3.1).
pub fn reno_recovery_s(window_segments: f64, rtt_s: f64) -> f64 {
    window_segments / 2.0 * rtt_s
}

/// The time CUBIC takes to regain its window after one loss: `K = ∛(W (1 − β) / C)` (RFC 9438 section 4.2), or
/// less where its Reno-friendly estimate is larger: `W (1 − β) / α × RTT`, `α = 3 (1 − β) / (1 + β)` (section
/// 4.3).
pub fn cubic_recovery_s(window_segments: f64, rtt_s: f64) -> f64 {
    let k_s = (window_segments * (1.0 - CUBIC_BETA) / CUBIC_C).cbrt();
    let reno_friendly_s = window_segments * (1.0 + CUBIC_BETA) / 3.0 * rtt_s;
    k_s.min(reno_friendly_s)
}

/// 1.054 with the recommended C and β (RFC 9438 section 5.1, figure 8).
fn cubic_factor() -> f64 {
    (CUBIC_C * (3.0 + CUBIC_BETA) / (4.0 * (1.0 - CUBIC_BETA))).powf(0.25)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares with a row of the RFC's tables, which are rounded to whole segments.
    fn assert_table_row(rtt_s: f64, loss: f64, segments: f64) {
        let window = cubic_window_segments(rtt_s, loss);
        assert!((window - segments).abs() <= 0.6, "RTT {rtt_s} s, p {loss}: {window}, not {segments}");
    }

    #[test]
    fn cubic_follows_tables_1_and_2_of_rfc_9438() {
        for (loss, at_100_ms, at_10_ms) in [
            (1e-2, 12.0, 12.0),
            (1e-3, 38.0, 38.0),
            (1e-4, 187.0, 120.0),
            (1e-5, 1054.0, 379.0),
            (1e-6, 5926.0, 1200.0),
            (1e-7, 33325.0, 5926.0),
            (1e-8, 187_400.0, 33325.0),
        ] {
            assert_table_row(0.1, loss, at_100_ms);
            assert_table_row(0.01, loss, at_10_ms);
        }
    }

    #[test]
    fn reno_follows_table_1_of_rfc_9438() {
        for (loss, segments) in [(1e-4, 120.0), (1e-5, 379.0), (1e-6, 1200.0), (1e-8, 12000.0)] {
            assert!((reno_window_segments(loss) - segments).abs() < 0.6);
        }
    }

    #[test]
    fn cubic_rates_at_100_ms_match_the_lab() {
        for (loss, mbps) in [(1e-4, 21.7), (1e-5, 122.0), (1e-6, 686.0)] {
            let rate = window_rate_bps(cubic_window_segments(0.1, loss), 1448.0, 0.1) / 1e6;
            assert!((rate / mbps - 1.0).abs() < 0.005, "{rate} Mb/s at {loss}");
        }
    }

    #[test]
    fn loss_budgets_follow_table_3_of_rfc_9438() {
        for (rate_bps, reno, cubic) in
            [(10e6, 2.0e-4, 2.9e-4), (100e6, 2.0e-6, 1.4e-5), (1e9, 2.0e-8, 6.3e-7), (10e9, 2.0e-10, 2.9e-8)]
        {
            let window = window_segments(rate_bps, 0.1, 1500.0);
            // The table has two digits, and lists 2.07 as 2.0.
            assert!((reno_loss_budget(window) / reno - 1.0).abs() < 0.05);
            assert!((cubic_loss_budget(window, 0.1) / cubic - 1.0).abs() < 0.05);
        }
    }

    #[test]
    fn loss_budget_is_the_inverse_of_the_average_window() {
        for (rtt_s, loss) in [(0.1, 1e-7), (0.01, 1e-4), (0.3, 3e-3)] {
            let back = cubic_loss_budget(cubic_window_segments(rtt_s, loss), rtt_s);
            assert!((back / loss - 1.0).abs() < 1e-9);
            assert!((reno_loss_budget(reno_window_segments(loss)) / loss - 1.0).abs() < 1e-9);
        }
    }

    #[test]
    fn mathis_rate_matches_the_labs_reno_measurement() {
        // Measured in the lab: p = 1/22000, MTU 9000, 90 ms: Reno reached 0.15 Gb/s.
        let rate = mathis_rate_bps(8948.0, 0.09, 1.0 / 22000.0);
        assert!((rate / 0.15e9 - 1.0).abs() < 0.05, "{rate}");
    }

    #[test]
    fn cubic_recovers_from_one_loss_much_faster_than_reno() {
        let window = window_segments(10e9, 0.1, 1500.0);
        assert!((reno_recovery_s(window, 0.1) / 4166.7 - 1.0).abs() < 1e-4);
        assert!((cubic_recovery_s(window, 0.1) / 39.69 - 1.0).abs() < 1e-3);
    }

    #[test]
    fn cubic_recovers_like_reno_on_a_short_path() {
        let window = window_segments(10e9, 1e-4, 1500.0);
        assert!((cubic_recovery_s(window, 1e-4) - window * 1.7 / 3.0 * 1e-4).abs() < 1e-12);
    }
}
