// The page of a capture or of several taps, and of two captures side by side.

import type { TraceComparison, TraceDocument, TraceSeries } from "../document";
import { append, button, h, num, section, table, type Child } from "../dom";
import { bytes, integer, isNumber, nanos, NONE, rate } from "../format";
import { commandLine, pageButtons, plural, sentence } from "../headline";
import { attempt, footer } from "../run";
import { onPrint, onThemeChange } from "../theme";
import { Timeline } from "../timeline";
import { moment, Row, type ChartOptions } from "./chart";
import { boundsOf, histogram, type Distribution } from "./histogram";
import { delayChart, flightChart, rateChart, rttChart } from "./lines";
import { Model } from "./model";
import { KIND_WORDS, lowerBound } from "./records";
import { describe, nearest, sequenceChart, type Fit } from "./sequence";
import { figuresSection, flowName, flowsSection, multipathSection, pathsSection, stationName, stationsSection } from "./tables";

/** Maximum number of paths whose delay is drawn. */
const PATHS = 4;
/** Maximum number of packets listed. */
const LISTED = 200;

/** The whole page of one capture. */
export function tracePage(trace: TraceDocument, save: () => void): Child[] {
  const series = trace.graphs?.series ?? [];
  return [
    header(baseName(trace.capture.file), "landspeed trace", trace.command, trace, save),
    attempt("conclusion", () => h("p.conclusion", null, conclusion(trace))),
    attempt("headline", () => headline(trace)),
    attempt("paths", () => pathsSection(trace)),
    series.length > 0 ? attempt("timeline", () => graphs([{ trace, series }])) : h("p.notice", null, trace.graphs ? "No time-sequence graph: the capture has no TCP flow with data." : "No graphs: the document has no series. Create it with --series or --report."),
    notices([trace]),
    attempt("distributions", () => distributions([trace])),
    attempt("stations", () => stationsSection(trace)),
    attempt("flows", () => flowsSection(trace)),
    attempt("multipath", () => multipathSection(trace)),
    footer(trace.schema, baseName(trace.capture.file)),
  ];
}

/** The whole page of two. */
export function comparisonPage(both: TraceComparison, save: () => void): Child[] {
  const { a, b } = both;
  const sides = [a, b].map((trace) => ({ trace, series: trace.graphs?.series ?? [] }));
  const of = (name: string, make: (trace: TraceDocument, id: string) => HTMLElement | null) =>
    [a, b].map((trace, i) => {
      const part = attempt(name, () => make(trace, `${name}-${"ab"[i]}`));
      part?.querySelector("h2")?.append(` · ${"AB"[i]}`);
      return part;
    });
  return [
    header(`A ${baseName(a.capture.file)} · B ${baseName(b.capture.file)}`, "landspeed trace, two captures side by side", both.command, a, save),
    attempt("conclusion", () => h("p.conclusion", null, compared(both))),
    attempt("figures", () => figuresSection(both)),
    sides.every((s) => s.series.length > 0) ? attempt("timeline", () => graphs(sides)) : h("p.notice", null, "No graphs: one of the captures has no TCP flow with data."),
    notices([a, b]),
    attempt("distributions", () => distributions([a, b])),
    ...of("stations", stationsSection),
    ...of("flows", flowsSection),
    ...of("multipath", multipathSection),
    footer(both.schema, "two captures"),
  ];
}

const baseName = (file: string) => file.split("/").at(-1) || "capture";

function header(title: string, kicker: string, command: readonly string[], trace: TraceDocument, save: () => void): HTMLElement {
  const start = new Date(trace.capture.start_ns / 1e6);
  const when = trace.capture.start_ns > 1e18 && !Number.isNaN(start.getTime()) ? start.toISOString().replace("T", " ").replace(/\.\d+Z$/, " UTC") : null;
  return h(
    "header.top",
    null,
    pageButtons(save),
    h("p.kicker", null, kicker),
    h("h1", null, title),
    h("p.meta", null, command.length > 0 ? h("code", null, commandLine(command)) : null, when ? h("span", null, when) : null, h("span", null, `landspeed ${trace.landspeed.version}`)),
  );
}

/** The result in one sentence. */
function conclusion(trace: TraceDocument): string {
  const flow = trace.flows[0];
  if (!flow) return "No flow was found.";
  const parts = [
    `${rate(flow.goodput_bps)} in the largest flow`,
    ...(flow.transport === "tcp" ? [flow.retransmits === 0 ? "no retransmits" : plural(flow.retransmits, "retransmit")] : []),
    ...(isNumber(flow.lost_network) ? [`${integer(flow.lost_network)} lost between taps`] : []),
    ...(flow.forward.rtt ? [`min RTT ${nanos(flow.forward.rtt.min_ns)}`] : []),
  ];
  return `${parts.join(", ")}.`;
}

function compared({ figures }: TraceComparison): string {
  const changed = figures.filter((f) => f.difference?.changed).map((f) => f.name);
  return changed.length > 0 ? `B differs from A in ${changed.join(", ")}.` : "No figure of B differs measurably from A.";
}

function notices(traces: readonly TraceDocument[]): HTMLElement | null {
  const items = traces.flatMap((trace, i) =>
    trace.warnings.map((w) => h("p.notice.warn", null, h("b", null, traces.length > 1 ? `${"AB"[i]}: ` : "Note: "), sentence(w.message), " ", h("code", null, w.code))),
  );
  return items.length > 0 ? h("div.notices", null, ...items) : null;
}

function headline(trace: TraceDocument): HTMLElement {
  const flow = trace.flows[0];
  const { capture } = trace;
  const [amount, ...unit] = rate(flow?.goodput_bps).split(" ");
  const facts: [string, string][] = [
    ["frames", integer(capture.frames)],
    ["on the wire", bytes(capture.wire_bytes)],
    ["duration", nanos(capture.duration_ns)],
    ["flows", integer(trace.flows.length + trace.unlisted.flows)],
    ["format", capture.format],
  ];
  const says: string[] = [];
  if (flow?.transport === "tcp") {
    const r = flow.forward.retransmits;
    const kinds: [number, string][] = [[r.fast, "fast"], [r.timeout, "RTO"], [r.tail, "TLP"], [r.lost_before_tap, "lost before the tap"], [r.unclassified, "unclassified"]];
    const parts = kinds.filter(([count]) => count > 0).map(([count, kind]) => `${integer(count)} ${kind}`);
    says.push(flow.retransmits === 0 ? "No retransmits." : `${plural(flow.retransmits, "retransmit")} (${parts.join(", ")}).`);
    if (isNumber(flow.lost_network)) says.push(`${integer(flow.lost_network)} lost between taps${isNumber(flow.lost_receiver) ? `, ${integer(flow.lost_receiver)} dropped by the receiver host` : ""}.`);
    if (flow.forward.rtt) says.push(`RTT min ${nanos(flow.forward.rtt.min_ns)}, median ${nanos(flow.rtt_ns)}.`);
    says.push(`Max in flight ${bytes(flow.forward.in_flight_max_bytes)}, receive window up to ${bytes(flow.reverse.window_max_bytes)}.`);
  }
  return h(
    "section.headline",
    { id: "headline", "aria-label": "Result" },
    h(
      "div.figures",
      null,
      h("div.figure", null, h("p.big", { id: "goodput" }, amount ?? NONE, h("span", null, ` ${unit.join(" ")}`)), h("p.of", null, "goodput of the largest flow")),
      h("dl.facts", null, ...facts.map(([name, value]) => h("div", null, h("dt", null, name), h("dd", null, value)))),
    ),
    h("div.verdicts", null, h("p.says", null, flowName(flow)), ...says.map((text) => h("p", null, text))),
  );
}

interface Side {
  trace: TraceDocument;
  series: readonly TraceSeries[];
}

/** A timeline to the nanosecond, whose cursor steps from packet to packet. */
class TraceTimeline extends Timeline {
  model: Model | null = null;

  override stepCursor(steps: number): void {
    const { model } = this;
    if (!model || model.records.length === 0) return;
    const at = (i: number) => model.at(model.records.t[i] as number);
    let index = this.cursor === null ? lowerBound(model.records.t, model.ns(this.from)) : nearest(model, this.cursor) + steps;
    index = Math.max(0, Math.min(model.records.length - 1, index));
    const t = at(index);
    if (t < this.from || t > this.to) this.setRange(t - (this.to - this.from) / 2, t + (this.to - this.from) / 2);
    this.setCursor(t);
  }

  override describe(): string {
    const spacing = (this.to - this.from) / 200;
    const text = `${moment(this.from, spacing)} to ${moment(this.to, spacing)}`;
    return this.isWhole() ? `${this.whole}, ${text}` : `${text} (${nanos((this.to - this.from) * 1e9)})`;
  }
}

/** The charts over time: of one capture, or of two next to each other on the same scales. */
function graphs(sides: readonly Side[]): HTMLElement {
  const chosen = sides.map(() => 0);
  const stack = h("div.stack");
  const bar = h("div.toolbar");
  const list = h("div.packets");
  const root = h(
    "section.timeline",
    { id: "timeline", tabindex: 0, "aria-labelledby": "timeline-h", "aria-describedby": "timeline-keys" },
    h("h2", { id: "timeline-h" }, "Over time"),
    chooser(sides, chosen, () => build()),
    bar,
    stack,
    list,
  );
  let timeline = new TraceTimeline(0, 1, 1e-9, []);
  const build = () => {
    const models = sides.map(({ trace, series }, i) => {
      const one = series[chosen[i] ?? 0] as TraceSeries;
      return new Model(trace, one, sides.length > 1 ? (trace.flows[one.flow]?.start_ns ?? 0) : 0);
    });
    const begin = sides.length > 1 ? 0 : Math.min(...models.map((m) => m.at(m.flow?.start_ns ?? 0)));
    const end = Math.max(...models.map((m) => m.end), begin + 1e-6);
    timeline = new TraceTimeline(begin, end + (end - begin) * 0.005, 2e-9, []);
    timeline.model = models[0] ?? null;
    timeline.whole = "whole flow";
    let fit: Fit = "all";
    const rows = chartRows(timeline, models, () => fit);
    for (const row of rows) timeline.add(row);
    bar.replaceChildren(
      ...tools(timeline, models, (chosenFit) => {
        fit = chosenFit;
        rows[0]?.unlock();
      }),
    );
    stack.replaceChildren(...rows.map((r) => r.element));
    list.replaceChildren(packetList(timeline, models));
    Object.defineProperty(root, "timeline", { value: timeline, configurable: true });
    resize();
  };
  let printing = false;
  const resize = () => {
    const width = Math.floor(stack.clientWidth);
    if (!printing && width > 0) {
      timeline.setWidth(width);
      timeline.flush();
    }
  };
  build();
  new ResizeObserver(resize).observe(stack);
  onThemeChange(() => timeline.retheme());
  onPrint(
    (width) => {
      printing = true;
      timeline.setCursor(null);
      timeline.setWidth(width);
      timeline.flush();
    },
    () => {
      printing = false;
      resize();
    },
  );
  document.addEventListener("keydown", (event) => {
    const target = event.target;
    if (target instanceof HTMLElement && target.closest("select, input, textarea, .scroll")) return;
    const pressed = target instanceof HTMLButtonElement && (event.key === " " || event.key === "Enter");
    if (pressed || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "n" || event.key === "p") root.querySelector<HTMLButtonElement>(event.key === "n" ? ".next-loss" : ".previous-loss")?.click();
    else if (!timeline.key(event)) return;
    event.preventDefault();
  });
  return root;
}

/** Which flow's graphs are shown. */
function chooser(sides: readonly Side[], chosen: number[], changed: () => void): HTMLElement {
  const parts = sides.map(({ trace, series }, i) => {
    const select = h(
      "select",
      { "aria-label": sides.length > 1 ? `flow of ${"AB"[i]}` : "flow" },
      ...series.map((s, k) => h("option", { value: k }, seriesName(trace, s))),
    );
    select.addEventListener("change", () => {
      chosen[i] = Number(select.value);
      changed();
    });
    return h("label", null, sides.length > 1 ? `${"AB"[i]}: ` : "Flow: ", select);
  });
  const left = sides.reduce((sum, s) => sum + (s.trace.graphs?.left_out ?? 0), 0);
  return h("div.chooser", null, ...parts, left > 0 ? h("span.muted", null, `${plural(left, "flow")} with less payload have no graphs (--graphs N)`) : null);
}

function seriesName(trace: TraceDocument, series: TraceSeries): string {
  const flow = trace.flows[series.flow];
  const name = flowName(flow);
  const kept = series.kept >= series.packets ? "" : `, ${integer(series.kept)} of ${integer(series.packets)} packets kept individually`;
  return `${series.direction === "reverse" ? `${name}, reverse` : name}: ${bytes(series.payload_bytes)}${kept}`;
}

function chartRows(timeline: Timeline, models: readonly Model[], fit: () => Fit): Row[] {
  const two = models.length > 1;
  const row = (make: (model: Model, suffix: string, name: string) => ChartOptions) =>
    new Row(timeline, models.map((m, i) => make(m, two ? `-${"ab"[i]}` : "", two ? `${"AB"[i]} · ` : "")));
  return [
    row((m, s, n) => sequenceChart(m, `sequence${s}`, `${n}Time-sequence graph`, 400, fit)),
    row((m, s, n) => rateChart(m.rate, m.document.graphs?.rate ?? null, m.origin, `rate${s}`, `${n}Wire rate`)),
    row((m, s, n) => flightChart(m, `flight${s}`, `${n}In flight, cwnd and rwnd`)),
    row((m, s, n) => rttChart(m, `rtt${s}`, `${n}RTT`)),
    ...(two ? [] : (models[0]?.document.path ?? []).slice(0, PATHS).map((path, i) => new Row(timeline, [delayChart(path, models[0]?.origin ?? 0, `delay-${i}`)]))),
  ];
}

function tools(timeline: Timeline, models: readonly Model[], setFit: (fit: Fit) => void): Child[] & Node[] {
  const range = h("output.range", { "aria-live": "polite" });
  const refresh = () => {
    const text = timeline.describe();
    if (range.textContent !== text) range.textContent = text;
  };
  timeline.onChange(refresh);
  refresh();
  const episodes = models.flatMap((m) => m.episodes()).sort((a, b) => a - b);
  const jump = (forward: boolean) => {
    const middle = timeline.isWhole() ? (forward ? timeline.from - 1 : timeline.to + 1) : (timeline.from + timeline.to) / 2;
    const wide = timeline.isWhole() ? Math.min(0.2, (timeline.to - timeline.from) / 5) : timeline.to - timeline.from;
    const grain = wide / 1_000;
    const t = forward ? episodes.find((e) => e > middle + grain) : episodes.filter((e) => e < middle - grain).at(-1);
    if (t === undefined) return;
    timeline.setRange(t - wide / 2, t + wide / 2);
    timeline.setCursor(t);
  };
  const select = h("select", { "aria-label": "height of the time-sequence graph" }, ...[["all", "everything"], ["data", "data"], ["acks", "acknowledgements"]].map(([value, label]) => h("option", { value }, label)));
  select.addEventListener("change", () => setFit(select.value as Fit));
  const named = (element: HTMLButtonElement, name: string) => {
    element.classList.add(name);
    element.disabled = episodes.length === 0;
    return element;
  };
  const key = (name: string) => h("kbd", null, name);
  return [
    h("div.chips", null, h("label.heatkey", null, "Height fits ", select)),
    h(
      "div.tools",
      null,
      range,
      named(button("‹ loss", "The retransmissions before (p)", () => jump(false)), "previous-loss"),
      named(button("loss ›", "The next retransmissions (n)", () => jump(true)), "next-loss"),
      button("−", "Zoom out (−)", () => timeline.zoom(2)),
      button("+", "Zoom in (+)", () => timeline.zoom(0.5)),
      button("←", "Earlier (left arrow)", () => timeline.pan(-0.2)),
      button("→", "Later (right arrow)", () => timeline.pan(0.2)),
      button(timeline.whole, `Show the ${timeline.whole} (0)`, () => timeline.reset()),
    ),
    h(
      "p.help",
      { id: "timeline-keys" },
      h(
        "span.keys",
        null,
        "drag across: zoom; drag a box: height too · wheel with ", key("Shift"), " or after a click · ", key("+"), " ", key("−"), " zoom · ", key("←"), " ", key("→"), " pan · ",
        key("["), " ", key("]"), " packet by packet · ", key("p"), " ", key("n"), " losses · double click or ", key("0"), " whole flow",
      ),
    ),
  ];
}

/** The packets in view as a table. */
function packetList(timeline: Timeline, models: readonly Model[]): HTMLElement {
  const body = h("div");
  const details = h("details", null, h("summary", null, "Packets in view"), body);
  const refresh = () => {
    if (!details.open) return;
    body.replaceChildren(...models.map((model, i) => packetTable(model, timeline, models.length > 1 ? `${"AB"[i]}: ` : "")));
  };
  details.addEventListener("toggle", refresh);
  timeline.onChange(refresh);
  return details;
}

function packetTable(model: Model, timeline: Timeline, name: string): HTMLElement {
  const { from, to } = timeline;
  const { packets, all } = model.density(from, to);
  const rows: Child[][] = [];
  let before = NaN;
  for (const span of model.spans(from, to)) {
    const [a, b] = model.within(span, from, to);
    for (let i = a; i < b && rows.length < LISTED; i++) {
      const t = model.records.t[i] as number;
      const text = describe(model, i);
      const kind = KIND_WORDS[model.records.kind[i] as number] ?? "";
      rows.push([num(moment(model.at(t), 1e-9)), num(before === before ? nanos(t - before) : NONE), kind, text.slice(kind.length).trim()]);
      before = t;
    }
  }
  const caption = `${name}${plural(packets, "packet")} ${all ? "in view" : "in view kept individually"}${packets > LISTED ? `, the first ${LISTED} of them` : ""}`;
  return table([h("th.num", { scope: "col" }, "Time"), h("th.num", { scope: "col" }, "since previous"), "Kind", "Numbers"], rows, { caption });
}

/** Gaps between frames and round trips; two captures over each other. */
function distributions(traces: readonly TraceDocument[]): HTMLElement | null {
  const two = traces.length > 1;
  const parts: (HTMLElement | null)[] = [];
  const holder = h("div.small");
  if (two) {
    const busiest = traces.map((t) => [...t.stations].sort((a, b) => b.wire_bytes - a.wire_bytes)[0]);
    const acking = traces.map((t) => [...t.stations].sort((a, b) => (b.ack_spacing?.acks ?? 0) - (a.ack_spacing?.acks ?? 0))[0]);
    const overlaid = (id: string, title: string, note: string, pick: (i: number) => Distribution["buckets"] | undefined) =>
      histogram(id, title, note, traces.map((_, i) => ({ name: "AB"[i] as string, color: i, buckets: pick(i) ?? [] })));
    parts.push(
      overlaid("gaps-data", "Gaps before the largest frames of the busiest station", "Time since the station's previous frame", (i) => busiest[i]?.gaps.at(-1)?.histogram),
      overlaid("gaps-acks", "Gaps between pure ACKs", "Of the station that sent the most of them", (i) => acking[i]?.ack_spacing?.histogram ?? undefined),
      overlaid("rtts", "RTT of the largest flow", "Between the tap and the receiver", (i) => traces[i]?.flows[0]?.forward.rtt?.histogram),
    );
  } else {
    const trace = traces[0] as TraceDocument;
    const stations = trace.stations.slice(0, 6).map((s, i) => ({ s, i, list: gapsOf(s) }));
    const all = stations.flatMap((s) => s.list);
    const bounds = all.length > 0 ? boundsOf(all) : undefined;
    for (const { s, i, list } of stations) parts.push(histogram(`gaps-${i}`, `Gaps of ${stationName(s)}`, "Time since the station's previous frame, by size of the later frame", list, bounds));
    const rtts = trace.flows.filter((f) => f.forward.rtt).slice(0, 4).map((f, i) => ({ name: flowName(f), color: i, buckets: f.forward.rtt?.histogram ?? [] }));
    parts.push(histogram("rtts", "RTT", "Between the tap and the receiver", rtts));
  }
  append(holder, parts);
  return parts.some(Boolean) ? section("distributions", "Gaps and RTT", h("p.muted", null, "Both axes are logarithmic, with 4 bins per octave, or 16 if all values are within a factor of 16."), holder) : null;
}

function gapsOf(station: TraceDocument["stations"][number]): Distribution[] {
  const list: Distribution[] = station.gaps.map((g, i) => ({ name: `${integer(g.from_bytes)} to ${g.to_bytes > 1e6 ? "more" : integer(g.to_bytes)} B`, color: i, buckets: g.histogram }));
  const acks = station.ack_spacing?.histogram ?? [];
  if (acks.length > 0) list.push({ name: "between pure ACKs", color: 3, dashed: true, buckets: acks });
  return list;
}
