//! Renders a scene as PNG at twice its size, with the font DejaVu Sans.

use std::io::Read as _;
use std::sync::LazyLock;

use ab_glyph::{Font as _, FontRef, PxScale, ScaleFont as _, point};
use anyhow::{Context as _, anyhow};
use landspeed_report::{Anchor, Ink, Scene, Shape};
use tiny_skia::{Color, FillRule, Paint, PathBuilder, Pixmap, Rect, Stroke, StrokeDash, Transform};

/// Output pixels per unit of the scene.
const SCALE: f32 = 2.0;
/// Bold text is drawn twice with this offset, relative to the font size.
const BOLD_OFFSET: f32 = 0.045;

/// DejaVu Sans, as the build script compressed it.
static FONT: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let packed: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/font.zlib"));
    let mut font = Vec::new();
    flate2::read::ZlibDecoder::new(packed).read_to_end(&mut font).expect("the build script compressed it");
    font
});

/// Renders a scene as a PNG file.
pub fn png(scene: &Scene) -> anyhow::Result<Vec<u8>> {
    let (width, height) = ((scene.width as f32 * SCALE).ceil() as u32, (scene.height as f32 * SCALE).ceil() as u32);
    let mut pixels = Pixmap::new(width, height).ok_or_else(|| anyhow!("cannot draw {width} × {height} pixels"))?;
    pixels.fill(Color::WHITE);
    let font = FontRef::try_from_slice(&FONT).context("cannot read the font DejaVu Sans")?;
    for shape in &scene.shapes {
        draw(&mut pixels, &font, shape);
    }
    pixels.encode_png().context("cannot encode a PNG")
}

fn draw(pixels: &mut Pixmap, font: &FontRef<'_>, shape: &Shape) {
    let transform = Transform::from_scale(SCALE, SCALE);
    match shape {
        Shape::Line { points, ink, width, dash } => {
            let Some(path) = path(points, false) else { return };
            let dash = if *dash > 0.0 { StrokeDash::new(vec![*dash as f32, *dash as f32], 0.0) } else { None };
            let stroke = Stroke { width: *width as f32, dash, ..Stroke::default() };
            pixels.stroke_path(&path, &paint(*ink, 1.0), &stroke, transform, None);
        }
        Shape::Area { points, ink, opacity } => {
            let Some(path) = path(points, true) else { return };
            pixels.fill_path(&path, &paint(*ink, *opacity), FillRule::Winding, transform, None);
        }
        Shape::Rect { at: [x, y, w, h], ink } => {
            if let Some(rect) = Rect::from_xywh(*x as f32, *y as f32, *w as f32, *h as f32) {
                // Without anti-aliasing, so that adjacent cells show no seam.
                let paint = Paint { anti_alias: false, ..paint(*ink, 1.0) };
                pixels.fill_rect(rect, &paint, transform, None);
            }
        }
        Shape::Circle { at: [x, y], radius, ink, opacity } => {
            if let Some(path) = PathBuilder::from_circle(*x as f32, *y as f32, *radius as f32) {
                pixels.fill_path(&path, &paint(*ink, *opacity), FillRule::Winding, transform, None);
            }
        }
        Shape::Text { at, anchor, size, bold, ink, upwards, text } => {
            let (size, place) = (*size as f32 * SCALE, at.map(|v| v as f32 * SCALE));
            let copies: &[f32] = if *bold { &[0.0, BOLD_OFFSET] } else { &[0.0] };
            for shift in copies {
                draw_text(pixels, font, text, (place, *anchor, *upwards), (size, *shift * size), *ink);
            }
        }
    }
}

fn path(points: &[[f64; 2]], closed: bool) -> Option<tiny_skia::Path> {
    let mut path = PathBuilder::new();
    let mut points = points.iter().map(|[x, y]| (*x as f32, *y as f32));
    let (x, y) = points.next()?;
    path.move_to(x, y);
    points.for_each(|(x, y)| path.line_to(x, y));
    if closed {
        path.close();
    }
    path.finish()
}

fn paint(ink: Ink, opacity: f64) -> Paint<'static> {
    let [r, g, b] = ink.rgb();
    let mut paint = Paint { anti_alias: true, ..Paint::default() };
    paint.set_color_rgba8(r, g, b, (opacity.clamp(0.0, 1.0) * 255.0).round() as u8);
    paint
}

/// Draws one line of text, `size` pixels per em.
fn draw_text(
    pixels: &mut Pixmap,
    font: &FontRef<'_>,
    text: &str,
    (at, anchor, upwards): ([f32; 2], Anchor, bool),
    (size, shift): (f32, f32),
    ink: Ink,
) {
    // ab_glyph's scale is the height from ascent to descent, not the em.
    let per_em = font.units_per_em().unwrap_or(2048.0);
    let scaled = font.as_scaled(PxScale::from(size * font.height_unscaled() / per_em));
    let width: f32 = text.chars().map(|c| scaled.h_advance(font.glyph_id(c))).sum();
    let mut along = shift
        - match anchor {
            Anchor::Start => 0.0,
            Anchor::Middle => width / 2.0,
            Anchor::End => width,
        };
    let rgb = ink.rgb();
    let mut before = None;
    for c in text.chars() {
        let id = font.glyph_id(c);
        if let Some(before) = before {
            along += scaled.kern(before, id);
        }
        let glyph = id.with_scale_and_position(scaled.scale(), point(along, 0.0));
        if let Some(outline) = font.outline_glyph(glyph) {
            let bounds = outline.px_bounds();
            outline.draw(|x, y, coverage| {
                let (dx, dy) = (bounds.min.x + x as f32, bounds.min.y + y as f32);
                // Rotated 90° counterclockwise: x becomes -y.
                let (x, y) = if upwards { (at[0] + dy, at[1] - dx) } else { (at[0] + dx, at[1] + dy) };
                blend(pixels, x.round() as i64, y.round() as i64, rgb, coverage);
            });
        }
        along += scaled.h_advance(id);
        before = Some(id);
    }
}

/// Blends a colour into an opaque pixel.
fn blend(pixels: &mut Pixmap, x: i64, y: i64, rgb: [u8; 3], coverage: f32) {
    let (width, height) = (i64::from(pixels.width()), i64::from(pixels.height()));
    if !(0..width).contains(&x) || !(0..height).contains(&y) {
        return;
    }
    let at = ((y * width + x) * 4) as usize;
    let coverage = coverage.clamp(0.0, 1.0);
    for (channel, value) in pixels.data_mut()[at..at + 3].iter_mut().zip(rgb) {
        let mixed = f32::from(*channel) * (1.0 - coverage) + f32::from(value) * coverage;
        *channel = mixed.round() as u8;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scenes_render_at_twice_their_size() {
        let text = |upwards| Shape::Text {
            at: [50.0, 40.0],
            anchor: Anchor::Middle,
            size: 13.0,
            bold: true,
            ink: Ink::Text,
            upwards,
            text: "9.41 Gb/s µ".to_owned(),
        };
        let blank = Scene { width: 100.0, height: 80.0, title: String::new(), shapes: Vec::new() };
        let drawn = Scene { shapes: vec![text(false), text(true)], ..blank.clone() };
        let decode = |scene: &Scene| Pixmap::decode_png(&png(scene).unwrap()).unwrap();
        let (blank, drawn) = (decode(&blank), decode(&drawn));
        assert_eq!((drawn.width(), drawn.height()), (200, 160));
        let dark = |picture: &Pixmap| picture.pixels().iter().filter(|pixel| pixel.red() < 128).count();
        assert_eq!(dark(&blank), 0);
        assert!(dark(&drawn) > 200, "{}", dark(&drawn));
    }
}
