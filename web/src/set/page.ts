// The page of the cells of a varied or repeated scenario.

import type { LabCell, LabSetDocument } from "../document";
import { h, num, prose, section, table, type Child } from "../dom";
import { bytes, integer, isNumber, NONE, rate, significant } from "../format";
import { commandLine, date, pageButtons, plural, remarked, sentence } from "../headline";
import { kernels, prediction, referencePart, spelled } from "../lab/tables";
import { attempt, footer } from "../run";
import { figureText, setChart } from "./chart";
import {
  DROPS, flowGoodput, flowLoss, flowNames, flowRtt, grouped, leads, named, RETRANSMITS, spreadOf, streamGoodput, TOTAL, usable,
  type Group, type Grouped, type Metric,
} from "./groups";
import { marksOf, referenceSection } from "./reference";
import { timeSection } from "./time";

/** From this many cells on the table of every run waits to be opened. */
const LONG = 40;
/** Flows that get their own chart or column. */
const FLOWS = 8;

/** The whole page. */
export function setPage(set: LabSetDocument, save: () => void): Child[] {
  const groups = grouped(set);
  const overTime = attempt("over time", () => timeSection(set, groups));
  const lead = attempt("chart", () => leadCharts(set, groups));
  return [
    header(set, save),
    attempt("conclusion", () => h("p.conclusion", null, conclusion(set, groups))),
    // The chart that is declared first answers the question.
    ...(set.charts?.[0]?.over === "time" ? [overTime, lead] : [lead, overTime]),
    trust(set),
    attempt("headline", () => headline(set, groups)),
    attempt("figures", () => referenceSection(set, set.reference?.source)),
    attempt("charts", () => chartsSection(set, groups)),
    attempt("cells", () => cellsSection(set, groups)),
    attempt("runs", () => runsSection(set, groups)),
    footer(set.schema, plural(set.cells.length, "cell")),
  ];
}

function header(set: LabSetDocument, save: () => void): HTMLElement {
  return h(
    "header.top",
    null,
    pageButtons(save),
    h("p.kicker", null, "landspeed lab, a set of runs in virtual time"),
    h("h1", null, set.name),
    h(
      "p.meta",
      null,
      set.command.length > 0 ? h("code", null, commandLine(set.command)) : null,
      set.started ? h("span", null, date(set.started)) : null,
      h("span", null, `Linux ${kernels(set)}`),
      h("span", null, `landspeed ${set.landspeed.version}`),
    ),
  );
}

/** Which cells cannot be used, and what else to know. */
function trust(set: LabSetDocument): HTMLElement | null {
  const out = set.cells.filter((c) => c.status !== "complete");
  const warnings = remarked({ errors: [], warnings: set.warnings ?? [] });
  if (out.length === 0) return warnings.length > 0 ? h("div.notices", null, ...warnings) : null;
  const invalid = out.filter((c) => c.status === "invalid").length;
  const problems = [...new Set(out.flatMap((c) => c.problems))];
  const kinds = [
    ...(invalid > 0 ? [`${integer(invalid)} invalid`] : []),
    ...(["partial", "failed"] as const).flatMap((s) => {
      const n = out.filter((c) => c.status === s).length;
      return n > 0 ? [`${integer(n)} ${s}`] : [];
    }),
  ];
  return h(
    "div.notices",
    null,
    h(
      "p.notice.bad",
      { role: "alert" },
      h("b", null, `${integer(out.length)} of ${plural(set.cells.length, "cell")} cannot be used: ${kinds.join(", ")}. `),
      "They are in the table of all runs, and not in charts and means.",
    ),
    ...problems.slice(0, 8).map((p) => h("p.notice.bad", null, ...prose(sentence(p)))),
    problems.length > 8 ? h("p.notice.bad", null, `And ${integer(problems.length - 8)} more.`) : null,
    ...warnings,
  );
}

function headline(set: LabSetDocument, groups: Grouped): HTMLElement {
  const means = groups.groups.flatMap((g) => spreadOf(g.cells, TOTAL)?.mean ?? []);
  const [least, most] = [Math.min(...means), Math.max(...means)];
  const [amount, ...unit] = rate(means.length > 0 ? most : null).split(" ");
  const seeds = new Set(set.cells.map((c) => c.seed)).size;
  const many = means.length > 1;
  const facts: [string, Child][] = [
    ["cells", integer(set.cells.length)],
    ["complete", integer(usable(set.cells).length)],
    ...[groups.x, ...groups.others].filter((a) => a.name).map((a): [string, Child] => [a.name, plural(a.values.length, "value")]),
    ["seeds", integer(seeds)],
    ...(many ? [["min mean goodput", rate(least)] as [string, Child]] : []),
    ["kernel", kernels(set)],
    ["kernel build", [...new Set(set.cells.map((c) => c.kernel.build_id))].filter(Boolean).join(", ") || NONE],
    ["real time", `${significant(set.wall_s)} s`],
  ];
  return h(
    "section.headline",
    { id: "headline", "aria-label": "Result" },
    h(
      "div.figures",
      null,
      h(
        "div.figure",
        null,
        h("p.big", { id: "goodput" }, amount ?? NONE, h("span", null, ` ${unit.join(" ")}`)),
        h("p.of", null, means.length === 0 ? "no usable cell" : many ? "highest mean goodput, sum of all flows" : "mean goodput, sum of all flows"),
      ),
      h("dl.facts", null, ...facts.map(([name, value]) => h("div", null, h("dt", null, name), h("dd", null, value)))),
    ),
    h(
      "div.verdicts",
      null,
      set.description ? h("p.says", null, ...prose(set.description)) : null,
      prediction(),
      referencePart(set.reference, got(groups)),
    ),
  );
}

/** What came out, short enough to stand beside what was reported. */
function got(groups: Grouped): string {
  const say = (g: Group) => {
    const spread = spreadOf(g.cells, TOTAL);
    if (!spread) return [];
    const where = [groups.x.name ? groups.x.labels[g.x] : "", groups.lines[g.line]].filter(Boolean).join(", ");
    return [{ mean: spread.mean, text: `${where ? `${where}: ` : ""}${rate(spread.mean)}` }];
  };
  const all = groups.groups.flatMap(say);
  if (all.length === 0) return "No usable cell.";
  if (all.length <= 8) return `Sum of all flows, mean over seeds: ${all.map((a) => a.text).join("; ")}.`;
  const sorted = [...all].sort((a, b) => a.mean - b.mean);
  return `Sum of all flows, mean over seeds: from ${sorted[0]?.text} to ${sorted.at(-1)?.text}.`;
}

/** What the charts of the question show, in one sentence. */
function conclusion(set: LabSetDocument, groups: Grouped): string {
  const said = leads(set).flatMap((m) => extent(groups, m) ?? []);
  return said.length > 0 ? `${said.join("; ")}.` : "No run can be used.";
}

/** How a figure goes over the varied keys. */
function extent(groups: Grouped, metric: Metric): string | null {
  const all = groups.groups.flatMap((g) => {
    const spread = spreadOf(g.cells, metric);
    const where = [groups.x.name ? named(groups.x, g.x) : "", groups.lines[g.line]].filter(Boolean).join(", ");
    return spread ? [{ mean: spread.mean, text: figureText(spread.mean, metric), where }] : [];
  });
  const [first, last] = [all[0], all.at(-1)];
  if (!first || !last) return null;
  const at = (p: typeof first) => `${p.text}${p.where ? ` (${p.where})` : ""}`;
  if (all.every((p) => p.text === first.text)) return `${metric.title} is ${first.text}${all.length > 1 ? " everywhere" : ""}`;
  const goes = (up: boolean) => groups.lines.length === 1 && all.every((p, i) => i === 0 || (up ? p.mean >= (all[i - 1]?.mean ?? 0) : p.mean <= (all[i - 1]?.mean ?? 0)));
  if (goes(true) || goes(false)) return `${metric.title} ${goes(true) ? "rises" : "falls"} from ${at(first)} to ${at(last)}`;
  const sorted = [...all].sort((a, b) => a.mean - b.mean);
  return `${metric.title} lies between ${at(sorted[0] ?? first)} and ${at(sorted.at(-1) ?? last)}`;
}

function leadCharts(set: LabSetDocument, groups: Grouped): HTMLElement | null {
  const metrics = leads(set);
  const drawn = metrics.flatMap((m) => setChart(groups, [m], [], metrics.length > 1 ? 280 : 320, marksOf(set, groups, m)) ?? []);
  return drawn.length > 0 ? h("div.lead", { class: drawn.length > 1 ? "small" : null }, ...drawn) : null;
}

function chartsSection(set: LabSetDocument, groups: Grouped): HTMLElement | null {
  const names = flowNames(set);
  const led = new Set(leads(set).map((m) => m.id));
  const chart = (metrics: readonly Metric[], lines: readonly string[], height: number) =>
    metrics.length === 1 && led.has(metrics[0]?.id ?? "") ? null : setChart(groups, metrics, lines, height);
  const flows = names.slice(0, FLOWS).map(flowGoodput);
  const single = groups.lines.length === 1;
  const numbers = <T>(make: (name: string, index: number) => T) => names.slice(0, FLOWS).map(make);
  const zero = [RETRANSMITS, DROPS].filter((m) => groups.groups.every((g) => (spreadOf(g.cells, m)?.most ?? 0) === 0) && groups.groups.some((g) => spreadOf(g.cells, m)));
  const total = chart([TOTAL], [], 240);
  const small: (HTMLElement | null)[] = [
    ...(names.length < 2 ? [] : single ? [chart(flows.map((m, i) => (i === 0 ? { ...m, id: "flows" } : m)), names, 240)] : flows.map((m) => chart([m], [], 240))),
    ...numbers((n, i) => chart([streamGoodput(n, i)], [], 240)),
    chart([RETRANSMITS], [], 240),
    chart([DROPS], [], 240),
    ...numbers((n, i) => chart([flowLoss(n, i)], [], 240)),
    ...numbers((n, i) => chart([flowRtt(n, i)], [], 240)),
  ];
  if (!total && small.every((c) => c === null)) return null;
  const seeds = Math.max(...groups.groups.map((g) => usable(g.cells).length));
  return section(
    "charts",
    groups.x.name ? `By ${groups.x.name}` : "By seed",
    h(
      "p.help",
      null,
      seeds > 1
        ? "Large dots and lines: mean over seeds. Bands or bars: min to max. Small dots: each run."
        : "One run per point.",
      names.length > FLOWS ? ` Charts of the first ${FLOWS} of ${names.length} flows.` : "",
      zero.length > 0 ? ` Zero in every run, and not drawn: ${zero.map((m) => m.title.toLowerCase()).join(", ")}.` : "",
    ),
    total,
    h("div.small", null, ...small),
  );
}

/** Columns that every table of the set has: figures that any cell has. */
function metrics(set: LabSetDocument): Metric[] {
  const names = flowNames(set);
  const flows = names.length > 1 ? names.slice(0, FLOWS).map((n, i) => ({ ...flowGoodput(n, i), title: n })) : [];
  const losses = names.slice(0, FLOWS).map((n, i) => ({ ...flowLoss(n, i), title: `${n}, loss` }));
  const rtts = names.slice(0, FLOWS).map((n, i) => ({ ...flowRtt(n, i), title: `${n}, RTT` }));
  const all = [{ ...TOTAL, title: "Goodput" }, ...flows, { ...RETRANSMITS, title: "Retransmits" }, { ...DROPS, title: "Drops" }, ...losses, ...rtts];
  return all.filter((m) => set.cells.some((c) => m.of(c).length > 0));
}

const right = (text: string) => h("th.num", { scope: "col" }, text);

/** Where a group stands: its varied values. */
function place(groups: Grouped, g: Group, cell: LabCell): Child[] {
  if (!groups.x.name) return [];
  const others = groups.others.map((o) => h("td", null, o.labels[o.values.indexOf(writtenOf(cell, o.name))] ?? NONE));
  return [h("th", { scope: "row" }, groups.x.labels[g.x] ?? NONE), ...others];
}

function writtenOf(cell: LabCell, name: string): string {
  return Object.hasOwn(cell.values, name) ? spelled(cell.values[name]) : NONE;
}

const heads = (groups: Grouped): Child[] => (groups.x.name ? [groups.x.name, ...groups.others.map((o) => o.name)] : []);

/** Mean and spread of every group. */
function cellsSection(set: LabSetDocument, groups: Grouped): HTMLElement {
  const columns = metrics(set);
  return section(
    "cells",
    "Cells",
    table(
      [...heads(groups), right("Runs"), ...columns.map((m) => right(m.title)), "Digests"],
      groups.groups.map((g) => {
        const good = usable(g.cells);
        return h(
          "tr",
          null,
          ...place(groups, g, g.cells[0] as LabCell),
          num(good.length === g.cells.length ? integer(good.length) : `${good.length} of ${g.cells.length}`),
          ...columns.map((m) => figures(g, m)),
          digests(good),
        );
      }),
      { class: "cells", caption: "Mean over seeds; below it min and max" },
    ),
  );
}

function figures(g: Group, metric: Metric): HTMLTableCellElement {
  const spread = spreadOf(g.cells, metric);
  if (!spread) return num(NONE);
  const apart = spread.values.length > 1 && spread.least !== spread.most;
  return h(
    "td.num",
    null,
    figureText(spread.mean, metric),
    apart ? h("small", null, `${figureText(spread.least, metric)} – ${figureText(spread.most, metric)}`) : null,
  );
}

function digests(cells: readonly LabCell[]): HTMLTableCellElement {
  const all = cells.flatMap((c) => (c.digest ? [c.digest] : []));
  const code = (d: string) => h("code.short", { title: d }, d.slice(0, 8));
  if (all.length <= 3) return h("td.digests", null, ...all.flatMap((d, i) => [i > 0 ? " " : "", code(d)]));
  return h("td.digests", null, h("details", null, h("summary", null, plural(all.length, "digest")), ...all.flatMap((d, i) => [i > 0 ? " " : "", code(d)])));
}

/** Every cell by itself. */
function runsSection(set: LabSetDocument, groups: Grouped): HTMLElement {
  const columns = metrics(set);
  const streams = set.cells.some((c) => c.flows.some((f) => f.streams_bps.length > 1));
  const body = table(
    [
      ...heads(groups), right("Seed"), "Status", ...columns.map((m) => right(m.title)),
      ...(streams ? [right("Streams, min – max")] : []), right("Fullest queue"), right("Real time"), "Kernel", "Digest", "Problems",
    ],
    groups.groups.flatMap((g) =>
      g.cells.map((cell) => {
        const of = (m: Metric) => {
          const [value] = m.of(cell);
          return num(isNumber(value) ? figureText(value, m) : NONE);
        };
        const full = cell.queues.reduce<LabCell["queues"][number] | null>((a, q) => (a && a.peak_bytes >= q.peak_bytes ? a : q), null);
        return h(
          "tr",
          { class: cell.status === "complete" ? null : "failed" },
          ...place(groups, g, cell),
          num(String(cell.seed)),
          h("td", null, cell.status),
          ...columns.map(of),
          ...(streams ? [num(balance(cell))] : []),
          num(full ? bytes(full.peak_bytes) : NONE, full?.name),
          num(`${significant(cell.wall_s)} s`),
          h("td", null, cell.kernel.release || NONE),
          h("td", null, cell.digest ? h("code.short", { title: cell.digest }, cell.digest.slice(0, 16)) : NONE),
          h("td", null, cell.problems.join("; ")),
        );
      }),
    ),
    { class: "wide", caption: "Each run; the complete digest is in the saved JSON" },
  );
  return section("runs", "All runs", h("details", { open: set.cells.length <= LONG }, h("summary", null, plural(set.cells.length, "run")), body));
}

function balance(cell: LabCell): string {
  const all = cell.flows.flatMap((f) => (f.streams_bps.length > 1 ? f.streams_bps : []));
  return all.length > 0 ? `${rate(Math.min(...all))} – ${rate(Math.max(...all))}` : NONE;
}

