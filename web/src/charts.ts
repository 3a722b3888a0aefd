// The stack of charts over time, made from the document.

import { streamName, type Context } from "./context";
import type { HostSeries, Phase, RunDocument } from "./document";
import { button, h } from "./dom";
import { epochStrips, type EpochStrip } from "./epochs";
import { evidenceMarks } from "./evidence";
import { isNumber } from "./format";
import { COMPONENTS, HeatStrip, heatKey, type Component, type HeatChoice } from "./heat";
import type { Moment, Panel, Shade } from "./panel";
import { streamPanels } from "./panels";
import { onPrint, onThemeChange } from "./theme";
import { keyHelp, Timeline } from "./timeline";

/** The charts over time, or nothing when there is nothing over time. In virtual time no CPU is shown. */
export function charts(run: RunDocument, virtual = false, moments: readonly Moment[] = []): HTMLElement | null {
  const extent = span(run);
  if (!extent) return null;
  const { streams } = run;
  const timeline = new Timeline(extent.start, extent.end, extent.step, streams.map((s) => s.id));
  const marks = evidenceMarks(run, extent);
  const context: Context = { run, timeline, shades: shades(run), marks, moments };
  const panels = streamPanels(context, virtual);
  const heat = virtual ? null : heatStrips(context);
  const chips = streams.map((s) => ({
    id: s.id,
    name: streamName(s, streams),
    title: `stream ${s.id}, ${s.client_addr} – ${s.server_addr}`,
  }));
  return timelineSection(timeline, panels, { chips, noun: "stream", steady: steady(run), heat, epochs: epochStrips(run, timeline) });
}

/** What a timeline's lines stand for, and what is shown beside its panels. */
export interface TimelineOptions {
  chips: { id: number; name: string; title: string }[];
  noun: string;
  steady: [number, number] | null;
  heat: Heat | null;
  epochs: EpochStrip[];
}

/** The section of charts that share a timeline. */
export function timelineSection(timeline: Timeline, panels: readonly Panel[], options: TimelineOptions): HTMLElement {
  const { heat, epochs } = options;
  const stack = h("div.stack", null, ...epochs.map((e) => e.element), ...panels.map((p) => p.element));
  if (heat) stack.append(heat.controls, ...heat.strips.map((s) => s.element));
  const root = h(
    "section.timeline",
    { id: "timeline", tabindex: 0, "aria-labelledby": "timeline-h", "aria-describedby": "timeline-keys" },
    h("h2", { id: "timeline-h" }, "Over time"),
    toolbar(timeline, options),
    stack,
  );
  for (const part of [...epochs, ...panels, ...(heat?.strips ?? [])]) timeline.add(part);
  listen(root, stack, timeline, () => heat?.drawKey());
  return root;
}

interface Extent {
  start: number;
  end: number;
  step: number;
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

export interface Heat {
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
        title: `CPU, ${name}${host ? ` (${host})` : ""}`,
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
  const select = h("select", { "aria-label": "CPU time shown" }, ...COMPONENTS.map((c) => h("option", null, c)));
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
      h("label", null, "CPU time: ", select),
      h("label", null, hide, " hide cores that never pass 20 %"),
      key.element,
      h("span.muted", null, "bold: a core with a stream's thread"),
    ),
  };
}

function toolbar(timeline: Timeline, options: TimelineOptions): HTMLElement {
  const { noun, steady } = options;
  const chips = h("div", { class: options.chips.length > 24 ? "chips many" : "chips", role: "group", "aria-label": `${noun}s` });
  const all = options.chips.map((s) => s.id);
  const buttons = new Map<number, HTMLButtonElement>();
  const sum = button("sum", "Show or hide the sum", () => {
    timeline.showSum = !timeline.showSum;
    timeline.streamsChanged();
  });
  if (all.length > 1) {
    chips.append(h("span.muted", null, `${noun}s`));
    options.chips.forEach(({ id, name, title }, index) => {
      const chip = button(name, `Show or hide ${title}; with Alt: only this one`, (event) =>
        event.altKey ? timeline.showStreams([id]) : timeline.toggleStream(id),
      );
      chip.className = `chip c${index % 8}`;
      buttons.set(id, chip);
      chips.append(chip);
    });
    sum.className = "chip csum";
    chips.append(
      sum,
      button("all", `Show every ${noun}`, () => timeline.showStreams(all)),
      button("none", `Hide every ${noun}`, () => timeline.showStreams([])),
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
    button(timeline.whole, `Show the ${timeline.whole} (0)`, () => timeline.reset()),
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
  return h("div.toolbar", null, chips, tools, h("p.help", { id: "timeline-keys" }, keyHelp(timeline.whole)));
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
    // Of several timelines the one with the focus takes the keys, or the page's first.
    const own = (target instanceof Element ? target.closest("section.timeline") : null) ?? document.querySelector("section.timeline");
    if (own !== root) return;
    const buttonSpace = target instanceof HTMLButtonElement && (event.key === " " || event.key === "Enter");
    if (!buttonSpace && timeline.key(event)) event.preventDefault();
  });
  // What a test, or a curious reader at the console, wants to ask.
  Object.defineProperty(root, "timeline", { value: timeline });
}
