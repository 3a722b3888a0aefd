//! `landspeed.figures/1`: figures as data: what a report draws, and tables and other programs read.

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
    /// What the documents are: `sweep`, `comparison`, `4 runs`.
    pub about: String,
    /// Name of the experiment, or of the documents.
    pub title: String,
    /// What was asked, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The answer in one sentence.
    pub answer: String,
    /// When the first measurement began, RFC 3339 UTC; empty where unknown.
    pub started: String,
    /// Facts of the experiment: name and value.
    pub facts: Vec<[String; 2]>,
    /// What a reader should know before trusting a figure.
    pub notes: Vec<FigureNote>,
    /// The figures, the most important first.
    pub figures: Vec<Figure>,
    /// The documents, by name.
    pub sources: Vec<String>,
}

/// A remark on the figures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FigureNote {
    /// Whether figures are missing or must not be used.
    pub serious: bool,
    /// In words.
    pub text: String,
}

/// One figure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Figure {
    /// A name that is unique in the document, of letters, digits and hyphens: the name of its files.
    pub id: String,
    /// What it shows.
    pub title: String,
    /// How many runs, what bands and dots are, and what is not drawn.
    pub caption: String,
    /// How it is drawn.
    pub drawing: Drawing,
}

/// How a figure is drawn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Drawing {
    /// Lines and dots over a common axis.
    Chart(FigureChart),
    /// Cells of rows and columns: a heat map, a matrix.
    Grid(FigureGrid),
    /// Bars or intervals under each other: a waterfall, a comparison.
    Rows(FigureRows),
}

/// How values are placed along an axis.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FigureScale {
    /// In proportion.
    #[default]
    Linear,
    /// By logarithm: all values are above 0.
    Log,
    /// One place for each of `labels`: values are their indices.
    Category,
    /// Seconds since 1970-01-01 UTC.
    Date,
}

/// An axis.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FigureAxis {
    /// What it shows.
    pub title: String,
    /// The unit of its values: `bit/s`, `B`, `ns`, `ratio`; empty for numbers.
    pub unit: String,
    /// How values are placed.
    pub scale: FigureScale,
    /// Names of the places of a [`FigureScale::Category`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
}

/// Lines and dots.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FigureChart {
    /// The axis across.
    pub x: FigureAxis,
    /// The axis upwards, from 0 unless logarithmic.
    pub y: FigureAxis,
    /// Names of the lines, the same in every panel.
    pub series: Vec<String>,
    /// Charts beside each other on the same axes: small multiples.
    pub panels: Vec<FigurePanel>,
    /// Values to hold against: a limit, a theory, a published result.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub marks: Vec<FigureMark>,
}

/// One of several charts.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FigurePanel {
    /// What is the same in it; empty for a single chart.
    pub title: String,
    /// Its lines.
    pub lines: Vec<FigureLine>,
}

/// One line: columns of equal length, sorted by `x`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FigureLine {
    /// Index in [`FigureChart::series`].
    pub series: usize,
    /// Whether the points are joined.
    pub joined: bool,
    /// Across.
    pub x: Vec<f64>,
    /// Upwards; null where nothing was measured.
    pub y: Vec<Option<f64>>,
    /// Lower end of each interval; empty for a line without intervals.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub low: Vec<Option<f64>>,
    /// Upper end of each interval.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub high: Vec<Option<f64>>,
    /// Runs behind each point; empty where each point is one reading.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub runs: Vec<u32>,
    /// Single values: x and y.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dots: Vec<[f64; 2]>,
}

/// A value to hold against.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FigureMark {
    /// What it is, with its source.
    pub label: String,
    /// The place across; a line over the whole width where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub x: Option<f64>,
    /// The value.
    pub y: f64,
}

/// Cells of rows and columns.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FigureGrid {
    /// What the rows are.
    pub rows: FigureAxis,
    /// What the columns are.
    pub columns: FigureAxis,
    /// What the values are.
    pub value: String,
    /// Their unit.
    pub unit: String,
    /// Which values are better.
    pub better: Option<Better>,
    /// Values row by row; null where nothing was measured.
    pub cells: Vec<Option<f64>>,
    /// Runs behind each value; empty where each is one reading.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub runs: Vec<u32>,
    /// Lower end of each cell's values; empty where there is none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub low: Vec<Option<f64>>,
    /// Upper end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub high: Vec<Option<f64>>,
    /// Share of the limit of each cell, 0..=1; empty without a limit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shares: Vec<Option<f64>>,
    /// Why cells have no value, where that is known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<FigureGap>,
}

/// A cell without a value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FigureGap {
    /// Its index in [`FigureGrid::cells`].
    pub cell: usize,
    /// Why.
    pub why: String,
}

/// Bars or intervals.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FigureRows {
    /// The common axis.
    pub axis: FigureAxis,
    /// The value that means no difference: a line through all rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub neutral: Option<f64>,
    /// The rows.
    pub rows: Vec<FigureRow>,
}

/// One row: a bar from `from` to `to`, or a point with an interval.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FigureRow {
    /// What it is.
    pub label: String,
    /// The figures in words, shown beside the label.
    pub text: String,
    /// What else to know.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub detail: String,
    /// Where a bar begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<f64>,
    /// Where a bar ends, or the point; absent where nothing was measured.
    pub to: Option<f64>,
    /// Lower end of the interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// Upper end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
    /// Whether it is better or worse than neutral; absent where neither is shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub better: Option<bool>,
}
