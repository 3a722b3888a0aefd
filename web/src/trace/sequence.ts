// The time-sequence graph, with tcptrace's conventions.

import { bytes, integer, nanos } from "../format";
import type { Colors } from "../theme";
import { line, moment, type ChartOptions, type LegendItem, type Pen, type Scene } from "./chart";
import type { Columns, Extent, Model } from "./model";
import { isAck, isAgain, isLate, KIND, KIND_WORDS, lowerBound, sacksOf } from "./records";

/** Maximum number of packets drawn individually; more are aggregated by columns of pixels. */
const SINGLE = 3_000;
/** A bucket wider than this many pixels is too coarse where single packets are kept. */
const COARSE = 3;

export type Fit = "all" | "data" | "acks";

const purple = (c: Colors) => c.streams[3] as string;
const green = (c: Colors) => c.streams[2] as string;
const yellow = (c: Colors) => c.streams[4] as string;
const orange = (c: Colors) => c.streams[1] as string;

export const SEQUENCE_LEGEND = (): LegendItem[] => [
  { id: "data", label: "data", color: (c) => c.text, on: true, title: "New data, from its first sequence number to its last" },
  { id: "again", label: "R retransmit", color: (c) => c.bad, on: true, title: "Retransmissions" },
  { id: "late", label: "O reordered", color: orange, on: true, title: "Reordered (O) or duplicated (D) in the network" },
  { id: "ack", label: "acknowledged", color: green, on: true, title: "Acknowledged data; a tick for each duplicate ACK, 3 at the third" },
  { id: "edge", label: "receive window", color: yellow, on: true, title: "Upper edge of the receive window" },
  { id: "sack", label: "S SACK", color: purple, on: true, title: "SACK blocks" },
];

export function sequenceChart(model: Model, id: string, title: string, height: number, fit: () => Fit): ChartOptions {
  return {
    id,
    title,
    note: "Sequence numbers relative to the first at the tap",
    height,
    kind: "size",
    legend: SEQUENCE_LEGEND(),
    based: false,
    scene: (from, to, width, on) => scene(model, from, to, width, on, fit()),
    at: (t, span) => near(model, t, span),
  };
}

function scene(model: Model, from: number, to: number, width: number, on: (id: string) => boolean, fit: Fit): Scene {
  const columns = model.columns(from, to, width);
  const { packets, all } = model.density(from, to);
  const held = model.held(from);
  const single = all && packets <= Math.max(SINGLE, width * 4);
  const coarse = !all && (model.series.bucket_ns / 1e9 / (to - from)) * width > COARSE;
  const [low, high] = scaleOf(columns, held, on, fit);
  return {
    low,
    high,
    words: inWords(columns, from, to),
    note: all ? (single ? `every packet, ${integer(packets)} in view` : "") : `in buckets of ${nanos(model.series.bucket_ns)}${coarse ? ", and individual packets" : ""}`,
    draw: (pen) => {
      if (coarse) shadeMissing(pen, model, from, to);
      if (!single) {
        drawHeld(pen, columns, held, on);
        drawColumns(pen, columns, on);
      }
      if (single || coarse) {
        for (const span of model.spans(from, to)) drawSingle(pen, model, span.first, span.last, on, single ? held : null);
      }
    },
  };
}

/** The range of the scale. It includes the window's edge only if that is not far above the data. */
function scaleOf(columns: Columns, held: { ack: number; edge: number }, on: (id: string) => boolean, fit: Fit): [number, number] {
  const range = new Range();
  const { data, again, late, ack, edge } = columns;
  if (fit !== "acks") range.add(on("data") ? data : null);
  if (fit === "all") for (const extent of [on("again") ? again : null, on("late") ? late : null]) range.add(extent);
  if (fit !== "data" && on("ack")) {
    range.add(ack);
    if (columns.counts.acks === 0) range.put(held.ack);
  }
  if (fit === "all" && on("edge")) {
    const above = new Range();
    above.add(edge);
    const span = range.high - range.low;
    if (above.low === above.low && (!(span > 0) || above.high - range.high < span)) range.put(above.high);
  }
  return [range.low, range.high];
}

class Range {
  low = NaN;
  high = NaN;
  put(value: number): void {
    if (value !== value) return;
    if (!(this.low <= value)) this.low = value;
    if (!(this.high >= value)) this.high = value;
  }
  add(extent: Extent | null): void {
    if (!extent) return;
    for (const v of extent.low) this.put(v);
    for (const v of extent.high) this.put(v);
  }
}

/** The lines of what is acknowledged and of the window, held from column to column. */
function drawHeld(pen: Pen, columns: Columns, held: { ack: number; edge: number }, on: (id: string) => boolean): void {
  for (const [id, extent, first, color] of [
    ["edge", columns.edge, held.edge, yellow(pen.c)],
    ["ack", columns.ack, held.ack, green(pen.c)],
  ] as const) {
    if (!on(id)) continue;
    const { g, y, left } = pen;
    g.strokeStyle = color;
    g.lineWidth = 1.25;
    g.beginPath();
    let value = first;
    if (value === value) g.moveTo(left, y(value));
    for (let x = 0; x < pen.width; x++) {
      const [l, h] = [extent.low[x] as number, extent.high[x] as number];
      if (l !== l) continue;
      const px = left + x + 0.5;
      if (value === value) g.lineTo(px, y(value));
      else g.moveTo(px, y(l));
      g.lineTo(px, y(l));
      g.lineTo(px, y(h));
      value = h;
    }
    if (value === value) g.lineTo(pen.right, y(value));
    g.stroke();
  }
}

function drawColumns(pen: Pen, columns: Columns, on: (id: string) => boolean): void {
  const { g, c, left, y } = pen;
  const bars = (extent: Extent, color: string, wide: number, least: number) => {
    g.fillStyle = color;
    for (let x = 0; x < pen.width; x++) {
      const [l, h] = [extent.low[x] as number, extent.high[x] as number];
      if (l !== l) continue;
      const [top, bottom] = [y(h), y(l)];
      const tall = Math.max(least, bottom - top);
      g.fillRect(left + x - (wide - 1) / 2, (top + bottom - tall) / 2, wide, tall);
    }
  };
  if (on("sack")) bars(columns.sack, purple(c), 1, 2);
  if (on("data")) bars(columns.data, c.text, 1, 1.5);
  if (on("late")) bars(columns.late, orange(c), 2, 5);
  if (on("again")) bars(columns.again, c.bad, 2, 6);
}

/** Every packet: segments from their first number to their last, acknowledgements as a staircase. */
function drawSingle(pen: Pen, model: Model, first: number, last: number, on: (id: string) => boolean, held: { ack: number; edge: number } | null): void {
  const { records } = model;
  const { g, c, x, y, from, to } = pen;
  const begin = Math.max(first, lowerBound(records.t, model.ns(from), first, last) - 1);
  const end = Math.min(last, lowerBound(records.t, model.ns(to), first, last) + 1);
  const crowded = end - begin > pen.width / 3;
  let { ack, edge } = held ?? { ack: NaN, edge: NaN };
  let duplicates = 0;
  let px0 = x(from);
  g.textAlign = "center";
  g.textBaseline = "bottom";
  for (let i = begin; i < end; i++) {
    const kind = records.kind[i] as number;
    const px = x(model.at(records.t[i] as number));
    const [l, h] = [records.low[i] as number, records.high[i] as number];
    if (isAck(kind)) {
      g.lineWidth = 1.25;
      if (on("edge")) stair(g, yellow(c), px0, px, y(edge), y(h));
      if (on("ack")) {
        stair(g, green(c), px0, px, y(ack), y(l));
        tick(g, green(c), px, y(l), kind === KIND.duplicateAck ? 4 : 2);
      }
      duplicates = kind === KIND.duplicateAck ? duplicates + 1 : l > ack || ack !== ack ? 0 : duplicates;
      if (on("ack") && duplicates === 3 && kind === KIND.duplicateAck) label(g, green(c), "3", px, y(l) + 12);
      if (on("edge") && h === l) label(g, yellow(c), "Z", px, y(h) - 2);
      if (on("sack")) {
        const ranges = sacksOf(records, i);
        for (const [p, q] of ranges) {
          g.strokeStyle = purple(c);
          line(g, px, y(p), px, y(q));
        }
        if (!crowded && ranges[0]) label(g, purple(c), "S", px, y(ranges[0][1]) - 1);
      }
      [ack, edge, px0] = [l, h, px];
      continue;
    }
    const [name, color, letter] = look(kind, c);
    if (!on(name)) continue;
    segment(g, color, px, y(l), y(h), kind === KIND.new ? 1 : 1.75);
    if (letter && (!crowded || isAgain(kind))) label(g, color, letter, px, Math.min(y(h), y(l)) - 1);
  }
  if (held) {
    // The rest of the lines, to the right edge.
    g.lineWidth = 1.25;
    if (on("edge")) stair(g, yellow(c), px0, pen.right, y(edge), y(edge));
    if (on("ack")) stair(g, green(c), px0, pen.right, y(ack), y(ack));
  }
}

function look(kind: number, c: Colors): [string, string, string] {
  if (isAgain(kind)) return ["again", c.bad, "R"];
  if (isLate(kind)) return ["late", orange(c), kind === KIND.copy ? "D" : "O"];
  if (kind === KIND.syn) return ["data", c.text, "SYN"];
  if (kind === KIND.fin) return ["data", c.text, "FIN"];
  if (kind === KIND.reset) return ["data", c.bad, "RST"];
  if (kind === KIND.probe) return ["data", c.streams[0] as string, "P"];
  return ["data", c.text, ""];
}

/** A line with arrow heads at both ends, where there is room for them. */
function segment(g: CanvasRenderingContext2D, color: string, px: number, py1: number, py2: number, wide: number): void {
  g.strokeStyle = color;
  g.lineWidth = wide;
  const tall = py1 - py2;
  if (tall < 2) {
    g.fillStyle = color;
    g.fillRect(px - wide / 2, (py1 + py2) / 2 - 1, wide, 2);
    return;
  }
  line(g, px, py1, px, py2);
  if (tall < 10) return;
  const head = Math.min(4, tall / 4);
  for (const [tip, way] of [[py1, -1], [py2, 1]] as const) {
    g.beginPath();
    g.moveTo(px - head * 0.75, tip + way * head);
    g.lineTo(px, tip);
    g.lineTo(px + head * 0.75, tip + way * head);
    g.stroke();
  }
}

function stair(g: CanvasRenderingContext2D, color: string, px0: number, px: number, py0: number, py: number): void {
  if (py0 !== py0) return;
  g.strokeStyle = color;
  g.beginPath();
  g.moveTo(px0, py0);
  g.lineTo(px, py0);
  g.lineTo(px, py);
  g.stroke();
}

function tick(g: CanvasRenderingContext2D, color: string, px: number, py: number, wide: number): void {
  g.strokeStyle = color;
  line(g, px - wide, py, px, py);
}

function label(g: CanvasRenderingContext2D, color: string, text: string, px: number, py: number): void {
  g.fillStyle = color;
  g.fillText(text, px, py);
}

/** Marks spans without individual packets. */
function shadeMissing(pen: Pen, model: Model, from: number, to: number): void {
  const { g, c, x, top, bottom, left, right } = pen;
  const gaps: [number, number][] = [];
  let at = from;
  for (const span of model.spans(from, to)) {
    if (model.at(span.from) > at) gaps.push([at, model.at(span.from)]);
    at = Math.max(at, model.at(span.to));
  }
  if (at < to) gaps.push([at, to]);
  for (const [a, b] of gaps) {
    const [l, r] = [Math.max(left, x(a)), Math.min(right, x(b))];
    g.fillStyle = c.shade;
    g.globalAlpha = 0.6;
    g.fillRect(l, top, r - l, bottom - top);
    g.globalAlpha = 1;
    const text = `packets not kept individually: --detail ${plain(a, model)}..${plain(b, model)}`;
    if (g.measureText(text).width < r - l - 8) {
      g.fillStyle = c.muted;
      g.textAlign = "center";
      g.textBaseline = "top";
      g.fillText(text, (l + r) / 2, top + 4);
    }
  }
}

/** A moment of the capture as the option takes it. */
function plain(t: number, model: Model): string {
  return `${Number((model.ns(t) / 1e9).toFixed(6))}s`;
}

function inWords({ counts }: Columns, from: number, to: number): string {
  const spacing = (to - from) / 200;
  const parts = [
    `${integer(counts.data)} segments of new data`,
    `${integer(counts.again)} retransmits`,
    counts.late > 0 ? `${integer(counts.late)} reordered or duplicated` : "",
    `${integer(counts.acks)} ACKs`,
    counts.duplicates > 0 ? `${integer(counts.duplicates)} duplicate ACKs` : "",
    counts.sacks > 0 ? `${integer(counts.sacks)} with SACK` : "",
  ];
  return `${moment(from, spacing)} to ${moment(to, spacing)}: ${parts.filter(Boolean).join(", ")}`;
}

/** The packet nearest to a moment. */
function near(model: Model, t: number, span: number): string {
  const index = nearest(model, t);
  if (index < 0 || Math.abs(model.at(model.records.t[index] as number) - t) > span / 50) {
    const { ack, edge } = model.held(t);
    return ack === ack ? `acknowledged ${integer(ack)}, window ${bytes(edge - ack)}` : "";
  }
  return describe(model, index);
}

export function nearest(model: Model, t: number): number {
  const { records } = model;
  const at = lowerBound(records.t, model.ns(t));
  const far = (i: number) => (i >= 0 && i < records.length ? Math.abs(model.at(records.t[i] as number) - t) : Infinity);
  if (records.length === 0) return -1;
  return far(at) <= far(at - 1) ? at : at - 1;
}

/** A packet in words. */
export function describe(model: Model, index: number): string {
  const { records } = model;
  const kind = records.kind[index] as number;
  const [low, high] = [records.low[index] as number, records.high[index] as number];
  const what = KIND_WORDS[kind] ?? "packet";
  if (isAck(kind)) {
    const rtt = records.rtt[index] as number;
    const sacks = sacksOf(records, index).map(([p, q]) => `${integer(p)}–${integer(q)}`);
    return `${what} ${integer(low)}, window ${bytes(high - low)}${rtt === rtt ? `, RTT ${nanos(rtt)}` : ""}${sacks.length > 0 ? `, SACK ${sacks.join(" ")}` : ""}`;
  }
  return `${what} ${integer(low)} + ${integer(high - low)}, in flight ${bytes(records.flight[index] as number)}`;
}
