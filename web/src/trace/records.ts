// Single packets, as crates/trace/src/graph/detail.rs writes them, in columns of numbers.

import type { TraceSeries } from "../document";

/** Kinds of packets. */
export const KIND = {
  new: 0, fast: 1, timeout: 2, tail: 3, lostBefore: 4, unclassified: 5, outOfOrder: 6, copy: 7, probe: 8, ack: 9,
  duplicateAck: 10, syn: 11, fin: 12, reset: 13,
} as const;

/** Names of the kinds. */
export const KIND_WORDS: readonly string[] = [
  "new data", "fast retransmit", "RTO retransmit", "TLP retransmit", "retransmit (lost before the tap)", "retransmit (unclassified)",
  "reordered", "duplicated in the network", "probe", "ACK", "duplicate ACK", "SYN", "FIN", "reset",
];

export const isAgain = (kind: number) => kind >= KIND.fast && kind <= KIND.unclassified;
export const isLate = (kind: number) => kind === KIND.outOfOrder || kind === KIND.copy;
export const isAck = (kind: number) => kind === KIND.ack || kind === KIND.duplicateAck;

/** A run of consecutive packets: from the first to before the last. */
export interface Span {
  from: number;
  to: number;
  first: number;
  last: number;
}

export interface Records {
  length: number;
  /** When, nanoseconds from the start of the capture. */
  t: Float64Array;
  kind: Uint8Array;
  /** First sequence number of data, or the acknowledgement number. */
  low: Float64Array;
  /** One past the last sequence number of data, or the upper edge of the receive window. */
  high: Float64Array;
  /** RTT of an ACK, nanoseconds; else NaN. */
  rtt: Float64Array;
  /** In flight after it, bytes. */
  flight: Float64Array;
  /** Index in `sacks` of the SACK blocks of an ACK; else -1. */
  sack: Int32Array;
  /** How many there are, then from and to of each. */
  sacks: number[];
  spans: Span[];
}

/** Reads every kept packet of a series. */
export function readRecords(series: TraceSeries): Records {
  const length = series.detail.reduce((sum, d) => sum + d.packets, 0);
  const out: Records = {
    length,
    t: new Float64Array(length),
    kind: new Uint8Array(length),
    low: new Float64Array(length),
    high: new Float64Array(length),
    rtt: new Float64Array(length).fill(NaN),
    flight: new Float64Array(length),
    sack: new Int32Array(length).fill(-1),
    sacks: [],
    spans: [],
  };
  let at = 0;
  let expected = -1;
  for (const detail of series.detail) {
    const first = at;
    at = readChunk(out, at, detail);
    const last = out.spans.at(-1);
    if (last && detail.from === expected) {
      last.last = at;
      last.to = Math.max(last.to, detail.end_ns);
    } else {
      out.spans.push({ from: detail.start_ns, to: detail.end_ns, first, last: at });
    }
    expected = detail.from + detail.packets;
  }
  return out;
}

function readChunk(out: Records, at: number, detail: TraceSeries["detail"][number]): number {
  const bytes = atob(detail.records);
  let place = 0;
  const leb = () => {
    let value = 0;
    let scale = 1;
    for (;;) {
      const byte = bytes.charCodeAt(place++);
      value += (byte & 0x7f) * scale;
      if (byte < 0x80 || place >= bytes.length) return value;
      scale *= 128;
    }
  };
  // Below 2^53, which lasts for eight petabytes.
  const signed = () => {
    const value = leb();
    return value % 2 === 1 ? -(value + 1) / 2 : value / 2;
  };
  let t = detail.start_ns;
  let { next, ack, window } = detail;
  let length = 0;
  for (let i = 0; i < detail.packets && place < bytes.length; i++, at++) {
    const tag = bytes.charCodeAt(place++);
    const kind = tag & 0x0f;
    t += signed();
    out.t[at] = t;
    out.kind[at] = kind;
    if (isAck(kind)) {
      const to = ack + signed();
      if (!(tag & 0x40)) window += signed();
      if (tag & 0x10) out.rtt[at] = leb();
      if (tag & 0x20) {
        out.sack[at] = out.sacks.length;
        const count = leb();
        out.sacks.push(count);
        for (let k = 0; k < count; k++) {
          const from = to + signed();
          out.sacks.push(from, from + signed());
        }
      }
      out.low[at] = to;
      out.high[at] = to + window;
      ack = Math.max(ack, to);
    } else if (kind === KIND.reset) {
      out.low[at] = next;
      out.high[at] = next;
    } else {
      const start = tag & 0x10 ? next : next + signed();
      if (!(tag & 0x20)) length = leb();
      out.low[at] = start;
      out.high[at] = start + length;
      next = Math.max(next, start + length);
    }
    out.flight[at] = Math.max(0, next - ack);
  }
  return at;
}

/** The first index of an ascending column that is not below a value. */
export function lowerBound(column: Float64Array | readonly number[], value: number, from = 0, to = column.length): number {
  let [a, b] = [from, to];
  while (a < b) {
    const middle = (a + b) >> 1;
    if ((column[middle] as number) < value) a = middle + 1;
    else b = middle;
  }
  return a;
}

/** The SACK blocks of a record. */
export function sacksOf(records: Records, index: number): [number, number][] {
  const at = records.sack[index] as number;
  if (at < 0) return [];
  const count = records.sacks[at] as number;
  return Array.from({ length: count }, (_, k) => [records.sacks[at + 1 + 2 * k] as number, records.sacks[at + 2 + 2 * k] as number]);
}
