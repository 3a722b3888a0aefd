// A figure over the varied key: the mean over seeds as a line, min to max as a band, each run as a dot.

import { h, svg } from "../dom";
import { fit, integer, nanos, niceStep, percent, rate, significant, ticks } from "../format";
import { drawToFit } from "../theme";
import { spreadOf, type Grouped, type Metric, type Spread } from "./groups";
import type { Mark } from "./reference";

const LEFT = 62;
const RIGHT = 16;
const TOP = 10;
const BOTTOM = 44;
/** Width of a letter of a tick's label, roughly. */
const LETTER = 6.4;

interface Point {
  x: number;
  label: string;
  spread: Spread;
}

interface Lined {
  name: string;
  index: number;
  points: Point[];
}

/** One chart; null when no cell has the figure, or all have 0. Several metrics are drawn as lines. */
export function setChart(grouped: Grouped, metrics: readonly Metric[], names: readonly string[], height: number, marks: readonly Mark[] = []): HTMLElement | null {
  const [metric] = metrics;
  if (!metric) return null;
  const lines = metrics.length > 1 ? metrics.map((m, i) => lined(grouped, m, 0, names[i] ?? "", i)) : grouped.lines.map((n, i) => lined(grouped, metric, i, n, i));
  const drawn = lines.filter((l) => l.points.length > 0);
  if (drawn.length === 0 || most(drawn) === 0) return null;
  const holder = h("div.plot");
  const figure = h(
    "figure.panel.setchart",
    { id: `chart-${metric.id}` },
    h("figcaption", null, h("strong", { title: metric.note }, metrics.length > 1 ? "Goodput of each flow" : metric.title), h("span.unit", null, unitOf(drawn, metric)), marks.length > 0 ? h("span.unit", null, "hollow: reported, or theory") : null, drawn.length > 1 ? legend(drawn) : null),
    holder,
  );
  drawToFit(holder, 620, (width) => picture(grouped, metric, drawn, width, height, marks));
  return figure;
}

function lined(grouped: Grouped, metric: Metric, line: number, name: string, index: number): Lined {
  const points = grouped.groups
    .filter((g) => g.line === line)
    .flatMap((g) => {
      const spread = spreadOf(g.cells, metric);
      return spread ? [{ x: g.x, label: grouped.x.labels[g.x] ?? "", spread }] : [];
    });
  return { name, index, points };
}

const most = (lines: readonly Lined[]) => Math.max(0, ...lines.flatMap((l) => l.points.map((p) => p.spread.most)));

function unitOf(lines: readonly Lined[], metric: Metric): string {
  if (metric.kind === "share") return "%";
  return [fit(most(lines), metric.kind).name, metric.unit].filter(Boolean).join(" ");
}

/** Formats a figure. */
export function figureText(value: number, metric: Pick<Metric, "kind">): string {
  if (metric.kind === "rate") return rate(value);
  if (metric.kind === "share") return percent(value);
  if (metric.kind === "time") return nanos(value);
  return Number.isInteger(value) || value >= 1000 ? integer(value) : significant(value);
}

function legend(lines: readonly Lined[]): HTMLElement {
  return h(
    "span.legend",
    null,
    ...lines.map((l) => h("span.item", null, h("i", { class: `swatch c${l.index % 8}${l.index >= 8 ? " dashed" : ""}` }), h("span", null, l.name))),
  );
}

function picture(grouped: Grouped, metric: Metric, lines: readonly Lined[], width: number, height: number, marks: readonly Mark[]): SVGElement {
  const { x: axis } = grouped;
  const right = width - RIGHT;
  const bottom = height - BOTTOM;
  const place = placer(grouped, lines.length, width);
  const top = Math.max(most(lines), ...marks.map((m) => m.value));
  const unit = metric.kind === "share" ? 0.01 : fit(top, metric.kind).size;
  const step = top > 0 ? niceStep(top / unit / (height > 260 ? 5 : 3)) * unit : unit;
  const whole = metric.kind === "count" ? Math.max(1, Math.ceil(step)) : step;
  const reach = Math.max(whole, Math.ceil((top * 1.02) / whole) * whole);
  const level = (value: number) => bottom - ((bottom - TOP) * value) / reach;
  const values = Array.from({ length: Math.round(reach / whole) + 1 }, (_, i) => i * whole);
  const texts = ticks(values, unit);
  const joined = axis.kind !== "category";
  return svg(
    "svg.cells",
    { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": inWords(metric, axis.name, lines) },
    ...values.map((v, i) =>
      svg("g", null, svg("line.grid", { x1: LEFT, x2: right, y1: level(v), y2: level(v) }), svg("text.muted", { x: LEFT - 6, y: level(v) + 4, "text-anchor": "end" }, texts[i] ?? "")),
    ),
    ...columnLabels(grouped, place, bottom, LEFT, right),
    svg("text.muted", { x: (LEFT + right) / 2, y: height - 6, "text-anchor": "middle" }, axis.name ? `${axis.name}${axis.log ? " (logarithmic)" : ""}` : ""),
    ...lines.map((l, i) => drawLine(l, metric, joined, (p) => place(p.x, i), level)),
    ...lines.map((l, i) => drawMarks(marks.filter((m) => m.line === l.index), l.index, joined, (m) => place(m.x, i), level)),
  );
}

/** Where the value with an index stands, for one of several lines. */
function placer(grouped: Grouped, lines: number, width: number): (index: number, line: number) => number {
  const { at, log, kind } = grouped.x;
  const [from, to] = [LEFT, width - RIGHT];
  if (kind === "category") {
    const room = (to - from) / Math.max(1, at.length);
    const apart = Math.min(22, (room * 0.7) / Math.max(1, lines));
    return (index, line) => from + room * (index + 0.5) + apart * (line - (lines - 1) / 2);
  }
  const scale = (v: number) => (log ? Math.log(v) : v);
  const [least, largest] = [scale(at[0] as number), scale(at.at(-1) as number)];
  const inset = 18;
  return (index) => from + inset + ((to - from - 2 * inset) * (scale(at[index] as number) - least)) / (largest - least || 1);
}

function columnLabels(grouped: Grouped, place: (index: number, line: number) => number, bottom: number, left: number, right: number): SVGElement[] {
  const { labels, kind, at } = grouped.x;
  const room = kind === "category" ? Math.max(3, Math.floor((right - left) / at.length / LETTER)) : 30;
  const middle = (i: number) => (kind === "category" ? left + ((right - left) / at.length) * (i + 0.5) : place(i, 0));
  let free = -Infinity;
  return labels.flatMap((full, i) => {
    const text = full.length > room ? `${full.slice(0, room - 1)}…` : full;
    const half = (text.length * LETTER) / 2;
    const centre = middle(i);
    const mark = svg("line.grid", { x1: centre, x2: centre, y1: bottom, y2: bottom + 4 });
    if (centre - half < free) return [mark];
    free = centre + half + 4;
    return [mark, svg("text.muted", { x: centre, y: bottom + 17, "text-anchor": "middle" }, svg("title", null, full), text)];
  });
}

function drawLine(line: Lined, metric: Metric, joined: boolean, at: (p: Point) => number, level: (v: number) => number): SVGElement {
  const { points } = line;
  const colour = `c${line.index % 8}${line.index >= 8 ? " dashed" : ""}`;
  const spread = points.some((p) => p.spread.values.length > 1);
  const path = (pick: (s: Spread) => number, list: readonly Point[]) => list.map((p) => `${at(p).toFixed(1)} ${level(pick(p.spread)).toFixed(1)}`).join("L");
  const band = joined && spread && points.length > 1;
  const lead = line.name ? `${line.name}, ` : "";
  return svg(
    `g.${colour.replace(" ", ".")}` as "g",
    null,
    band ? svg("path.band", { d: `M${path((s) => s.most, points)}L${path((s) => s.least, [...points].reverse())}Z` }) : null,
    joined && points.length > 1 ? svg("path.mean", { d: `M${path((s) => s.mean, points)}` }) : null,
    ...(joined && band ? [] : spread ? points.map((p) => svg("line.extent", { x1: at(p), x2: at(p), y1: level(p.spread.least), y2: level(p.spread.most) })) : []),
    ...points.flatMap((p) =>
      p.spread.values.length < 2
        ? []
        : p.spread.values.map((v) =>
            svg("circle.run", { cx: at(p), cy: level(v.value), r: 2.4 }, svg("title", null, `${lead}${p.label}, seed ${v.seed}: ${figureText(v.value, metric)}`)),
          ),
    ),
    ...points.map((p) => svg("circle.at", { cx: at(p), cy: level(p.spread.mean), r: 4 }, svg("title", null, `${lead}${p.label}: ${pointText(p.spread, metric)}`))),
  );
}

/** Reported values: hollow dots, joined by a dashed line where there are several. */
function drawMarks(marks: readonly Mark[], index: number, joined: boolean, at: (m: Mark) => number, level: (v: number) => number): SVGElement | null {
  if (marks.length === 0) return null;
  const sorted = [...marks].sort((a, b) => a.x - b.x);
  return svg(
    `g.c${index % 8}` as "g",
    null,
    joined && sorted.length > 1 ? svg("path.theory", { d: `M${sorted.map((m) => `${at(m).toFixed(1)} ${level(m.value).toFixed(1)}`).join("L")}` }) : null,
    ...sorted.map((m) => svg("circle.reported", { cx: at(m), cy: level(m.value), r: 5 }, svg("title", null, m.text))),
  );
}

/** Mean and extent in words. */
export function pointText(spread: Spread, metric: Pick<Metric, "kind">): string {
  const one = spread.values.length < 2;
  const mean = figureText(spread.mean, metric);
  return one ? mean : `mean ${mean}, ${figureText(spread.least, metric)} to ${figureText(spread.most, metric)}, ${spread.values.length} values`;
}

function inWords(metric: Metric, over: string, lines: readonly Lined[]): string {
  const parts = lines.slice(0, 6).map((l) => `${l.name}${l.name ? ": " : ""}${l.points.slice(0, 12).map((p) => `${p.label} ${figureText(p.spread.mean, metric)}`).join(", ")}`);
  return `${metric.title}${over ? ` over ${over}` : ""}. ${parts.join("; ")}.`;
}
