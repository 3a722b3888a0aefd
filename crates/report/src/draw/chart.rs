//! Charts: lines, bands and dots, in one or more panels.

use landspeed_model::{FigureAxis, FigureChart, FigureLine, FigureMark, FigurePanel, FigureScale};

use super::axis::PixelAxis;
use super::scene::{Anchor, Ink, Scene, Shape, TEXT, cut, width_of};
use super::{EDGE, WIDTH, dash_of, legend};

/// Horizontal distance of dots from the bar of an interval, pixels.
const DOT_OFFSET: f64 = 9.0;
/// Height of the plot of a single panel, and of one of several, pixels.
const HEIGHT: f64 = 300.0;
const PANEL_HEIGHT: f64 = 190.0;
/// Minimum width for tick labels, pixels.
const MIN_LABEL_WIDTH: f64 = 66.0;
const MIN_LABEL_HEIGHT: f64 = 44.0;
/// Maximum number of dots of a line: with more, only the band is drawn.
const MAX_DOTS: usize = 3000;

pub(super) fn draw(scene: &mut Scene, chart: &FigureChart, y: f64) -> f64 {
    let used: Vec<usize> = chart.panels.iter().flat_map(|panel| panel.lines.iter().map(|line| line.series)).collect();
    let names = chart.series.iter().enumerate().filter(|(at, name)| used.contains(at) && !name.is_empty());
    let names: Vec<(usize, &str)> = names.map(|(at, name)| (at, name.as_str())).collect();
    let mut y = if names.is_empty() { y } else { legend(scene, &names, y) };
    let columns = match chart.panels.len() {
        0 | 1 => 1,
        2 | 4 => 2,
        _ => 3,
    };
    let lines = || chart.panels.iter().flat_map(|panel| &panel.lines);
    let xs: Vec<f64> =
        lines().flat_map(|line| line.x.iter().copied()).chain(chart.marks.iter().filter_map(|m| m.x)).collect();
    let ys: Vec<f64> = lines().flat_map(values).chain(chart.marks.iter().map(|mark| mark.y)).collect();
    let longest = PixelAxis::upwards(&chart.y, &ys, (1.0, 0.0))
        .ticks
        .iter()
        .map(|(_, label)| width_of(label, TEXT))
        .fold(0.0, f64::max);
    let gutter = MIN_LABEL_WIDTH.max(longest + TEXT * 2.0);
    let listed = columns == 1 && crowded(&chart.x, WIDTH - 2.0 * EDGE - MIN_LABEL_WIDTH);
    let below = if listed { MIN_LABEL_HEIGHT + 16.0 * chart.x.labels.len().min(8) as f64 } else { MIN_LABEL_HEIGHT };
    for row in chart.panels.chunks(columns) {
        let height = if columns == 1 { HEIGHT } else { PANEL_HEIGHT };
        let width = (WIDTH - 2.0 * EDGE) / columns as f64;
        for (column, panel) in row.iter().enumerate() {
            let left = EDGE + width * column as f64;
            let head = if panel.title.is_empty() { 10.0 } else { TEXT * 1.8 };
            let title = cut(&panel.title, width - 8.0, TEXT);
            scene.letters([left + 4.0, y + TEXT], Anchor::Start, Ink::Text, TEXT, true, &title);
            let (top, bottom) = (y + head, y + head + height);
            let across = PixelAxis::across(&chart.x, &xs, (left + gutter, left + width - 10.0));
            let upwards = PixelAxis::upwards(&chart.y, &ys, (bottom, top));
            frame(scene, &chart.x, (&across, &upwards), left, listed, below);
            marks(scene, &chart.marks, &across, &upwards);
            one(scene, panel, &across, &upwards);
        }
        let head = if row.iter().all(|panel| panel.title.is_empty()) { 10.0 } else { TEXT * 1.8 };
        y += head + height + below;
    }
    y
}

/// Returns every value of a line that the axis must cover.
fn values(line: &FigureLine) -> impl Iterator<Item = f64> {
    let ends = line.y.iter().chain(&line.low).chain(&line.high).flatten().copied();
    ends.chain(line.dots.iter().map(|dot| dot[1]))
}

/// Returns whether category labels do not fit next to each other.
fn crowded(axis: &FigureAxis, width: f64) -> bool {
    let room = width / axis.labels.len().max(1) as f64 - 6.0;
    axis.scale == FigureScale::Category && axis.labels.iter().any(|label| width_of(label, TEXT) > room)
}

fn frame(
    scene: &mut Scene,
    axis: &FigureAxis,
    (across, upwards): (&PixelAxis, &PixelAxis),
    edge: f64,
    listed: bool,
    below: f64,
) {
    let (left, right, bottom, top) = (across.from, across.to, upwards.from, upwards.to);
    for (value, label) in &upwards.ticks {
        let Some(y) = upwards.at(*value) else { continue };
        scene.line(&[[left, y], [right, y]], Ink::Grid, 1.0, 0.0);
        scene.text([left - 6.0, y + TEXT * 0.35], Anchor::End, Ink::Muted, label);
    }
    scene.upwards(
        [edge + TEXT, f64::midpoint(top, bottom)],
        Ink::Muted,
        &cut(&upwards.title, bottom - top + 40.0, TEXT),
    );
    scene.line(&[[left, bottom], [right, bottom]], Ink::Text, 1.0, 0.0);
    let mut free = f64::MIN;
    for (at, (value, label)) in across.ticks.iter().enumerate() {
        let Some(x) = across.at(*value) else { continue };
        scene.line(&[[x, bottom], [x, bottom + 4.0]], Ink::Text, 1.0, 0.0);
        // Labels that do not fit are replaced by numbers, and listed below.
        let text = if listed { (at + 1).to_string() } else { cut(label, (right - left) / 2.0, TEXT) };
        let half = width_of(&text, TEXT) / 2.0;
        if x - half < free {
            continue;
        }
        free = x + half + 6.0;
        scene.text([x, bottom + 4.0 + TEXT], Anchor::Middle, Ink::Muted, &text);
    }
    let mut y = bottom + 8.0 + 2.0 * TEXT;
    scene.text([f64::midpoint(left, right), y], Anchor::Middle, Ink::Muted, &across.title);
    if listed {
        let most = ((below - MIN_LABEL_HEIGHT) / 16.0) as usize;
        let rest = axis.labels.len().saturating_sub(most);
        for (at, label) in axis.labels.iter().take(most).enumerate() {
            let text = if at + 1 == most && rest > 0 {
                format!("… {} more: see the table", rest + 1)
            } else {
                format!("{}: {label}", at + 1)
            };
            scene.text([left, y], Anchor::Start, Ink::Muted, &cut(&text, right - left, TEXT));
            y += 16.0;
        }
    }
}

/// Draws marks, each with its label unless that overlaps another.
fn marks(scene: &mut Scene, marks: &[FigureMark], across: &PixelAxis, upwards: &PixelAxis) {
    let mut taken: Vec<[f64; 3]> = Vec::new();
    let mut fits = |from: f64, to: f64, y: f64| {
        let free = taken.iter().all(|[a, b, level]| from >= *b || to <= *a || (level - y).abs() >= TEXT);
        if free {
            taken.push([from, to, y]);
        }
        free
    };
    let mut sorted: Vec<&FigureMark> = marks.iter().collect();
    sorted.sort_by(|a, b| b.y.total_cmp(&a.y));
    for mark in sorted {
        let Some(y) = upwards.at(mark.y) else { continue };
        let Some(x) = mark.x.and_then(|x| across.at(x)) else {
            scene.line(&[[across.from, y], [across.to, y]], Ink::Text, 1.2, 5.0);
            let label = cut(&mark.label, across.to - across.from - 8.0, TEXT);
            if fits(across.from, across.from + width_of(&label, TEXT) + 6.0, y - 5.0) {
                scene.text([across.from + 6.0, y - 5.0], Anchor::Start, Ink::Text, &label);
            }
            continue;
        };
        let r = 4.5;
        let corners = vec![[x - r, y], [x, y - r], [x + r, y], [x, y + r]];
        scene.shapes.push(Shape::Area { points: corners, ink: Ink::Text, opacity: 1.0 });
        let length = width_of(&mark.label, TEXT) + 8.0;
        if x + length <= across.to && fits(x - r, x + length, y) {
            scene.text([x + 8.0, y + TEXT * 0.35], Anchor::Start, Ink::Text, &mark.label);
        } else if x - length >= across.from && fits(x - length, x + r, y) {
            scene.text([x - 8.0, y + TEXT * 0.35], Anchor::End, Ink::Text, &mark.label);
        }
    }
}

fn one(scene: &mut Scene, panel: &FigurePanel, across: &PixelAxis, upwards: &PixelAxis) {
    for line in &panel.lines {
        let ink = Ink::Series(line.series);
        if line.joined {
            for points in spans(line, across, upwards, &line.low, &line.high) {
                scene.shapes.push(Shape::Area { points, ink, opacity: 0.2 });
            }
        }
    }
    for line in &panel.lines {
        let ink = Ink::Series(line.series);
        let thin = line.x.len() > 60;
        if line.dots.len() <= MAX_DOTS {
            for dot in &line.dots {
                if let (Some(x), Some(y)) = (across.at(dot[0]), upwards.at(dot[1])) {
                    let x = if line.joined { x } else { x + DOT_OFFSET };
                    scene.circle([x, y], 2.0, ink, 0.45);
                }
            }
        }
        let at = |i: usize| Some([across.at(line.x[i])?, upwards.at((*line.y.get(i)?)?)?]);
        let mut part: Vec<[f64; 2]> = Vec::new();
        for i in 0..line.x.len() {
            match at(i) {
                Some(point) => part.push(point),
                None => stroke(scene, &mut part, line, thin),
            }
        }
        stroke(scene, &mut part, line, thin);
        for i in 0..line.x.len() {
            let Some([x, y]) = at(i) else { continue };
            let ends = (line.low.get(i).copied().flatten(), line.high.get(i).copied().flatten());
            if let (false, (Some(low), Some(high))) = (line.joined && line.x.len() > 1, ends)
                && let (Some(low), Some(high)) = (upwards.at(low), upwards.at(high))
            {
                scene.line(&[[x, low], [x, high]], ink, 2.0, 0.0);
            }
            if !thin {
                scene.circle([x, y], 4.0, ink, 1.0);
            }
        }
    }
}

/// Draws the collected points as a line, and clears them.
fn stroke(scene: &mut Scene, part: &mut Vec<[f64; 2]>, line: &FigureLine, thin: bool) {
    if line.joined && part.len() > 1 {
        scene.line(part, Ink::Series(line.series), if thin { 1.3 } else { 2.0 }, dash_of(line.series));
    } else if let (true, true, [[x, y]]) = (line.joined, thin, part.as_slice()) {
        scene.circle([*x, *y], 1.5, Ink::Series(line.series), 1.0);
    }
    part.clear();
}

/// Returns polygons between low and high, interrupted where there is no interval.
fn spans(
    line: &FigureLine,
    across: &PixelAxis,
    upwards: &PixelAxis,
    low: &[Option<f64>],
    high: &[Option<f64>],
) -> Vec<Vec<[f64; 2]>> {
    let mut polygons = Vec::new();
    let (mut there, mut back): (Vec<[f64; 2]>, Vec<[f64; 2]>) = (Vec::new(), Vec::new());
    let mut close = |there: &mut Vec<[f64; 2]>, back: &mut Vec<[f64; 2]>| {
        if there.len() > 1 {
            polygons.push(there.iter().copied().chain(back.iter().rev().copied()).collect());
        }
        there.clear();
        back.clear();
    };
    for (i, x) in line.x.iter().enumerate() {
        let ends = low.get(i).copied().flatten().zip(high.get(i).copied().flatten());
        let placed = ends.and_then(|(low, high)| Some((across.at(*x)?, upwards.at(low)?, upwards.at(high)?)));
        match placed {
            Some((x, low, high)) => {
                there.push([x, low]);
                back.push([x, high]);
            }
            None => close(&mut there, &mut back),
        }
    }
    close(&mut there, &mut back);
    polygons
}
