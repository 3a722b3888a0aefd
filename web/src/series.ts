// From the document's intervals and samples to columns on one time axis. Pure functions; times out in seconds.

import type { Interval, Sample } from "./document";

export type Column = (number | null)[];

const NS = 1e9;

/** Moments at which the stream with the finest intervals was read: the cells all streams are laid on. */
export function intervalEdges(streams: readonly (readonly Pick<Interval, "start_ns" | "end_ns">[])[]): number[] {
  const finest = longest(streams);
  if (finest.length === 0) return [];
  const edges: number[] = [];
  for (const interval of finest) {
    if (edges.length === 0 || interval.start_ns > (edges[edges.length - 1] as number)) edges.push(interval.start_ns);
    if (interval.end_ns > (edges[edges.length - 1] as number)) edges.push(interval.end_ns);
  }
  return edges;
}

/**
 * Bits per second in each cell. Where a stream's own intervals agree with the cells the figure is exact; where they
 * do not, its bytes are spread evenly over each of its intervals, so that the sum over the cells stays the stream's
 * total. The last value repeats, to close the last step.
 */
export function ratesOn(edges: readonly number[], intervals: readonly Interval[]): Column {
  return overCells(edges, intervals, (interval) => interval.bytes * 8 * NS);
}

/** The same for packets in each cell, per second. */
export function packetsOn(edges: readonly number[], intervals: readonly Interval[]): Column {
  return overCells(edges, intervals, (interval) => (interval.packets ?? 0) * NS);
}

function overCells(edges: readonly number[], intervals: readonly Interval[], weigh: (i: Interval) => number): Column {
  return spread(edges, intervals.map((i) => ({ start_ns: i.start_ns, end_ns: i.end_ns, amount: weigh(i) })));
}

/** An amount that came about somewhere in a span. */
export interface Span {
  start_ns: number;
  end_ns: number;
  amount: number;
}

/** What a counter gained between the readings that have it; the first reading only opens the first span. */
export function counterSpans(samples: readonly Sample[], field: (s: Sample) => number | null | undefined): Span[] {
  const out: Span[] = [];
  let last: { t: number; value: number } | null = null;
  for (const sample of samples) {
    const value = field(sample);
    if (typeof value !== "number") continue;
    if (last && sample.t_ns > last.t) out.push({ start_ns: last.t, end_ns: sample.t_ns, amount: value - last.value });
    last = { t: sample.t_ns, value };
  }
  return out;
}

/**
 * Spans of one thread's time in which none is longer than it lasted. The kernel adds a wait to the counter when the wait ends,
 * so that what exceeds a span was spent before it; an excess of the first span, of which only the clock can be the cause, moves
 * to the spans after it. The sum stays the same.
 */
export function backdated(spans: readonly Span[]): Span[] {
  const out = spans.map((span) => ({ ...span }));
  let excess = 0;
  const settle = (span: Span) => {
    const wanted = span.amount + excess;
    span.amount = Math.min(wanted, span.end_ns - span.start_ns);
    excess = wanted - span.amount;
  };
  for (const span of [...out].reverse()) settle(span);
  for (const span of out) settle(span);
  const [first] = out;
  if (first) first.amount += excess;
  return out;
}

/** Amounts per nanosecond of each cell, each span's spread evenly over it; the last value repeats. */
export function spread(edges: readonly number[], spans: readonly Span[]): Column {
  const out: Column = [];
  let next = 0;
  for (let k = 0; k + 1 < edges.length; k++) {
    const [from, to] = [edges[k] as number, edges[k + 1] as number];
    let sum = 0;
    let covered = false;
    while (next < spans.length && (spans[next] as Span).end_ns <= from) next++;
    for (let i = next; i < spans.length; i++) {
      const span = spans[i] as Span;
      if (span.start_ns >= to) break;
      const overlap = Math.min(to, span.end_ns) - Math.max(from, span.start_ns);
      const length = span.end_ns - span.start_ns;
      if (length <= 0) continue;
      covered = true;
      sum += span.amount * (overlap / length);
    }
    out.push(covered ? sum / (to - from) : null);
  }
  if (out.length > 0) out.push(out[out.length - 1] as number | null);
  return out;
}

/** The reading times of the end that was read most often, nanoseconds. */
export function sampleTimes(ends: readonly (readonly Sample[])[]): number[] {
  const times: number[] = [];
  for (const sample of longest(ends)) {
    if (times.length === 0 || sample.t_ns > (times[times.length - 1] as number)) times.push(sample.t_ns);
  }
  return times;
}

/** For each time the index of the nearest sample, or -1 when none lies within half a reading interval. */
export function nearest(times: readonly number[], samples: readonly Sample[]): Int32Array {
  const out = new Int32Array(times.length).fill(-1);
  let at = 0;
  for (let k = 0; k < times.length; k++) {
    const t = times[k] as number;
    while (at + 1 < samples.length && distance(samples, at + 1, t) <= distance(samples, at, t)) at++;
    if (at >= samples.length) break;
    const before = k > 0 ? t - (times[k - 1] as number) : 0;
    const after = k + 1 < times.length ? (times[k + 1] as number) - t : 0;
    const reach = Math.max(before, after) / 2;
    if (reach === 0 || distance(samples, at, t) <= reach) out[k] = at;
  }
  return out;
}

/** One field of an end's samples at the given indices. */
export function pick(samples: readonly Sample[], at: Int32Array, field: (s: Sample) => number | null | undefined): Column {
  const out: Column = new Array<number | null>(at.length);
  for (let k = 0; k < at.length; k++) {
    const index = at[k] as number;
    const value = index < 0 ? null : field(samples[index] as Sample);
    out[k] = typeof value === "number" && Number.isFinite(value) ? value : null;
  }
  return out;
}

/** The last value known at each reading, for what is read less often than the rest. */
export function held(column: Column): Column {
  let last: number | null = null;
  return column.map((value) => (last = value ?? last));
}

/**
 * What a cumulative counter gained between one reading and the next, placed on the edges `0, t0, t1 …`; the last
 * value repeats. A counter that fell shows as negative.
 */
export function gains(counter: Column): Column {
  const out: Column = [];
  let last = 0;
  for (const value of counter) {
    out.push(value === null ? null : value - last);
    if (value !== null) last = value;
  }
  out.push(out[out.length - 1] ?? null);
  return out;
}

/** Packets that a sender sent and its receiver did not get; absent throughout if one end has no counts. */
export function missingPackets(sent: Column, delivered: Column): Column {
  const counted = (column: Column) => column.some((value) => value !== null);
  if (!counted(sent) || !counted(delivered)) return sent.map(() => null);
  return sent.map((v, k) => (v === null && (delivered[k] ?? null) === null ? null : (v ?? 0) - (delivered[k] ?? 0)));
}

/** The sum over columns; absent where all are absent. */
export function sum(columns: readonly Column[], length: number): Column {
  return fold(columns, length, (a, b) => a + b);
}

/** The smallest over columns. */
export function least(columns: readonly Column[], length: number): Column {
  return fold(columns, length, Math.min);
}

function fold(columns: readonly Column[], length: number, combine: (a: number, b: number) => number): Column {
  const out: Column = new Array<number | null>(length).fill(null);
  for (const column of columns) {
    for (let k = 0; k < length; k++) {
      const value = column[k];
      if (value === null || value === undefined) continue;
      const held = out[k] as number | null;
      out[k] = held === null ? value : combine(held, value);
    }
  }
  return out;
}

/** Index of the last element ≤ value, or -1. */
export function floorIndex(sorted: readonly number[], value: number): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((sorted[middle] as number) <= value) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

/** Index of the element closest to value, or -1. */
export function closestIndex(sorted: readonly number[], value: number): number {
  const below = floorIndex(sorted, value);
  const above = below + 1;
  if (above >= sorted.length) return below;
  if (below < 0) return above;
  return value - (sorted[below] as number) <= (sorted[above] as number) - value ? below : above;
}

export function inSeconds(times: readonly number[]): number[] {
  return times.map((t) => t / NS);
}

function longest<T>(lists: readonly (readonly T[])[]): readonly T[] {
  let best: readonly T[] = [];
  for (const list of lists) if (list.length > best.length) best = list;
  return best;
}

function distance(samples: readonly Sample[], index: number, t: number): number {
  return Math.abs((samples[index] as Sample).t_ns - t);
}
