// Figures over time: a small chart for each combination of varied values, all on the same scales.

import type { FlowSeries, LabChart, LabSetDocument } from "../document";
import { h, svg } from "../dom";
import { fit, niceStep, ticks } from "../format";
import { drawToFit } from "../theme";
import { named, type Grouped } from "./groups";

const LEFT = 54;
const RIGHT = 8;
const TOP = 8;
const BOTTOM = 34;
const HEIGHT = 190;
/** Panels of one chart. */
const PANELS = 24;

type Kind = "rate" | "size" | "count";
interface Panel {
  title: string;
  values: readonly number[];
  interval_s: number;
}

/** The charts that a scenario declares over time. */
export const timeCharts = (set: LabSetDocument): LabChart[] => (set.charts ?? []).filter((c) => c.over === "time");

/** All charts over time, those of one figure together. */
export function timeSection(set: LabSetDocument, groups: Grouped): HTMLElement | null {
  const charts = timeCharts(set).flatMap((chart, i) => timeChart(set, groups, chart, i) ?? []);
  return charts.length > 0 ? h("div.lead", null, ...charts) : null;
}

function timeChart(set: LabSetDocument, groups: Grouped, chart: LabChart, index: number): HTMLElement | null {
  const flow = chart.flow ?? set.cells[0]?.flows[0]?.name ?? "";
  const kind: Kind = chart.figure === "cwnd" ? "size" : chart.figure === "retransmits" ? "count" : "rate";
  const panels = groups.groups.flatMap((g): Panel[] => {
    const series = g.cells.flatMap((c) => c.flows.find((f) => f.name === flow)?.series ?? [])[0];
    const where = [groups.x.name ? named(groups.x, g.x) : "", groups.lines[g.line]].filter(Boolean).join(", ");
    return series ? [{ title: where, values: pick(series, chart.figure), interval_s: series.interval_ns / 1e9 }] : [];
  });
  const most = Math.max(0, ...panels.map((p) => p.values.reduce((a, b) => Math.max(a, b), 0)));
  if (panels.length === 0 || most === 0) return null;
  const until = Math.max(...panels.map((p) => p.values.length * p.interval_s));
  const unit = fit(most, kind);
  const step = niceStep(most / unit.size / 3) * unit.size;
  const reach = Math.ceil((most * 1.02) / step) * step;
  const title = { goodput: `Goodput of ${flow}`, retransmits: `Retransmits of ${flow}`, cwnd: `Congestion window of ${flow}` }[chart.figure as string] ?? chart.figure;
  const every = panels[0]?.interval_s ?? 0;
  return h(
    "figure.panel.timechart",
    { id: `chart-time-${index}` },
    h("figcaption", null, h("strong", null, `${title} over time`), h("span.unit", null, `${kind === "count" ? "segments" : unit.name}, in steps of ${every < 1 ? `${Math.round(every * 1e6) / 1e3} ms` : `${every} s`}; the first seed`)),
    h(
      "div.small",
      null,
      ...panels.slice(0, PANELS).map((panel) => {
        const holder = h("div.plot");
        drawToFit(holder, 420, (width) => picture(panel, { width, until, reach, step, unit: unit.size, name: title }));
        return h("div.panel", null, h("p.muted", null, panel.title), holder);
      }),
    ),
  );
}

/** The figure of a series. */
export function pick(series: FlowSeries, figure: LabChart["figure"]): readonly number[] {
  if (figure === "retransmits") return series.retransmits ?? [];
  if (figure === "cwnd") return series.cwnd_bytes ?? [];
  return series.goodput_bps;
}

/** Least and most value of each column of a picture: no peak is lost where several points share a column. */
export function columns(values: readonly number[], width: number): [number, number][] {
  const count = Math.max(1, Math.min(values.length, Math.floor(width)));
  return Array.from({ length: count }, (_, i) => {
    const part = values.slice(Math.floor((i * values.length) / count), Math.max(Math.floor(((i + 1) * values.length) / count), Math.floor((i * values.length) / count) + 1));
    return [Math.min(...part), Math.max(...part)];
  });
}

interface Scale {
  width: number;
  until: number;
  reach: number;
  step: number;
  unit: number;
  name: string;
}

function picture(panel: Panel, { width, until, reach, step, unit, name }: Scale): SVGElement {
  const [right, bottom] = [width - RIGHT, HEIGHT - BOTTOM];
  const level = (value: number) => bottom - ((bottom - TOP) * value) / reach;
  const at = (t: number) => LEFT + ((right - LEFT) * t) / until;
  const values = Array.from({ length: Math.round(reach / step) + 1 }, (_, i) => i * step);
  const texts = ticks(values, unit);
  const second = niceStep(until / 5);
  const seconds = Array.from({ length: Math.floor(until / second + 1e-9) + 1 }, (_, i) => i * second);
  const span = panel.values.length * panel.interval_s;
  const drawn = columns(panel.values, at(span) - LEFT);
  const points = drawn.flatMap(([least, most], i) => {
    const x = at((span * (i + 0.5)) / drawn.length).toFixed(1);
    return least === most ? [`${x} ${level(most).toFixed(1)}`] : [`${x} ${level(least).toFixed(1)}`, `${x} ${level(most).toFixed(1)}`];
  });
  return svg(
    "svg.cells",
    { viewBox: `0 0 ${width} ${HEIGHT}`, width, height: HEIGHT, role: "img", "aria-label": `${name}${panel.title ? `, ${panel.title}` : ""}, over ${Math.round(until)} s` },
    ...values.map((v, i) => svg("g", null, svg("line.grid", { x1: LEFT, x2: right, y1: level(v), y2: level(v) }), svg("text.muted", { x: LEFT - 6, y: level(v) + 4, "text-anchor": "end" }, texts[i] ?? ""))),
    ...seconds.map((s) => svg("text.muted", { x: at(s), y: bottom + 15, "text-anchor": "middle" }, `${Math.round(s * 1000) / 1000}`)),
    svg("text.muted", { x: right, y: HEIGHT - 4, "text-anchor": "end" }, "seconds after the start"),
    svg("g.c0" as "g", null, svg("path.course", { d: `M${points.join("L")}` })),
  );
}
