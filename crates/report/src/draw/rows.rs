//! Rows: waterfalls, and intervals below each other.

use landspeed_model::{FigureRow, FigureRows};

use super::axis::PixelAxis;
use super::scene::{Anchor, Ink, Scene, TEXT, wrapped};
use super::{EDGE, WIDTH};

/// Width of the text next to the marks, pixels.
const LABEL_WIDTH: f64 = 330.0;

pub(super) fn draw(scene: &mut Scene, rows: &FigureRows, y: f64) -> f64 {
    let bars = rows.rows.iter().any(|row| row.from.is_some());
    let values: Vec<f64> = rows
        .rows
        .iter()
        .flat_map(|row| [row.from, row.to, row.low, row.high])
        .chain([rows.neutral])
        .flatten()
        .collect();
    let axis = PixelAxis::along(&rows.axis, &values, bars, (EDGE + LABEL_WIDTH + 16.0, WIDTH - EDGE - 8.0));
    let top = y + 4.0;
    let mut y = top;
    let mut marks = Vec::new();
    for row in &rows.rows {
        let from = y;
        y = draw_labels(scene, row, y + 4.0);
        marks.push((row, f64::midpoint(from, y)));
        y += 4.0;
        scene.line(&[[EDGE, y], [WIDTH - EDGE, y]], Ink::Grid, 1.0, 0.0);
    }
    let bottom = y;
    for (value, label) in &axis.ticks {
        let Some(x) = axis.at(*value) else { continue };
        scene.line(&[[x, top], [x, bottom]], Ink::Grid, 1.0, 0.0);
        scene.text([x, bottom + TEXT * 1.2], Anchor::Middle, Ink::Muted, label);
    }
    if let Some(x) = rows.neutral.and_then(|neutral| axis.at(neutral)) {
        scene.line(&[[x, top], [x, bottom]], Ink::Text, 1.2, 4.0);
    }
    for (row, middle) in marks {
        mark(scene, row, &axis, middle, rows.neutral);
    }
    scene.text([f64::midpoint(axis.from, axis.to), bottom + TEXT * 2.6], Anchor::Middle, Ink::Muted, &axis.title);
    bottom + TEXT * 3.0
}

/// Draws label, figures and detail; returns the y below them.
fn draw_labels(scene: &mut Scene, row: &FigureRow, y: f64) -> f64 {
    let mut y = y;
    for (text, bold, ink) in
        [(&row.label, true, Ink::Text), (&row.text, false, Ink::Text), (&row.detail, false, Ink::Muted)]
    {
        // Bold letters are a tenth wider.
        for line in wrapped(text, if bold { LABEL_WIDTH / 1.1 } else { LABEL_WIDTH }, TEXT).iter().take(3) {
            y += TEXT * 1.3;
            scene.letters([EDGE, y - TEXT * 0.3], Anchor::Start, ink, TEXT, bold, line);
        }
    }
    y
}

fn mark(scene: &mut Scene, row: &FigureRow, axis: &PixelAxis, middle: f64, neutral: Option<f64>) {
    // Blue and vermillion for better and worse: distinguishable for colour-blind readers.
    let ink = match row.better {
        Some(true) => Ink::Series(0),
        Some(false) => Ink::Series(1),
        None => Ink::Muted,
    };
    let at = |value: Option<f64>| value.and_then(|value| axis.at(value));
    let Some(to) = at(row.to) else {
        let x = at(neutral).unwrap_or(axis.from) + 8.0;
        scene.text([x, middle + TEXT * 0.35], Anchor::Start, Ink::Muted, "not measured");
        return;
    };
    if let Some(from) = at(row.from) {
        let (left, right) = (from.min(to), from.max(to));
        scene.rect([left, middle - 9.0, (right - left).max(1.5), 18.0], ink);
        return;
    }
    if let (Some(low), Some(high)) = (at(row.low), at(row.high)) {
        scene.line(&[[low, middle], [high, middle]], ink, 2.0, 0.0);
        for end in [low, high] {
            scene.line(&[[end, middle - 5.0], [end, middle + 5.0]], ink, 2.0, 0.0);
        }
    }
    scene.circle([to, middle], 5.0, ink, 1.0);
}
