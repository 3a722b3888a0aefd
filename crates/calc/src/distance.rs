//! Distance: the limit set by an RTT, and the metric of the Land Speed Record.

/// The speed of light in vacuum, exactly (it defines the metre).
pub const LIGHT_IN_VACUUM_M_PER_S: f64 = 299_792_458.0;

/// The speed of light in optical fibre, by rule of thumb two thirds of that in vacuum. A group index of 1.468
/// (typical of ITU-T G.652 fibre at 1550 nm) makes it 2 % faster.
pub const LIGHT_IN_FIBRE_M_PER_S: f64 = LIGHT_IN_VACUUM_M_PER_S * 2.0 / 3.0;

/// The maximum one-way fibre distance at an RTT: `RTT / 2 × ⅔ c`. The real distance is shorter, because detours,
/// switches and queues add to the RTT.
pub fn fibre_distance_m(rtt_s: f64) -> f64 {
    rtt_s / 2.0 * LIGHT_IN_FIBRE_M_PER_S
}

/// The minimum RTT over a distance in fibre: `2 × distance / (⅔ c)`.
pub fn fibre_rtt_s(distance_m: f64) -> f64 {
    2.0 * distance_m / LIGHT_IN_FIBRE_M_PER_S
}

/// The minimum RTT over a distance by any medium: `2 × distance / c`.
pub fn vacuum_rtt_s(distance_m: f64) -> f64 {
    2.0 * distance_m / LIGHT_IN_VACUUM_M_PER_S
}

/// The metric of the Internet2 Land Speed Record: `rate × distance`, in bit·m/s (<http://www.internet2.edu/lsr/>).
pub fn land_speed_bit_m_per_s(rate_bps: f64, distance_m: f64) -> f64 {
    rate_bps * distance_m
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_millisecond_rtt_is_at_most_100_km() {
        assert!((fibre_distance_m(1e-3) / 1000.0 - 99.93).abs() < 0.01);
        assert!((fibre_rtt_s(fibre_distance_m(0.092)) - 0.092).abs() < 1e-12);
    }

    #[test]
    fn record_land_speed_matches_the_published_value() {
        // IPv6, single stream: 9.08 Gb/s over 30,000 km, 272,400 Tb·m/s.
        assert!((land_speed_bit_m_per_s(9.08e9, 30e6) / 1e12 - 272_400.0).abs() < 1e-6);
    }
}
