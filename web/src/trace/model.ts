// A series ready to be drawn: columns for any range of time, from single packets or from buckets.

import type { TraceDocument, TraceFlow, TraceRate, TraceSeries } from "../document";
import { isAck, isAgain, isLate, KIND, lowerBound, readRecords, sacksOf, type Records, type Span } from "./records";

const NS = 1e9;

/** From where to where in each column of pixels; NaN where there is nothing. */
export interface Extent {
  low: Float64Array;
  high: Float64Array;
}

/** What falls into each column of pixels. */
export interface Columns {
  data: Extent;
  again: Extent;
  late: Extent;
  ack: Extent;
  edge: Extent;
  sack: Extent;
  rtt: Extent;
  flight: Float64Array;
  duplicates: Uint32Array;
  counts: Counts;
}

export interface Counts {
  data: number;
  again: number;
  late: number;
  acks: number;
  duplicates: number;
  sacks: number;
  rtts: number;
}

/** The congestion window by what was in flight: moments, seconds, and bytes (NaN where something else limits). */
export interface Guess {
  t: number[];
  bytes: number[];
}

export class Model {
  readonly records: Records;
  readonly rate: TraceRate;
  readonly end: number;
  private guessed: Guess | null = null;

  /** @param origin what is 0 on the axis, nanoseconds from the start of the capture */
  constructor(
    readonly document: TraceDocument,
    readonly series: TraceSeries,
    readonly origin: number,
  ) {
    this.records = readRecords(series);
    this.rate = series.rate;
    this.end = (series.end_ns - origin) / NS;
  }

  get flow(): TraceFlow | undefined {
    return this.document.flows[this.series.flow];
  }

  /** Whether every packet is there. */
  get whole(): boolean {
    return this.records.length >= this.series.packets;
  }

  /** Seconds on the axis. */
  at(ns: number): number {
    return (ns - this.origin) / NS;
  }

  ns(t: number): number {
    return t * NS + this.origin;
  }

  /** Spans of single packets that touch a range of seconds. */
  spans(from: number, to: number): Span[] {
    const [a, b] = [this.ns(from), this.ns(to)];
    return this.records.spans.filter((s) => s.to >= a && s.from <= b);
  }

  /** First and last record within a range of seconds, of a span. */
  within(span: Span, from: number, to: number): [number, number] {
    const { t } = this.records;
    return [lowerBound(t, this.ns(from), span.first, span.last), lowerBound(t, this.ns(to), span.first, span.last)];
  }

  /** How many packets are kept of a range, and whether those are all of it. */
  density(from: number, to: number): { packets: number; all: boolean } {
    const spans = this.spans(from, to);
    const packets = spans.reduce((sum, s) => {
      const [a, b] = this.within(s, from, to);
      return sum + b - a;
    }, 0);
    const one = spans[0];
    const all = this.whole || (spans.length === 1 && one !== undefined && one.from <= this.ns(from) && one.to >= this.ns(to));
    return { packets, all };
  }

  columns(from: number, to: number, width: number): Columns {
    const out = empty(width);
    if (this.whole) this.fromRecords(out, from, to, width);
    else this.fromBuckets(out, from, to, width);
    return out;
  }

  private fromRecords(out: Columns, from: number, to: number, width: number): void {
    const { t, kind, low, high, rtt, flight } = this.records;
    const [a, b] = [this.ns(from), this.ns(to)];
    const scale = width / (b - a);
    for (let i = lowerBound(t, a); i < t.length && (t[i] as number) <= b; i++) {
      const x = Math.min(width - 1, Math.floor(((t[i] as number) - a) * scale));
      const k = kind[i] as number;
      const [l, h] = [low[i] as number, high[i] as number];
      out.flight[x] = greater(out.flight[x] as number, flight[i] as number);
      if (isAck(k)) {
        widen(out.ack, x, l, l);
        widen(out.edge, x, h, h);
        out.counts.acks += 1;
        if (k === KIND.duplicateAck) {
          out.duplicates[x] = (out.duplicates[x] as number) + 1;
          out.counts.duplicates += 1;
        }
        const r = rtt[i] as number;
        if (r === r) {
          widen(out.rtt, x, r, r);
          out.counts.rtts += 1;
        }
        if ((this.records.sack[i] as number) >= 0) {
          out.counts.sacks += 1;
          for (const [p, q] of sacksOf(this.records, i)) widen(out.sack, x, p, q);
        }
      } else if (k !== KIND.reset) {
        const [extent, name] = isAgain(k) ? ([out.again, "again"] as const) : isLate(k) ? ([out.late, "late"] as const) : ([out.data, "data"] as const);
        widen(extent, x, l, h);
        out.counts[name] += 1;
      }
    }
  }

  private fromBuckets(out: Columns, from: number, to: number, width: number): void {
    const { buckets: b, bucket_ns: wide } = this.series;
    const [begin, end] = [this.ns(from), this.ns(to)];
    const scale = width / (end - begin);
    for (let i = lowerBound(b.at, Math.floor(begin / wide)); i < b.at.length; i++) {
      const start = (b.at[i] as number) * wide;
      if (start > end) break;
      const first = Math.max(0, Math.floor((start - begin) * scale));
      const last = Math.min(width - 1, Math.max(first, Math.ceil((start + wide - begin) * scale) - 1));
      const put = (extent: Extent, count: number[], low: number[], high: number[]) => {
        if ((count[i] as number) > 0) for (let x = first; x <= last; x++) widen(extent, x, low[i] as number, high[i] as number);
      };
      put(out.data, b.data, b.data_low, b.data_high);
      put(out.again, b.retransmits, b.retransmits_low, b.retransmits_high);
      put(out.late, b.late, b.late_low, b.late_high);
      put(out.ack, b.acks, b.ack_low, b.ack_high);
      put(out.edge, b.acks, b.edge_low, b.edge_high);
      put(out.sack, b.sacks, b.sack_low, b.sack_high);
      put(out.rtt, b.rtts, b.rtt_min_ns, b.rtt_max_ns);
      for (let x = first; x <= last; x++) out.flight[x] = greater(out.flight[x] as number, b.in_flight_max[i] as number);
      out.duplicates[first] = (out.duplicates[first] as number) + (b.duplicate_acks[i] as number);
      out.counts.data += b.data[i] as number;
      out.counts.again += b.retransmits[i] as number;
      out.counts.late += b.late[i] as number;
      out.counts.acks += b.acks[i] as number;
      out.counts.duplicates += b.duplicate_acks[i] as number;
      out.counts.sacks += b.sacks[i] as number;
      out.counts.rtts += b.rtts[i] as number;
    }
  }

  /** What was acknowledged, and the window's edge, when a range begins. */
  held(t: number): { ack: number; edge: number } {
    const ns = this.ns(t);
    if (this.whole) {
      const { kind, low, high } = this.records;
      for (let i = lowerBound(this.records.t, ns) - 1, looked = 0; i >= 0 && looked < 20_000; i--, looked++) {
        if (isAck(kind[i] as number)) return { ack: low[i] as number, edge: high[i] as number };
      }
      return { ack: NaN, edge: NaN };
    }
    const { buckets: b, bucket_ns: wide } = this.series;
    for (let i = lowerBound(b.at, Math.floor(ns / wide)) - 1; i >= 0; i--) {
      if ((b.acks[i] as number) > 0) return { ack: b.ack_high[i] as number, edge: b.edge_high[i] as number };
    }
    return { ack: NaN, edge: NaN };
  }

  /** Moments of retransmissions, seconds; those of one episode (50 ms) count once. */
  episodes(): number[] {
    const out: number[] = [];
    const add = (ns: number) => {
      const t = this.at(ns);
      if (out.length === 0 || t - (out.at(-1) as number) > 0.05) out.push(t);
    };
    if (this.whole) {
      for (let i = 0; i < this.records.length; i++) if (isAgain(this.records.kind[i] as number)) add(this.records.t[i] as number);
    } else {
      const { retransmits, at } = this.series.buckets;
      retransmits.forEach((count, i) => count > 0 && add(((at[i] as number) + 0.5) * this.series.bucket_ns));
    }
    return out;
  }

  /** The most in flight in each round trip, where the receiver's window left room for two segments more. */
  guess(): Guess {
    return (this.guessed ??= this.guessAnew());
  }

  private guessAnew(): Guess {
    const flow = this.flow;
    const direction = this.series.direction === "forward" ? flow?.forward : flow?.reverse;
    const rtt = direction?.rtt?.p50_ns ?? direction?.rtt?.mean_ns ?? flow?.rtt_ns ?? 0;
    const span = this.end > 0 ? this.end : 1;
    const step = Math.max(rtt / NS, span / 4_000, this.whole ? 0 : this.series.bucket_ns / NS);
    const count = Math.ceil(span / step);
    if (!(rtt > 0) || count < 2) return { t: [], bytes: [] };
    const columns = this.columns(0, count * step, count);
    const mss = direction?.mss ?? 1448;
    let { ack, edge } = this.held(0);
    const guess: Guess = { t: [], bytes: [] };
    for (let x = 0; x < count; x++) {
      if (columns.ack.high[x] === columns.ack.high[x]) ack = columns.ack.high[x] as number;
      if (columns.edge.high[x] === columns.edge.high[x]) edge = columns.edge.high[x] as number;
      const flight = columns.flight[x] as number;
      // While holes are being repaired, what is not acknowledged is more than what is on its way.
      const repairing = columns.sack.low[x] === columns.sack.low[x] || columns.again.low[x] === columns.again.low[x];
      const free = (edge - ack - flight >= 2 * mss || edge !== edge) && !repairing;
      guess.t.push(x * step);
      guess.bytes.push(flight > 0 && free && columns.data.low[x] === columns.data.low[x] ? flight : NaN);
    }
    guess.t.push(count * step);
    guess.bytes.push(NaN);
    return guess;
  }
}

function empty(width: number): Columns {
  const extent = (): Extent => ({ low: new Float64Array(width).fill(NaN), high: new Float64Array(width).fill(NaN) });
  return {
    data: extent(), again: extent(), late: extent(), ack: extent(), edge: extent(), sack: extent(), rtt: extent(),
    flight: new Float64Array(width).fill(NaN),
    duplicates: new Uint32Array(width),
    counts: { data: 0, again: 0, late: 0, acks: 0, duplicates: 0, sacks: 0, rtts: 0 },
  };
}

const greater = (a: number, b: number) => (a > b ? a : b);

function widen(extent: Extent, x: number, low: number, high: number): void {
  if (!((extent.low[x] as number) <= low)) extent.low[x] = low;
  if (!((extent.high[x] as number) >= high)) extent.high[x] = high;
}

/** Bins of a rate over a range, in columns of pixels: least, mean and greatest, bits/s. */
export function rateColumns(rate: TraceRate, origin: number, joined: number, from: number, to: number, width: number): { low: Float64Array; mean: Float64Array; high: Float64Array } {
  const low = new Float64Array(width).fill(NaN);
  const high = new Float64Array(width).fill(NaN);
  const sum = new Float64Array(width);
  const count = new Float64Array(width);
  const wide = rate.width_ns * joined;
  const [begin, end] = [from * NS + origin, to * NS + origin];
  const scale = width / (end - begin);
  const bins = Math.ceil(rate.bytes.length / joined);
  for (let i = Math.max(0, Math.floor(begin / wide)); i < bins && i * wide <= end; i++) {
    let bytes = 0;
    let most = 0;
    for (let k = i * joined; k < Math.min(rate.bytes.length, (i + 1) * joined); k++) {
      bytes += rate.bytes[k] as number;
      if (joined === 1 && rate.most_in_1ms.length > 0) most = rate.most_in_1ms[k] as number;
    }
    const bps = (bytes * 8 * NS) / wide;
    const top = joined === 1 && rate.most_in_1ms.length > 0 ? most * 8_000 : bps;
    const first = Math.max(0, Math.floor((i * wide - begin) * scale));
    const last = Math.min(width - 1, Math.max(first, Math.ceil(((i + 1) * wide - begin) * scale) - 1));
    for (let x = first; x <= last; x++) {
      if (!((low[x] as number) <= bps)) low[x] = bps;
      if (!((high[x] as number) >= top)) high[x] = top;
      sum[x] = (sum[x] as number) + bps;
      count[x] = (count[x] as number) + 1;
    }
  }
  const mean = sum.map((s, x) => (count[x] === 0 ? NaN : s / (count[x] as number)));
  return { low, mean, high };
}
