// Waterfalls and intervals under each other.

import type { FigureRow, FigureRows } from "../document";
import { svg } from "../dom";
import { along, upwards, type Laid } from "./axis";
import { color, line, picture, text, wrapped, type Palette } from "./paint";
import type { Drawn } from "./panel";

const NARROW = 620;
const LINE = 16;

export function drawRows(rows: FigureRows, width: number, palette: Palette, label: string): Drawn {
  const narrow = width < NARROW;
  const words = narrow ? width - 8 : Math.min(420, width * 0.45);
  const [from, to] = [narrow ? 30 : words + 20, width - 20];
  const values = [...rows.rows.flatMap((r) => [r.from, r.to, r.low, r.high]), rows.neutral].filter((v): v is number => typeof v === "number");
  const axis = rows.rows.some((r) => typeof r.from === "number") ? upwards(rows.axis, values, from, to) : along(rows.axis, values, from, to);
  const parts: SVGElement[] = [];
  const marks: SVGElement[] = [];
  let y = 4;
  for (const row of rows.rows) {
    const top = y;
    y += 5;
    for (const [content, bold, fill] of [[row.label, true, palette.text], [row.text, false, palette.text], [row.detail ?? "", false, palette.muted]] as const) {
      for (const part of wrapped(content, bold ? words * 0.92 : words).slice(0, 3)) {
        y += LINE;
        parts.push(text(2, y - 4, fill, "start", part, bold));
      }
    }
    const middle = narrow ? y + 12 : (top + y + 5) / 2;
    if (narrow) y += 22;
    y += 5;
    marks.push(...mark(row, axis, middle, palette, rows.neutral));
    parts.push(line(0, y, width, y, palette.grid));
  }
  const ticks = axis.ticks.flatMap((tick) => {
    const at = axis.at(tick.value);
    return at === null ? [] : [line(at, 4, at, y, palette.grid), text(at, y + 15, palette.muted, "middle", tick.label)];
  });
  const neutral = typeof rows.neutral === "number" ? axis.at(rows.neutral) : null;
  return {
    element: picture(
      width, y + 40, label,
      ...(narrow ? ticks.filter((_, i) => i % 2 === 1) : ticks),
      ...parts,
      neutral === null || narrow ? null : line(neutral, 4, neutral, y, palette.text, 1.2, "4 3"),
      ...marks,
      text((from + to) / 2, y + 32, palette.muted, "middle", axis.title),
    ),
    spots: [],
  };
}

function mark(row: FigureRow, axis: Laid, middle: number, palette: Palette, neutral: number | null | undefined): SVGElement[] {
  const fill = row.better === true ? color(palette, 0) : row.better === false ? color(palette, 1) : palette.muted;
  const at = (v: number | null | undefined) => (typeof v === "number" ? axis.at(v) : null);
  const [from, to, low, high] = [at(row.from), at(row.to), at(row.low), at(row.high)];
  if (to === null) return [text((at(neutral) ?? axis.from) + 8, middle + 4, palette.muted, "start", "not measured")];
  if (from !== null) return [svg("rect.bar", { x: Math.min(from, to), y: middle - 9, width: Math.max(1.5, Math.abs(to - from)), height: 18, fill })];
  const parts: SVGElement[] = [];
  if (low !== null && high !== null) {
    parts.push(line(low, middle, high, middle, fill, 2), line(low, middle - 5, low, middle + 5, fill, 2), line(high, middle - 5, high, middle + 5, fill, 2));
  }
  return [...parts, svg("circle.at", { cx: to, cy: middle, r: 5, fill })];
}
