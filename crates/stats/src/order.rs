//! The interval of a median from order statistics: exact for any distribution, without random draws.

/// The shortest interval between two order statistics, symmetric in rank, that contains the median with at least
/// `level` (0..1). `None` where no such interval exists: at 0.95, for fewer than 6 values.
///
/// The number of values below the median is binomial with p = ½ (Conover, Practical Nonparametric Statistics, 1999, 3.2).
/// Values must be independent.
pub fn median_interval(values: &[f64], level: f64) -> Option<(f64, f64)> {
    let n = values.len();
    if n == 0 {
        return None;
    }
    // P(B ≤ k) of the binomial, summed until a tail holds more than it may.
    let tail = (1.0 - level) / 2.0;
    let (mut term, mut sum, mut rank) = (0.5f64.powi(n.min(1000) as i32), 0.0, 0);
    if n > 1000 {
        // Beyond that the normal approximation is exact to a rank: z = 1.96 at 0.95, by Winitzki's inverse error function.
        let half = (n as f64).sqrt() / 2.0 * normal_quantile(1.0 - tail);
        rank = (n as f64 / 2.0 - half).floor().max(0.0) as usize;
    } else {
        while sum + term <= tail {
            sum += term;
            term *= (n - rank) as f64 / (rank + 1) as f64;
            rank += 1;
        }
    }
    if rank == 0 {
        return None;
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    Some((sorted[rank - 1], sorted[n - rank]))
}

/// The quantile of the standard normal distribution, to 0.005 (S. Winitzki 2008, with a = 0.147).
fn normal_quantile(p: f64) -> f64 {
    let x = 2.0 * p - 1.0;
    let log = (1.0 - x * x).ln();
    let first = 2.0 / (std::f64::consts::PI * 0.147) + log / 2.0;
    (x.signum() * ((first * first - log / 0.147).sqrt() - first).sqrt()) * std::f64::consts::SQRT_2
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranks(n: u32) -> Option<(f64, f64)> {
        median_interval(&(1..=n).map(f64::from).collect::<Vec<_>>(), 0.95)
    }

    #[test]
    fn ranks_are_those_of_the_published_table() {
        // Conover 1999, table A3; R: qbinom(0.025, n, 0.5).
        assert_eq!(ranks(5), None);
        assert_eq!(ranks(6), Some((1.0, 6.0)));
        assert_eq!(ranks(9), Some((2.0, 8.0)));
        assert_eq!(ranks(15), Some((4.0, 12.0)));
        assert_eq!(ranks(20), Some((6.0, 15.0)));
        assert_eq!(ranks(100), Some((40.0, 61.0)));
        assert_eq!(median_interval(&[], 0.95), None);
    }

    #[test]
    fn many_values_continue_what_few_begin() {
        let exact = ranks(1000).unwrap();
        let near = ranks(1001).unwrap();
        assert!((exact.0 - near.0).abs() <= 1.0 && (exact.1 - near.1).abs() <= 2.0, "{exact:?} {near:?}");
    }
}
