//! Figures drawn for papers: on white, at one width, without interaction.

mod axis;
mod chart;
mod grid;
mod rows;
mod scene;
mod svg;

use landspeed_model::{Drawing, Figure};

pub use scene::{Anchor, Ink, Scene, Shape};
pub use svg::svg;

use scene::{TEXT, TITLE};

/// Width of a figure, pixels.
const WIDTH: f64 = 760.0;
/// Margin of a figure, pixels.
const EDGE: f64 = 14.0;

/// Draws a figure.
pub fn scene(figure: &Figure) -> Scene {
    let mut scene = Scene { width: WIDTH, title: figure.title.clone(), ..Scene::default() };
    let mut y = EDGE;
    for line in scene::wrapped(&figure.title, WIDTH - 2.0 * EDGE, TITLE * 1.08) {
        y += TITLE * 1.3;
        scene.letters([EDGE, y - TITLE * 0.3], Anchor::Start, Ink::Text, TITLE, true, &line);
    }
    y += 6.0;
    y = match &figure.drawing {
        Drawing::Chart(chart) => chart::draw(&mut scene, chart, y),
        Drawing::Grid(grid) => grid::draw(&mut scene, grid, y),
        Drawing::Rows(rows) => rows::draw(&mut scene, rows, y),
    };
    y = scene.paragraph([EDGE, y + 8.0], WIDTH - 2.0 * EDGE, Ink::Muted, &figure.caption);
    scene.height = (y + EDGE).ceil();
    let background = Shape::Rect { at: [0.0, 0.0, scene.width, scene.height], ink: Ink::Background };
    scene.shapes.insert(0, background);
    scene
}

/// Draws the legend of lines, wrapped; returns the y below it.
fn legend(scene: &mut Scene, names: &[(usize, &str)], y: f64) -> f64 {
    let (mut x, mut y) = (EDGE, y + TEXT);
    for (series, name) in names {
        let name = scene::cut(name, WIDTH - 2.0 * EDGE - 40.0, TEXT);
        let width = 30.0 + scene::width_of(&name, TEXT) + 14.0;
        if x + width > WIDTH - EDGE && x > EDGE {
            x = EDGE;
            y += TEXT * 1.5;
        }
        let middle = y - TEXT * 0.35;
        scene.line(&[[x, middle], [x + 24.0, middle]], Ink::Series(*series), 2.5, dash_of(*series));
        scene.text([x + 30.0, y], Anchor::Start, Ink::Text, &name);
        x += width;
    }
    y + 8.0
}

/// Returns the dash length of a line: lines beyond the palette are dashed.
fn dash_of(series: usize) -> f64 {
    [0.0, 6.0, 2.0][(series / 8) % 3]
}
