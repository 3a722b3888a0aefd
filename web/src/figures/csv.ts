// The values of one figure as CSV, in base units, as crates/report/src/tables.rs writes those of all.

import type { Figure } from "../document";
import { place } from "./axis";

type Cell = string | number | null | undefined;

export function figureCsv(figure: Figure): string {
  const { drawing } = figure;
  const rows: Cell[][] = [["panel", "series", "x", "value", "low", "high", "runs", "unit"]];
  if ("chart" in drawing) {
    const { x, y, series, panels } = drawing.chart;
    const across = (value: number): Cell => (x.scale === "category" || x.scale === "date" ? place(x, value) : value);
    for (const panel of panels) {
      for (const l of panel.lines) {
        l.x.forEach((value, i) => rows.push([panel.title, series[l.series], across(value), l.y[i], l.low?.[i], l.high?.[i], l.runs?.[i], y.unit]));
      }
    }
  } else if ("grid" in drawing) {
    const { grid } = drawing;
    const columns = Math.max(1, grid.columns.labels?.length ?? 1);
    grid.cells.forEach((value, i) =>
      rows.push(["", grid.rows.labels?.[Math.floor(i / columns)], grid.columns.labels?.[i % columns], value, grid.low?.[i], grid.high?.[i], grid.runs?.[i], grid.unit]),
    );
  } else {
    for (const row of drawing.rows.rows) rows.push(["", "", row.label, row.to, row.low ?? row.from, row.high, null, drawing.rows.axis.unit]);
  }
  return `${rows.map((row) => row.map(quoted).join(",")).join("\r\n")}\r\n`;
}

function quoted(value: Cell): string {
  if (value === null || value === undefined) return "";
  if (typeof value === "number") return String(value);
  // A spreadsheet takes some texts for formulas.
  const safe = /^[=+@\t\r]/.test(value) || (/^-/.test(value) && Number.isNaN(Number(value))) ? `'${value}` : value;
  return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
