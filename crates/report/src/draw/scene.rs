//! A drawing as simple shapes, from which SVG and PNG are made.

/// Colours by purpose.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Ink {
    /// Text and axes.
    Text,
    /// Less important text.
    Muted,
    /// Grid lines.
    Grid,
    /// The background.
    Background,
    /// Line of this number: the palette of Okabe and Ito (2008), distinguishable for colour-blind readers.
    Series(usize),
    /// A share 0..=1 of the largest value: viridis, whose lightness increases evenly.
    Heat(f64),
    /// Text colour that is readable on [`Ink::Heat`] of this share.
    OnHeat(f64),
}

/// Viridis (Nathaniel Smith and Stéfan van der Walt, 2015, CC0), at ninths.
const VIRIDIS: [[u8; 3]; 9] = [
    [68, 1, 84],
    [71, 45, 123],
    [59, 82, 139],
    [44, 114, 142],
    [33, 145, 140],
    [40, 174, 128],
    [94, 201, 98],
    [173, 220, 48],
    [253, 231, 37],
];

/// Okabe and Ito: blue, vermillion, green, purple, orange, sky blue, black, grey instead of their yellow.
const SERIES: [[u8; 3]; 8] = [
    [0, 114, 178],
    [213, 94, 0],
    [0, 158, 115],
    [170, 68, 153],
    [204, 121, 0],
    [86, 180, 233],
    [0, 0, 0],
    [128, 128, 128],
];

impl Ink {
    /// Returns red, green and blue, on white paper.
    pub fn rgb(self) -> [u8; 3] {
        match self {
            Self::Text => [22, 25, 29],
            Self::Muted => [80, 88, 96],
            Self::Grid => [220, 224, 228],
            Self::Background => [255, 255, 255],
            Self::Series(number) => SERIES[number % SERIES.len()],
            Self::Heat(share) => {
                let at = share.clamp(0.0, 1.0) * (VIRIDIS.len() - 1) as f64;
                let (low, high) = (at.floor() as usize, at.ceil() as usize);
                std::array::from_fn(|i| {
                    let (a, b) = (f64::from(VIRIDIS[low][i]), f64::from(VIRIDIS[high][i]));
                    (a + (b - a) * at.fract()).round() as u8
                })
            }
            Self::OnHeat(share) => {
                let [r, g, b] = Self::Heat(share).rgb().map(f64::from);
                if 0.299 * r + 0.587 * g + 0.114 * b > 120.0 { [0, 0, 0] } else { [255, 255, 255] }
            }
        }
    }
}

/// Point of a text at its position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Anchor {
    /// Left end of the text.
    Start,
    /// Middle of the text.
    Middle,
    /// Right end of the text.
    End,
}

/// One shape. Lengths are pixels from the top left.
#[derive(Debug, Clone, PartialEq)]
pub enum Shape {
    /// A line through points.
    Line {
        /// Points of the line, x and y.
        points: Vec<[f64; 2]>,
        /// Colour of the line.
        ink: Ink,
        /// Stroke width, pixels.
        width: f64,
        /// Length of dashes and gaps; 0 for none.
        dash: f64,
    },
    /// A filled polygon.
    Area {
        /// Corners of the polygon, x and y.
        points: Vec<[f64; 2]>,
        /// Fill colour.
        ink: Ink,
        /// Opacity, 0 (invisible) to 1.
        opacity: f64,
    },
    /// A filled rectangle.
    Rect {
        /// Left, top, width, height.
        at: [f64; 4],
        /// Fill colour.
        ink: Ink,
    },
    /// A filled circle.
    Circle {
        /// Centre, x and y.
        at: [f64; 2],
        /// In pixels.
        radius: f64,
        /// Fill colour.
        ink: Ink,
        /// Opacity, 0 (invisible) to 1.
        opacity: f64,
    },
    /// A line of text; its position is on the baseline.
    Text {
        /// Position, x and y.
        at: [f64; 2],
        /// Point of the text at the position.
        anchor: Anchor,
        /// Font size, pixels.
        size: f64,
        /// Whether it is bold.
        bold: bool,
        /// Text colour.
        ink: Ink,
        /// Whether it runs upwards, rotated by 90°.
        upwards: bool,
        /// Unescaped text.
        text: String,
    },
}

/// A drawing: its size, its description and its shapes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Scene {
    /// In pixels.
    pub width: f64,
    /// In pixels.
    pub height: f64,
    /// Text alternative, for accessibility.
    pub title: String,
    /// Shapes in drawing order, the background first.
    pub shapes: Vec<Shape>,
}

/// Default font size, pixels.
pub(crate) const TEXT: f64 = 13.0;
/// Font size of a figure's title, pixels.
pub(crate) const TITLE: f64 = 15.0;

impl Scene {
    pub(crate) fn line(&mut self, points: &[[f64; 2]], ink: Ink, width: f64, dash: f64) {
        self.shapes.push(Shape::Line { points: points.to_vec(), ink, width, dash });
    }

    pub(crate) fn rect(&mut self, at: [f64; 4], ink: Ink) {
        self.shapes.push(Shape::Rect { at, ink });
    }

    pub(crate) fn circle(&mut self, at: [f64; 2], radius: f64, ink: Ink, opacity: f64) {
        self.shapes.push(Shape::Circle { at, radius, ink, opacity });
    }

    pub(crate) fn text(&mut self, at: [f64; 2], anchor: Anchor, ink: Ink, text: &str) {
        self.letters(at, anchor, ink, TEXT, false, text);
    }

    pub(crate) fn letters(&mut self, at: [f64; 2], anchor: Anchor, ink: Ink, size: f64, bold: bool, text: &str) {
        if !text.is_empty() {
            let text = text.to_owned();
            self.shapes.push(Shape::Text { at, anchor, size, bold, ink, upwards: false, text });
        }
    }

    pub(crate) fn upwards(&mut self, at: [f64; 2], ink: Ink, text: &str) {
        let text = text.to_owned();
        self.shapes.push(Shape::Text {
            at,
            anchor: Anchor::Middle,
            size: TEXT,
            bold: false,
            ink,
            upwards: true,
            text,
        });
    }

    /// Adds a paragraph from the top `y`; returns the y below it.
    pub(crate) fn paragraph(&mut self, [x, y]: [f64; 2], width: f64, ink: Ink, text: &str) -> f64 {
        let mut y = y;
        for line in wrapped(text, width, TEXT) {
            y += TEXT * 1.35;
            self.text([x, y - TEXT * 0.3], Anchor::Start, ink, &line);
        }
        y
    }
}

/// Returns the width of a text, pixels, with the letters of DejaVu Sans and Verdana, which are among the
/// widest.
pub(crate) fn width_of(text: &str, size: f64) -> f64 {
    let em: f64 = text
        .chars()
        .map(|c| match c {
            'i' | 'j' | 'l' | 'I' | '.' | ',' | ':' | ';' | '|' | '\'' | ' ' | '!' => 0.34,
            'f' | 't' | 'r' | '(' | ')' | '[' | ']' | '/' | '-' | '·' => 0.42,
            'm' | 'w' | 'M' | 'W' | '@' | '%' | '→' | '—' => 0.95,
            'A'..='Z' => 0.72,
            _ => 0.64,
        })
        .sum();
    em * size
}

/// Cuts a text to a width, with an ellipsis.
pub(crate) fn cut(text: &str, width: f64, size: f64) -> String {
    if width_of(text, size) <= width {
        return text.to_owned();
    }
    let mut out = String::new();
    for c in text.chars() {
        if width_of(&out, size) + width_of("m…", size) > width {
            break;
        }
        out.push(c);
    }
    out + "…"
}

/// Wraps a text into lines of a width.
pub(crate) fn wrapped(text: &str, width: f64, size: f64) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split_whitespace() {
        let longer = if line.is_empty() { word.to_owned() } else { format!("{line} {word}") };
        if width_of(&longer, size) > width && !line.is_empty() {
            lines.push(std::mem::replace(&mut line, cut(word, width, size)));
        } else {
            line = if line.is_empty() { cut(word, width, size) } else { longer };
        }
    }
    if !line.is_empty() {
        lines.push(line);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heat_map_text_has_enough_contrast() {
        for step in 0..=20 {
            let share = f64::from(step) / 20.0;
            let light = |ink: Ink| {
                let [r, g, b] = ink.rgb().map(|v| {
                    let v = f64::from(v) / 255.0;
                    if v <= 0.039_28 { v / 12.92 } else { ((v + 0.055) / 1.055).powf(2.4) }
                });
                0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05
            };
            let (a, b) = (light(Ink::Heat(share)), light(Ink::OnHeat(share)));
            // WCAG 2.1, contrast of large text and graphics.
            assert!(a.max(b) / a.min(b) >= 3.0, "{share}");
        }
    }

    #[test]
    fn long_words_are_cut_and_lines_fit() {
        let lines = wrapped("a few words and averyveryverylongwordwithoutanyspace", 100.0, 13.0);
        assert!(lines.len() > 1 && lines.iter().all(|line| width_of(line, 13.0) <= 100.0), "{lines:?}");
        assert_eq!(wrapped("", 100.0, 13.0), Vec::<String>::new());
    }
}
