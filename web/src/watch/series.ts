// From the flows' readings to columns on one time axis. Pure functions.

import type { WatchFlow, WatchSeries } from "../document";
import { spread, type Column, type Span } from "../series";

/** Cells of the time axis: as many as the finest series has readings, with the same bounds for all flows, nanoseconds. */
export function cellEdges(all: readonly WatchSeries[]): number[] {
  const times = all.map((s) => s.t_ns).filter((t) => t.length > 1);
  if (times.length === 0) return [];
  const start = Math.min(...times.map((t) => t[0] as number));
  const end = Math.max(...times.map((t) => t[t.length - 1] as number));
  const cells = Math.max(...times.map((t) => t.length - 1));
  return Array.from({ length: cells + 1 }, (_, i) => start + ((end - start) * i) / cells);
}

/** What a counter gained in each cell, per second, times `weight`; the last value repeats. */
export function ratesIn(edges: readonly number[], t_ns: readonly number[], counter: readonly number[], weight: number): Column {
  const spans: Span[] = t_ns.slice(1).map((end_ns, i) => ({
    start_ns: t_ns[i] as number,
    end_ns,
    amount: ((counter[i + 1] as number) - (counter[i] as number)) * weight * 1e9,
  }));
  return spread(edges, spans);
}

/** The reading nearest to each edge, within the time the flow was read; null where there is none. */
export function levelsAt(edges: readonly number[], t_ns: readonly number[], values: readonly (number | null)[]): Column {
  const [first, last] = [t_ns[0] ?? Infinity, t_ns[t_ns.length - 1] ?? -Infinity];
  // An edge just outside the first and last reading is theirs.
  const reach = edges.length > 1 ? ((edges[1] as number) - (edges[0] as number)) / 2 : 0;
  let at = 0;
  return edges.map((edge) => {
    if (edge < first - reach || edge > last + reach) return null;
    while (at + 1 < t_ns.length && Math.abs((t_ns[at + 1] as number) - edge) <= Math.abs((t_ns[at] as number) - edge)) at++;
    return values[at] || null;
  });
}

/** Flows that can be drawn over time, those that moved most first. */
export function drawn(flows: readonly WatchFlow[], most: number): WatchFlow[] {
  return flows.filter((f) => (f.series?.t_ns.length ?? 0) > 1).slice(0, most);
}
