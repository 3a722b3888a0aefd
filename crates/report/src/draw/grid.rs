//! Heat maps and matrices.

use landspeed_model::{Better, FigureGrid};

use super::scene::{Anchor, Ink, Scene, TEXT, cut, width_of};
use super::{EDGE, WIDTH};
use crate::figures::quantity;

/// Minimum size of a cell that shows its value as text.
const TEXT_WIDTH: f64 = 52.0;
const TEXT_HEIGHT: f64 = 20.0;

/// Range of a grid's values that the colour scale covers.
pub(crate) struct Range {
    low: f64,
    high: f64,
}

impl Range {
    pub(crate) fn of(grid: &FigureGrid) -> Self {
        let shown = || grid.cells.iter().flatten().copied();
        // From 0, or the lowest negative value, so that colours are proportional to amounts.
        Self { low: shown().fold(0.0, f64::min), high: shown().fold(f64::MIN, f64::max) }
    }

    /// Returns the position of a value in the range, 0..=1.
    pub(crate) fn share(&self, value: f64) -> f64 {
        if self.high > self.low { (value - self.low) / (self.high - self.low) } else { 0.5 }
    }
}

pub(super) fn draw(scene: &mut Scene, grid: &FigureGrid, y: f64) -> f64 {
    let (rows, columns) = (grid.rows.labels.len().max(1), grid.columns.labels.len().max(1));
    let longest = grid.rows.labels.iter().map(|label| width_of(label, TEXT)).fold(0.0, f64::max).min(220.0);
    let left = EDGE + longest + TEXT * 2.2;
    let width = ((WIDTH - EDGE - left) / columns as f64).min(120.0);
    let height = (460.0 / rows as f64).clamp(3.0, if grid.shares.is_empty() { 30.0 } else { 40.0 });
    let top = y + TEXT * 3.0;
    let (right, bottom) = (left + width * columns as f64, top + height * rows as f64);
    scene.text(
        [left, y + TEXT],
        Anchor::Start,
        Ink::Muted,
        &cut(&format!("{} →", grid.columns.title), right - left + 40.0, TEXT),
    );
    let mut free = f64::MIN;
    for (at, label) in grid.columns.labels.iter().enumerate() {
        let x = left + width * (at as f64 + 0.5);
        let label = cut(label, width.max(40.0), TEXT);
        let half = width_of(&label, TEXT) / 2.0;
        if x - half >= free {
            free = x + half + 4.0;
            scene.text([x, top - 6.0], Anchor::Middle, Ink::Text, &label);
        }
    }
    scene.upwards(
        [EDGE + TEXT, f64::midpoint(top, bottom)],
        Ink::Muted,
        &cut(&grid.rows.title, (bottom - top).max(120.0), TEXT),
    );
    let mut free = f64::MIN;
    for (at, label) in grid.rows.labels.iter().enumerate() {
        let y = top + height * (at as f64 + 0.5) + TEXT * 0.35;
        if y - TEXT >= free {
            free = y;
            scene.text([left - 6.0, y], Anchor::End, Ink::Text, &cut(label, longest, TEXT));
        }
    }
    cells(scene, grid, (left, top), (width, height));
    key(scene, grid, [left, bottom + 14.0])
}

fn cells(scene: &mut Scene, grid: &FigureGrid, (left, top): (f64, f64), (width, height): (f64, f64)) {
    let columns = grid.columns.labels.len().max(1);
    let range = Range::of(grid);
    let texts = width >= TEXT_WIDTH && height >= TEXT_HEIGHT;
    let gap = if width > 12.0 && height > 12.0 { 1.0 } else { 0.0 };
    for (at, value) in grid.cells.iter().enumerate() {
        let (x, y) = (left + width * (at % columns) as f64, top + height * (at / columns) as f64);
        let (middle, base) = (x + width / 2.0, y + height / 2.0 + TEXT * 0.35);
        let Some(value) = value else {
            if grid.missing.iter().any(|gap| gap.cell == at) {
                cross(scene, [x + gap, y + gap, width - 2.0 * gap, height - 2.0 * gap], texts, [middle, base]);
            }
            continue;
        };
        let share = range.share(*value);
        scene.rect([x + gap, y + gap, width - 2.0 * gap, height - 2.0 * gap], Ink::Heat(share));
        if !texts {
            continue;
        }
        let ink = Ink::OnHeat(share);
        let text = cut(&quantity::text(*value, &grid.unit), width - 4.0, TEXT);
        match grid.shares.get(at).copied().flatten() {
            Some(limit) if height >= 2.0 * TEXT + 8.0 => {
                scene.text([middle, base - TEXT * 0.6], Anchor::Middle, ink, &text);
                scene.text([middle, base + TEXT * 0.6], Anchor::Middle, ink, &quantity::percent(limit));
            }
            _ => scene.text([middle, base], Anchor::Middle, ink, &text),
        }
    }
}

/// Draws a planned cell without a value, in a colour outside the scale.
fn cross(scene: &mut Scene, [x, y, w, h]: [f64; 4], texts: bool, middle: [f64; 2]) {
    scene.rect([x, y, w, h], Ink::Grid);
    if texts {
        scene.text(middle, Anchor::Middle, Ink::Text, "–");
    } else {
        scene.line(&[[x, y + h], [x + w, y]], Ink::Muted, 0.7, 0.0);
    }
}

/// Draws the colour scale.
fn key(scene: &mut Scene, grid: &FigureGrid, [left, y]: [f64; 2]) -> f64 {
    if grid.cells.iter().all(Option::is_none) {
        scene.text([left, y + TEXT], Anchor::Start, Ink::Muted, "No value.");
        return y + TEXT * 1.5;
    }
    let range = Range::of(grid);
    let low = quantity::text(range.low, &grid.unit);
    let start = left + width_of(&low, TEXT) + 8.0;
    let (steps, width) = (40, 4.0);
    scene.text([left, y + TEXT], Anchor::Start, Ink::Muted, &low);
    for step in 0..steps {
        let share = f64::from(step) / f64::from(steps - 1);
        scene.rect([start + f64::from(step) * width, y + 2.0, width + 0.5, TEXT], Ink::Heat(share));
    }
    let better = match grid.better {
        Some(Better::Higher) => " (higher is better)",
        Some(Better::Lower) => " (lower is better)",
        None => "",
    };
    let high = format!("{}{better}", quantity::text(range.high, &grid.unit));
    scene.text([start + f64::from(steps) * width + 8.0, y + TEXT], Anchor::Start, Ink::Muted, &high);
    y + TEXT * 1.6
}
