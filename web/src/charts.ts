// The stack of charts over time, made from the document.

import type { HostSeries, Phase, RunDocument, Sample, Stream } from "./document";
import { h, type Child } from "./dom";
import { COMPONENTS, HeatStrip, heatKey, type Component, type HeatChoice } from "./heat";
import type { Mark } from "./lanes";
import { Panel, type Line, type PanelOptions, type Shade } from "./panel";
import { evidenceMarks, type ChartId } from "./evidence";
import {
  counterSpans, gains, held, inSeconds, intervalEdges, least, nearest, packetsOn, pick, ratesOn, sampleTimes, spread, sum,
  type Column,
} from "./series";
import { isNumber } from "./format";
import { onPrint, onThemeChange } from "./theme";
import { keyHelp, Timeline } from "./timeline";

/** The charts over time, or nothing when there is nothing over time. */
export function charts(run: RunDocument): HTMLElement | null {
  const extent = span(run);
  if (!extent) return null;
  const { streams } = run;
  const timeline = new Timeline(extent.start, extent.end, extent.step, streams.map((s) => s.id));
  const marks = evidenceMarks(run, extent);
  const context: Context = { run, timeline, shades: shades(run), marks };
  const panels: (Panel | HeatStrip)[] = [
    ...throughput(context), ...senderPanels(context), ...packetPanels(context), ...queues(context),
    ...threads(context),
  ];
  const heat = heatStrips(context);
  const stack = h("div.stack", null, ...panels.map((p) => p.element));
  if (heat) stack.append(heat.controls, ...heat.strips.map((s) => s.element));
  const all = [...panels, ...(heat?.strips ?? [])];
  const root = h(
    "section.timeline",
    { id: "timeline", tabindex: 0, "aria-labelledby": "timeline-h", "aria-describedby": "timeline-keys" },
    h("h2", { id: "timeline-h" }, "Over time"),
    toolbar(timeline, streams, steady(run)),
    stack,
  );
  for (const part of all) timeline.add(part);
  listen(root, stack, timeline, () => heat?.drawKey());
  return root;
}

interface Extent {
  start: number;
  end: number;
  step: number;
}

interface Context {
  run: RunDocument;
  timeline: Timeline;
  shades: Shade[];
  marks: Map<ChartId, Mark[]>;
}

/** First and last moment anything was read, and the finest reading interval, seconds. */
function span(run: RunDocument): Extent | null {
  let end = 0;
  const last = (t: number | undefined) => {
    if (isNumber(t)) end = Math.max(end, t);
  };
  for (const phase of run.phases) last(phase.end_ns);
  for (const stream of run.streams) {
    last(stream.intervals.at(-1)?.end_ns);
    last(stream.sender?.samples.at(-1)?.t_ns);
    last(stream.receiver?.samples.at(-1)?.t_ns);
  }
  if (end === 0) {
    last(run.host_series.client?.samples.at(-1)?.end_ns);
    last(run.host_series.server?.samples.at(-1)?.end_ns);
  }
  if (end <= 0) return null;
  const asked = (run.effective ?? run.requested).interval_ns;
  const step = Math.min(end / 2, isNumber(asked) && asked > 0 ? asked : 1e8);
  return { start: 0, end: end / 1e9, step: step / 1e9 };
}

/** Phases other than the steady one, of the direction the headline is about. */
function shades(run: RunDocument): Shade[] {
  const first = run.phases[0]?.direction;
  const names: Record<Phase["name"], string> = { startup: "start-up", omitted: "omitted", steady: "steady", drain: "drain" };
  return run.phases
    .filter((p) => p.direction === first && p.name !== "steady" && p.end_ns > p.start_ns)
    .map((p) => ({ from: p.start_ns / 1e9, to: p.end_ns / 1e9, name: names[p.name] }));
}

/** The phase the headline's figures are from, seconds. */
function steady(run: RunDocument): [number, number] | null {
  const phase = run.phases.find((p) => p.name === "steady" && p.direction === run.phases[0]?.direction);
  return phase && phase.end_ns > phase.start_ns ? [phase.start_ns / 1e9, phase.end_ns / 1e9] : null;
}

/** A stream's name: its number, with an arrow when data moves both ways. */
export function streamName(stream: Stream, streams: readonly Stream[]): string {
  const mixed = streams.some((s) => s.direction !== streams[0]?.direction);
  return mixed ? `${stream.id}${stream.direction === "upload" ? "↑" : "↓"}` : `${stream.id}`;
}

/** From this many readings on lines are drawn thin: the ink is in their number. */
const DENSE = 1500;

const DASHES: (number[] | undefined)[] = [undefined, [6, 3], [2, 2], [8, 2, 2, 2]];

function streamLine(context: Context, stream: Stream, index: number, column: Column): Line {
  const { run, timeline } = context;
  const dash = run.streams.length > 32 ? undefined : DASHES[Math.floor(index / 8) % DASHES.length];
  const label = streamName(stream, run.streams);
  return {
    label: run.streams.length === 1 ? "stream 0" : label,
    color: index % 8,
    width: run.streams.length > 12 || column.length > DENSE ? 0.75 : 1.25,
    ...(dash ? { dash } : {}),
    values: () => column,
    shown: () => timeline.visible.has(stream.id),
  };
}

function base(context: Context, id: ChartId): Pick<PanelOptions, "timeline" | "shades" | "marks"> & { id: string } {
  return { id, timeline: context.timeline, shades: context.shades, marks: context.marks.get(id) ?? [] };
}

function throughput(context: Context): Panel[] {
  const { run, timeline } = context;
  const edges = intervalEdges(run.streams.map((s) => s.intervals));
  if (edges.length < 2) return [];
  const columns = run.streams.map((s) => ratesOn(edges, s.intervals));
  const lines = run.streams.map((s, i) => streamLine(context, s, i, columns[i] as Column));
  const directions = [...new Set(run.streams.map((s) => s.direction))];
  if (run.streams.length > 1) {
    for (const direction of directions) {
      const of = run.streams.map((s, i) => ({ s, i })).filter(({ s }) => s.direction === direction);
      lines.push({
        label: directions.length > 1 ? `sum ${direction === "upload" ? "↑" : "↓"}` : "sum",
        color: "text",
        width: edges.length > DENSE ? 1.25 : 2,
        ...(direction === directions[1] ? { dash: [8, 3] } : {}),
        values: () =>
          sum(of.filter(({ s }) => timeline.visible.has(s.id)).map(({ i }) => columns[i] as Column), edges.length),
        shown: () => timeline.showSum,
      });
    }
  }
  const estimated = run.streams.some((s) => s.intervals_from !== "receiver");
  return [
    new Panel({
      ...base(context, "throughput"),
      title: estimated ? "Throughput (some as acknowledged to the sender)" : "Throughput",
      note: "Payload delivered to the receiving application in each interval, divided by its length",
      height: 230,
      kind: "rate",
      x: inSeconds(edges),
      steps: true,
      lines,
      resting: "mean",
      nameShades: true,
    }),
  ];
}

type Field = (s: Sample) => number | null | undefined;

/** Columns of one end of every stream on common times. */
class Readings {
  readonly times: number[];
  readonly seconds: number[];
  /** Edges `0, t0, t1 …` for what was gained between readings. */
  readonly edges: number[];
  private readonly at: Int32Array[];
  private readonly samples: (readonly Sample[])[];

  constructor(streams: readonly Stream[], end: "sender" | "receiver", times?: number[]) {
    this.samples = streams.map((s) => s[end]?.samples ?? []);
    this.times = times ?? sampleTimes(this.samples);
    this.seconds = inSeconds(this.times);
    this.edges = this.seconds[0] === 0 ? this.seconds : [0, ...this.seconds];
    this.at = this.samples.map((s) => nearest(this.times, s));
  }

  column(stream: number, field: Field): Column {
    return pick(this.samples[stream] ?? [], this.at[stream] ?? new Int32Array(), field);
  }

  has(field: Field): boolean {
    return this.samples.some((list) => list.some((s) => isNumber(field(s))));
  }

  /** Gains of a counter on `edges`. */
  gained(stream: number, field: Field): Column {
    const out = gains(this.column(stream, field));
    return this.edges.length === this.seconds.length ? out.slice(1) : out;
  }
}

function senderPanels(context: Context): Panel[] {
  const { run, timeline } = context;
  const readings = new Readings(run.streams, "sender");
  if (readings.times.length < 2 || !readings.has((s) => s.tcp?.snd_cwnd)) return [];
  const n = readings.times.length;
  const each = (field: Field) => run.streams.map((_, i) => readings.column(i, field));
  const cwnd = each((s) => (s.tcp ? s.tcp.snd_cwnd * s.tcp.snd_mss_bytes : null));
  const rtt = each((s) => (s.tcp && s.tcp.rtt_us > 0 ? s.tcp.rtt_us * 1e3 : null));
  const lowest = each((s) => (isNumber(s.tcp?.min_rtt_us) && s.tcp.min_rtt_us < 0xffffffff ? s.tcp.min_rtt_us * 1e3 : null));
  const lost = run.streams.map((_, i) => readings.gained(i, (s) => s.tcp?.total_retrans));
  const visible = (columns: Column[]) => columns.filter((_, i) => timeline.visible.has((run.streams[i] as Stream).id));
  const lines = (columns: Column[]) => run.streams.map((s, i) => streamLine(context, s, i, columns[i] as Column));
  const shared = { x: readings.seconds, steps: false, resting: "mean" as const };
  return [
    new Panel({
      ...base(context, "cwnd"),
      ...shared,
      title: "Congestion window",
      note: "tcp_info: snd_cwnd × snd_mss at the sender",
      height: 150,
      kind: "size",
      lines: lines(cwnd),
    }),
    new Panel({
      ...base(context, "rtt"),
      ...shared,
      floating: true,
      title: "Round trip",
      note: "tcp_info: smoothed RTT at the sender, and the least seen",
      height: 140,
      kind: "time",
      lines: [
        ...lines(rtt),
        {
          label: "least seen",
          color: "text",
          width: 1,
          dash: [4, 3],
          values: () => least(visible(lowest), n),
          shown: () => true,
        },
      ],
    }),
    new Panel({
      ...base(context, "retransmits"),
      x: readings.edges,
      steps: true,
      resting: "total",
      title: "Retransmitted segments",
      note: "tcp_info: total_retrans at the sender, gained in each sampling interval",
      height: 110,
      kind: "count",
      unit: "segments",
      lines: [
        {
          label: "visible streams",
          color: "bad",
          width: 1,
          fill: true,
          values: () => sum(visible(lost), readings.edges.length),
          shown: () => true,
        },
      ],
    }),
  ];
}

function packetPanels(context: Context): Panel[] {
  const { run, timeline } = context;
  const sender = new Readings(run.streams, "sender");
  if (run.udp === null || run.udp === undefined || sender.times.length < 2 || !sender.has((s) => s.packets)) return [];
  // The receivers' readings go on through the drain: only with them the packets that were under way are all home.
  const last = sender.times.at(-1) ?? 0;
  const after = sampleTimes(run.streams.map((s) => s.receiver?.samples ?? [])).filter((t) => t > last);
  const times = [...sender.times, ...after];
  const sent = new Readings(run.streams, "sender", times);
  const receiver = new Readings(run.streams, "receiver", times);
  const edges = intervalEdges(run.streams.map((s) => s.intervals));
  const visible = (columns: Column[]) => columns.filter((_, i) => timeline.visible.has((run.streams[i] as Stream).id));
  const indexes = run.streams.map((_, i) => i);
  const delivered = indexes.map((i) => packetsOn(edges, (run.streams[i] as Stream).intervals));
  const missing = indexes.map((i) => {
    const out = sent.gained(i, (s) => s.packets);
    const home = receiver.gained(i, (s) => s.packets);
    return out.map((v, k) => (v === null && !isNumber(home[k]) ? null : (v ?? 0) - (home[k] ?? 0)));
  });
  const drops = indexes.map((i) => receiver.gained(i, (s) => s.socket_drops));
  const n = receiver.edges.length;
  const panels = [
    new Panel({
      ...base(context, "loss"),
      x: receiver.edges,
      steps: true,
      resting: "total",
      title: "Packets sent − delivered",
      note:
        "Per sampling interval, visible streams. Packets in flight at an interval's edge count as missing in it and as " +
        "surplus in the next; the total is exact.",
      height: 130,
      kind: "count",
      unit: "packets",
      lines: [
        { label: "missing", color: "bad", width: 1, fill: true, values: () => sum(visible(missing), n), shown: () => true },
        {
          label: "dropped by the receiving sockets",
          color: 0,
          width: 1.25,
          values: () => sum(visible(drops), n),
          shown: () => true,
        },
      ],
    }),
  ];
  if (edges.length >= 2) {
    panels.unshift(
      new Panel({
        ...base(context, "packets"),
        x: inSeconds(edges),
        steps: true,
        resting: "mean",
        title: "Packets delivered",
        unit: "packets/s",
        note: "First copies delivered to the receiving application",
        height: 120,
        kind: "count",
        lines: run.streams.map((s, i) => streamLine(context, s, i, delivered[i] as Column)),
      }),
    );
  }
  return panels;
}

function queues(context: Context): Panel[] {
  const { run, timeline } = context;
  const sender = new Readings(run.streams, "sender");
  const receiver = sender.times.length > 0
    ? new Readings(run.streams, "receiver", sender.times)
    : new Readings(run.streams, "receiver");
  const times = sender.times.length > 0 ? sender : receiver;
  if (times.times.length < 2) return [];
  let chosen: number | null = null;
  const wanted = () =>
    run.streams.map((s, i) => ({ s, i })).filter(({ s }) => (chosen === null ? timeline.visible.has(s.id) : s.id === chosen));
  interface Kind {
    label: string;
    from: Readings;
    field: Field;
    color: Line["color"];
    limit?: boolean;
  }
  const kinds: Kind[] = [
    { label: "in flight", from: sender, field: (s) => (s.tcp ? s.tcp.unacked * s.tcp.snd_mss_bytes : null), color: 0 },
    { label: "send queue", from: sender, field: (s) => s.send_queue_bytes, color: 1 },
    { label: "receive queue", from: receiver, field: (s) => s.receive_queue_bytes, color: 2 },
    { label: "cwnd", from: sender, field: (s) => (s.tcp ? s.tcp.snd_cwnd * s.tcp.snd_mss_bytes : null), color: 3, limit: true },
    { label: "peer's window", from: sender, field: (s) => s.tcp?.snd_wnd_bytes, color: 4, limit: true },
    { label: "send buffer", from: sender, field: (s) => s.sndbuf_bytes, color: 5, limit: true },
    { label: "receive buffer", from: receiver, field: (s) => s.rcvbuf_bytes, color: 6, limit: true },
  ];
  const present = kinds.filter(({ from, field }) => from.has(field));
  if (present.length === 0) return [];
  const columns = present.map(({ from, field, limit }) =>
    run.streams.map((_, i) => (limit ? held(from.column(i, field)) : from.column(i, field))),
  );
  const peak = (list: Column[]) => Math.max(0, ...list.map((c) => c.reduce<number>((m, v) => Math.max(m, v ?? 0), 0)));
  const load = Math.max(...present.map((k, j) => (k.limit ? 0 : peak(columns[j] as Column[]))));
  // A limit far above what it limits would flatten everything else: it waits in the legend.
  const shown = present.map((k, j) => !k.limit || peak(columns[j] as Column[]) <= 2.5 * Math.max(load, 1));
  const lines = present.map((k, j): Line => ({
    label: k.label,
    color: k.color,
    width: k.limit ? 1 : 1.5,
    ...(k.limit ? { dash: [5, 3] } : {}),
    values: () => sum(wanted().map(({ i }) => (columns[j] as Column[])[i] as Column), times.times.length),
    shown: () => shown[j] ?? false,
    toggle: () => {
      shown[j] = !shown[j];
    },
  }));
  const controls: Child[] = [];
  let panel: Panel | null = null;
  if (run.streams.length > 1) {
    const select = h(
      "select",
      { "aria-label": "streams in the queue chart" },
      h("option", { value: "" }, "sum of visible streams"),
      ...run.streams.map((s) => h("option", { value: s.id }, `stream ${streamName(s, run.streams)}`)),
    );
    select.addEventListener("change", () => {
      chosen = select.value === "" ? null : Number(select.value);
      panel?.setStreams();
    });
    controls.push(select);
  }
  panel = new Panel({
    ...base(context, "queues"),
    x: times.seconds,
    steps: false,
    resting: "mean",
    title: "Queues and windows",
    note: "In flight = unacknowledged segments × MSS; queues from SIOCOUTQ and SIOCINQ. Dashed lines are limits.",
    height: 190,
    kind: "size",
    lines,
    controls,
  });
  return [panel];
}

/** What the threads of the visible streams had of the processors, in cores. */
function threads(context: Context): Panel[] {
  const { run, timeline } = context;
  const dash = [4, 3];
  const kinds: { label: string; end: "sender" | "receiver"; field: Field; color: number; dash?: number[] }[] = [
    { label: "senders running", end: "sender", field: (s) => s.thread_cpu_ns, color: 0 },
    { label: "senders waiting for a core", end: "sender", field: (s) => s.thread_wait_ns, color: 0, dash },
    { label: "receivers running", end: "receiver", field: (s) => s.thread_cpu_ns, color: 1 },
    { label: "receivers waiting for a core", end: "receiver", field: (s) => s.thread_wait_ns, color: 1, dash },
  ];
  const spans = kinds.map(({ end, field }) => run.streams.map((s) => counterSpans(s[end]?.samples ?? [], field)));
  const edges = intervalEdges(spans.flat());
  if (edges.length < 3) return [];
  const lines = kinds.flatMap(({ label, color, dash }, j): Line[] => {
    const ofKind = spans[j] ?? [];
    if (ofKind.every((list) => list.length === 0)) return [];
    const columns = ofKind.map((list) => spread(edges, list));
    return [
      {
        label,
        color,
        width: 1.25,
        ...(dash ? { dash } : {}),
        values: () => sum(columns.filter((_, i) => timeline.visible.has((run.streams[i] as Stream).id)), edges.length),
        shown: () => true,
      },
    ];
  });
  return [
    new Panel({
      ...base(context, "threads"),
      x: inSeconds(edges),
      steps: true,
      resting: "mean",
      title: "Stream threads",
      note: "Processor time the threads of the visible streams used, and the time they were ready to run and had no core",
      height: 120,
      kind: "count",
      unit: "cores",
      lines,
    }),
  ];
}

interface Heat {
  controls: HTMLElement;
  strips: HeatStrip[];
  drawKey: () => void;
}

function heatStrips(context: Context): Heat | null {
  const { run, timeline, marks } = context;
  const parameters = run.effective ?? run.requested;
  const pinned = (side: "client" | "server") => {
    const asked = side === "client" ? parameters.client_cpus : parameters.server_cpus;
    const used = run.streams.flatMap((s) => {
      const end = (s.direction === "upload") === (side === "client") ? s.sender : s.receiver;
      return isNumber(end?.cpu) ? [end.cpu] : [];
    });
    return [...new Set([...asked, ...used])];
  };
  const choice: HeatChoice = { component: "busy", hideIdle: false };
  const side = (name: "client" | "server"): HeatStrip[] => {
    const series: HostSeries | null | undefined = run.host_series[name];
    if (!series || series.samples.length === 0) return [];
    const host = run.hosts[name]?.hostname;
    return [
      new HeatStrip({
        id: `cpu-${name}`,
        title: `Processor, ${name}${host ? ` (${host})` : ""}`,
        samples: series.samples,
        pinned: pinned(name),
        marks: marks.get(`cpu-${name}`) ?? [],
        choice,
        timeline,
      }),
    ];
  };
  const most = Math.max(0, ...[run.host_series.client, run.host_series.server].map((s) => s?.samples[0]?.cores.length ?? 0));
  choice.hideIdle = most > 32;
  const strips = [...side("client"), ...side("server")];
  if (strips.length === 0) return null;
  const key = heatKey();
  const select = h("select", { "aria-label": "processor time shown" }, ...COMPONENTS.map((c) => h("option", null, c)));
  select.addEventListener("change", () => {
    choice.component = select.value as Component;
    for (const strip of strips) strip.choose();
  });
  const hide = h("input", { type: "checkbox", checked: choice.hideIdle });
  hide.addEventListener("change", () => {
    choice.hideIdle = hide.checked;
    for (const strip of strips) strip.choose();
  });
  return {
    strips,
    drawKey: key.draw,
    controls: h(
      "div.heatcontrols",
      null,
      h("label", null, "Processor time: ", select),
      h("label", null, hide, " hide cores that never pass 20 %"),
      key.element,
      h("span.muted", null, "bold: a core with a stream's thread"),
    ),
  };
}

function toolbar(timeline: Timeline, streams: readonly Stream[], steady: [number, number] | null): HTMLElement {
  const chips = h("div", { class: streams.length > 24 ? "chips many" : "chips", role: "group", "aria-label": "streams" });
  const all = streams.map((s) => s.id);
  const buttons = new Map<number, HTMLButtonElement>();
  const button = (label: Child, title: string, action: (event: MouseEvent) => void) => {
    const element = h("button", { type: "button", title }, label);
    element.addEventListener("click", action);
    return element;
  };
  const sum = button("sum", "Show or hide the sum", () => {
    timeline.showSum = !timeline.showSum;
    timeline.streamsChanged();
  });
  if (streams.length > 1) {
    chips.append(h("span.muted", null, "streams"));
    streams.forEach((stream, index) => {
      const chip = button(
        streamName(stream, streams),
        `Show or hide stream ${stream.id}, ${stream.client_addr} – ${stream.server_addr}; with Alt: only this one`,
        (event) => (event.altKey ? timeline.showStreams([stream.id]) : timeline.toggleStream(stream.id)),
      );
      chip.className = `chip c${index % 8}`;
      buttons.set(stream.id, chip);
      chips.append(chip);
    });
    sum.className = "chip csum";
    chips.append(
      sum,
      button("all", "Show every stream", () => timeline.showStreams(all)),
      button("none", "Hide every stream", () => timeline.showStreams([])),
    );
  }
  const range = h("output.range", { "aria-live": "polite" });
  const tools = h(
    "div.tools",
    null,
    range,
    button("−", "Zoom out (−)", () => timeline.zoom(2)),
    button("+", "Zoom in (+)", () => timeline.zoom(0.5)),
    button("←", "Earlier (left arrow)", () => timeline.pan(-0.2)),
    button("→", "Later (right arrow)", () => timeline.pan(0.2)),
    steady ? button("steady phase", "Show the phase the headline is about", () => timeline.setRange(...steady)) : null,
    button("whole test", "Show the whole test (0)", () => timeline.reset()),
  );
  const refresh = () => {
    const at = timeline.cursor === null ? "" : ` · cursor ${timeline.cursor.toFixed(timeline.step < 0.01 ? 4 : 3)} s`;
    const text = timeline.describe() + at;
    if (range.textContent !== text) range.textContent = text;
    for (const [id, chip] of buttons) chip.setAttribute("aria-pressed", String(timeline.visible.has(id)));
    sum.setAttribute("aria-pressed", String(timeline.showSum));
  };
  timeline.onChange(refresh);
  refresh();
  return h("div.toolbar", null, chips, tools, h("p.help", { id: "timeline-keys" }, keyHelp()));
}

function listen(root: HTMLElement, stack: HTMLElement, timeline: Timeline, drawKey: () => void): void {
  let printing = false;
  const fit = () => {
    const width = Math.floor(stack.clientWidth);
    if (!printing && width > 0) {
      timeline.setWidth(width);
      timeline.flush();
    }
  };
  new ResizeObserver(fit).observe(stack);
  onThemeChange(() => {
    timeline.retheme();
    drawKey();
  });
  onPrint(
    (width) => {
      printing = true;
      timeline.setCursor(null);
      timeline.setWidth(width);
      timeline.flush();
    },
    () => {
      printing = false;
      fit();
    },
  );
  document.addEventListener("keydown", (event) => {
    const target = event.target;
    if (target instanceof HTMLElement && target.closest("select, input, textarea, .scroll")) return;
    const buttonSpace = target instanceof HTMLButtonElement && (event.key === " " || event.key === "Enter");
    if (!buttonSpace && timeline.key(event)) event.preventDefault();
  });
  // What a test, or a curious reader at the console, wants to ask.
  Object.defineProperty(root, "timeline", { value: timeline });
}
