//! Writes a scene as SVG: one file without references, styles or scripts.

use std::fmt::Write as _;

use landspeed_quote::is_unprintable;

use super::scene::{Anchor, Ink, Scene, Shape};
use crate::escape;

/// Fonts: every system has one of them.
const FONTS: &str = "DejaVu Sans, Verdana, Helvetica, Arial, sans-serif";

/// Returns the drawing as a standalone SVG file.
pub fn svg(scene: &Scene) -> String {
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{w}\" height=\"{h}\" viewBox=\"0 0 {w} {h}\" \
         font-family=\"{FONTS}\" role=\"img\">\n<title>{title}</title>\n",
        w = short(scene.width),
        h = short(scene.height),
        title = escape(&printable(&scene.title)),
    );
    for shape in &scene.shapes {
        element(&mut out, shape);
    }
    out.push_str("</svg>\n");
    out
}

fn element(out: &mut String, shape: &Shape) {
    let _ = match shape {
        Shape::Line { points, ink, width, dash } => {
            let dash = if *dash > 0.0 { format!(" stroke-dasharray=\"{}\"", short(*dash)) } else { String::new() };
            writeln!(
                out,
                "<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{}\" stroke-linejoin=\"round\"{dash}/>",
                path(points),
                hex(*ink),
                short(*width)
            )
        }
        Shape::Area { points, ink, opacity } => {
            writeln!(
                out,
                "<path d=\"{}Z\" fill=\"{}\" fill-opacity=\"{}\"/>",
                path(points),
                hex(*ink),
                short(*opacity)
            )
        }
        Shape::Rect { at: [x, y, w, h], ink } => writeln!(
            out,
            "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\" shape-rendering=\"crispEdges\"/>",
            short(*x),
            short(*y),
            short(*w),
            short(*h),
            hex(*ink)
        ),
        Shape::Circle { at: [x, y], radius, ink, opacity } => {
            let clear = if *opacity < 1.0 { format!(" fill-opacity=\"{}\"", short(*opacity)) } else { String::new() };
            writeln!(
                out,
                "<circle cx=\"{}\" cy=\"{}\" r=\"{}\" fill=\"{}\"{clear}/>",
                short(*x),
                short(*y),
                short(*radius),
                hex(*ink)
            )
        }
        Shape::Text { at: [x, y], anchor, size, bold, ink, upwards, text } => {
            let anchor = match anchor {
                Anchor::Start => "",
                Anchor::Middle => " text-anchor=\"middle\"",
                Anchor::End => " text-anchor=\"end\"",
            };
            let bold = if *bold { " font-weight=\"bold\"" } else { "" };
            let (x, y) = (short(*x), short(*y));
            let turn = if *upwards { format!(" transform=\"rotate(-90 {x} {y})\"") } else { String::new() };
            writeln!(
                out,
                "<text x=\"{x}\" y=\"{y}\" font-size=\"{}\" fill=\"{}\"{anchor}{bold}{turn}>{}</text>",
                short(*size),
                hex(*ink),
                escape(&printable(text))
            )
        }
    };
}

fn path(points: &[[f64; 2]]) -> String {
    let mut out = String::new();
    for (at, [x, y]) in points.iter().enumerate() {
        let _ = write!(out, "{}{} {}", if at == 0 { 'M' } else { 'L' }, short(*x), short(*y));
    }
    out
}

fn hex(ink: Ink) -> String {
    let [r, g, b] = ink.rgb();
    format!("#{r:02x}{g:02x}{b:02x}")
}

/// Formats a number with at most two decimals.
fn short(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Removes control characters, which XML forbids, and direction overrides, which reorder text.
fn printable(text: &str) -> String {
    let forbidden = |c: char| c.is_control() || is_unprintable(c) || matches!(c, '\u{fffe}' | '\u{ffff}');
    text.chars().map(|c| if forbidden(c) { '\u{fffd}' } else { c }).collect()
}
