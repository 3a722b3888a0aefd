// A canvas with axes: what it shows of a range is a scene, and scenes of a row share their scale.

import { h } from "../dom";
import { fit, integer, minus, niceStep, ticks } from "../format";
import { colors, type Colors } from "../theme";
import type { Timeline, TimePart } from "../timeline";

const LEFT = 64;
const RIGHT = 12;
const TOP = 9;
const BOTTOM = 20;
/** A drag that is higher than this chooses a height too. */
const BOX = 24;

export interface Pen {
  g: CanvasRenderingContext2D;
  c: Colors;
  x: (t: number) => number;
  y: (value: number) => number;
  left: number;
  right: number;
  top: number;
  bottom: number;
  /** Columns of pixels. */
  width: number;
  from: number;
  to: number;
}

/** What is shown of a range. */
export interface Scene {
  /** What the scale has to hold; NaN if nothing. */
  low: number;
  high: number;
  draw: (pen: Pen) => void;
  /** The same in words. */
  words: string;
  /** What else has to be said, under the title. */
  note?: string;
}

export interface LegendItem {
  id: string;
  label: string;
  /** Of the swatch. */
  color: (c: Colors) => string;
  title?: string;
  dashed?: boolean;
  on: boolean;
}

export interface ChartOptions {
  id: string;
  title: string;
  note: string;
  height: number;
  kind: "size" | "rate" | "time" | "count";
  legend: LegendItem[];
  /** Whether the scale begins at zero. */
  based: boolean;
  scene: (from: number, to: number, width: number, on: (id: string) => boolean) => Scene;
  /** What is at a moment, in words. */
  at: (t: number, span: number) => string;
  extra?: HTMLElement | null;
}

const NOTHING: Scene = { low: NaN, high: NaN, draw: () => undefined, words: "nothing" };

/** One canvas. */
class Chart {
  readonly element: HTMLElement;
  readonly canvas: HTMLCanvasElement;
  readonly plot: HTMLElement;
  private readonly said = h("span.unit.said");
  private readonly cursorLine = h("div.crosshair");
  private readonly band = h("div.band");
  private readonly readout = h("span.reading", { "aria-live": "off" });
  private readonly swatches: (() => void)[] = [];
  width = 600;
  scene: Scene = NOTHING;

  constructor(
    readonly options: ChartOptions,
    private readonly changed: () => void,
  ) {
    this.canvas = h("canvas", { role: "img", "aria-label": options.title });
    this.cursorLine.style.display = "none";
    this.band.style.display = "none";
    this.plot = h("div.plot", null, this.canvas, this.cursorLine, this.band);
    this.element = h(
      "figure.panel.tracechart",
      { id: `chart-${options.id}` },
      h("figcaption", null, h("strong", { title: options.note }, options.title), options.extra ?? null, this.said, this.legend()),
      this.plot,
      h("p.at", null, this.readout),
    );
  }

  private legend(): HTMLElement {
    const items = this.options.legend.map((item) => {
      const swatch = h("i", { class: `swatch${item.dashed ? " dashed" : ""}` });
      this.swatches.push(() => (swatch.style.borderTopColor = item.color(colors())));
      const element = h("button.item", { type: "button", title: item.title ?? `Show or hide ${item.label}`, "aria-pressed": item.on }, swatch, h("span", null, item.label));
      element.addEventListener("click", () => {
        item.on = !item.on;
        element.setAttribute("aria-pressed", String(item.on));
        this.changed();
      });
      element.setAttribute("aria-pressed", String(item.on));
      return element;
    });
    return h("span.legend", null, ...items);
  }

  get inner(): number {
    return Math.max(20, Math.floor(this.width - LEFT - RIGHT));
  }

  prepare(from: number, to: number): void {
    const on = (id: string) => this.options.legend.find((item) => item.id === id)?.on ?? false;
    this.scene = this.options.scene(from, to, this.inner, on);
    const words = this.scene.note ?? "";
    if (this.said.textContent !== words) this.said.textContent = words;
    this.canvas.setAttribute("aria-label", `${this.options.title}: ${this.scene.words}`);
  }

  draw(from: number, to: number, low: number, high: number): void {
    const { canvas, options } = this;
    const c = colors();
    for (const swatch of this.swatches) swatch();
    const dpr = Math.min(3, globalThis.devicePixelRatio || 1);
    const { height } = options;
    canvas.width = Math.round(this.width * dpr);
    canvas.height = Math.round(height * dpr);
    canvas.style.width = `${this.width}px`;
    canvas.style.height = `${height}px`;
    const g = canvas.getContext("2d");
    if (!g) return;
    g.scale(dpr, dpr);
    const [left, right, top, bottom] = [LEFT, LEFT + this.inner, TOP, height - BOTTOM];
    const pen: Pen = {
      g, c, left, right, top, bottom, width: this.inner, from, to,
      x: (t) => left + ((t - from) / (to - from)) * (right - left),
      y: (value) => bottom - ((value - low) / (high - low)) * (bottom - top),
    };
    g.font = `11px ${getComputedStyle(document.body).fontFamily}`;
    this.axes(pen, low, high);
    if (this.scene.low !== this.scene.low) {
      g.fillStyle = c.muted;
      g.textAlign = "center";
      g.fillText("nothing in this range", (left + right) / 2, (top + bottom) / 2);
      return;
    }
    g.save();
    g.beginPath();
    g.rect(left, top - 3, right - left, bottom - top + 6);
    g.clip();
    this.scene.draw(pen);
    g.restore();
  }

  private axes({ g, c, left, right, top, bottom, x, y, from, to }: Pen, low: number, high: number): void {
    g.strokeStyle = c.grid;
    g.fillStyle = c.muted;
    g.lineWidth = 1;
    const size = Math.max(Math.abs(low), Math.abs(high));
    const unit = fit(size, this.options.kind);
    const rows = Math.max(3, Math.round((bottom - top) / 40));
    const step = niceStep((high - low) / unit.size / rows) * unit.size;
    const values: number[] = [];
    for (let v = Math.ceil(low / step - 1e-9) * step; v <= high + step * 1e-9; v += step) values.push(Math.abs(v) < step / 1e6 ? 0 : v);
    const texts = ticks(values, unit.size);
    g.textBaseline = "middle";
    g.textAlign = "right";
    values.forEach((value, i) => {
      const py = Math.round(y(value)) + 0.5;
      line(g, left, py, right, py);
      g.fillText(`${texts[i] ?? ""}${i === values.length - 1 ? ` ${unit.name}` : ""}`, left - 6, Math.max(top + 2, py));
    });
    const span = to - from;
    const wide = niceStep(span / Math.max(2, Math.floor((right - left) / 110)));
    g.textAlign = "center";
    g.textBaseline = "alphabetic";
    for (let t = Math.ceil(from / wide - 1e-9) * wide; t <= to + wide * 1e-9; t += wide) {
      const px = Math.round(x(t)) + 0.5;
      line(g, px, top, px, bottom);
      const text = moment(t, wide);
      const half = g.measureText(text).width / 2;
      if (px - half > left - 40) g.fillText(text, Math.min(px, right + RIGHT - half), bottom + 15);
    }
    g.strokeStyle = c.muted;
    line(g, left + 0.5, top, left + 0.5, bottom);
    line(g, left, bottom + 0.5, right, bottom + 0.5);
  }

  /** Marks a moment. */
  cursor(t: number | null, from: number, to: number): void {
    const inside = t !== null && t >= from && t <= to;
    this.cursorLine.style.display = inside ? "block" : "none";
    if (!inside || t === null) {
      this.readout.textContent = "";
      return;
    }
    const x = LEFT + ((t - from) / (to - from)) * this.inner;
    this.cursorLine.style.left = `${x}px`;
    this.cursorLine.style.height = `${this.options.height - BOTTOM}px`;
    this.readout.textContent = `at ${moment(t, (to - from) / 2_000)}: ${this.options.at(t, to - from)}`;
  }

  /** Where a pointer is: moment and share of the height from below. */
  place(event: MouseEvent, from: number, to: number): { t: number; up: number; inside: boolean } {
    const box = this.canvas.getBoundingClientRect();
    const x = (event.clientX - box.left - LEFT) / this.inner;
    const up = 1 - (event.clientY - box.top - TOP) / (this.options.height - TOP - BOTTOM);
    return { t: from + x * (to - from), up: Math.min(1, Math.max(0, up)), inside: x >= 0 && x <= 1 };
  }

  showBand(a: number, b: number, from: number, to: number, up: [number, number] | null): void {
    const x = (t: number) => LEFT + ((Math.min(to, Math.max(from, t)) - from) / (to - from)) * this.inner;
    const [l, r] = [x(Math.min(a, b)), x(Math.max(a, b))];
    const tall = this.options.height - TOP - BOTTOM;
    Object.assign(this.band.style, {
      display: "block", left: `${l}px`, width: `${r - l}px`,
      top: `${up ? TOP + (1 - Math.max(...up)) * tall : TOP}px`,
      height: `${up ? Math.abs(up[0] - up[1]) * tall : tall}px`,
    });
  }

  hideBand(): void {
    this.band.style.display = "none";
  }
}

/** Charts side by side (or one alone) on one scale. */
export class Row implements TimePart {
  readonly element: HTMLElement;
  private readonly charts: Chart[];
  private from = 0;
  private to = 1;
  private low = 0;
  private high = 1;
  private locked: [number, number] | null = null;

  constructor(
    private readonly timeline: Timeline,
    options: ChartOptions[],
  ) {
    const changed = () => this.redraw();
    this.charts = options.map((o) => new Chart(o, changed));
    this.element = h("div", { class: options.length > 1 ? "chartrow two" : "chartrow" }, ...this.charts.map((c) => c.element));
    for (const chart of this.charts) this.listen(chart);
  }

  setRange(from: number, to: number): void {
    this.from = from;
    this.to = to;
    if (this.timeline.isWhole()) this.locked = null;
    this.redraw();
  }

  /** Lets the scale follow what is in view again. */
  unlock(): void {
    this.locked = null;
    this.redraw();
  }

  redraw(): void {
    const { from, to } = this;
    for (const chart of this.charts) chart.prepare(from, to);
    const lows = this.charts.map((c) => c.scene.low).filter((v) => v === v);
    const highs = this.charts.map((c) => c.scene.high).filter((v) => v === v);
    let [low, high] = [Math.min(...lows, Infinity), Math.max(...highs, -Infinity)];
    if (!(low <= high)) [low, high] = [0, 1];
    if (this.charts[0]?.options.based) low = Math.min(0, low);
    const pad = (high - low) * 0.04 || Math.abs(high) * 0.05 || 1;
    [this.low, this.high] = this.locked ?? [low === 0 ? 0 : low - pad, high + pad];
    for (const chart of this.charts) chart.draw(from, to, this.low, this.high);
  }

  setCursor(t: number | null): void {
    for (const chart of this.charts) chart.cursor(t, this.from, this.to);
  }

  setWidth(width: number): void {
    const stacked = width < 900 || this.charts.length < 2;
    this.element.classList.toggle("stacked", stacked);
    for (const chart of this.charts) chart.width = stacked ? width : Math.floor((width - 24) / 2);
    this.redraw();
  }

  retheme(): void {
    this.redraw();
  }

  setStreams(): void {}

  private listen(chart: Chart): void {
    let start: { t: number; up: number; y: number } | null = null;
    const { canvas } = chart;
    const place = (event: MouseEvent) => chart.place(event, this.from, this.to);
    canvas.addEventListener("pointerdown", (event) => {
      const { t, up, inside } = place(event);
      if (event.button !== 0 || !inside || event.pointerType === "touch") return;
      start = { t, up, y: event.clientY };
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      const { t, up, inside } = place(event);
      if (start) chart.showBand(start.t, t, this.from, this.to, Math.abs(event.clientY - start.y) > BOX ? [start.up, up] : null);
      else if (inside) this.timeline.setCursor(t);
    });
    canvas.addEventListener("pointerup", (event) => {
      const begun = start;
      start = null;
      chart.hideBand();
      if (!begun) return;
      const { t, up } = place(event);
      const [a, b] = [Math.max(this.from, Math.min(begun.t, t)), Math.min(this.to, Math.max(begun.t, t))];
      if ((b - a) / (this.to - this.from) < 0.004) {
        this.timeline.setCursor(t);
        return;
      }
      if (Math.abs(event.clientY - begun.y) > BOX) {
        const value = (share: number) => this.low + share * (this.high - this.low);
        this.locked = [value(Math.min(begun.up, up)), value(Math.max(begun.up, up))];
      }
      this.timeline.setRange(a, b);
    });
    canvas.addEventListener("pointercancel", () => {
      start = null;
      chart.hideBand();
    });
    canvas.addEventListener("pointerleave", () => start || this.timeline.setCursor(null));
    canvas.addEventListener("dblclick", () => {
      this.locked = null;
      this.timeline.reset();
    });
    canvas.addEventListener(
      "wheel",
      (event) => {
        const own = canvas.closest("section.timeline");
        // Without a modifier the wheel belongs to the page until the charts have been clicked.
        if (!(event.ctrlKey || event.metaKey || event.shiftKey || own?.contains(document.activeElement))) return;
        event.preventDefault();
        const { t } = place(event);
        const by = event.deltaY || event.deltaX;
        const factor = Math.exp(Math.max(-0.7, Math.min(0.7, by * 0.003)));
        this.timeline.setRange(t - (t - this.from) * factor, t + (this.to - t) * factor);
      },
      { passive: false },
    );
  }
}

export function line(g: CanvasRenderingContext2D, x1: number, y1: number, x2: number, y2: number): void {
  g.beginPath();
  g.moveTo(x1, y1);
  g.lineTo(x2, y2);
  g.stroke();
}

/** A moment with the digits a spacing calls for, to the nanosecond. */
export function moment(t: number, spacing: number): string {
  const digits = spacing >= 1 ? 0 : Math.min(9, Math.ceil(-Math.log10(spacing) - 1e-9));
  const [whole, rest] = Math.abs(t).toFixed(digits).split(".");
  const text = rest === undefined ? integer(Number(whole)) : `${whole}.${rest.replace(/(\d{3})(?=\d)/g, "$1\u202f")}`;
  return `${Number(t.toFixed(digits)) < 0 ? minus("-") : ""}${text} s`;
}
