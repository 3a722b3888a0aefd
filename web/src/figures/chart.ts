// Lines, bands and dots; several charts beside each other.

import type { FigureAxis, FigureChart, FigureLine, FigureMark } from "../document";
import { svg } from "../dom";
import { across, place, upwards, type Laid } from "./axis";
import { color, cut, dash, LETTER, line, picture, TEXT, text, type Palette } from "./paint";
import { quantity } from "./quantity";
import type { Drawn, Spot } from "./panel";

/** Room for the labels of ticks, at least. */
const LEFT = 62;
const RIGHT = 12;
const BELOW = 42;
/** Names of places that do not fit are listed below, this many of them. */
const LISTED = 12;
/** Dots stand beside the bar of an interval, pixels. */
const BESIDE = 9;
/** From this many points on a line is drawn without points. */
const MANY = 60;

interface Plot {
  x: Laid;
  y: Laid;
  lines: FigureLine[];
}

/** Draws the chart; lines that are not `shown` are left out and leave the axes as they are. */
export function drawChart(chart: FigureChart, width: number, palette: Palette, shown: (series: number) => boolean, label: string): Drawn {
  const all = chart.panels.flatMap((p) => p.lines);
  const marks = chart.marks ?? [];
  const xs = [...all.flatMap((l) => l.x), ...marks.flatMap((m) => m.x ?? [])];
  const ys = [...all.flatMap((l) => [...l.y, ...(l.low ?? []), ...(l.high ?? []), ...(l.dots ?? []).map((d) => d[1] ?? null)]), ...marks.map((m) => m.y)];
  const values = ys.filter((v): v is number => typeof v === "number");
  const columns = Math.min(chart.panels.length, chart.panels.length === 4 ? 2 : 3, Math.max(1, Math.floor(width / 300)));
  const part = width / Math.max(1, columns);
  const longest = Math.max(0, ...upwards(chart.y, values, 1, 0).ticks.map((t) => t.label.length));
  const gutter = Math.max(LEFT, longest * LETTER + 34);
  const room = (part - gutter - RIGHT) / Math.max(1, chart.x.labels?.length ?? 1);
  const listed = chart.x.scale === "category" && (chart.x.labels ?? []).some((l) => l.length * LETTER > room - 4);
  const below = BELOW + (listed && columns === 1 ? 16 * Math.min(LISTED, chart.x.labels?.length ?? 0) : 0);
  const height = columns === 1 && chart.panels.length === 1 ? Math.min(320, Math.max(220, width * 0.4)) : 180;
  const head = chart.panels.some((p) => p.title) ? 24 : 10;
  const parts: (SVGElement | null)[] = [];
  const plots: Plot[] = [];
  chart.panels.forEach((panel, i) => {
    const [left, top] = [part * (i % columns), Math.floor(i / columns) * (head + height + below)];
    const x = across(chart.x, xs, left + gutter, left + part - RIGHT);
    const y = upwards(chart.y, values, top + head + height, top + head);
    parts.push(panel.title ? text(left + 4, top + 14, palette.text, "start", cut(panel.title, part - 8), true) : null);
    parts.push(...frame(chart.x, x, y, palette, left, listed && columns === 1));
    parts.push(...drawMarks(marks, x, y, palette));
    const lines = panel.lines.filter((l) => shown(l.series));
    for (const l of lines) parts.push(band(l, x, y, palette));
    for (const l of lines) parts.push(...drawLine(l, x, y, palette));
    plots.push({ x, y, lines });
  });
  const rows = Math.ceil(chart.panels.length / columns);
  return {
    element: picture(width, rows * (head + height + below), label, ...parts),
    spots: spots(chart, plots),
  };
}

function frame(axis: FigureAxis, x: Laid, y: Laid, palette: Palette, left: number, listed: boolean): SVGElement[] {
  const parts: SVGElement[] = [];
  for (const tick of y.ticks) {
    const at = y.at(tick.value);
    if (at === null) continue;
    parts.push(line(x.from, at, x.to, at, palette.grid), text(x.from - 6, at + 4, palette.muted, "end", tick.label));
  }
  const middle = (y.from + y.to) / 2;
  parts.push(
    svg("text", { x: left + 11, y: middle, fill: palette.muted, "text-anchor": "middle", "font-size": TEXT, transform: `rotate(-90 ${left + 11} ${middle})` }, cut(y.title, y.from - y.to + 30)),
    line(x.from, y.from, x.to, y.from, palette.text),
  );
  let free = Number.NEGATIVE_INFINITY;
  x.ticks.forEach((tick, i) => {
    const at = x.at(tick.value);
    if (at === null) return;
    parts.push(line(at, y.from, at, y.from + 4, palette.text));
    const label = listed ? String(i + 1) : cut(tick.label, (x.to - x.from) / 2);
    const half = (label.length * LETTER) / 2;
    if (at - half < free) return;
    free = at + half + 5;
    parts.push(text(at, y.from + 17, palette.muted, "middle", label));
  });
  parts.push(text((x.from + x.to) / 2, y.from + 34, palette.muted, "middle", x.title));
  if (listed) {
    const names = axis.labels ?? [];
    names.slice(0, LISTED).forEach((name, i) => {
      const rest = names.length - LISTED + 1;
      const label = i + 1 === LISTED && rest > 1 ? `… ${rest} more in the CSV` : `${i + 1}: ${name}`;
      parts.push(text(x.from, y.from + 34 + 16 * i, palette.muted, "start", cut(label, x.to - x.from)));
    });
  }
  return parts;
}

/** Marks, each with its label where that covers no other. */
function drawMarks(marks: readonly FigureMark[], x: Laid, y: Laid, palette: Palette): SVGElement[] {
  const taken: [number, number, number][] = [];
  const fits = (from: number, to: number, at: number) => {
    if (taken.some(([a, b, level]) => from < b && to > a && Math.abs(level - at) < 13)) return false;
    taken.push([from, to, at]);
    return true;
  };
  return [...marks].sort((a, b) => b.y - a.y).flatMap((mark) => {
    const at = y.at(mark.y);
    if (at === null) return [];
    const across = typeof mark.x === "number" ? x.at(mark.x) : null;
    if (across === null) {
      const label = cut(mark.label, x.to - x.from);
      const shown = fits(x.from, x.from + label.length * LETTER + 6, at - 5);
      return [line(x.from, at, x.to, at, palette.text, 1.2, "5 3"), ...(shown ? [text(x.from + 6, at - 5, palette.text, "start", label)] : [])];
    }
    const diamond = svg("path.mark", { d: `M${across - 5} ${at}L${across} ${at - 5}L${across + 5} ${at}L${across} ${at + 5}Z`, fill: palette.text }, svg("title", null, mark.label));
    const length = mark.label.length * LETTER + 8;
    if (across + length <= x.to && fits(across - 4, across + length, at)) return [diamond, text(across + 8, at + 4, palette.text, "start", mark.label)];
    if (across - length >= x.from && fits(across - length, across + 4, at)) return [diamond, text(across - 8, at + 4, palette.text, "end", mark.label)];
    return [diamond];
  });
}

const p = (v: number) => v.toFixed(1);

/** The band between low and high, interrupted where there is none. */
function band(l: FigureLine, x: Laid, y: Laid, palette: Palette): SVGElement | null {
  if (!l.joined || l.x.length < 2) return null;
  let d = "";
  let there: string[] = [];
  let back: string[] = [];
  const close = () => {
    if (there.length > 1) d += `M${there.join("L")}L${back.reverse().join("L")}Z`;
    there = [];
    back = [];
  };
  l.x.forEach((value, i) => {
    const [low, high, at] = [l.low?.[i], l.high?.[i], x.at(value)];
    const [a, b] = [typeof low === "number" ? y.at(low) : null, typeof high === "number" ? y.at(high) : null];
    if (at === null || a === null || b === null) return close();
    there.push(`${p(at)} ${p(a)}`);
    back.push(`${p(at)} ${p(b)}`);
  });
  close();
  return d ? svg("path", { d, fill: color(palette, l.series), "fill-opacity": 0.2 }) : null;
}

function drawLine(l: FigureLine, x: Laid, y: Laid, palette: Palette): (SVGElement | null)[] {
  const stroke = color(palette, l.series);
  const thin = l.x.length > MANY;
  const points = l.x.map((value, i) => {
    const [at, level] = [x.at(value), typeof l.y[i] === "number" ? y.at(l.y[i] as number) : null];
    return at === null || level === null ? null : ([at, level] as const);
  });
  // Many small circles as one path: a point of no length with round ends.
  const dots = (l.dots ?? []).flatMap(([a, b]) => {
    const [at, level] = [x.at(a ?? Number.NaN), y.at(b ?? Number.NaN)];
    return at === null || level === null ? [] : [`M${p(l.joined ? at : at + BESIDE)} ${p(level)}h0`];
  });
  let d = "";
  let open = false;
  for (const point of points) {
    if (point) d += `${open ? "L" : "M"}${p(point[0])} ${p(point[1])}`;
    open = point !== null;
  }
  const bars = points.flatMap((point, i) => {
    const [low, high] = [l.low?.[i], l.high?.[i]];
    if (!point || typeof low !== "number" || typeof high !== "number" || (l.joined && l.x.length > 1)) return [];
    return [line(point[0], y.at(low) ?? 0, point[0], y.at(high) ?? 0, stroke, 2)];
  });
  return [
    dots.length > 0 ? svg("path.dots", { d: dots.join(""), stroke, "stroke-opacity": 0.45, "stroke-width": 4, "stroke-linecap": "round" }) : null,
    l.joined && d ? svg("path.line", { d, fill: "none", stroke, "stroke-width": thin ? 1.3 : 2, "stroke-linejoin": "round", "stroke-dasharray": dash(l.series) }) : null,
    ...bars,
    ...(thin ? [] : points.map((point) => (point ? svg("circle.at", { cx: point[0], cy: point[1], r: 4, fill: stroke }) : null))),
  ];
}

/** Places to point at: each x of each panel, with the lines' values. */
function spots(chart: FigureChart, plots: readonly Plot[]): Spot[] {
  return plots.flatMap(({ x, y, lines }, panel) => {
    const rows = new Map<number, { name: string; series: number; value: string; sort: number }[]>();
    for (const l of lines) {
      l.x.forEach((value, i) => {
        const level = l.y[i];
        const list = rows.get(value) ?? rows.set(value, []).get(value);
        const [low, high, runs] = [l.low?.[i], l.high?.[i], l.runs?.[i]];
        const between = typeof low === "number" && typeof high === "number" ? ` (${quantity(low, chart.y.unit)} to ${quantity(high, chart.y.unit)})` : "";
        const n = typeof runs === "number" ? `, n = ${runs}` : "";
        list?.push({ name: chart.series[l.series] ?? "", series: l.series, value: `${quantity(level, chart.y.unit)}${between}${n}`, sort: level ?? Number.NEGATIVE_INFINITY });
      });
    }
    return [...rows.entries()]
      .sort(([a], [b]) => a - b)
      .flatMap(([value, list]): Spot[] => {
        const at = x.at(value);
        if (at === null) return [];
        const title = [chart.panels[panel]?.title, `${chart.x.title ? `${chart.x.title} ` : ""}${place(chart.x, value)}`].filter(Boolean).join(", ");
        return [{ x: at, y: (y.from + y.to) / 2, box: [x.from, y.to, x.to, y.from], cross: "column", title, rows: list.sort((a, b) => b.sort - a.sort) }];
      });
  });
}
