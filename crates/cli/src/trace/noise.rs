//! Whether what differs between two captures is more than what varies within each.
//!
//! A flow is cut into blocks of time. Blocks are made longer until neighbouring ones are no longer alike, and are then
//! resampled. What one capture cannot tell is how much the same path would give another time.

use std::path::Path;

use landspeed_model::{TraceDifference, TraceDocument, TraceFigure};
use landspeed_stats::Bootstrap;
use landspeed_trace::{Analysis, Cell, Cells};
use landspeed_units::Nanos;
use landspeed_wire::capture::Frame;

use super::input::{Capture, Frames};
use super::{Args, limits};

/// Cells a flow is cut into, of which blocks are made.
const CELLS: usize = 480;
/// Fewest blocks that carry an interval.
const FEWEST: usize = 12;
/// A block has at least so many round trips: what is sent again and the window follow within a few.
const ROUND_TRIPS: u64 = 8;
/// Neighbouring blocks are alike from this correlation on.
const ALIKE: f64 = 0.3;

/// A figure that is a sum over a sum: its name, its unit, and both, of a cell of so many nanoseconds.
type Rate = (&'static str, &'static str, fn(&Cell, f64) -> (f64, f64));

const RATES: [Rate; 4] = [
    ("goodput in the thick of it", "bps", |cell, width_ns| (cell.new_bytes as f64 * 8.0, width_ns / 1e9)),
    ("retransmissions for each packet", "ratio", |cell, _| (cell.again as f64, cell.packets as f64)),
    ("round trip, mean", "ns", |cell, _| (cell.rtt_sum_ns as f64, cell.rtts as f64)),
    ("in flight, mean", "bytes", |cell, _| (cell.in_flight_sum as f64, cell.packets as f64)),
];

/// Blocks of equal length.
struct Blocks {
    width_ns: u64,
    blocks: Vec<Cell>,
}

impl Blocks {
    fn pairs(&self, of: fn(&Cell, f64) -> (f64, f64)) -> Vec<(f64, f64)> {
        self.blocks.iter().map(|block| of(block, self.width_ns as f64)).collect()
    }

    /// How alike neighbouring blocks are.
    fn alike(&self, of: fn(&Cell, f64) -> (f64, f64)) -> f64 {
        let pairs = self.pairs(of).into_iter().filter(|pair| pair.1 > 0.0);
        next_to_each_other(&pairs.map(|(above, below)| above / below).collect::<Vec<_>>())
    }
}

/// Adds intervals, and figures that only blocks give. Returns what to know of them, in words.
pub fn add(
    args: &Args,
    captures: [(&TraceDocument, &Path); 2],
    figures: &mut Vec<TraceFigure>,
) -> anyhow::Result<String> {
    if captures.iter().any(|(_, file)| *file == Path::new("-")) {
        return Ok("no intervals: standard input cannot be read twice".to_owned());
    }
    let [a, b] = captures.map(|(document, file)| blocks(args, document, file));
    let (Some(a), Some(b)) = (a?, b?) else {
        return Ok("no intervals: a flow is too short, or changes as it goes".to_owned());
    };
    for (name, unit, of) in RATES {
        let sides = [&a, &b].map(|side| side.pairs(of));
        let Some(difference) = difference([&a, &b], of) else { continue };
        let rate = |side: &[(f64, f64)]| {
            let (above, below) = side.iter().fold((0.0, 0.0), |sum, pair| (sum.0 + pair.0, sum.1 + pair.1));
            above / below
        };
        if let Some(figure) = figures.iter_mut().find(|figure| figure.name == name) {
            figure.difference = Some(difference);
        } else {
            let after = figures.iter().position(|figure| figure.name == "round trip, least").unwrap_or(figures.len());
            let (a, b) = (Some(rate(&sides[0])), Some(rate(&sides[1])));
            let (name, unit) = (name.to_owned(), unit.to_owned());
            figures.insert(after, TraceFigure { name, unit, a, b, difference: Some(difference) });
        }
    }
    Ok(format!(
        "by what each flow varies within itself: {} blocks of {} and {} of {}, resampled; each capture is one run",
        a.blocks.len(),
        Nanos::new(a.width_ns),
        b.blocks.len(),
        Nanos::new(b.width_ns)
    ))
}

/// How much greater a rate is in the second, as surely as its blocks say.
fn difference([a, b]: [&Blocks; 2], of: fn(&Cell, f64) -> (f64, f64)) -> Option<TraceDifference> {
    let bootstrap = Bootstrap { resamples: 4_000, ..Bootstrap::default() };
    let interval = bootstrap.difference_of_rates(&a.pairs(of), &b.pairs(of)).ok()?;
    // Few blocks: their own spread is too small by (n - 1)/n, and the normal's quantile for Student's (Cornish and Fisher).
    let few = a.blocks.len().min(b.blocks.len()) as f64;
    let wider = (few / (few - 1.0)).sqrt() * (1.0 + (1.96 * 1.96 + 1.0) / (4.0 * (few - 1.0)));
    // What neighbouring blocks still have in common makes a mean less sure than their number says (Bartlett 1946). A
    // correlation is told too small by about one in their number: twice that, to be safe.
    let common = [a, b].map(|side| (side.alike(of) + 2.0 / side.blocks.len() as f64).clamp(0.0, 0.6));
    let common = common[0].max(common[1]);
    let wider = wider * ((1.0 + common) / (1.0 - common)).sqrt();
    let end = |end: f64| interval.estimate + (end - interval.estimate) * wider;
    let (low, high) = (end(interval.low), end(interval.high));
    Some(TraceDifference {
        low,
        high,
        level: bootstrap.level,
        block_ns: [a.width_ns, b.width_ns],
        blocks: [a.blocks.len() as u64, b.blocks.len() as u64],
        changed: low > 0.0 || high < 0.0,
    })
}

/// The blocks of a capture's first flow; `None` where there are too few that are not alike.
fn blocks(args: &Args, document: &TraceDocument, file: &Path) -> anyhow::Result<Option<Blocks>> {
    let Some(mut cells) = Cells::new(document, CELLS) else { return Ok(None) };
    let mut analysis = Analysis::new(limits(args));
    let mut capture = Capture::open(file, false)?;
    while capture.drain(&mut Frames(|frame: &Frame<'_>| analysis.frame_to(frame, &mut cells)))? {}
    let round_trip_ns = document.flows.first().and_then(|flow| flow.rtt_ns).unwrap_or(0);
    let least = (ROUND_TRIPS * round_trip_ns).div_ceil(cells.width_ns).max(1) as usize;
    Ok(cut(&cells.cells, cells.width_ns, least))
}

fn cut(cells: &[Cell], width_ns: u64, least: usize) -> Option<Blocks> {
    let thick = thick(cells);
    let mut each = least;
    while thick.len() / each.max(1) >= FEWEST {
        let blocks: Vec<Cell> = thick
            .chunks_exact(each)
            .map(|cells| {
                let mut block = Cell::default();
                for cell in cells {
                    block.join(cell);
                }
                block
            })
            .collect();
        let blocks = Blocks { width_ns: width_ns * each as u64, blocks };
        let alike = RATES.iter().any(|(_, _, of)| blocks.alike(*of) > ALIKE);
        if !alike {
            return Some(blocks);
        }
        each = (each * 3).div_ceil(2);
    }
    None
}

/// Without the first and the last hundredth of the bytes: before, between and after what it was for, a flow may wait long.
fn thick(cells: &[Cell]) -> &[Cell] {
    let total: u64 = cells.iter().map(|cell| cell.new_bytes).sum();
    let reached = |share: u64| {
        let mut so_far = 0;
        cells.iter().position(|cell| {
            so_far += cell.new_bytes;
            so_far * 100 > total * share
        })
    };
    let (first, last) = (reached(1), reached(99));
    first.zip(last).map_or(&[], |(first, last)| &cells[first..=last])
}

/// The correlation of each value with the next.
fn next_to_each_other(values: &[f64]) -> f64 {
    let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let products: f64 = values.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean)).sum();
    if squares > 0.0 { products / squares } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Cells of a flow that wanders: each is like the one before.
    fn wandering(seed: &mut u64, mean: f64, like: f64) -> Vec<Cell> {
        let mut random = || {
            *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (*seed >> 33) as f64 / f64::from(1_u32 << 30) - 1.0
        };
        let mut level = 0.0;
        (0..CELLS)
            .map(|_| {
                level = like * level + (1.0 - like * like).sqrt() * random();
                let packets = (mean * (1.0 + 0.3 * level)).max(0.0) as u64;
                Cell { packets, new_bytes: packets * 1448, ..Cell::default() }
            })
            .collect()
    }

    fn changed(seed: &mut u64, means: [f64; 2], like: f64) -> Option<bool> {
        let [a, b] = means.map(|mean| cut(&wandering(seed, mean, like), 1_000_000, 1));
        difference([&a?, &b?], RATES[0].2).map(|difference| difference.changed)
    }

    #[test]
    fn two_captures_of_the_same_are_seldom_called_changed_however_alike_neighbours_are() {
        let mut seed = 5;
        for like in [0.0, 0.5, 0.9, 0.95] {
            // Where too few blocks are not alike, nothing is said.
            let told = (0..200).filter_map(|_| changed(&mut seed, [1000.0, 1000.0], like));
            let wrong = told.filter(|changed| *changed).count();
            assert!(wrong <= 14, "{like}: {wrong} of 200");
        }
    }

    #[test]
    fn a_change_beyond_the_noise_is_called_one() {
        let mut seed = 6;
        for like in [0.0, 0.5, 0.9] {
            let told: Vec<bool> = (0..100).filter_map(|_| changed(&mut seed, [1000.0, 1400.0], like)).collect();
            let right = told.iter().filter(|changed| **changed).count();
            assert!(told.len() > 50 && right * 10 > told.len() * 9, "{like}: {right} of {}", told.len());
        }
    }

    #[test]
    fn what_only_grows_has_no_interval() {
        let cells: Vec<Cell> =
            (0..CELLS as u64).map(|number| Cell { new_bytes: number * number, ..Cell::default() }).collect();
        assert!(cut(&cells, 1_000_000, 1).is_none());
        assert!(cut(&cells[..0], 1_000_000, 1).is_none());
    }
}
