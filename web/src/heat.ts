// CPU use of one host: time across, cores down, darker is busier.

import { h } from "./dom";
import type { CoreUse, HostSample } from "./document";
import { integer, megahertz, niceStep, percent, seconds } from "./format";
import { Lanes, type Mark } from "./lanes";
import { GUTTER, MARGIN } from "./panel";
import { floorIndex } from "./series";
import { colors } from "./theme";
import type { TimePart, Timeline } from "./timeline";

export const COMPONENTS = ["busy", "user", "system", "softirq", "irq", "steal", "iowait"] as const;
export type Component = (typeof COMPONENTS)[number];

export function use(core: CoreUse, component: Component): number {
  if (component !== "busy") return core[component];
  return core.user + core.system + core.softirq + core.irq + core.steal;
}

/** What the readers of both strips choose together. */
export interface HeatChoice {
  component: Component;
  hideIdle: boolean;
}

export interface HeatOptions {
  id: string;
  title: string;
  samples: readonly HostSample[];
  /** Cores the test's threads were pinned to. */
  pinned: readonly number[];
  marks: readonly Mark[];
  choice: HeatChoice;
  timeline: Timeline;
}

const AXIS = 22;
/** Below this busy share at all times a core counts as idle. */
const IDLE = 0.2;

export class HeatStrip implements TimePart {
  readonly element: HTMLElement;
  private readonly canvas = h("canvas", { role: "img" });
  private readonly line = h("div.crosshair");
  private readonly tip = h("div.tip", { role: "status" });
  private readonly reading = h("span.legend");
  private readonly lanes: Lanes;
  private readonly holder: HTMLElement;
  private readonly starts: number[];
  private readonly busiest: number[];
  private cores: number[] = [];
  private from = 0;
  private to = 1;
  private width = 900;
  private rowHeight = 10;
  private hovered: number | null = null;

  constructor(private readonly options: HeatOptions) {
    const { samples } = options;
    this.starts = samples.map((s) => s.start_ns / 1e9);
    const count = samples.reduce((most, s) => Math.max(most, s.cores.length), 0);
    this.busiest = Array.from({ length: count }, (_, core) => {
      let most = 0;
      for (const sample of samples) {
        const c = sample.cores[core];
        if (c) most = Math.max(most, use(c, "busy"));
      }
      return most;
    });
    this.lanes = new Lanes(options.marks, GUTTER, MARGIN);
    this.line.hidden = true;
    this.tip.hidden = true;
    this.holder = h("div.plot.heat", null, this.canvas, this.line, this.tip);
    this.element = h(
      "figure.panel",
      { id: `chart-${options.id}` },
      h("figcaption", null, h("strong", null, options.title), h("span.unit", null, "share of each core"), this.reading),
      this.lanes.element,
      this.holder,
    );
    this.choose();
    this.listen();
  }

  setRange(from: number, to: number): void {
    this.from = from;
    this.to = to;
    this.lanes.setRange(from, to);
    this.draw();
  }

  setCursor(t: number | null): void {
    const inside = t !== null && t >= this.from && t <= this.to;
    this.line.hidden = !inside;
    if (inside) this.line.style.left = `${this.x(t)}px`;
    this.writeReading(t);
    this.writeTip(t);
  }

  setWidth(width: number): void {
    this.width = width;
    this.lanes.setWidth(width);
    this.draw();
  }

  retheme(): void {
    this.draw();
  }

  setStreams(): void {
    // Cores belong to the host, not to streams.
  }

  /** Follows a change of the component or of the cores shown. */
  choose(): void {
    const all = this.busiest.map((_, core) => core);
    const active = all.filter((core) => (this.busiest[core] ?? 0) >= IDLE || this.options.pinned.includes(core));
    this.cores = this.options.choice.hideIdle && active.length > 0 ? active : all;
    this.rowHeight = Math.max(3, Math.min(12, Math.floor(320 / Math.max(1, this.cores.length))));
    this.lanes.setPlotHeight(this.plotHeight() + 24);
    this.draw();
    this.writeReading(this.options.timeline.cursor);
  }

  private plotHeight(): number {
    return this.cores.length * this.rowHeight;
  }

  private x(t: number): number {
    return GUTTER + ((this.width - GUTTER - MARGIN) * (t - this.from)) / (this.to - this.from);
  }

  private t(x: number): number {
    return this.from + ((x - GUTTER) / (this.width - GUTTER - MARGIN)) * (this.to - this.from);
  }

  private draw(): void {
    const ratio = devicePixelRatio || 1;
    const height = this.plotHeight() + AXIS;
    const { canvas } = this;
    canvas.width = Math.round(this.width * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.width = `${this.width}px`;
    canvas.style.height = `${height}px`;
    this.line.style.height = `${this.plotHeight()}px`;
    const ctx = canvas.getContext("2d");
    if (!ctx) return;
    ctx.scale(ratio, ratio);
    this.drawCells(ctx, ratio);
    this.drawAxes(ctx);
    this.describe();
  }

  private drawCells(ctx: CanvasRenderingContext2D, ratio: number): void {
    const left = Math.round(GUTTER * ratio);
    const columns = Math.max(1, Math.round((this.width - MARGIN) * ratio) - left);
    const rows = this.cores.length;
    if (rows === 0) return;
    const image = ctx.createImageData(columns, rows);
    const shades = palette();
    const { samples, choice } = this.options;
    for (let column = 0; column < columns; column++) {
      const t0 = this.from + ((this.to - this.from) * column) / columns;
      const t1 = this.from + ((this.to - this.from) * (column + 1)) / columns;
      const first = Math.max(0, floorIndex(this.starts, t0));
      for (let row = 0; row < rows; row++) {
        const core = this.cores[row] as number;
        let sum = 0;
        let weight = 0;
        for (let k = first; k < samples.length; k++) {
          const sample = samples[k] as HostSample;
          const start = sample.start_ns / 1e9;
          if (start >= t1) break;
          const overlap = Math.min(t1, sample.end_ns / 1e9) - Math.max(t0, start);
          const c = sample.cores[core];
          if (overlap <= 0 || !c) continue;
          sum += use(c, choice.component) * overlap;
          weight += overlap;
        }
        if (weight === 0) continue;
        const level = Math.max(0, Math.min(255, Math.round((sum / weight) * 255)));
        image.data.set(shades.subarray(level * 4, level * 4 + 4), (row * columns + column) * 4);
      }
    }
    const buffer = document.createElement("canvas");
    buffer.width = columns;
    buffer.height = rows;
    buffer.getContext("2d")?.putImageData(image, 0, 0);
    ctx.imageSmoothingEnabled = false;
    const gap = this.rowHeight >= 6 ? 1 : 0;
    for (let row = 0; row < rows; row++) {
      ctx.drawImage(
        buffer, 0, row, columns, 1,
        left / ratio, row * this.rowHeight, columns / ratio, this.rowHeight - gap,
      );
    }
  }

  private drawAxes(ctx: CanvasRenderingContext2D): void {
    const c = colors();
    ctx.font = "10px system-ui, sans-serif";
    ctx.fillStyle = c.muted;
    ctx.textAlign = "right";
    ctx.textBaseline = "middle";
    const every = Math.max(1, Math.ceil(11 / this.rowHeight));
    this.cores.forEach((core, row) => {
      const pinned = this.options.pinned.includes(core);
      if (row % every !== 0 && !(pinned && every === 1)) return;
      ctx.fillStyle = pinned ? c.text : c.muted;
      ctx.font = `${pinned ? "bold " : ""}10px system-ui, sans-serif`;
      ctx.fillText(String(core), GUTTER - 6, Math.max(5, (row + 0.5) * this.rowHeight));
    });
    ctx.save();
    ctx.translate(12, this.plotHeight() / 2);
    ctx.rotate(-Math.PI / 2);
    ctx.textAlign = "center";
    ctx.font = "11px system-ui, sans-serif";
    ctx.fillStyle = c.muted;
    if (this.plotHeight() > 30) ctx.fillText("core", 0, 0);
    ctx.restore();
    ctx.textAlign = "center";
    ctx.textBaseline = "top";
    const increment = niceStep((this.to - this.from) / ((this.width - GUTTER - MARGIN) / 64));
    ctx.font = "11px system-ui, sans-serif";
    ctx.strokeStyle = c.grid;
    const y = this.plotHeight();
    for (let k = Math.ceil(this.from / increment - 1e-9); k * increment <= this.to + 1e-9; k++) {
      const x = this.x(k * increment);
      ctx.beginPath();
      ctx.moveTo(x, y);
      ctx.lineTo(x, y + 4);
      ctx.stroke();
      ctx.fillText(seconds(k * increment, increment), x, y + 6);
    }
  }

  private sampleAt(t: number): HostSample | null {
    const sample = this.options.samples[floorIndex(this.starts, t)];
    return sample && t * 1e9 < sample.end_ns ? sample : null;
  }

  /** A core's clock, which is read less often than its use: the latest reading up to this sample. */
  private clock(sample: HostSample, core: number): number | undefined {
    const { samples } = this.options;
    for (let k = samples.indexOf(sample); k >= 0; k--) {
      const reading = samples[k]?.mhz ?? [];
      if (reading.length > 0) return reading[core];
    }
    return undefined;
  }

  private writeReading(t: number | null): void {
    const sample = t === null ? null : this.sampleAt(t);
    const { choice } = this.options;
    const of = (sample: HostSample): { sum: number; most: number; core: number } => {
      let [sum, most, core] = [0, -1, -1];
      sample.cores.forEach((c, index) => {
        if (!c) return;
        const share = use(c, choice.component);
        sum += share;
        if (share > most) [most, core] = [share, index];
      });
      return { sum, most, core };
    };
    if (sample) {
      const { sum, most, core } = of(sample);
      this.reading.replaceChildren(
        h("span.when", null, "at cursor"),
        h("span.item", null, `${choice.component} `, h("b", null, sum.toFixed(2)), " cores in all"),
        h("span.item", null, "most: ", h("b", null, percent(most)), ` on core ${core}`),
      );
      return;
    }
    let total = 0;
    let time = 0;
    for (const s of this.options.samples) {
      const overlap = Math.min(this.to, s.end_ns / 1e9) - Math.max(this.from, s.start_ns / 1e9);
      if (overlap <= 0) continue;
      total += of(s).sum * overlap;
      time += overlap;
    }
    this.reading.replaceChildren(
      h("span.when", null, "mean in view"),
      h("span.item", null, `${choice.component} `, h("b", null, time > 0 ? (total / time).toFixed(2) : "–"), " cores in all"),
    );
  }

  private writeTip(t: number | null): void {
    const sample = t === null ? null : this.sampleAt(t);
    const core = this.hovered;
    if (core === null || !sample || t === null) {
      this.tip.hidden = true;
      return;
    }
    const c = sample.cores[core];
    const lines: Node[] = [h("strong", null, `core ${core}, ${seconds(t, 0.001)}`)];
    if (c) {
      for (const name of COMPONENTS) lines.push(h("span", null, name), h("b", null, percent(use(c, name))));
      const mhz = this.clock(sample, core);
      if (mhz) lines.push(h("span", null, "clock"), h("b", null, megahertz(mhz)));
    } else {
      lines.push(h("span", null, "offline"));
    }
    const { softnet } = sample;
    lines.push(h("span", null, "softnet dropped, all cores"), h("b", null, integer(softnet.dropped)));
    lines.push(h("span", null, "softnet squeezed, all cores"), h("b", null, integer(softnet.time_squeeze)));
    this.tip.replaceChildren(...lines);
    this.tip.hidden = false;
    const x = this.x(t);
    const flip = x > this.width - 240;
    this.tip.style.left = flip ? "" : `${x + 12}px`;
    this.tip.style.right = flip ? `${this.width - x + 12}px` : "";
    this.tip.style.top = `${Math.max(0, this.cores.indexOf(core) * this.rowHeight - 40)}px`;
  }

  private describe(): void {
    const { options } = this;
    const order = this.busiest.map((most, core) => ({ most, core })).sort((a, b) => b.most - a.most);
    const top = order.slice(0, 3).map(({ most, core }) => `core ${core} ${percent(most)}`);
    this.canvas.setAttribute(
      "aria-label",
      `${options.title}, ${options.choice.component}: ${this.busiest.length} cores over time; busiest at any moment: ${top.join(", ")}.`,
    );
  }

  private listen(): void {
    const { timeline } = this.options;
    let pressed: number | null = null;
    const local = (event: MouseEvent) => event.clientX - this.canvas.getBoundingClientRect().left;
    const within = (x: number) => x >= GUTTER && x <= this.width - MARGIN;
    const band = h("div.band");
    band.hidden = true;
    this.holder.append(band);
    this.canvas.addEventListener("mousemove", (event) => {
      const x = local(event);
      const row = Math.floor((event.clientY - this.canvas.getBoundingClientRect().top) / this.rowHeight);
      this.hovered = within(x) ? (this.cores[row] ?? null) : null;
      timeline.setCursor(within(x) ? this.t(x) : null);
      this.writeTip(timeline.cursor);
    });
    this.canvas.addEventListener("mouseleave", () => {
      this.hovered = null;
      if (pressed === null) timeline.setCursor(null);
    });
    this.canvas.addEventListener("mousedown", (event) => {
      const x = local(event);
      if (event.button !== 0 || !within(x)) return;
      event.preventDefault();
      pressed = x;
    });
    addEventListener("mousemove", (event) => {
      if (pressed === null) return;
      const x = Math.max(GUTTER, Math.min(this.width - MARGIN, local(event)));
      band.hidden = Math.abs(x - pressed) < 4;
      band.style.left = `${Math.min(x, pressed)}px`;
      band.style.width = `${Math.abs(x - pressed)}px`;
      band.style.height = `${this.plotHeight()}px`;
    });
    addEventListener("mouseup", (event) => {
      if (pressed === null) return;
      const x = Math.max(GUTTER, Math.min(this.width - MARGIN, local(event)));
      const [a, b] = [Math.min(x, pressed), Math.max(x, pressed)];
      pressed = null;
      band.hidden = true;
      if (b - a >= 4) timeline.setRange(this.t(a), this.t(b));
    });
    this.canvas.addEventListener("dblclick", () => timeline.reset());
  }
}

/** The scale's picture, 0 to 100 %. */
export function heatKey(): { element: HTMLElement; draw: () => void } {
  const canvas = h("canvas.key", { width: 128, height: 10, role: "img", "aria-label": "scale from 0 to 100 percent" });
  const draw = () => {
    const ctx = canvas.getContext("2d");
    if (!ctx) return;
    const shades = palette();
    const image = ctx.createImageData(128, 10);
    for (let x = 0; x < 128; x++) {
      for (let y = 0; y < 10; y++) image.data.set(shades.subarray(x * 8, x * 8 + 4), (y * 128 + x) * 4);
    }
    ctx.putImageData(image, 0, 0);
  };
  draw();
  return { element: h("span.heatkey", null, "0 %", canvas, "100 %"), draw };
}

// Anchors of a scale of growing contrast with the paper; hue turns from blue-grey over amber to red.
const LIGHT: readonly [number, number, number][] = [
  [240, 242, 244], [214, 224, 234], [243, 205, 140], [226, 127, 58], [178, 42, 30], [92, 12, 22],
];
const DARK: readonly [number, number, number][] = [
  [32, 36, 41], [44, 62, 82], [120, 86, 38], [205, 112, 42], [244, 120, 84], [255, 226, 200],
];

function palette(): Uint8ClampedArray {
  const anchors = colors().dark ? DARK : LIGHT;
  const out = new Uint8ClampedArray(256 * 4);
  for (let level = 0; level < 256; level++) {
    const at = (level / 255) * (anchors.length - 1);
    const low = Math.min(anchors.length - 2, Math.floor(at));
    const part = at - low;
    const a = anchors[low] as readonly [number, number, number];
    const b = anchors[low + 1] as readonly [number, number, number];
    for (let k = 0; k < 3; k++) out[level * 4 + k] = (a[k] as number) * (1 - part) + (b[k] as number) * part;
    out[level * 4 + 3] = 255;
  }
  return out;
}
