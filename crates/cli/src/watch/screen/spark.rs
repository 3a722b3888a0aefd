//! Sparklines: samples as a line of bars, states as a line of letters.

use landspeed_model::{Epoch, EpochState, WatchRole};
use landspeed_watch::Point;

/// Bars from lowest to highest.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Returns the increase of a counter in each cell between `from_ns` and `to_ns`, per second. `None` without
/// samples.
pub fn rates(
    points: &[Point],
    (from_ns, to_ns): (u64, u64),
    cells: usize,
    counter: impl Fn(&Point) -> u64,
) -> Vec<Option<f64>> {
    let edge = |cell: usize| from_ns as f64 + (to_ns - from_ns) as f64 * cell as f64 / cells as f64;
    let at = |t_ns: f64| -> Option<f64> {
        let after = points.iter().position(|point| point.t_ns as f64 >= t_ns)?;
        let (b, a) = (&points[after], &points[after.checked_sub(1).unwrap_or(after)]);
        let span = b.t_ns.saturating_sub(a.t_ns) as f64;
        let share = if span > 0.0 { (t_ns - a.t_ns as f64) / span } else { 0.0 };
        let before_first = after == 0 && t_ns < b.t_ns as f64;
        (!before_first).then(|| counter(a) as f64 + share * counter(b).saturating_sub(counter(a)) as f64)
    };
    let seconds = (to_ns - from_ns) as f64 / cells as f64 / 1e9;
    (0..cells).map(|cell| Some((at(edge(cell + 1))? - at(edge(cell))?) / seconds)).collect()
}

/// Returns the last value up to the end of each cell. `None` before the first sample, and where the value is unknown.
pub fn levels(
    points: &[Point],
    (from_ns, to_ns): (u64, u64),
    cells: usize,
    value: impl Fn(&Point) -> Option<u32>,
) -> Vec<Option<f64>> {
    let edge = |cell: usize| from_ns + (to_ns - from_ns) * cell as u64 / cells as u64;
    let last = |t_ns: u64| points.iter().rev().find(|point| point.t_ns <= t_ns);
    (1..=cells).map(|cell| last(edge(cell)).and_then(&value).map(f64::from)).collect()
}

/// Formats bars from 0 to the largest value; a space for `None`.
pub fn bars(values: &[Option<f64>]) -> String {
    let most = largest(values).max(f64::MIN_POSITIVE);
    let bar = |value: f64| BARS[((value / most * 8.0).ceil() as usize).clamp(1, 8) - 1];
    values.iter().map(|value| value.map_or(' ', bar)).collect()
}

/// Returns the largest value; 0 if there is none.
pub fn largest(values: &[Option<f64>]) -> f64 {
    values.iter().flatten().fold(0.0, |a, b| f64::max(a, *b))
}

/// Returns a counter for [`rates`]: bytes transferred.
pub fn moved(role: WatchRole) -> impl Fn(&Point) -> u64 {
    move |point| point.moved(role)
}

/// Returns a counter for [`rates`]: retransmits since the first sample.
pub fn retransmits(points: &[Point]) -> impl Fn(&Point) -> u64 {
    let first = points.first().map_or(0, |point| point.retransmits);
    move |point| point.retransmits.wrapping_sub(first).into()
}

/// Returns the letter of a state.
pub fn letter(state: EpochState) -> char {
    match state {
        EpochState::SlowStart => 's',
        EpochState::Recovery => 'r',
        EpochState::Stalled => 'x',
        EpochState::CwndLimited => 'c',
        EpochState::ReceiveWindowLimited => 'w',
        EpochState::SendBufferLimited => 'b',
        EpochState::ApplicationLimited => 'a',
        EpochState::PacingLimited => 'p',
        EpochState::CpuLimited => 'u',
        EpochState::Unknown => '·',
    }
}

/// Returns the longest state in each cell.
pub fn states(epochs: &[Epoch], (from_ns, to_ns): (u64, u64), cells: usize) -> Vec<Option<EpochState>> {
    let edge = |cell: usize| from_ns + (to_ns - from_ns) * cell as u64 / cells as u64;
    let overlap = |epoch: &Epoch, from: u64, to: u64| -> u64 {
        epoch.spans_ns.iter().map(|span| span.1.min(to).saturating_sub(span.0.max(from))).sum()
    };
    (0..cells)
        .map(|cell| {
            let (from, to) = (edge(cell), edge(cell + 1));
            let longest = epochs.iter().max_by_key(|epoch| overlap(epoch, from, to))?;
            (overlap(longest, from, to) > 0).then_some(longest.state)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    fn points(moved: &[(u64, u64)]) -> Vec<Point> {
        let point =
            |&(s, acked): &(u64, u64)| Point { t_ns: s * S, acked, rtt_us: Some(s as u32), ..Point::default() };
        moved.iter().map(point).collect()
    }

    #[test]
    fn counter_increases_are_spread_over_cells() {
        let points = points(&[(2, 1000), (3, 1100), (5, 1500)]);
        let rates = rates(&points, (0, 6 * S), 6, moved(WatchRole::Sender));
        assert_eq!(rates, [None, None, Some(100.0), Some(200.0), Some(200.0), None]);
        // Two cells per second give the same rates.
        let finer = super::rates(&points, (2 * S, 5 * S), 6, moved(WatchRole::Sender));
        assert_eq!(finer, [100.0, 100.0, 200.0, 200.0, 200.0, 200.0].map(Some));
    }

    #[test]
    fn cells_without_samples_are_blank() {
        assert_eq!(rates(&[], (0, S), 3, moved(WatchRole::Sender)), [None; 3]);
        assert_eq!(levels(&points(&[(2, 0)]), (0, 3 * S), 3, |point| point.rtt_us), [None, Some(2.0), Some(2.0)]);
        let mut unmeasured = points(&[(0, 0), (1, 0), (2, 0)]);
        unmeasured[1].rtt_us = None;
        let rtts = levels(&unmeasured, (0, 2 * S), 2, |point| point.rtt_us);
        assert_eq!((rtts.as_slice(), bars(&rtts).as_str()), ([None, Some(2.0)].as_slice(), " █"));
        assert_eq!(bars(&[None, Some(0.0), Some(4.0), Some(8.0), None]), " ▁▄█ ");
        assert_eq!(bars(&[Some(0.0); 3]), "▁▁▁");
        assert_eq!(bars(&[]), "");
    }

    #[test]
    fn a_cell_has_the_letter_of_its_longest_state() {
        let epoch = |state, spans_ns| Epoch { state, time_ns: 0, share_permille: 0, spans_ns };
        let epochs = [
            epoch(EpochState::ApplicationLimited, vec![(0, 14), (35, 40)]),
            epoch(EpochState::Recovery, vec![(14, 20)]),
        ];
        let text: String = states(&epochs, (0, 40), 4).into_iter().map(|state| state.map_or(' ', letter)).collect();
        assert_eq!(text, "ar a");
    }
}
