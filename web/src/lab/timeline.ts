// The lab's charts over time: flows above, queues below, on one axis.

import { DENSE } from "../context";
import { timelineSection } from "../charts";
import type { LabDocument, LabQueue, Stream } from "../document";
import { h } from "../dom";
import { bytes, integer, isNumber } from "../format";
import { Panel, type Line, type Moment, type PanelOptions } from "../panel";
import { inSeconds, sum, type Column } from "../series";
import { Timeline } from "../timeline";
import { arrow, busiest, gainedIn, grid, heldAt, mean, rateOf, tracks, type Track } from "./flows";

/** Queues drawn without being asked for. */
const SHOWN = 3;

type Base = Pick<PanelOptions, "timeline" | "shades" | "marks" | "moments">;

/** The section, or nothing when nothing was measured over time. */
export function labTimeline(lab: LabDocument): HTMLElement | null {
  const all = tracks(lab);
  const series = lab.queues.map((q) => q.series.interval_ns * q.series.backlog_bytes_max.length);
  const edges = grid(all, Math.min(lab.virtual_s * 1e9, Math.max(0, ...series)));
  if (edges.length < 2) return null;
  const [start, step, end] = [0, (edges[1] as number) / 1e9, (edges.at(-1) as number) / 1e9];
  const finest = Math.min(step, ...lab.queues.map((q) => q.series.interval_ns / 1e9).filter((s) => s > 0));
  const timeline = new Timeline(start, end, finest, all.map((t) => t.id));
  timeline.whole = "whole run";
  const base: Base = { timeline, shades: [], marks: [], moments: moments(lab) };
  const [throughput, ...windows] = flowPanels(base, all, edges);
  const panels = [...(throughput ? [throughput] : []), ...queuePanels(base, lab.queues), ...windows];
  const chips = all.map(({ id, flow }) => ({ id, name: flow.name, title: `flow ${flow.name}, ${flow.from} → ${flow.to}` }));
  return timelineSection(timeline, panels, { chips, noun: "flow", steady: null, heat: null, epochs: [] });
}

/** The scenario's events; those at one time have one line. */
export function moments(lab: LabDocument): Moment[] {
  const at = new Map<number, string[]>();
  for (const event of lab.events ?? []) {
    const time = event.applied_ns ?? event.at_ns;
    const text = `${arrow(event.object)} ${event.key} ${event.value}`.trim();
    at.set(time, [...(at.get(time) ?? []), text]);
  }
  return [...at].sort(([a], [b]) => a - b).map(([time, texts]) => ({ at: time / 1e9, name: texts.join(", ") }));
}

function flowPanels(base: Base, all: readonly Track[], edges: number[]): Panel[] {
  const { timeline } = base;
  const x = inSeconds(edges);
  const line = (track: Track, column: Column): Line => ({
    label: track.flow.name,
    color: track.id % 8,
    width: column.length > DENSE ? 0.75 : 1.5,
    values: () => column,
    shown: () => timeline.visible.has(track.id),
  });
  const rates = all.map((t) => rateOf(t, edges));
  const lines = all.map((t, i) => line(t, rates[i] as Column));
  if (all.length > 1) {
    lines.push({
      label: "sum",
      color: "text",
      width: edges.length > DENSE ? 1.25 : 2,
      values: () => sum(rates.filter((_, i) => timeline.visible.has((all[i] as Track).id)), edges.length),
      shown: () => timeline.showSum,
    });
  }
  const panels = [
    new Panel({
      ...base,
      id: "throughput",
      title: "Goodput of each flow",
      note: "Payload delivered to the receiving application, sum of a flow's streams, on the scenario's time",
      height: 230,
      kind: "rate",
      x,
      steps: true,
      lines,
      resting: "mean",
    }),
  ];
  const tcp = all.filter(({ streams }) => streams.some((s) => s.sender?.samples.some((r) => isNumber(r.tcp?.snd_cwnd))));
  if (tcp.length === 0) return panels;
  const each = (combine: (columns: Column[]) => Column, column: (s: Stream) => Column) =>
    tcp.map((t) => line(t, combine(t.streams.map(column))));
  const samples = (s: Stream) => s.sender?.samples ?? [];
  const together = (columns: Column[]) => sum(columns, edges.length);
  const lost = tcp.map(({ streams }) => together(streams.map((s) => gainedIn(edges, samples(s), (r) => r.tcp?.total_retrans))));
  const many = tcp.some(({ streams }) => streams.length > 1);
  const total = sum(lost, edges.length);
  panels.push(
    new Panel({
      ...base,
      id: "cwnd",
      title: many ? "cwnd, sum of a flow’s streams" : "cwnd",
      note: "tcp_info: snd_cwnd × snd_mss at the sender",
      height: 150,
      kind: "size",
      x,
      steps: false,
      lines: each(together, (s) => heldAt(edges, samples(s), (r) => (r.tcp ? r.tcp.snd_cwnd * r.tcp.snd_mss_bytes : null))),
      resting: "mean",
    }),
    new Panel({
      ...base,
      id: "rtt",
      title: many ? "RTT, mean of a flow’s streams" : "RTT",
      note: "tcp_info: smoothed RTT at the sender",
      height: 130,
      kind: "time",
      floating: true,
      x,
      steps: false,
      lines: each(
        (columns) => mean(columns, edges.length),
        (s) => heldAt(edges, samples(s), (r) => (r.tcp && r.tcp.rtt_us > 0 ? r.tcp.rtt_us * 1e3 : null)),
      ),
      resting: "mean",
    }),
  );
  // A chart of zeros says nothing: the headline has the count.
  if (total.some((count) => isNumber(count) && count > 0)) panels.push(
    new Panel({
      ...base,
      id: "retransmits",
      title: "Retransmits",
      note: "tcp_info: increase of total_retrans at the sender",
      height: 110,
      kind: "count",
      unit: "segments",
      x,
      steps: true,
      lines: [
        {
          label: "visible flows",
          color: "bad",
          width: 1,
          fill: true,
          values: () => together(lost.filter((_, i) => timeline.visible.has((tcp[i] as Track).id))),
          shown: () => true,
        },
      ],
      resting: "total",
    }),
  );
  return panels;
}

function queuePanels(base: Base, queues: readonly LabQueue[]): Panel[] {
  const drawn = queues.filter((q) => q.series.interval_ns > 0 && q.series.backlog_bytes_max.length > 0);
  const first = busiest(drawn).slice(0, SHOWN);
  const rank = { switch: 0, host: 0, wire: 1 };
  const others = drawn
    .filter((q) => !first.includes(q) && (q.peak_bytes > 0 || q.drops > 0))
    .sort((a, b) => rank[a.role] - rank[b.role] || b.drops - a.drops || b.peak_bytes - a.peak_bytes);
  const panels = first.map((q, i) => queuePanel(base, `queue-${i}`, [q]));
  if (others.length > 0) panels.push(queuePanel(base, "queue-other", others));
  return panels;
}

/** One queue over time, or one of several to choose from. */
function queuePanel(base: Base, id: string, queues: LabQueue[]): Panel {
  let chosen = queues[0] as LabQueue;
  const finest = queues.reduce((a, b) => (b.series.interval_ns < a.series.interval_ns ? b : a));
  const step = finest.series.interval_ns;
  const length = Math.max(...queues.map((q) => Math.round((q.series.interval_ns * q.series.backlog_bytes_max.length) / step)));
  const edges = Array.from({ length: length + 1 }, (_, k) => k * step);
  let panel: Panel | null = null;
  const select = h("select", { "aria-label": "queue in this chart" }, ...queues.map((q, i) => h("option", { value: i }, named(q))));
  select.addEventListener("change", () => {
    chosen = queues[Number(select.value)] ?? chosen;
    panel?.setStreams();
  });
  const limit = () => (isNumber(chosen.limit_bytes) ? chosen.limit_bytes : null);
  // A limit far above what ever waited would flatten everything else: it waits in the legend.
  let wanted: boolean | null = null;
  const limited = () => limit() !== null && (wanted ?? (limit() as number) <= 2.5 * Math.max(1, chosen.peak_bytes));
  panel = new Panel({
    ...base,
    id,
    title: queues.length > 1 ? "Other queues" : `Queue ${named(chosen)}`,
    note: "Max backlog in each interval; ticks at the top are dropped packets",
    height: queues.length > 1 ? 110 : 130,
    kind: "size",
    x: inSeconds(edges),
    steps: true,
    resting: "largest",
    lines: [
      { label: "backlog", color: 6, width: 1, fill: true, values: () => onto(chosen, edges, false), shown: () => true },
      {
        label: "limit",
        color: "text",
        width: 1,
        dash: [5, 3],
        values: () => edges.map(limit),
        shown: limited,
        ...(queues.some((q) => isNumber(q.limit_bytes)) ? { toggle: () => void (wanted = !limited()) } : {}),
      },
      { label: "dropped", color: "bad", width: 1, ticks: true, values: () => onto(chosen, edges, true), shown: () => true },
    ],
    controls: queues.length > 1 ? [select] : [],
  });
  return panel;
}

/** A queue's name with what kind it is and how large. */
function named(queue: LabQueue): string {
  const role = { switch: "", host: "host qdisc, ", wire: "link, " }[queue.role];
  const limit = isNumber(queue.limit_bytes)
    ? ` of ${bytes(queue.limit_bytes)}`
    : isNumber(queue.limit_packets)
      ? ` of ${integer(queue.limit_packets)} packets`
      : "";
  return `${arrow(queue.name)} (${role}${queue.kind}${limit})`;
}

/** A queue's series on finer cells: what waited holds over its cell, what dropped counts once. */
export function onto(queue: LabQueue, edges: readonly number[], drops: boolean): Column {
  const { series } = queue;
  const cells = edges.length - 1;
  const step = (edges[1] as number) - (edges[0] as number);
  const out: Column = new Array<number | null>(cells).fill(null);
  if (drops) {
    series.drops.forEach((count, k) => {
      const at = Math.min(cells - 1, Math.floor(((k + 0.5) * series.interval_ns) / step));
      out[at] = (out[at] ?? 0) + count;
    });
  } else {
    for (let k = 0; k < cells; k++) {
      out[k] = series.backlog_bytes_max[Math.floor((((edges[k] as number) + step / 2) / series.interval_ns))] ?? null;
    }
  }
  out.push(out[cells - 1] ?? null);
  return out;
}
