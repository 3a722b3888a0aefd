// Request/response times: their distribution to the last percentile, and their figures.

import uPlot from "uplot";
import type { LatencyResult, RunDocument } from "./document";
import { h, num, section, table, type Child } from "./dom";
import { bytes, fit, integer, isNumber, nanos, NONE, percent, perSecond, significant } from "./format";
import { GUTTER, MARGIN } from "./panel";
import { colors, onPrint, onThemeChange } from "./theme";

type Known = number | null | undefined;

interface Curve {
  name: string;
  result: LatencyResult;
}

/** Latency results, or nothing when none were measured. */
export function latencySection(run: RunDocument): HTMLElement | null {
  const curves: Curve[] = run.latency.map((result) => ({ name: sizeName(result), result }));
  const load = run.latency_under_load;
  if (load?.idle) curves.push({ name: "idle", result: load.idle });
  if (load) curves.push({ name: "under load", result: load.loaded });
  if (curves.length === 0) return null;
  const parts: Child[] = [];
  if (load?.idle) {
    const added = change(load.loaded.p50_ns, load.idle.p50_ns);
    const tail = change(load.loaded.p99_ns, load.idle.p99_ns);
    parts.push(
      h(
        "p",
        null,
        "Under load the median round trip changes by ", h("b", null, signed(added)),
        " and the 99th percentile by ", h("b", null, signed(tail)),
        ": what the path and the hosts queue when bulk streams run.",
      ),
    );
  }
  const drawn = curves.filter((c) => c.result.histogram.some((b) => b.count > 0));
  if (drawn.length > 0) parts.push(distribution(drawn));
  if (run.latency.length > 2) parts.push(bySize(run.latency));
  parts.push(figures(curves));
  return section("latency", "Latency", ...parts);
}

function sizeName(r: LatencyResult): string {
  return r.request_bytes === r.response_bytes ? bytes(r.request_bytes) : `${bytes(r.request_bytes)} / ${bytes(r.response_bytes)}`;
}

function change(now: Known, before: Known): Known {
  return isNumber(now) && isNumber(before) ? now - before : null;
}

function signed(ns: Known): string {
  if (!isNumber(ns)) return NONE;
  return (ns < 0 ? "−" : "+") + nanos(Math.abs(ns));
}

/** Nines: 90 % is 1, 99 % is 2. What a percentile axis is even in. */
function nines(share: number): number {
  return -Math.log10(1 - share);
}

function fromNines(value: number): string {
  if (value <= 0) return "0 %";
  const left = 10 ** -value;
  return `${((1 - left) * 100).toFixed(Math.max(0, Math.round(value) - 2))} %`;
}

/** Each bucket's upper end at the share of requests it completes. */
function percentiles(result: LatencyResult): [number[], number[]] {
  const total = result.histogram.reduce((sum, b) => sum + b.count, 0);
  const x: number[] = [];
  const y: number[] = [];
  let seen = 0;
  for (const bucket of result.histogram) {
    if (bucket.count === 0) continue;
    x.push(nines(seen / total));
    y.push(Math.max(1, (bucket.low_ns + bucket.high_ns) / 2));
    seen += bucket.count;
  }
  // The last bucket ends at the largest request; 1 - 1/n stands for it.
  x.push(nines(1 - 0.5 / total));
  y.push(y[y.length - 1] ?? 1);
  return [x, y];
}

function distribution(curves: readonly Curve[]): HTMLElement {
  const each = curves.map((c) => percentiles(c.result));
  const x = [...new Set(each.flatMap(([xs]) => xs))].sort((a, b) => a - b);
  const columns = each.map(([xs, ys]) => {
    let at = -1;
    return x.map((value) => {
      while (at + 1 < xs.length && (xs[at + 1] as number) <= value) at++;
      return at < 0 || value > (xs[xs.length - 1] as number) ? null : (ys[at] as number);
    });
  });
  const far = x[x.length - 1] ?? 1;
  const ticks = [0, nines(0.5), 1, 2, 3, 4, 5, 6].filter((t) => t <= far);
  return chart({
    id: "latency-distribution",
    title: "Latency by percentile",
    note: `Each request counts from the moment it was ${curves.some((c) => c.result.mode === "open-loop") ? "due" : "sent"}; log scales`,
    height: 260,
    x,
    columns,
    names: curves.map((c) => c.name),
    xTicks: ticks,
    xText: (v) => (v === nines(0.5) ? "50 %" : fromNines(v)),
    xLog: false,
    stepped: true,
    describe: curves
      .map((c) => `${c.name}: median ${nanos(c.result.p50_ns)}, 99th percentile ${nanos(c.result.p99_ns)}`)
      .join("; "),
  });
}

function bySize(results: readonly LatencyResult[]): HTMLElement {
  const sorted = [...results].sort((a, b) => a.request_bytes + a.response_bytes - b.request_bytes - b.response_bytes);
  const x = sorted.map((r) => Math.max(1, r.request_bytes + r.response_bytes));
  return chart({
    id: "latency-sizes",
    title: "Latency by size",
    note: "Request and response bytes together; log scales",
    height: 220,
    x,
    columns: [sorted.map((r) => r.p50_ns ?? null), sorted.map((r) => r.p99_ns ?? null), sorted.map((r) => r.p9999_ns ?? null)],
    names: ["median", "99 %", "99.99 %"],
    xTicks: x,
    xText: (v) => bytes(v),
    xLog: true,
    stepped: false,
    describe: sorted.map((r) => `${sizeName(r)}: median ${nanos(r.p50_ns)}`).join("; "),
  });
}

interface ChartOptions {
  id: string;
  title: string;
  note: string;
  height: number;
  x: number[];
  columns: (number | null)[][];
  names: string[];
  xTicks: number[];
  xText: (value: number) => string;
  xLog: boolean;
  stepped: boolean;
  describe: string;
}

function chart(options: ChartOptions): HTMLElement {
  const holder = h("div.plot", { role: "img", "aria-label": `${options.title}. ${options.describe}.` });
  const legend = h("span.legend");
  const position = options.xLog ? options.x.map((v) => Math.log10(v)) : options.x;
  const ticks = options.xLog ? options.xTicks.map((v) => Math.log10(v)) : options.xTicks;
  const color = (i: number) => colors().streams[i % 8] ?? colors().text;
  const stepped = uPlot.paths.stepped?.({ align: 1 });
  const axis = (more: uPlot.Axis): uPlot.Axis => ({
    stroke: () => colors().muted,
    grid: { stroke: () => colors().grid, width: 1 },
    ticks: { stroke: () => colors().grid, width: 1, size: 4 },
    font: "11px system-ui, sans-serif",
    ...more,
  });
  let [least, most] = [Infinity, 0];
  for (const column of options.columns) {
    for (const value of column) if (value !== null) [least, most] = [Math.min(least, value), Math.max(most, value)];
  }
  const plot = new uPlot(
    {
      width: 900,
      height: options.height,
      padding: [8, MARGIN + 22, 0, 0],
      legend: { show: false },
      cursor: { y: false, drag: { x: false, y: false }, points: { size: 5 } },
      scales: {
        x: { time: false, range: () => edges(position) },
        y: { distr: 3, range: () => [least / 1.15, most * 1.15] },
      },
      axes: [
        axis({
          size: 24,
          gap: 2,
          splits: () => ticks,
          values: (_u, splits) => thin(splits.map((v, i) => ({ v, text: options.xText(options.xTicks[i] as number) }))),
        }),
        axis({
          size: GUTTER,
          gap: 4,
          splits: () => logTicks(least / 1.15, most * 1.15),
          filter: (_u, splits) => splits,
          values: (_u, splits) => splits.map((v) => shortTime(v)),
        }),
      ],
      series: [
        {},
        ...options.columns.map((_, i): uPlot.Series => {
          const builder = options.stepped && stepped ? { paths: stepped } : {};
          const dash = i < 8 ? {} : { dash: i < 16 ? [6, 3] : [2, 2] };
          return { stroke: () => color(i), width: 1.5, points: { show: !options.stepped, size: 5 }, ...builder, ...dash };
        }),
      ],
      hooks: { setLegend: [() => write()] },
    },
    [position, ...options.columns],
    holder,
  );
  const write = () => {
    const at = plot.cursor.idx;
    const index = typeof at === "number" && (plot.cursor.left ?? -1) >= 0 ? at : null;
    const when = index === null ? "" : `at ${options.xLog ? bytes(options.x[index]) : precise(options.x[index] ?? 0)}`;
    legend.replaceChildren(
      h("span.when", null, when),
      ...options.names.map((name, i) => {
        const swatch = h("i.swatch");
        swatch.style.borderTopColor = color(i);
        if (i >= 8) swatch.style.borderTopStyle = i < 16 ? "dashed" : "dotted";
        const value = index === null ? null : (options.columns[i]?.[index] ?? null);
        return h("span.item", null, swatch, h("span", null, name), index === null ? null : h("b", null, nanos(value)));
      }),
    );
  };
  write();
  let printing = false;
  const fitWidth = () => {
    if (!printing && figure.clientWidth > 0) plot.setSize({ width: Math.floor(figure.clientWidth), height: options.height });
  };
  const figure = h(
    "figure.panel",
    { id: `chart-${options.id}` },
    h("figcaption", null, h("strong", null, options.title), h("span.unit", null, options.note), legend),
    holder,
  );
  new ResizeObserver(fitWidth).observe(figure);
  onThemeChange(() => {
    plot.redraw(true, true);
    write();
  });
  onPrint(
    (width) => {
      printing = true;
      plot.setSize({ width, height: options.height });
    },
    () => {
      printing = false;
      fitWidth();
    },
  );
  return figure;
}

function precise(value: number): string {
  return `${((1 - 10 ** -value) * 100).toFixed(Math.max(1, Math.ceil(value)))} %`;
}

function edges(values: readonly number[]): [number, number] {
  const first = values[0] ?? 0;
  const last = values[values.length - 1] ?? 1;
  return first === last ? [first - 0.5, last + 0.5] : [first, last];
}

/** Leaves out labels that would touch: they stand in order, and a neighbour closer than a twelfth of the axis goes. */
function thin(ticks: { v: number; text: string }[]): string[] {
  const span = (ticks[ticks.length - 1]?.v ?? 1) - (ticks[0]?.v ?? 0);
  let last = -Infinity;
  return ticks.map(({ v, text }) => {
    if (span > 0 && v - last < span / 24) return "";
    last = v;
    return text;
  });
}

/** 1, 2 and 5 of each decade in range; only the decades when there are many. */
function logTicks(low: number, high: number): number[] {
  const out: number[] = [];
  const factors = high / low > 1e4 ? [1] : high / low > 100 ? [1, 3] : [1, 1.5, 2, 3, 5, 7];
  for (let power = 10 ** Math.floor(Math.log10(low)); power <= high; power *= 10) {
    for (const factor of factors) if (power * factor >= low && power * factor <= high) out.push(power * factor);
  }
  if (out.length >= 3) return out;
  return Array.from({ length: 5 }, (_, k) => Number((low + ((high - low) * (k + 0.5)) / 5).toPrecision(3)));
}

function shortTime(ns: number): string {
  const step = fit(ns, "time");
  return `${significant(Number((ns / step.size).toPrecision(3)), 3).replace(/\.?0+$/, (m) => (m.startsWith(".") ? "" : m))} ${step.name}`;
}

function figures(curves: readonly Curve[]): HTMLElement {
  const late = curves.some(({ result }) => isNumber(result.send_late_p99_ns));
  const heads = ["", "Load", "Rate", "Completed", "Unanswered", "Least", "Mean", "50 %", "90 %", "99 %", "99.9 %", "99.99 %", "Most", ...(late ? ["Sent late, 99 %"] : [])];
  return table(
    heads.map((t, i) => (i >= 2 ? h("th.num", { scope: "col" }, t) : t)),
    curves.map(({ name, result: r }) => [
      h("th", { scope: "row" }, name) as unknown as HTMLTableCellElement,
      mode(r),
      num(perSecond(r.achieved_per_s), `${r.achieved_per_s} per second`),
      num(integer(r.completed)),
      num(r.unanswered === 0 ? "0" : `${integer(r.unanswered)} (${percent(r.unanswered / Math.max(1, r.sent))})`,
        r.stray_responses ? `and ${integer(r.stray_responses)} responses late, duplicate or to nothing` : undefined),
      ...[r.min_ns, r.mean_ns, r.p50_ns, r.p90_ns, r.p99_ns, r.p999_ns, r.p9999_ns, r.max_ns].map((v) =>
        num(r.completed === 0 ? NONE : nanos(v), `${v} ns`),
      ),
      ...(late ? [num(nanos(r.send_late_p99_ns), "how late requests left against their schedule: the tool's own part of the latency")] : []),
    ]),
    { caption: "Whole round trips, request to response" },
  );
}

function mode(r: LatencyResult): string {
  switch (r.mode) {
    case "open-loop":
      return `open loop${r.offered_per_s ? ` at ${perSecond(r.offered_per_s)}` : ""}`;
    case "closed-loop":
      return "closed loop";
    default:
      return "connect each";
  }
}
