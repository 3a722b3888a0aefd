// A lab's flows on the scenario's own time, and their figures.

import type { LabDocument, LabFlow, LabQueue, Sample, Stream } from "../document";
import { isNumber } from "../format";
import { ratesOn, sum, type Column } from "../series";

/** One flow with its streams' readings on the scenario's time. */
export interface Track {
  id: number;
  flow: LabFlow;
  streams: Stream[];
}

/** What the flows measured, later starts shifted to where they belong. */
export function tracks(lab: LabDocument): Track[] {
  return lab.flows.map((flow, id) => ({
    id,
    flow,
    streams: (flow.run?.streams ?? []).map((s) => shifted(s, flow.start_ns)),
  }));
}

function shifted(stream: Stream, by: number): Stream {
  const end = (side: Stream["sender"]) =>
    side ? { ...side, samples: side.samples.map((s) => ({ ...s, t_ns: s.t_ns + by })) } : side;
  return {
    ...stream,
    sender: end(stream.sender),
    receiver: end(stream.receiver),
    intervals: stream.intervals.map((i) => ({ ...i, start_ns: i.start_ns + by, end_ns: i.end_ns + by })),
  };
}

/** Edges of equal cells from the scenario's zero to the last reading, nanoseconds; the finest interval of any flow. */
export function grid(all: readonly Track[], end_ns: number): number[] {
  const asked = all.flatMap(({ flow }) => {
    const interval = (flow.run?.effective ?? flow.run?.requested)?.interval_ns;
    return isNumber(interval) && interval > 0 ? [interval] : [];
  });
  const last = Math.max(end_ns, ...all.flatMap(({ streams }) => streams.map((s) => s.intervals.at(-1)?.end_ns ?? 0)));
  const step = Math.max(Math.min(1e8, ...asked), last / 50_000);
  const cells = Math.ceil(last / step - 1e-9);
  return cells < 1 ? [] : Array.from({ length: cells + 1 }, (_, k) => k * step);
}

/** A flow's payload rate in each cell: that of all its streams. */
export function rateOf(track: Track, edges: readonly number[]): Column {
  return sum(track.streams.map((s) => ratesOn(edges, s.intervals)), edges.length);
}

/**
 * At each moment the last value read until then, at most half a cell later; nothing before the first reading and
 * after the last.
 */
export function heldAt(
  times: readonly number[],
  samples: readonly Sample[],
  field: (s: Sample) => number | null | undefined,
): Column {
  const slack = times.length > 1 ? ((times[1] as number) - (times[0] as number)) / 2 : 0;
  const end = (samples.at(-1)?.t_ns ?? -Infinity) + slack;
  let next = 0;
  let last: number | null = null;
  return times.map((t) => {
    while (next < samples.length && (samples[next] as Sample).t_ns <= t + slack) {
      const value = field(samples[next] as Sample);
      if (isNumber(value)) last = value;
      next++;
    }
    return t <= end ? last : null;
  });
}

/** What a counter gained in each cell; the last value repeats. */
export function gainedIn(
  edges: readonly number[],
  samples: readonly Sample[],
  field: (s: Sample) => number | null | undefined,
): Column {
  if (!samples.some((s) => isNumber(field(s)))) return edges.map(() => null);
  let last = 0;
  const at = heldAt(edges, samples, field).map((v) => (last = v ?? last));
  // Readings of the drain count in the last cell.
  at[at.length - 1] = samples.reduce((v, s) => field(s) ?? v, 0);
  const out: Column = at.slice(1).map((v, k) => v - (at[k] as number));
  if (out.length > 0) out.push(out[out.length - 1] as number);
  return out;
}

/** The mean over columns; absent where all are absent. */
export function mean(columns: readonly Column[], length: number): Column {
  const total = sum(columns, length);
  return total.map((v, k) => (v === null ? null : v / columns.filter((c) => isNumber(c[k])).length));
}

/** Payload rate of all flows together. */
export function totalGoodput(flows: readonly { goodput_bps?: number | null | undefined }[]): number | null {
  const known = flows.flatMap((f) => (isNumber(f.goodput_bps) ? [f.goodput_bps] : []));
  return known.length > 0 ? known.reduce((a, b) => a + b, 0) : null;
}

/** Segments retransmitted by all flows that count them. */
export function totalRetransmits(flows: readonly { retransmits?: number | null | undefined }[]): number | null {
  const known = flows.flatMap((f) => (isNumber(f.retransmits) ? [f.retransmits] : []));
  return known.length > 0 ? known.reduce((a, b) => a + b, 0) : null;
}

/** How full a queue was at most, as a share of its limit in bytes. */
export function fullness(queue: LabQueue): number | null {
  return isNumber(queue.limit_bytes) && queue.limit_bytes > 0 ? queue.peak_bytes / queue.limit_bytes : null;
}

/** The ports a reader looks at first: those that dropped most, then the fullest. Left out is what hardly waited. */
export function busiest(queues: readonly LabQueue[]): LabQueue[] {
  return queues
    .filter((q) => q.role === "switch" && (q.drops > 0 || (q.peak_bytes > 0 && (fullness(q) ?? 1) >= 0.05)))
    .sort((a, b) => b.drops - a.drops || (fullness(b) ?? 0) - (fullness(a) ?? 0) || b.mean_bytes - a.mean_bytes || b.peak_bytes - a.peak_bytes);
}

/** `a->b` as people read it. */
export const arrow = (name: string): string => name.replaceAll("->", " → ");
