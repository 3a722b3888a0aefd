// The cells by the values of their varied keys, and each figure's mean and spread over the seeds. Pure functions.

import type { LabCell, LabChart, LabSetDocument } from "../document";
import { isNumber } from "../format";
import { totalGoodput, totalRetransmits } from "../lab/flows";
import { axis, written, type Axis } from "./values";

/** Cells that differ in their seed alone. */
export interface Group {
  /** Index on the x axis. */
  x: number;
  /** Index of the line. */
  line: number;
  cells: LabCell[];
}

export interface Grouped {
  x: Axis;
  /** The further keys. */
  others: Axis[];
  /** Names of the lines: every combination of the further keys that occurs; one without a name when there are none. */
  lines: string[];
  groups: Group[];
}

/** A figure of a cell. */
export interface Metric {
  id: string;
  title: string;
  note: string;
  kind: "rate" | "count" | "share" | "time";
  unit?: string;
  /** Its values in one cell; several where each stream has one. */
  of: (cell: LabCell) => number[];
}

/** A figure over the seeds of a group. */
export interface Spread {
  mean: number;
  least: number;
  most: number;
  values: { value: number; seed: number }[];
}

export function grouped(set: LabSetDocument): Grouped {
  const [first, ...rest] = set.varied;
  const value = (cell: LabCell, key: string) => (Object.hasOwn(cell.values, key) ? cell.values[key] : undefined);
  const all = (key: string) => set.cells.map((c) => value(c, key));
  const x = first === undefined ? axis("", ["all runs"]) : axis(first, all(first));
  const others = rest.map((key) => axis(key, all(key)));
  const lines: string[] = [];
  const groups = new Map<string, Group>();
  const order = (cell: LabCell) => others.map((o) => o.values.indexOf(written(value(cell, o.name))));
  const combinations = [...new Map(set.cells.map((c) => [order(c).join(), order(c)])).values()].sort((a, b) => compare(a, b));
  for (const c of combinations) lines.push(c.map((i, k) => named(others[k] as Axis, i)).join(", "));
  const lineOf = new Map(combinations.map((c, i) => [c.join(), i]));
  for (const cell of set.cells) {
    const at = first === undefined ? 0 : x.values.indexOf(written(value(cell, first)));
    const line = lineOf.get(order(cell).join()) ?? 0;
    const key = `${line} ${at}`;
    const group = groups.get(key) ?? { x: at, line, cells: [] };
    group.cells.push(cell);
    groups.set(key, group);
  }
  return { x, others, lines, groups: [...groups.values()].sort((a, b) => a.x - b.x || a.line - b.line) };
}

/** A value of an axis in words. */
export function named(of: Axis, index: number): string {
  const label = of.labels[index] ?? "–";
  // `yes`, or a number, says little without what it is about.
  return of.kind === "category" && !/^(yes|no)$/.test(label) ? label : `${of.name} ${label}`;
}

function compare(a: readonly number[], b: readonly number[]): number {
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return (a[i] as number) - (b[i] as number);
  return 0;
}

/** The cells whose figures can be used. */
export const usable = (cells: readonly LabCell[]): LabCell[] => cells.filter((c) => c.status === "complete");

/** Mean, min and max of a figure over the usable cells of a group; null when none has it. */
export function spreadOf(cells: readonly LabCell[], metric: Metric): Spread | null {
  const values = usable(cells).flatMap((c) => metric.of(c).map((value) => ({ value, seed: c.seed })));
  if (values.length === 0) return null;
  const numbers = values.map((v) => v.value);
  return {
    mean: numbers.reduce((a, b) => a + b, 0) / numbers.length,
    least: Math.min(...numbers),
    most: Math.max(...numbers),
    values,
  };
}

const known = (value: number | null | undefined): number[] => (isNumber(value) ? [value] : []);

export const TOTAL: Metric = {
  id: "total",
  title: "Goodput, sum of all flows",
  note: "Sum of the flows’ goodput, each in its steady phase",
  kind: "rate",
  of: (c) => known(totalGoodput(c.flows)),
};

export const RETRANSMITS: Metric = {
  id: "retransmits",
  title: "Retransmits",
  note: "Sum of all TCP flows",
  kind: "count",
  unit: "segments",
  of: (c) => known(totalRetransmits(c.flows)),
};

export const DROPS: Metric = {
  id: "drops",
  title: "Dropped by switches",
  note: "Sum of all ports of all switches",
  kind: "count",
  unit: "packets",
  of: (c) => (c.queues.length > 0 ? [c.queues.reduce((sum, q) => sum + q.drops, 0)] : []),
};

/** The charts that answer the scenario's question: those it declares that any cell has, else the sum of all goodput. */
export function leads(set: LabSetDocument): Metric[] {
  const declared = (set.charts ?? []).filter((chart) => chart.over !== "time").map((chart) => declaredMetric(set, chart));
  const known = declared.filter((m) => set.cells.some((c) => m.of(c).length > 0));
  return known.length > 0 ? known : [TOTAL];
}

function declaredMetric(set: LabSetDocument, { figure, flow: name }: LabChart): Metric {
  if (figure === "retransmits" || figure === "cwnd" || figure === "balance") return RETRANSMITS;
  if (!name) return { goodput: TOTAL, loss: DROPS, rtt: flowRtt(flowNames(set)[0] ?? "", 0) }[figure];
  const index = flowNames(set).indexOf(name);
  return { goodput: flowGoodput, loss: flowLoss, rtt: flowRtt }[figure](name, index);
}

/** The flows of any cell, by name, in their order. */
export function flowNames(set: LabSetDocument): string[] {
  return [...new Set(set.cells.flatMap((c) => c.flows.map((f) => f.name)))];
}

const flow = (cell: LabCell, name: string) => cell.flows.find((f) => f.name === name);

export function flowGoodput(name: string, index: number): Metric {
  return {
    id: `flow-${index}`,
    title: `Goodput of ${name}`,
    note: "Goodput in its steady phase",
    kind: "rate",
    of: (c) => known(flow(c, name)?.goodput_bps),
  };
}

export function flowRtt(name: string, index: number): Metric {
  return {
    id: `rtt-${index}`,
    title: `RTT of ${name}`,
    note: "Mean of TCP’s smoothed RTT in the steady phase",
    kind: "time",
    of: (c) => known(flow(c, name)?.rtt_ns),
  };
}

export function streamGoodput(name: string, index: number): Metric {
  return {
    id: `streams-${index}`,
    title: `Each stream of ${name}`,
    note: "Each dot is a stream of a run",
    kind: "rate",
    of: (c) => ((flow(c, name)?.streams_bps.length ?? 0) > 1 ? (flow(c, name)?.streams_bps ?? []) : []),
  };
}

export function flowLoss(name: string, index: number): Metric {
  return {
    id: `loss-${index}`,
    title: `Loss of ${name}`,
    note: "Share of the UDP packets that were lost",
    kind: "share",
    of: (c) => known(flow(c, name)?.loss_ratio),
  };
}
