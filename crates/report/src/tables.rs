//! Figures as tables: Markdown, CSV, and data with a script for gnuplot.

use std::fmt::Write as _;

use landspeed_model::{
    Drawing, Figure, FigureAxis, FigureChart, FigureGrid, FigureRows, FigureScale, FiguresDocument,
};
use landspeed_quote::{csv_line, is_unprintable};

use crate::figures::quantity;

/// Maximum number of rows of a Markdown table: longer ones belong into CSV.
const MAX_ROWS: usize = 60;

/// A value of a long table: its position and its interval.
struct Row {
    panel: String,
    series: String,
    x: String,
    y: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
    runs: Option<u32>,
}

/// Returns all figures as one table in long form: one line for each value, after a header (RFC 4180).
///
/// Columns: figure, panel, series, x, value, low, high, runs, unit. Values are in the base unit; values that
/// were not measured are empty.
pub fn csv(page: &FiguresDocument) -> String {
    let mut out = "figure,panel,series,x,value,low,high,runs,unit\r\n".to_owned();
    for figure in &page.figures {
        let unit = unit_of(figure);
        for row in rows_of(figure) {
            let number = |value: Option<f64>| value.map(|v| v.to_string()).unwrap_or_default();
            let fields = [
                figure.id.clone(),
                row.panel,
                row.series,
                row.x,
                number(row.y),
                number(row.low),
                number(row.high),
                row.runs.map(|runs| runs.to_string()).unwrap_or_default(),
                unit.to_owned(),
            ];
            out += &csv_line(&fields);
        }
    }
    out
}

/// Returns the answer, and each figure as a table.
pub fn markdown(page: &FiguresDocument) -> String {
    let mut out = format!("# {}\n\n{}\n", marked(&page.title), marked(&page.answer));
    for note in &page.notes {
        let _ = write!(out, "\n> {}{}\n", if note.serious { "**Note:** " } else { "" }, marked(&note.text));
    }
    for figure in &page.figures {
        let _ = write!(out, "\n## {}\n\n{}\n\n", marked(&figure.title), marked(&figure.caption));
        match &figure.drawing {
            Drawing::Grid(grid) => grid_table(&mut out, grid),
            Drawing::Rows(rows) => rows_table(&mut out, rows),
            Drawing::Chart(chart) => chart_table(&mut out, figure, chart),
        }
    }
    out
}

fn grid_table(out: &mut String, grid: &FigureGrid) {
    let columns = grid.columns.labels.len().max(1);
    let head: Vec<String> = grid.columns.labels.iter().map(|label| marked(label)).collect();
    let _ =
        writeln!(out, "| {} \\ {} | {} |", marked(&grid.rows.title), marked(&grid.columns.title), head.join(" | "));
    let _ = writeln!(out, "|---|{}", "--:|".repeat(columns));
    for (at, (label, cells)) in grid.rows.labels.iter().zip(grid.cells.chunks(columns)).enumerate() {
        let texts: Vec<String> = cells
            .iter()
            .enumerate()
            .map(|(column, value)| match (value, grid.shares.get(at * columns + column).copied().flatten()) {
                (Some(value), Some(share)) => {
                    format!("{} ({})", quantity::text(*value, &grid.unit), quantity::percent(share))
                }
                (Some(value), None) => quantity::text(*value, &grid.unit),
                (None, _) => "–".to_owned(),
            })
            .collect();
        let _ = writeln!(out, "| {} | {} |", marked(label), texts.join(" | "));
    }
}

fn rows_table(out: &mut String, rows: &FigureRows) {
    let _ = writeln!(out, "| what | result | detail |\n|---|---|---|");
    for row in &rows.rows {
        let _ = writeln!(out, "| {} | {} | {} |", marked(&row.label), marked(&row.text), marked(&row.detail));
    }
}

fn chart_table(out: &mut String, figure: &Figure, chart: &FigureChart) {
    let rows = rows_of(figure);
    if rows.len() > MAX_ROWS {
        let _ = writeln!(out, "{} values: `--csv FILE` writes them.", rows.len());
        return;
    }
    let (panels, series) = (chart.panels.len() > 1, chart.series.len() > 1);
    let mut heads = Vec::new();
    heads.extend(panels.then_some("panel".to_owned()));
    heads.extend(series.then_some("line".to_owned()));
    heads.push(if chart.x.title.is_empty() { "where".to_owned() } else { marked(&chart.x.title) });
    heads.push(marked(&chart.y.title));
    heads.extend(["interval".to_owned(), "n".to_owned()]);
    let _ = writeln!(out, "| {} |\n|{}", heads.join(" | "), "---|".repeat(heads.len()));
    for row in rows {
        let value = |v: Option<f64>| v.map_or_else(|| "–".to_owned(), |v| quantity::text(v, &chart.y.unit));
        let mut cells = Vec::new();
        cells.extend(panels.then(|| marked(&row.panel)));
        cells.extend(series.then(|| marked(&row.series)));
        cells.push(match row.x.parse::<f64>() {
            Ok(x) if chart.x.scale != FigureScale::Category && chart.x.scale != FigureScale::Date => {
                quantity::text(x, &chart.x.unit)
            }
            _ => marked(&row.x),
        });
        cells.push(value(row.y));
        cells.push(match (row.low, row.high) {
            (Some(low), Some(high)) => format!("{} to {}", value(Some(low)), value(Some(high))),
            _ => "–".to_owned(),
        });
        cells.push(row.runs.map_or_else(|| "1".to_owned(), |runs| runs.to_string()));
        let _ = writeln!(out, "| {} |", cells.join(" | "));
    }
}

/// Escapes text for Markdown and HTML.
fn marked(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' | '|' | '*' | '_' | '[' | ']' | '#' => {
                out.push('\\');
                out.push(c);
            }
            '<' => out.push_str("&lt;"),
            '&' => out.push_str("&amp;"),
            c if c.is_control() || is_unprintable(c) => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

fn unit_of(figure: &Figure) -> &str {
    match &figure.drawing {
        Drawing::Chart(chart) => &chart.y.unit,
        Drawing::Grid(grid) => &grid.unit,
        Drawing::Rows(rows) => &rows.axis.unit,
    }
}

fn rows_of(figure: &Figure) -> Vec<Row> {
    match &figure.drawing {
        Drawing::Chart(chart) => chart_rows(chart),
        Drawing::Grid(grid) => {
            let columns = grid.columns.labels.len().max(1);
            let one = |(at, value): (usize, &Option<f64>)| Row {
                panel: String::new(),
                series: grid.rows.labels.get(at / columns).cloned().unwrap_or_default(),
                x: grid.columns.labels.get(at % columns).cloned().unwrap_or_default(),
                y: *value,
                low: grid.low.get(at).copied().flatten(),
                high: grid.high.get(at).copied().flatten(),
                runs: grid.runs.get(at).copied(),
            };
            grid.cells.iter().enumerate().map(one).collect()
        }
        Drawing::Rows(rows) => rows
            .rows
            .iter()
            .map(|row| Row {
                panel: String::new(),
                series: String::new(),
                x: row.label.clone(),
                y: row.to,
                low: row.low.or(row.from),
                high: row.high,
                runs: None,
            })
            .collect(),
    }
}

fn chart_rows(chart: &FigureChart) -> Vec<Row> {
    let mut rows = Vec::new();
    for panel in &chart.panels {
        for line in &panel.lines {
            for (at, x) in line.x.iter().enumerate() {
                rows.push(Row {
                    panel: panel.title.clone(),
                    series: chart.series.get(line.series).cloned().unwrap_or_default(),
                    x: place(&chart.x, *x),
                    y: line.y.get(at).copied().flatten(),
                    low: line.low.get(at).copied().flatten(),
                    high: line.high.get(at).copied().flatten(),
                    runs: line.runs.get(at).copied(),
                });
            }
        }
    }
    rows
}

/// Returns the label of a position, or its number.
fn place(axis: &FigureAxis, x: f64) -> String {
    match axis.scale {
        FigureScale::Category => axis.labels.get(x as usize).cloned().unwrap_or_else(|| x.to_string()),
        FigureScale::Date => {
            let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs_f64(x.clamp(0.0, 2.5e11));
            humantime::format_rfc3339_seconds(time).to_string()
        }
        _ => x.to_string(),
    }
}

/// Returns a figure for gnuplot: the data file `ID.dat`, and the script `ID.gp`, which draws it into
/// `ID.gp.svg`.
pub fn gnuplot(figure: &Figure) -> (String, String) {
    let id = &figure.id;
    let mut script = format!(
        "# gnuplot {id}.gp\nset terminal svg size 760,460 dynamic noenhanced font 'DejaVu Sans,13'\nset output '{id}.gp.svg'\nset title {}\n",
        gnuplot_text(&figure.title)
    );
    let mut data = format!("# {}\n", single_line(&figure.title));
    match &figure.drawing {
        Drawing::Chart(chart) => gnuplot_chart(&mut script, &mut data, id, chart),
        Drawing::Grid(grid) => gnuplot_grid(&mut script, &mut data, id, grid),
        Drawing::Rows(rows) => gnuplot_rows(&mut script, &mut data, id, rows),
    }
    (data, script)
}

fn gnuplot_chart(script: &mut String, data: &mut String, id: &str, chart: &FigureChart) {
    let unit = |axis: &FigureAxis| {
        if axis.unit.is_empty() { axis.title.clone() } else { format!("{}, {}", axis.title, axis.unit) }
    };
    let _ = writeln!(
        script,
        "set xlabel {}\nset ylabel {}\nset key outside below\nset style fill transparent solid 0.2 noborder",
        gnuplot_text(&unit(&chart.x)),
        gnuplot_text(&unit(&chart.y))
    );
    if chart.x.scale == FigureScale::Log {
        script.push_str("set logscale x\n");
    }
    if chart.y.scale == FigureScale::Log {
        script.push_str("set logscale y\n");
    } else {
        script.push_str("set yrange [0:*]\n");
    }
    if chart.x.scale == FigureScale::Date {
        script.push_str("set xdata time\nset timefmt '%s'\nset format x '%Y-%m-%d'\n");
    }
    if chart.x.scale == FigureScale::Category {
        let places: Vec<String> =
            chart.x.labels.iter().enumerate().map(|(at, label)| format!("{} {at}", gnuplot_text(label))).collect();
        let _ = writeln!(
            script,
            "set xtics rotate by -30 ({})\nset xrange [-0.5:{}]",
            places.join(", "),
            chart.x.labels.len() as f64 - 0.5
        );
    }
    for (at, mark) in chart.marks.iter().enumerate().filter(|(_, mark)| mark.x.is_none()) {
        let _ = writeln!(
            script,
            "set arrow {n} from graph 0, first {y} to graph 1, first {y} nohead dt 2\nset label {n} {label} at graph 0.02, first {y} offset 0,0.5",
            n = at + 1,
            y = mark.y,
            label = gnuplot_text(&mark.label)
        );
    }
    let mut plots = Vec::new();
    let mut index = 0;
    for panel in &chart.panels {
        for line in &panel.lines {
            let name = chart.series.get(line.series).map_or("", String::as_str);
            let name = [panel.title.as_str(), name]
                .iter()
                .filter(|part| !part.is_empty())
                .copied()
                .collect::<Vec<_>>()
                .join(", ");
            let _ = writeln!(data, "# {}: x, value, low, high, runs", single_line(&name));
            for (at, x) in line.x.iter().enumerate() {
                let number = |list: &[Option<f64>]| {
                    list.get(at).copied().flatten().map_or_else(|| "NaN".to_owned(), |v| v.to_string())
                };
                let runs = line.runs.get(at).map_or_else(|| "1".to_owned(), u32::to_string);
                let _ = writeln!(data, "{x} {} {} {} {runs}", number(&line.y), number(&line.low), number(&line.high));
            }
            data.push_str("\n\n");
            let colour = line.series + 1;
            let has_interval = line.low.iter().any(Option::is_some);
            if has_interval && line.joined {
                plots.push(format!("'{id}.dat' index {index} using 1:3:4 with filledcurves lc {colour} notitle"));
            } else if has_interval {
                plots.push(format!("'{id}.dat' index {index} using 1:2:3:4 with yerrorbars lc {colour} notitle"));
            }
            let style = if line.joined { "linespoints" } else { "points" };
            let style = if line.x.len() > 60 && line.joined { "lines" } else { style };
            let title = if name.is_empty() { "notitle".to_owned() } else { format!("title {}", gnuplot_text(&name)) };
            plots.push(format!("'{id}.dat' index {index} using 1:2 with {style} lc {colour} {title}"));
            index += 1;
        }
    }
    plot(script, &plots);
}

fn gnuplot_grid(script: &mut String, data: &mut String, id: &str, grid: &FigureGrid) {
    let columns = grid.columns.labels.len().max(1);
    for row in grid.cells.chunks(columns) {
        let row: Vec<String> = row.iter().map(|v| v.map_or_else(|| "NaN".to_owned(), |v| v.to_string())).collect();
        let _ = writeln!(data, "{}", row.join(" "));
    }
    let places = |labels: &[String]| {
        let every = labels.len().div_ceil(30).max(1);
        let shown = labels.iter().enumerate().step_by(every);
        shown.map(|(at, label)| format!("{} {at}", gnuplot_text(label))).collect::<Vec<_>>().join(", ")
    };
    let _ = writeln!(
        script,
        "set xlabel {}\nset ylabel {}\nset cblabel {}\nset xtics rotate by -30 ({})\nset ytics ({})\nset yrange [*:*] reverse\n\
         set palette defined (0 '#440154', 1 '#3b528b', 2 '#21918c', 3 '#5ec962', 4 '#fde725')\nset cbrange [0:*]",
        gnuplot_text(&grid.columns.title),
        gnuplot_text(&grid.rows.title),
        gnuplot_text(&format!("{}, {}", grid.value, grid.unit)),
        places(&grid.columns.labels),
        places(&grid.rows.labels)
    );
    plot(script, &[format!("'{id}.dat' matrix with image notitle")]);
}

fn gnuplot_rows(script: &mut String, data: &mut String, id: &str, rows: &FigureRows) {
    for (at, row) in rows.rows.iter().enumerate() {
        let number = |v: Option<f64>| v.map_or_else(|| "NaN".to_owned(), |v| v.to_string());
        let _ = writeln!(
            data,
            "{at} {} {} {}",
            number(row.to),
            number(row.low.or(row.from)),
            number(row.high.or(row.to))
        );
    }
    let names: Vec<String> =
        rows.rows.iter().enumerate().map(|(at, row)| format!("{} {at}", gnuplot_text(&row.label))).collect();
    let _ = writeln!(
        script,
        "set xlabel {}\nset ytics ({})\nset yrange [{}:-0.5]",
        gnuplot_text(&rows.axis.title),
        names.join(", "),
        rows.rows.len() as f64 - 0.5
    );
    if let Some(neutral) = rows.neutral {
        let _ = writeln!(script, "set arrow 1 from first {neutral}, graph 0 to first {neutral}, graph 1 nohead dt 2");
    }
    plot(script, &[format!("'{id}.dat' using 2:1:3:4 with xerrorbars lc 1 pt 7 notitle")]);
}

fn plot(script: &mut String, plots: &[String]) {
    let _ =
        writeln!(script, "plot {}", if plots.is_empty() { "NaN notitle".to_owned() } else { plots.join(", \\\n  ") });
}

/// Returns a literal string for gnuplot: in single quotes, without gnuplot's markup.
fn gnuplot_text(text: &str) -> String {
    format!("'{}'", single_line(text).replace('\'', "''"))
}

fn single_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() || is_unprintable(c) { ' ' } else { c }).collect()
}
