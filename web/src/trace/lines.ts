// The charts below the time-sequence graph: rate, in flight and windows, RTT, delay between taps.

import type { DelayOverTime, TracePath, TraceRate } from "../document";
import { bytes, nanos, rate as bps } from "../format";
import type { Colors } from "../theme";
import { type ChartOptions, type Pen, type Scene } from "./chart";
import { rateColumns, type Columns, type Extent, type Model } from "./model";
import { isAck, lowerBound } from "./records";

const blue = (c: Colors) => c.streams[0] as string;
const orange = (c: Colors) => c.streams[1] as string;
const yellow = (c: Colors) => c.streams[4] as string;

interface Layer {
  id: string;
  rate: TraceRate;
  joined: number;
  color: (c: Colors) => string;
  wide: number;
  words: string;
}

/** Rate on the wire in bins of a millisecond, ten, and a second. */
export function rateChart(own: TraceRate, all: TraceRate | null, origin: number, id: string, title: string): ChartOptions {
  const base = own.width_ns / 1e6;
  const layer = (rate: TraceRate, ms: number, color: (c: Colors) => string, wide: number): Layer[] =>
    ms < base ? [] : [{ id: `${ms}ms`, rate, joined: Math.round(ms / base), color, wide, words: width(ms) }];
  const layers: Layer[] = [
    ...(all ? [{ id: "all", rate: all, joined: 1, color: (c: Colors) => c.muted, wide: 1, words: `all frames of the capture, ${width(all.width_ns / 1e6)}` }] : []),
    ...(base === 1 ? layer(own, 1, blue, 1) : [{ id: "1ms", rate: own, joined: 1, color: blue, wide: 1, words: `${width(base)}, and the max 1 ms of each` }]),
    ...layer(own, 10, orange, 1.5),
    ...layer(own, 1000, (c) => c.text, 2),
  ].filter((l, i, list) => list.findIndex((m) => m.id === l.id || (m.rate === l.rate && m.joined === l.joined)) === i);
  const seconds = (own.bytes.length * own.width_ns) / 1e9;
  return {
    id,
    title,
    note: "Bytes of frames per bin of time; where bins are narrower than a pixel, a band from min to max",
    height: 170,
    kind: "rate",
    based: true,
    legend: layers.map((l) => ({ id: l.id, label: l.words, color: l.color, on: l.id !== "all" && (l.id !== "1000ms" || seconds > 2) })),
    scene: (from, to, pixels, on) => {
      const shown = layers.filter((l) => on(l.id)).map((l) => ({ ...l, columns: rateColumns(l.rate, origin, l.joined, from, to, pixels) }));
      let high = NaN;
      for (const { columns } of shown) for (const v of columns.high) if (!(high >= v)) high = v > 0 || v === 0 ? v : high;
      return {
        low: high === high ? 0 : NaN,
        high,
        words: `up to ${bps(high)}`,
        draw: (pen) => {
          for (const { columns, color, wide } of shown) {
            band(pen, columns.low, columns.high, color(pen.c));
            steps(pen, columns.mean, color(pen.c), wide);
          }
        },
      };
    },
    at: (t) => {
      const words = layers.map((l) => {
        const bin = Math.floor((t * 1e9 + origin) / (l.rate.width_ns * l.joined));
        let sum = 0;
        for (let k = bin * l.joined; k < (bin + 1) * l.joined; k++) sum += l.rate.bytes[k] ?? 0;
        return `${bps((sum * 8e9) / (l.rate.width_ns * l.joined))} (${l.words})`;
      });
      return words.join(", ");
    },
  };
}

const width = (ms: number) => (ms >= 1000 ? `${ms / 1000} s bins` : `${ms} ms bins`);

/** In flight, the receive window, and an estimate of the congestion window. */
export function flightChart(model: Model, id: string, title: string): ChartOptions {
  const most = greatest(model.columns(0, Math.max(model.end, 1e-9), 400).flight);
  const window = greatestWindow(model);
  return {
    id,
    title,
    note: "Data sent and not acknowledged, as the tap sees it; the receive window; and the max in flight in each round trip without recovery and with room in the receive window, which is cwnd unless the sender was application-limited",
    height: 150,
    kind: "size",
    based: true,
    legend: [
      { id: "flight", label: "in flight", color: blue, on: true },
      { id: "cwnd", label: "cwnd, estimate", color: orange, on: true, dashed: true },
      { id: "window", label: "receive window", color: yellow, on: window <= 4 * most },
    ],
    scene: (from, to, pixels, on) => flightScene(model, from, to, pixels, on),
    at: (t) => {
      const { records } = model;
      const i = lowerBound(records.t, model.ns(t)) - 1;
      const { ack, edge } = model.held(t);
      const flight = model.whole && i >= 0 ? `${bytes(records.flight[i] as number)} in flight, ` : "";
      return edge === edge ? `${flight}window ${bytes(edge - ack)}` : flight;
    },
  };
}

function flightScene(model: Model, from: number, to: number, pixels: number, on: (id: string) => boolean): Scene {
  const columns = model.columns(from, to, pixels);
  const held = model.held(from);
  const windows = windowColumns(columns);
  const guess = on("cwnd") ? model.guess() : { t: [], bytes: [] };
  const [a, b] = [Math.max(0, lowerBound(guess.t, from) - 1), lowerBound(guess.t, to) + 1];
  let high = on("flight") ? greatest(columns.flight) : NaN;
  for (let i = a; i < b; i++) if (!(high >= (guess.bytes[i] as number)) && (guess.bytes[i] as number) > 0) high = guess.bytes[i] as number;
  if (on("window")) for (const v of [...windows, held.edge - held.ack]) if (!(high >= v) && v >= 0) high = v;
  return {
    low: high === high ? 0 : NaN,
    high,
    words: `up to ${bytes(greatest(columns.flight))} in flight`,
    draw: (pen) => {
      const { g, c, x, y } = pen;
      if (on("flight")) {
        g.fillStyle = blue(c);
        g.globalAlpha = 0.25;
        hold(pen, columns.flight, (px, py) => g.fillRect(px, py, 1.02, pen.bottom - py));
        g.globalAlpha = 1;
        steps(pen, columns.flight, blue(c), 1);
      }
      if (on("window")) steps(pen, windows, yellow(c), 1.25, held.edge - held.ack);
      g.strokeStyle = orange(c);
      g.lineWidth = 1.75;
      g.setLineDash([6, 3]);
      g.beginPath();
      let pending = false;
      for (let i = a; i < Math.min(b, guess.t.length - 1); i++) {
        const value = guess.bytes[i] as number;
        if (value !== value) {
          pending = false;
          continue;
        }
        const [l, r] = [x(guess.t[i] as number), x(guess.t[i + 1] as number)];
        if (pending) g.lineTo(l, y(value));
        else g.moveTo(l, y(value));
        g.lineTo(r, y(value));
        pending = true;
      }
      g.stroke();
      g.setLineDash([]);
    },
  };
}

function greatestWindow(model: Model): number {
  const direction = model.series.direction === "forward" ? model.flow?.reverse : model.flow?.forward;
  return direction?.window_max_bytes ?? 0;
}

const windowColumns = ({ ack, edge }: Columns): Float64Array => edge.high.map((h, x) => h - (ack.high[x] as number));

const greatest = (column: Float64Array) => column.reduce((most, v) => (v > most || most !== most ? v : most), NaN);

/** RTT samples. */
export function rttChart(model: Model, id: string, title: string): ChartOptions {
  return {
    id,
    title,
    note: "From data at the tap to its ACK at the tap; no samples of retransmitted data (Karn)",
    height: 120,
    kind: "time",
    based: false,
    legend: [{ id: "rtt", label: "RTT", color: blue, on: true }],
    scene: (from, to, pixels) => {
      const { rtt, counts } = model.columns(from, to, pixels);
      let [low, high] = [NaN, NaN];
      for (const v of rtt.low) if (!(low <= v) && v === v) low = v;
      for (const v of rtt.high) if (!(high >= v) && v === v) high = v;
      // Noise of a few per cent is not blown up to fill the chart.
      const least = (low + high) * 0.02;
      if (high - low < least) [low, high] = [Math.max(0, (low + high - least) / 2), (low + high + least) / 2];
      return {
        low,
        high,
        words: counts.rtts > 0 ? `${nanos(low)} to ${nanos(high)}` : "no RTT sample in this range",
        draw: (pen) => dots(pen, rtt),
      };
    },
    at: (t, span) => {
      const { records } = model;
      for (let i = lowerBound(records.t, model.ns(t)), k = i; i >= 0; i--) {
        if (model.at(records.t[k] as number) - model.at(records.t[i] as number) > span / 20) break;
        const r = records.rtt[i] as number;
        if (isAck(records.kind[i] as number) && r === r) return nanos(r);
      }
      return "none";
    },
  };
}

/** Queueing delay between two taps, in both directions. */
export function delayChart(path: TracePath, origin: number, id: string): ChartOptions {
  const directions = [
    { id: "forward", label: "forward, max", delay: path.forward.delay, color: blue },
    { id: "reverse", label: "reverse, max", delay: path.reverse.delay, color: orange },
  ];
  const median = { id: "median", label: "p50", color: (c: Colors) => c.muted };
  return {
    id,
    title: `Queueing delay, ${path.from.split("/").at(-1)} to ${path.to.split("/").at(-1)}`,
    note: "One-way delay between two taps above its minimum; the clocks need not be synchronised",
    height: 120,
    kind: "time",
    based: true,
    legend: [...directions, median].map((w) => ({ id: w.id, label: w.label, color: w.color, on: true, dashed: w.id === "median" })),
    scene: (from, to, pixels, on) => {
      const shown = directions.filter((w) => on(w.id)).map((w) => ({ ...w, most: delayColumns(w.delay, w.delay.max_ns, origin, from, to, pixels), mid: delayColumns(w.delay, w.delay.p50_ns, origin, from, to, pixels) }));
      const high = shown.reduce((most, w) => Math.max(most, greatest(w.most) || 0), 0);
      const some = shown.some((w) => w.most.some((v) => v === v));
      return {
        low: some ? 0 : NaN,
        high: some ? Math.max(high, 1) : NaN,
        words: some ? `up to ${nanos(high)}` : "no packet in this range",
        draw: (pen) => {
          for (const w of shown) {
            bars(pen, w.most, w.color(pen.c));
            if (on("median")) steps(pen, w.mid, pen.c.muted, 1);
          }
        },
      };
    },
    at: (t) =>
      directions
        .map(({ id, delay }) => {
          const bin = Math.floor((t * 1e9 + origin - delay.start_ns) / Math.max(1, delay.width_ns));
          return `${id} max ${nanos(delay.max_ns[bin])}, p50 ${nanos(delay.p50_ns[bin])}`;
        })
        .join("; "),
  };
}

function delayColumns(delay: DelayOverTime, values: readonly (number | null)[], origin: number, from: number, to: number, pixels: number): Float64Array {
  const out = new Float64Array(pixels).fill(NaN);
  const wide = delay.width_ns;
  if (!(wide > 0)) return out;
  const [begin, end] = [from * 1e9 + origin - delay.start_ns, to * 1e9 + origin - delay.start_ns];
  const scale = pixels / (end - begin);
  for (let i = Math.max(0, Math.floor(begin / wide)); i < values.length && i * wide <= end; i++) {
    const value = values[i];
    if (value === null || value === undefined) continue;
    const first = Math.max(0, Math.floor((i * wide - begin) * scale));
    const last = Math.min(pixels - 1, Math.max(first, Math.ceil(((i + 1) * wide - begin) * scale) - 1));
    for (let x = first; x <= last; x++) if (!((out[x] as number) >= value)) out[x] = value;
  }
  return out;
}

/** A light bar from the axis for each column, with its top marked. */
function bars(pen: Pen, column: Float64Array, color: string): void {
  const { g, left, y, bottom } = pen;
  g.fillStyle = color;
  for (let x = 0; x < pen.width; x++) {
    const value = column[x] as number;
    if (value !== value) continue;
    const py = y(value);
    g.globalAlpha = 0.22;
    g.fillRect(left + x, py, 1, bottom - py);
    g.globalAlpha = 1;
    g.fillRect(left + x, py - 1, 1, 2);
  }
}

function dots(pen: Pen, extent: Extent): void {
  const { g, c, left, y } = pen;
  g.fillStyle = blue(c);
  for (let x = 0; x < pen.width; x++) {
    const [l, h] = [extent.low[x] as number, extent.high[x] as number];
    if (l !== l) continue;
    const [top, bottom] = [y(h), y(l)];
    g.fillRect(left + x - 0.5, top - 1, 2, Math.max(2, bottom - top + 2));
  }
}

/** A light band between two columns. */
function band(pen: Pen, low: Float64Array, high: Float64Array, color: string): void {
  const { g, left, y } = pen;
  g.fillStyle = color;
  g.globalAlpha = 0.28;
  for (let x = 0; x < pen.width; x++) {
    const [l, h] = [low[x] as number, high[x] as number];
    if (l === l && h > l) g.fillRect(left + x, y(h), 1, y(l) - y(h));
  }
  g.globalAlpha = 1;
}

/** Calls for each column with the value that holds there. */
function hold(pen: Pen, column: Float64Array, each: (px: number, py: number) => void): void {
  let value = NaN;
  for (let x = 0; x < pen.width; x++) {
    const v = column[x] as number;
    if (v === v) value = v;
    if (value === value) each(pen.left + x, pen.y(value));
  }
}

/** A line that holds each value until the next. */
function steps(pen: Pen, column: Float64Array, color: string, wide: number, first = NaN): void {
  const { g, left, y } = pen;
  g.strokeStyle = color;
  g.lineWidth = wide;
  g.beginPath();
  let value = first;
  if (value === value) g.moveTo(left, y(value));
  for (let x = 0; x < pen.width; x++) {
    const v = column[x] as number;
    if (v !== v || v === value) continue;
    const px = left + x + 0.5;
    if (value === value) g.lineTo(px, y(value));
    else g.moveTo(px, y(v));
    g.lineTo(px, y(v));
    value = v;
  }
  if (value === value) g.lineTo(pen.right, y(value));
  g.stroke();
}

