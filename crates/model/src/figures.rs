//! `landspeed.figures/1`: figures as data, for reports, tables and other programs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Better, BuildInfo};

/// Figures made from saved documents.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FiguresDocument {
    /// Always `landspeed.figures/1`.
    pub schema: String,
    /// The program that wrote it.
    pub landspeed: BuildInfo,
    /// Kind of the source documents: `sweep`, `comparison`, `4 runs`.
    pub about: String,
    /// Name of the experiment or of the documents.
    pub title: String,
    /// Description of the experiment; `None` without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The result in one sentence.
    pub answer: String,
    /// Start of the first measurement, RFC 3339 UTC; empty if unknown.
    pub started: String,
    /// Facts about the experiment as pairs of name and value.
    pub facts: Vec<[String; 2]>,
    /// Remarks that limit how far the figures can be trusted.
    pub notes: Vec<FigureNote>,
    /// The figures, most important first.
    pub figures: Vec<Figure>,
    /// Names of the source documents.
    pub sources: Vec<String>,
}

/// A remark about the figures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FigureNote {
    /// Whether figures are missing or must not be used because of it.
    pub serious: bool,
    /// Human-readable text.
    pub text: String,
}

/// One figure: chart, grid or rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Figure {
    /// Identifier, unique in the document (letters, digits and hyphens); also the file name of the figure.
    pub id: String,
    /// Title of the figure.
    pub title: String,
    /// Caption: number of runs, meaning of bands and dots, and omitted data.
    pub caption: String,
    /// The data, by kind of drawing.
    pub drawing: Drawing,
}

/// Kind of drawing and its data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Drawing {
    /// Lines and dots on common axes.
    Chart(FigureChart),
    /// Grid of rows and columns: a heat map or matrix.
    Grid(FigureGrid),
    /// Rows of bars or intervals: a waterfall or comparison.
    Rows(FigureRows),
}

/// Scale of an axis.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FigureScale {
    /// Linear.
    #[default]
    Linear,
    /// Logarithmic; all values are above 0.
    Log,
    /// Categories: values are indices into `labels`.
    Category,
    /// Dates: values are seconds since 1970-01-01 UTC.
    Date,
}

/// An axis.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FigureAxis {
    /// Title of the axis.
    pub title: String,
    /// Unit of the values: `bit/s`, `B`, `ns`, `ratio`; empty for plain numbers.
    pub unit: String,
    /// Scale of the axis.
    pub scale: FigureScale,
    /// Labels of the categories of a [`FigureScale::Category`] axis.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
}

/// Lines and dots on common axes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FigureChart {
    /// Horizontal axis.
    pub x: FigureAxis,
    /// Vertical axis, from 0 unless logarithmic.
    pub y: FigureAxis,
    /// Names of the series, the same in every panel.
    pub series: Vec<String>,
    /// Panels side by side on the same axes (small multiples).
    pub panels: Vec<FigurePanel>,
    /// Reference values: a limit, a theoretical value, a published result.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub marks: Vec<FigureMark>,
}

/// One panel of a chart.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FigurePanel {
    /// Title of the panel, such as a factor level; empty for a single panel.
    pub title: String,
    /// Lines of the panel.
    pub lines: Vec<FigureLine>,
}

/// One line: columns of equal length, sorted by `x`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FigureLine {
    /// Index in [`FigureChart::series`].
    pub series: usize,
    /// Whether the points are connected by a line.
    pub joined: bool,
    /// Horizontal positions.
    pub x: Vec<f64>,
    /// Vertical positions; null if nothing was measured.
    pub y: Vec<Option<f64>>,
    /// Lower limits of the intervals; empty for a line without intervals.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub low: Vec<Option<f64>>,
    /// Upper limits of the intervals; empty for a line without intervals.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub high: Vec<Option<f64>>,
    /// Number of runs of each point; empty if each point is a single reading.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub runs: Vec<u32>,
    /// Individual values as pairs of x and y, such as single runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dots: Vec<[f64; 2]>,
}

/// A reference value in a chart.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FigureMark {
    /// Description of the value, with its source.
    pub label: String,
    /// Horizontal position; `None` draws a line across the whole width.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub x: Option<f64>,
    /// The reference value.
    pub y: f64,
}

/// Grid of rows and columns.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FigureGrid {
    /// Axis of the rows.
    pub rows: FigureAxis,
    /// Axis of the columns.
    pub columns: FigureAxis,
    /// Title of the values.
    pub value: String,
    /// Unit of the values.
    pub unit: String,
    /// Whether higher or lower values are better; `None` if neither.
    pub better: Option<Better>,
    /// Values row by row; null if nothing was measured.
    pub cells: Vec<Option<f64>>,
    /// Number of runs of each value; empty if each value is a single reading.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub runs: Vec<u32>,
    /// Lower limit of each value's interval, or lowest value of the cell; empty without either.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub low: Vec<Option<f64>>,
    /// Upper limit of each value's interval, or highest value of the cell; empty without either.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub high: Vec<Option<f64>>,
    /// Each value as a share of its limit, 0..=1; empty without a limit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shares: Vec<Option<f64>>,
    /// Cells without a value, with the reason if it is known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<FigureGap>,
}

/// A grid cell without a value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FigureGap {
    /// Index in [`FigureGrid::cells`].
    pub cell: usize,
    /// Reason the cell has no value.
    pub why: String,
}

/// Rows of bars or intervals.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FigureRows {
    /// Common axis of all rows.
    pub axis: FigureAxis,
    /// Value that means no difference, drawn as a line through all rows; `None` without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub neutral: Option<f64>,
    /// The rows, top to bottom.
    pub rows: Vec<FigureRow>,
}

/// One row: a bar from `from` to `to`, or a point with an interval.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FigureRow {
    /// Label of the row.
    pub label: String,
    /// The figures as text, next to the label.
    pub text: String,
    /// Further details; empty without any.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub detail: String,
    /// Start of the bar; `None` for a point.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<f64>,
    /// End of the bar, or the point; `None` if nothing was measured.
    pub to: Option<f64>,
    /// Lower limit of the interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// Upper limit of the interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
    /// Whether the row is better or worse than neutral; `None` if neither is shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub better: Option<bool>,
}
