// The page of a watch: what moved most and what limits it, rates over time, shares of time, every flow with its evidence.

import { timelineSection } from "../charts";
import type { Epoch, Evidence, WatchDocument, WatchFlow } from "../document";
import { h, num, path, prose, section, table, type Child } from "../dom";
import { stateName } from "../epochs";
import { causeName, causePage } from "../evidence";
import { bytes, integer, isNumber, measured, micros, nanos, NONE, percent, rate, seconds } from "../format";
import { commandLine, date, pageButtons, plural, sentence } from "../headline";
import { Panel, type Line, type PanelOptions } from "../panel";
import { attempt, footer } from "../run";
import { inSeconds, sum, type Column } from "../series";
import { Timeline } from "../timeline";
import { cellEdges, drawn, levelsAt, ratesIn } from "./series";

/** Flows drawn over time. */
const DRAWN = 8;
/** Flows whose evidence is open from the start. */
const OPEN = 3;

/** The whole page. */
export function watchPage(watch: WatchDocument, save: () => void): Child[] {
  return [
    header(watch, save),
    attempt("conclusion", () => h("p.conclusion", null, ...prose(conclusion(watch)))),
    attempt("charts", () => charts(watch)),
    attempt("shares", () => shares(watch)),
    attempt("flows", () => flowTable(watch)),
    attempt("evidence", () => evidence(watch)),
    attempt("watching", () => watching(watch)),
    footer(watch.schema, plural(watch.flows.length, "flow")),
  ];
}

function header(watch: WatchDocument, save: () => void): HTMLElement {
  return h(
    "header.top",
    null,
    pageButtons(save),
    h("p.kicker", null, "landspeed watch, transfers that were already running"),
    h("h1", null, watch.hostname || "a host"),
    h(
      "p.meta",
      null,
      h("code", null, commandLine(watch.command)),
      h("span", null, date(watch.started)),
      h("span", null, `Linux ${watch.kernel_release}`),
      h("span", null, `landspeed ${watch.landspeed.version}`),
    ),
  );
}

const moved = (f: WatchFlow) => (f.role === "sender" ? f.bytes_acked : f.bytes_received);
const arrow = (f: WatchFlow) => (f.role === "sender" ? "→" : "←");

/** `nginx[812]`. */
function process(f: WatchFlow): string {
  return f.command && isNumber(f.pid) ? `${f.command}[${f.pid}]` : `user ${f.uid}`;
}

function ends(f: WatchFlow): string {
  return `${f.local} ${arrow(f)} ${f.remote}`;
}

function named(f: WatchFlow): string {
  return causeName(f.cause).replace(/^./, (c) => c.toLowerCase()).replace(": ", ", ");
}

/** The result in one sentence. */
function conclusion(watch: WatchDocument): string {
  const [first] = watch.flows;
  const whole = `${plural(watch.flows.length, "flow")} moved data in ${nanos(Math.round(watch.duration_ns / 1e8) * 1e8)}`;
  if (!first) return `${whole}.`.replace(/^no/, "No");
  const limit = first.cause === "undetermined" ? "cause undetermined" : `cause: ${named(first)} (${first.confidence} confidence)`;
  const verb = first.role === "sender" ? "to" : "from";
  return `${whole}; most by ${process(first)} ${verb} ${first.remote}, ${rate(first.goodput_bps)}; ${limit}.`;
}

function charts(watch: WatchDocument): HTMLElement | null {
  const flows = drawn(watch.flows, DRAWN);
  const edges = cellEdges(flows.flatMap((f) => (f.series ? [f.series] : [])));
  if (edges.length < 2) return null;
  const x = inSeconds(edges);
  const [start, end] = [x[0] as number, x[x.length - 1] as number];
  const ids = flows.map((_, i) => i);
  const timeline = new Timeline(start, end, (end - start) / (x.length - 1), ids);
  timeline.whole = "whole watch";
  const lines = (column: (f: WatchFlow) => Column, which: (f: WatchFlow) => boolean = () => true): Line[] =>
    flows.flatMap((f, i) => {
      if (!which(f)) return [];
      const values = column(f);
      return [{ label: chipName(f), color: i, width: 1.5, values: () => values, shown: () => timeline.visible.has(i) }];
    });
  const panel = (more: Pick<PanelOptions, "id" | "title" | "kind" | "steps" | "lines" | "resting"> & Partial<PanelOptions>) =>
    new Panel({ height: 150, x, shades: [], marks: [], timeline, ...more });
  const sends = (f: WatchFlow) => f.role === "sender";
  const series = (f: WatchFlow) => f.series ?? { t_ns: [], bytes: [], retransmits: [], rtt_us: [], cwnd: [] };
  const rates = flows.map((f) => ratesIn(edges, series(f).t_ns, series(f).bytes, 8));
  const total: Line = {
    label: "sum",
    color: "text",
    width: 1.5,
    values: () => sum(rates.filter((_, i) => timeline.visible.has(i)), x.length),
    shown: () => timeline.showSum && flows.length > 1,
  };
  const panels = [
    panel({
      id: "throughput",
      title: "Rate",
      note: "payload acknowledged (sender) or received in order (receiver)",
      kind: "rate",
      height: 220,
      steps: true,
      resting: "mean",
      lines: [...lines((f) => rates[flows.indexOf(f)] ?? []), total],
    }),
    panel({ id: "rtt", title: "RTT", kind: "time", steps: false, resting: "mean", lines: lines((f) => levelsAt(edges, series(f).t_ns, series(f).rtt_us).map((us) => (us === null ? null : us * 1e3))) }),
  ];
  if (flows.some((f) => sends(f) && (series(f).retransmits.at(-1) ?? 0) > 0)) {
    panels.push(
      panel({ id: "retransmits", title: "Retransmits", kind: "count", unit: "/s", steps: true, resting: "mean", lines: lines((f) => ratesIn(edges, series(f).t_ns, series(f).retransmits, 1), sends) }),
    );
  }
  const chips = flows.map((f, id) => ({ id, name: chipName(f), title: `${process(f)}, ${ends(f)}` }));
  return timelineSection(timeline, panels, { chips, noun: "flow", steady: null, heat: null, epochs: [] });
}

/** A flow in a chart's legend. */
function chipName(f: WatchFlow): string {
  return `${f.command ?? `user ${f.uid}`} ${arrow(f)} ${f.remote}`;
}

/** One bar for each flow: what limited it, in shares of the time that the verdict is about. */
function shares(watch: WatchDocument): HTMLElement | null {
  if (watch.flows.length === 0) return null;
  const seen = new Set(watch.flows.flatMap((f) => f.shares.map((s) => s.state)));
  return section(
    "shares",
    "What limited each flow",
    h("p.help", null, "Shares of the time that the verdict is about, from the sender’s tcp_info. At a receiver they are not visible."),
    h("p.legend.shares", null, ...[...seen].map((state) => h("span.item", null, h(`i.key.e-${state}` as "i"), ` ${stateName(state)}`))),
    table(
      ["Flow", "Shares", "Cause"],
      watch.flows.map((f) => [h("td", null, process(f), h("br"), h("small.muted", null, ends(f))), h("td.barcell", null, bar(f.shares)), verdictName(f)]),
      { class: "shares", caption: "Shares of time" },
    ),
  );
}

function bar(epochs: readonly Epoch[]): HTMLElement {
  const text = epochs.map((e) => `${(e.share_permille / 10).toFixed(1)} % ${stateName(e.state)}`).join(", ");
  const track = h("div.sharebar", { role: "img", "aria-label": text, title: text });
  for (const e of epochs) {
    const part = h(`span.e-${e.state}` as "span");
    part.style.width = `${e.share_permille / 10}%`;
    track.append(part);
  }
  return track;
}

function verdictName(f: WatchFlow): string {
  return f.cause === "undetermined" ? "Undetermined" : `${causeName(f.cause)} (${f.confidence})`;
}

function flowTable(watch: WatchDocument): HTMLElement | null {
  if (watch.flows.length === 0) return null;
  const heads: [string, boolean][] = [
    ["Process", false], ["Unit, container", false], ["Addresses", false], ["Rate", true], ["Moved", true], ["Retransmits", true],
    ["RTT", true], ["Min RTT", true], ["Control", false], ["Cause", false],
  ];
  return section(
    "flows",
    "Flows",
    table(
      heads.map(([name, figure]) => (figure ? h("th.num", { scope: "col" }, name) : name)),
      watch.flows.map((f, i) => [
        h("td", null, h("a", { href: `#flow-${i + 1}` }, process(f))),
        [f.unit, f.container].filter(Boolean).join(", ") || NONE,
        `${ends(f)}${f.ended ? ", ended" : ""}`,
        num(rate(f.goodput_bps)),
        num(bytes(moved(f))),
        num(f.role === "sender" ? integer(f.retransmits) : NONE),
        num(micros(f.rtt_us)),
        num(micros(f.min_rtt_us)),
        f.congestion ?? NONE,
        verdictName(f),
      ]),
      { class: "wide", caption: "Flows, those that moved most first" },
    ),
  );
}

function evidence(watch: WatchDocument): HTMLElement | null {
  if (watch.flows.length === 0) return null;
  return section("evidence", "Evidence", ...watch.flows.map(flow));
}

function flow(f: WatchFlow, index: number): HTMLElement {
  // Made for each table: an element stands in one place only.
  const heads = () => ["Reading", "Value", "Threshold", "Met", "Where", "Source"].map((t) => (t === "Value" ? h("th.num", { scope: "col" }, t) : t));
  const ruled = f.ruled_out;
  return h(
    "details.flow",
    { id: `flow-${index + 1}`, open: index < OPEN },
    h("summary", null, `${process(f)}, ${ends(f)}: ${verdictName(f)}`),
    h(
      "div.body",
      null,
      h("p.says", null, ...prose(sentence(f.summary))),
      f.place ? h("p", null, h("span.label", null, "Where"), ...prose(f.place)) : null,
      f.next_step ? h("p.next", null, h("span.label", null, "Next"), ...prose(f.next_step)) : null,
      causePage(f.cause),
      f.process_unknown ? h("p.muted", null, `The process is unknown: ${f.process_unknown}.`) : null,
      changes(f),
      f.evidence.length > 0 ? table(heads(), f.evidence.map((e) => reading(e)), { caption: "What the verdict rests on" }) : null,
      ruled.length > 0
        ? h("details", null, h("summary", null, `${plural(new Set(ruled.map((e) => e.about)).size, "other cause")} ruled out`), table(["Cause", ...heads()], ruled.map((e) => reading(e, causeName(e.about))), { caption: "Considered and ruled out" }))
        : null,
      f.missing.length > 0 ? h("p.muted", null, `Not visible from this end: ${f.missing.join("; ")}.`) : null,
    ),
  );
}

/** When the verdict changed. */
function changes(f: WatchFlow): HTMLElement | null {
  const timeline = f.timeline ?? [];
  if (timeline.length < 2) return null;
  const one = timeline.map((c) => `from ${seconds(c.t_ns / 1e9, 0.1)} ${named({ ...f, cause: c.cause })} (${c.confidence})`);
  return h("p", null, h("span.label", null, "Verdicts"), ` ${one.join(", ")}`);
}

function reading(e: Evidence, about?: string): Child[] {
  return [
    ...(about === undefined ? [] : [about]),
    e.metric,
    num(measured(e.value, e.unit), isNumber(e.value) ? `${e.value} ${e.unit}` : undefined),
    h("td.threshold", null, e.threshold),
    e.met ? "yes" : "no",
    e.host ?? NONE,
    h("td.source", null, path(e.source)),
  ];
}

/** How many connections there were, what watching cost, and what could not be read. */
function watching(watch: WatchDocument): HTMLElement {
  const { sockets, overhead } = watch;
  const rows: [string, Child][] = [
    ["Connections", `${integer(sockets.seen)} seen, ${integer(sockets.most)} at once, ${integer(sockets.ended)} ended`],
    ["Own CPU time", `${percent(overhead.cpu_share)} of a core: ${integer(overhead.dumps)} dumps of all sockets, ${integer(overhead.readings)} readings of busy ones`],
    ...(overhead.late > 0 ? [["Late readings", integer(overhead.late)] as [string, Child]] : []),
    ...(sockets.ended_unlisted > 0 ? [["Ended and not listed", integer(sockets.ended_unlisted)] as [string, Child]] : []),
    ...Object.entries(watch.unavailable).map(([what, why]): [string, Child] => [`Unknown: ${what}`, why]),
  ];
  return section("watching", "The watch", h("dl.list", null, ...rows.map(([name, value]) => h("div", null, h("dt", null, name), h("dd", null, value)))));
}
