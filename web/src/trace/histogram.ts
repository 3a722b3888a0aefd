// Distributions on logarithmic axes: gaps between frames, round trips.

import type { Bucket } from "../document";
import { h, svg } from "../dom";
import { integer, nanos, niceStep } from "../format";
import { drawToFit } from "../theme";

const LEFT = 52;
const RIGHT = 14;
const TOP = 12;
const BOTTOM = 36;

export interface Distribution {
  name: string;
  color: number;
  dashed?: boolean;
  buckets: readonly Bucket[];
}

interface Bounds {
  from: number;
  to: number;
  most: number;
  steps: number;
}

/** Counts per bucket over time, both logarithmic. What is below a nanosecond stands at the left edge. */
export function histogram(id: string, title: string, note: string, list: readonly Distribution[], bounds?: Bounds): HTMLElement | null {
  const drawn = list.filter((d) => d.buckets.length > 0);
  if (drawn.length === 0) return null;
  const holder = h("div.plot");
  const legend = drawn.map((d) => h("span.item", null, h("i", { class: `swatch c${d.color}${d.dashed ? " dashed" : ""}` }), h("span", null, `${d.name} (${integer(total(d.buckets))})`)));
  const figure = h("figure.panel.setchart", { id: `chart-${id}` }, h("figcaption", null, h("strong", { title: note }, title), h("span.legend", null, ...legend)), holder);
  drawToFit(holder, 560, (width) => picture(drawn, bounds ?? boundsOf(drawn), title, width));
  return figure;
}

const total = (buckets: readonly Bucket[]) => buckets.reduce((sum, b) => sum + b.count, 0);

/** Steps to the octave, so that buckets of every width look alike; every bucket where a distribution is narrow. */
const STEPS = 4;
const FINE_STEPS = 16;
/** Narrow: from the least to the greatest within this factor. */
const NARROW = 16;

interface Cell {
  at: number;
  count: number;
}

/** Counts by steps of the logarithm; -1 holds what is below a nanosecond. */
function cells(buckets: readonly Bucket[], steps: number): Cell[] {
  const sums = new Map<number, number>();
  for (const b of buckets) {
    const middle = (b.low_ns + b.high_ns) / 2;
    const at = middle < 1 ? -1 : Math.floor(Math.log2(middle) * steps);
    sums.set(at, (sums.get(at) ?? 0) + b.count);
  }
  return [...sums].map(([at, count]) => ({ at, count })).sort((a, b) => a.at - b.at);
}

const nsOf = (at: number, steps: number) => (at < 0 ? 0.5 : 2 ** (at / steps));

/** What holds every distribution of some lists. */
export function boundsOf(list: readonly Distribution[]): Bounds {
  const ends = list.flatMap((d) => (d.buckets.length > 0 ? [d.buckets[0]?.low_ns ?? 0, d.buckets.at(-1)?.high_ns ?? 0] : []));
  const steps = Math.max(...ends) < NARROW * Math.max(1, Math.min(...ends)) ? FINE_STEPS : STEPS;
  const all = list.flatMap((d) => cells(d.buckets, steps));
  const at = all.map((c) => c.at);
  const [first, last] = [Math.min(...at), Math.max(...at)];
  const room = steps === STEPS ? 0 : 4;
  return { from: nsOf(first < 0 ? first : Math.max(0, first - room), steps), to: nsOf(last + 1 + room, steps), most: Math.max(...all.map((c) => c.count)), steps };
}

function picture(list: readonly Distribution[], bounds: Bounds, title: string, width: number): SVGElement {
  const height = 230;
  const [right, bottom] = [width - RIGHT, height - BOTTOM];
  const [l0, l1] = [Math.log10(bounds.from), Math.log10(Math.max(bounds.to, bounds.from * 1.2))];
  const x = (ns: number) => LEFT + ((Math.log10(Math.max(ns, 0.5)) - l0) / (l1 - l0)) * (right - LEFT);
  const top = Math.log10(bounds.most * 1.3);
  const y = (count: number) => bottom - ((Math.log10(count) + 0.15) / (top + 0.15)) * (bottom - TOP);
  const decades = Array.from({ length: Math.ceil(top) }, (_, i) => 10 ** i);
  const marks: number[] = [];
  for (let p = Math.ceil(l0); p <= l1; p++) marks.push(10 ** p);
  if (marks.length < 2) {
    // Less than two powers of ten: round numbers between.
    const step = niceStep((bounds.to - bounds.from) / 5);
    marks.length = 0;
    for (let v = Math.ceil(bounds.from / step) * step; v <= bounds.to; v += step) marks.push(v);
  }
  const spaced = Math.max(1, Math.ceil((marks.length * 52) / (right - LEFT)));
  return svg(
    "svg.cells",
    { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": `${title}: ${list.map((d) => `${d.name}, ${integer(total(d.buckets))}, most at ${nanos(mode(d.buckets))}`).join("; ")}` },
    ...decades.map((count) => svg("g", null, svg("line.grid", { x1: LEFT, x2: right, y1: y(count), y2: y(count) }), svg("text.muted", { x: LEFT - 6, y: y(count) + 4, "text-anchor": "end" }, count >= 1e6 ? `${count / 1e6} M` : integer(count)))),
    ...marks.map((ns, i) => svg("g", null, svg("line.grid", { x1: x(ns), x2: x(ns), y1: TOP, y2: bottom }), i % spaced === 0 && x(ns) - LEFT > (bounds.from < 1 ? 22 : -1) ? svg("text.muted", { x: x(ns), y: bottom + 15, "text-anchor": "middle" }, nanos(ns)) : null)),
    bounds.from < 1 ? svg("text.muted", { x: LEFT, y: bottom + 15, "text-anchor": "middle" }, "0") : null,
    ...list.map((d) => svg("g", { class: `c${d.color}${d.dashed ? " dashed" : ""}` }, svg("path.mean", { d: outline(d, x, y, bottom, bounds.steps) }))),
  );
}

/** A staircase over the filled steps; where a step is empty the line goes down to the axis. */
function outline(d: Distribution, x: (ns: number) => number, y: (count: number) => number, bottom: number, steps: number): string {
  const parts: string[] = [];
  let before: number | null = null;
  const put = (c: string, px: number, py: number) => parts.push(`${c}${px.toFixed(1)} ${py.toFixed(1)}`);
  for (const { at, count } of cells(d.buckets, steps)) {
    const [l, r] = [x(nsOf(at, steps)), x(at < 0 ? 1 : nsOf(at + 1, steps))];
    if (before === null || l - before > 0.5) {
      if (before !== null) put("L", before, bottom);
      put(before === null ? "M" : "L", l, bottom);
    }
    put("L", l, y(count));
    put("L", r, y(count));
    before = r;
  }
  if (before !== null) put("L", before, bottom);
  return parts.join("");
}

function mode(buckets: readonly Bucket[]): number {
  const best = cells(buckets, FINE_STEPS).reduce<Cell | null>((a, b) => (a && a.count >= b.count ? a : b), null);
  return best ? (best.at < 0 ? 0 : Math.round(nsOf(best.at, FINE_STEPS))) : 0;
}
