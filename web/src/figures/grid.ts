// Heat maps and matrices.

import type { FigureGrid } from "../document";
import { svg } from "../dom";
import { integer, percent } from "../format";
import type { Drawn, Spot } from "./panel";
import { cut, heat, LETTER, line, picture, text, type Palette } from "./paint";
import { quantity } from "./quantity";

/** Cells that are large enough carry their value. */
const TEXT_WIDTH = 56;
const TEXT_HEIGHT = 20;
/** Steps of colour: cells of one step are one path, so that ten thousand cells are a few elements. */
const STEPS = 128;

export function drawGrid(grid: FigureGrid, width: number, palette: Palette, label: string): Drawn {
  const rows = Math.max(1, grid.rows.labels?.length ?? 0);
  const columns = Math.max(1, grid.columns.labels?.length ?? 0);
  const names = grid.rows.labels ?? [];
  const longest = Math.min(Math.max(...names.map((n) => n.length), 1) * LETTER, width * 0.3, 220);
  const left = longest + 30;
  const most = (grid.shares?.length ?? 0) > 0 ? 40 : 30;
  const [w, h] = [Math.min(120, (width - left - 4) / columns), Math.min(most, Math.max(3, Math.min(560, width) / rows))];
  const top = 40;
  const shown = grid.cells.filter((v): v is number => typeof v === "number");
  const [low, high] = [shown.reduce((a, b) => Math.min(a, b), 0), shown.reduce((a, b) => Math.max(a, b), Number.NEGATIVE_INFINITY)];
  const share = (v: number) => (high > low ? (v - low) / (high - low) : 0.5);
  const gap = w > 12 && h > 12 ? 1 : 0;
  const missing = new Map((grid.missing ?? []).map((m) => [m.cell, m.why]));
  const paths = new Map<string, string[]>();
  const texts: SVGElement[] = [];
  const marks: SVGElement[] = [];
  const spots: Spot[] = [];
  grid.cells.forEach((value, at) => {
    const [x, y] = [left + w * (at % columns), top + h * Math.floor(at / columns)];
    const rect = `M${(x + gap).toFixed(1)} ${(y + gap).toFixed(1)}h${(w - 2 * gap).toFixed(1)}v${(h - 2 * gap).toFixed(1)}h${(2 * gap - w).toFixed(1)}Z`;
    const put = (fill: string) => (paths.get(fill) ?? paths.set(fill, []).get(fill))?.push(rect);
    const [middle, base] = [x + w / 2, y + h / 2 + 4];
    if (typeof value === "number") {
      const { fill, ink } = heat(Math.round(share(value) * STEPS) / STEPS);
      put(fill);
      const limit = grid.shares?.[at];
      if (w >= TEXT_WIDTH && h >= TEXT_HEIGHT) {
        const two = typeof limit === "number" && h >= 34;
        texts.push(text(middle, two ? base - 7 : base, ink, "middle", cut(quantity(value, grid.unit), w - 4)));
        if (two) texts.push(text(middle, base + 8, ink, "middle", percent(limit)));
      }
    } else if (missing.has(at)) {
      put(palette.grid);
      if (w >= 16 && h >= 12) texts.push(text(middle, base, palette.text, "middle", "–"));
      else marks.push(line(x, y + h, x + w, y, palette.muted, 0.7));
    }
    spots.push({
      x: middle,
      y: y + h / 2,
      box: [x, y, x + w, y + h],
      cross: "cell",
      title: `${grid.rows.title} ${names[Math.floor(at / columns)] ?? ""}, ${grid.columns.title} ${grid.columns.labels?.[at % columns] ?? ""}`,
      rows: [{ name: grid.value, series: null, value: said(grid, at, missing.get(at)), sort: 0 }],
    });
  });
  const bottom = top + h * rows;
  return {
    element: picture(
      width,
      bottom + 34,
      label,
      text(left, 13, palette.muted, "start", cut(`${grid.columns.title} →`, width - left)),
      ...columnNames(grid.columns.labels ?? [], left, w, top, palette),
      ...rowNames(names, left, h, top, longest, palette),
      svg("text", { x: 11, y: (top + bottom) / 2, fill: palette.muted, "font-size": 12, "text-anchor": "middle", transform: `rotate(-90 11 ${(top + bottom) / 2})` }, cut(grid.rows.title, Math.max(110, bottom - top))),
      ...[...paths].map(([fill, parts]) => svg("path.cellfill", { d: parts.join(""), fill, "shape-rendering": "crispEdges" })),
      ...marks,
      ...texts,
      ...key(grid, [low, high], shown.length > 0, left, bottom + 12, palette),
    ),
    spots,
    columns,
  };
}

function said(grid: FigureGrid, at: number, why: string | undefined): string {
  const value = grid.cells[at];
  if (typeof value !== "number") return why ?? "not part of the design";
  const [low, high, runs, share] = [grid.low?.[at], grid.high?.[at], grid.runs?.[at], grid.shares?.[at]];
  return [
    quantity(value, grid.unit),
    typeof low === "number" && typeof high === "number" ? ` (${quantity(low, grid.unit)} to ${quantity(high, grid.unit)})` : "",
    typeof share === "number" ? `, ${percent(share)} of the limit` : "",
    typeof runs === "number" ? `, n = ${integer(runs)}` : "",
  ].join("");
}

function columnNames(labels: readonly string[], left: number, w: number, top: number, palette: Palette): SVGElement[] {
  let free = Number.NEGATIVE_INFINITY;
  return labels.flatMap((full, i) => {
    const label = cut(full, Math.max(40, w));
    const [middle, half] = [left + w * (i + 0.5), (label.length * LETTER) / 2];
    if (middle - half < free) return [];
    free = middle + half + 4;
    return [text(middle, top - 6, palette.text, "middle", label)];
  });
}

function rowNames(labels: readonly string[], left: number, h: number, top: number, longest: number, palette: Palette): SVGElement[] {
  let free = Number.NEGATIVE_INFINITY;
  return labels.flatMap((full, i) => {
    const at = top + h * (i + 0.5) + 4;
    if (at - 12 < free) return [];
    free = at;
    return [text(left - 6, at, palette.text, "end", cut(full, longest))];
  });
}

function key(grid: FigureGrid, [low, high]: [number, number], any: boolean, left: number, y: number, palette: Palette): SVGElement[] {
  if (!any) return [text(left, y + 10, palette.muted, "start", "No value.")];
  const first = quantity(low, grid.unit);
  const start = left + first.length * LETTER + 8;
  const better = grid.better ? ` (${grid.better} is better)` : "";
  return [
    text(left, y + 10, palette.muted, "start", first),
    ...Array.from({ length: 30 }, (_, i) => svg("rect", { x: start + i * 4, y, width: 4.5, height: 12, fill: heat(i / 29).fill })),
    text(start + 128, y + 10, palette.muted, "start", `${quantity(high, grid.unit)}${better}`),
  ];
}
