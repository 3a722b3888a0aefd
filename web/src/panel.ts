// One chart of the timeline: lines over the shared time axis, with a legend that shows the values at the cursor.

import uPlot from "uplot";
import { h, type Child } from "./dom";
import { bytes, fit, integer, isNumber, nanos, NONE, rate, seconds, significant, ticks } from "./format";
import { Lanes, type Mark } from "./lanes";
import { closestIndex, floorIndex, type Column } from "./series";
import { crowd, tickMarks } from "./crowd";
import { colors } from "./theme";
import type { TimePart, Timeline } from "./timeline";

/** Width left of the plots for the value axis, and right of them, CSS pixels: the same for all, so that times align. */
export const GUTTER = 62;
export const MARGIN = 14;

/** A shaded part of the time axis. */
export interface Shade {
  from: number;
  to: number;
  name: string;
}

/** Something that happened at one time, drawn as a vertical line with its name. */
export interface Moment {
  /** Seconds. */
  at: number;
  name: string;
}

/** One line of a chart. */
export interface Line {
  label: string;
  /** Index of a stream colour, or the text colour, or the colour of trouble. */
  color: number | "text" | "muted" | "bad";
  width: number;
  dash?: number[];
  /** Filled down to zero. */
  fill?: boolean;
  /** A count, drawn as ticks at the top where there is one; the legend says how many. */
  ticks?: boolean;
  /** Values, given the streams that are visible. */
  values: () => Column;
  /** Whether it is drawn now. */
  shown: () => boolean;
  /** Whether the reader can switch it in this chart's legend. */
  toggle?: () => void;
}

export interface PanelOptions {
  id: string;
  title: string;
  /** Explains the title on hover and to screen readers. */
  note?: string;
  height: number;
  kind: "rate" | "size" | "time" | "count";
  /** What is counted, for counts. */
  unit?: string;
  /** Lets the value axis start above zero when all values are far above it. */
  floating?: boolean;
  /** Seconds. For steps: the edges of the cells, the last value repeated. */
  x: number[];
  steps: boolean;
  lines: Line[];
  /** What the legend says when there is no cursor. */
  resting: "mean" | "total" | "largest";
  shades: readonly Shade[];
  /** Names the shades inside the plot. */
  nameShades?: boolean;
  marks: readonly Mark[];
  moments?: readonly Moment[];
  controls?: Child[];
  timeline: Timeline;
}

const BINARY = Array.from({ length: 56 }, (_, k) => 2 ** k);
const LEGEND_LIMIT = 10;
/** A rate outside the phase of the figures is clipped if it is so many times the highest within. */
const CLIPPED = 1.5;

export class Panel implements TimePart {
  readonly element: HTMLElement;
  private readonly plot: uPlot;
  private readonly holder: HTMLElement;
  private readonly legend = h("span.legend");
  private readonly unit = h("span.unit");
  private readonly lanes: Lanes;
  private columns: Column[] = [];
  private unitSize = 1;
  private unitName = "";
  private cursor: number | null = null;
  private fromOutside = false;

  constructor(private readonly options: PanelOptions) {
    this.lanes = new Lanes(options.marks, GUTTER, MARGIN);
    this.holder = h("div.plot", { role: "img", "aria-label": options.title });
    this.element = h(
      "figure.panel",
      { id: `chart-${options.id}` },
      h(
        "figcaption",
        null,
        h("strong", { title: options.note }, options.title),
        this.unit,
        ...(options.controls ?? []),
        this.legend,
      ),
      this.lanes.element,
      this.holder,
    );
    this.columns = options.lines.map((line) => line.values());
    this.plot = new uPlot(this.settings(), this.data(), this.holder);
    this.plot.over.addEventListener("mouseleave", () => options.timeline.setCursor(null));
    this.lanes.setPlotHeight(options.height);
    this.describe();
  }

  setRange(from: number, to: number): void {
    this.plot.batch(() => this.plot.setScale("x", { min: from, max: to }));
    this.lanes.setRange(from, to);
    this.writeLegend();
  }

  setCursor(t: number | null): void {
    this.cursor = t;
    this.fromOutside = true;
    const left = t === null ? -10 : this.plot.valToPos(t, "x");
    this.plot.setCursor({ left, top: t === null ? -10 : 1 }, false);
    this.fromOutside = false;
    this.writeLegend();
  }

  setWidth(width: number): void {
    this.plot.setSize({ width, height: this.options.height });
    this.lanes.setWidth(width);
  }

  retheme(): void {
    this.plot.redraw(true, true);
    this.writeLegend();
  }

  setStreams(): void {
    const { lines } = this.options;
    this.columns = lines.map((line) => line.values());
    this.plot.batch(() => {
      lines.forEach((line, i) => {
        const series = this.plot.series[i + 1];
        if (series && series.show !== line.shown()) this.plot.setSeries(i + 1, { show: line.shown() }, false);
      });
      this.plot.setData(this.data(), false);
      this.plot.setScale("x", { min: this.options.timeline.from, max: this.options.timeline.to });
    });
    this.describe();
    this.writeLegend();
  }

  private data(): uPlot.AlignedData {
    return [this.options.x, ...this.columns];
  }

  private settings(): uPlot.Options {
    const { options } = this;
    const line = uPlot.paths.linear?.();
    const step = uPlot.paths.stepped?.({ align: 1 });
    // Readings that crowd are drawn as their mean with a band from least to most; bars keep their peaks instead.
    const paths: uPlot.Series.PathBuilder = (u, index, first, last) => {
      if (options.lines[index - 1]?.ticks) return tickMarks(u, index, first, last);
      const filled = options.lines[index - 1]?.fill === true;
      const dense = last - first > u.bbox.width / (devicePixelRatio || 1);
      if (dense && !filled) return crowd(u, index, first, last);
      const built = (options.steps && !dense ? step : line)?.(u, index, first, last) ?? null;
      if (built && !filled) built.fill = null;
      return built;
    };
    const axis = (more: uPlot.Axis): uPlot.Axis => ({
      stroke: () => colors().muted,
      grid: { stroke: () => colors().grid, width: 1 },
      ticks: { stroke: () => colors().grid, width: 1, size: 4 },
      font: "11px system-ui, sans-serif",
      ...more,
    });
    return {
      width: 900,
      height: options.height,
      padding: [options.nameShades ? 16 : 6, MARGIN, 0, 0],
      legend: { show: false },
      cursor: {
        y: false,
        points: { show: false },
        drag: { x: true, y: false, setScale: false, dist: 4 },
        bind: {
          dblclick: () => () => {
            options.timeline.reset();
            return null;
          },
        },
      },
      scales: {
        x: { time: false, range: (_u, min, max) => [min, max] },
        y: { range: (_u, min, max) => this.valueRange(min, max) },
        ticks: { range: [0, 1] },
      },
      axes: [
        axis({
          size: 24,
          gap: 2,
          space: 64,
          values: (_u, splits, _i, _space, increment) => splits.map((v) => seconds(v, increment)),
        }),
        axis({
          size: GUTTER,
          gap: 4,
          space: options.height < 130 ? 18 : 26,
          ...(options.kind === "size" ? { incrs: BINARY } : {}),
          values: (_u, splits) => ticks(splits, this.unitSize),
        }),
      ],
      series: [
        {},
        ...options.lines.map(
          (l): uPlot.Series => ({
            label: l.label,
            scale: l.ticks ? "ticks" : "y",
            stroke: () => this.color(l),
            width: l.width,
            show: l.shown(),
            points: { show: false },
            spanGaps: false,
            paths,
            ...(l.dash ? { dash: l.dash } : {}),
            fill: () => this.color(l) + (l.fill ? "55" : "30"),
          }),
        ),
      ],
      hooks: {
        drawClear: [(u) => this.drawShades(u)],
        draw: [(u) => this.drawMoments(u), (u) => this.writeClipped(u)],
        setCursor: [
          (u) => {
            if (this.fromOutside) return;
            const left = u.cursor.left ?? -1;
            options.timeline.setCursor(left < 0 ? null : u.posToVal(left, "x"));
          },
        ],
        setSelect: [
          (u) => {
            if (u.select.width <= 0) return;
            const from = u.posToVal(u.select.left, "x");
            const to = u.posToVal(u.select.left + u.select.width, "x");
            u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
            options.timeline.setRange(from, to);
          },
        ],
      },
    };
  }

  /** The highest value in view in cells whose middle passes a test. */
  private peak(test: (middle: number) => boolean): number {
    const { x, steps, lines, timeline } = this.options;
    let most = 0;
    lines.forEach((line, i) => {
      const column = this.columns[i];
      if (line.ticks || !line.shown() || !column) return;
      for (let k = 0; k < x.length - (steps ? 1 : 0); k++) {
        const left = x[k] ?? 0;
        const right = steps ? (x[k + 1] ?? left) : left;
        if (right < timeline.from || left > timeline.to || !test((left + right) / 2)) continue;
        most = Math.max(most, column[k] ?? 0);
      }
    });
    return most;
  }

  /** From zero, unless values are negative, with a little air; keeps the unit in step. Rates are scaled to the phase of the figures. */
  private valueRange(min: number | null, max: number | null): [number, number] {
    const { shades, kind } = this.options;
    const steady = kind === "rate" && shades.length > 0 ? this.peak((t) => !shades.some((s) => s.from <= t && t <= s.to)) : 0;
    const top = steady > 0 && (max ?? 0) > CLIPPED * steady ? steady : Math.max(0, max ?? 0);
    const bottom = Math.min(0, min ?? 0);
    const reach = top - bottom;
    const unit = fit(Math.max(top, -bottom), this.options.kind);
    this.unitSize = unit.size;
    if (unit.name !== this.unitName || this.unit.textContent === "") {
      this.unitName = unit.name;
      this.unit.textContent = [unit.name, this.options.unit].filter(Boolean).join(" ");
    }
    if (this.options.floating && min !== null && max !== null && min > 0.4 * max) {
      const air = Math.max((max - min) * 0.15, max * 0.01);
      return [min - air, max + air];
    }
    if (reach === 0) return [0, this.options.kind === "count" ? 4 : unit.size];
    // Ticks have the top to themselves.
    const air = this.options.lines.some((l) => l.ticks) ? 0.18 : 0.06;
    return [bottom * 1.06, top + reach * air];
  }

  private color(line: Line): string {
    const c = colors();
    if (typeof line.color === "number") return c.streams[line.color % c.streams.length] ?? c.text;
    return c[line.color];
  }

  private drawShades(u: uPlot): void {
    const c = colors();
    const ctx = u.ctx;
    const ratio = devicePixelRatio || 1;
    const { left: first, top, width, height } = u.bbox;
    ctx.save();
    ctx.font = `${10 * ratio}px system-ui, sans-serif`;
    ctx.textBaseline = "bottom";
    for (const shade of this.options.shades) {
      const left = Math.max(first, u.valToPos(shade.from, "x", true));
      const right = Math.min(first + width, u.valToPos(shade.to, "x", true));
      if (right <= left) continue;
      ctx.fillStyle = c.shade;
      ctx.fillRect(left, top, Math.max(1, right - left), height);
      if (this.options.nameShades && right - left > ctx.measureText(shade.name).width) {
        ctx.fillStyle = c.muted;
        ctx.fillText(shade.name, left, top - 2 * ratio);
      }
    }
    ctx.restore();
  }

  /** Draws a line at each moment, named where the last name has ended. */
  private drawMoments(u: uPlot): void {
    const moments = this.options.moments ?? [];
    if (moments.length === 0) return;
    const c = colors();
    const ratio = devicePixelRatio || 1;
    const { left: first, top, width, height } = u.bbox;
    const { ctx } = u;
    ctx.save();
    ctx.font = `${10 * ratio}px system-ui, sans-serif`;
    ctx.textBaseline = "top";
    ctx.strokeStyle = c.bad;
    ctx.fillStyle = c.muted;
    ctx.lineWidth = ratio;
    ctx.setLineDash([4 * ratio, 3 * ratio]);
    let free = first;
    for (const moment of moments) {
      const x = u.valToPos(moment.at, "x", true);
      if (x < first || x > first + width) continue;
      ctx.beginPath();
      ctx.moveTo(x, top);
      ctx.lineTo(x, top + height);
      ctx.stroke();
      const named = ctx.measureText(moment.name).width + 6 * ratio;
      if (x < free || x + named > first + width) continue;
      ctx.fillText(moment.name, x + 3 * ratio, top + 2 * ratio);
      free = x + named;
    }
    ctx.restore();
  }

  /** Writes the highest rate beside each shade in which it does not fit on the axis. */
  private writeClipped(u: uPlot): void {
    const end = u.scales["y"]?.max;
    if (this.options.kind !== "rate" || !isNumber(end)) return;
    const ratio = devicePixelRatio || 1;
    const { left: first, top, width } = u.bbox;
    const { ctx } = u;
    ctx.save();
    ctx.font = `${10 * ratio}px system-ui, sans-serif`;
    ctx.textBaseline = "top";
    ctx.fillStyle = colors().muted;
    for (const shade of this.options.shades) {
      const most = this.peak((t) => shade.from <= t && t <= shade.to);
      if (most <= end) continue;
      const left = Math.max(first, u.valToPos(shade.from, "x", true));
      const right = Math.min(first + width, u.valToPos(shade.to, "x", true));
      const inside = left > first + width / 2;
      ctx.textAlign = inside ? "right" : "left";
      ctx.fillText(`↑ ${rate(most)}`, inside ? left - 3 * ratio : right + 3 * ratio, top + 2 * ratio);
    }
    ctx.restore();
  }

  /** The cell or reading the cursor stands on. */
  private indexAt(t: number): number {
    const { x, steps } = this.options;
    return steps ? Math.min(floorIndex(x, t), x.length - 2) : closestIndex(x, t);
  }

  private writeLegend(): void {
    const { options, cursor } = this;
    const at = cursor === null ? null : this.indexAt(cursor);
    const shown = options.lines.map((line, i) => ({ line, i })).filter(({ line }) => line.shown() || line.toggle);
    const few = shown.length <= LEGEND_LIMIT;
    const items: Node[] = [h("span.when", null, at === null ? this.restingWord() : "at cursor")];
    for (const { line, i } of shown) {
      if (!few && typeof line.color === "number") continue;
      items.push(this.legendItem(line, this.valueText(i, at)));
    }
    if (!few) items.push(this.spread(shown.filter(({ line }) => typeof line.color === "number").map(({ i }) => i), at));
    this.legend.replaceChildren(...items);
  }

  private legendItem(line: Line, value: string): HTMLElement {
    const swatch = h("i.swatch");
    swatch.style.borderTopColor = this.color(line);
    if (line.dash) swatch.style.borderTopStyle = "dashed";
    if (line.width > 1.5) swatch.style.borderTopWidth = "3px";
    const parts = [swatch, h("span", null, line.label), h("b", null, value)];
    if (!line.toggle) return h("span.item", null, ...parts);
    const button = h("button.item", { type: "button", "aria-pressed": String(line.shown()) }, ...parts);
    button.addEventListener("click", () => {
      line.toggle?.();
      this.setStreams();
    });
    return button;
  }

  /** For many streams: their range instead of each one's value. */
  private spread(indexes: readonly number[], at: number | null): HTMLElement {
    const values = indexes.map((i) => this.value(i, at)).filter(isNumber).sort((a, b) => a - b);
    const text = (v: number | undefined) => (v === undefined ? NONE : significant(v / this.unitSize));
    const middle = values[Math.floor(values.length / 2)];
    return h(
      "span.item",
      null,
      `${indexes.length} streams: least `, h("b", null, text(values[0])),
      " median ", h("b", null, text(middle)),
      " most ", h("b", null, text(values[values.length - 1])),
    );
  }

  private restingWord(): string {
    return { mean: "mean in view", total: "total in view", largest: "largest in view" }[this.options.resting];
  }

  private valueText(line: number, at: number | null): string {
    const value = this.value(line, at);
    if (value === null) return NONE;
    if (this.options.lines[line]?.ticks) return integer(value);
    if (this.unitSize === 1 && (Number.isInteger(value) || Math.abs(value) >= 1000)) return integer(value);
    // Far below the axis's unit, a figure brings its own.
    const own = { rate, size: bytes, time: nanos, count: null }[this.options.kind];
    return own && value !== 0 && Math.abs(value) < this.unitSize / 10 ? own(value) : significant(value / this.unitSize);
  }

  private value(line: number, at: number | null): number | null {
    const column = this.columns[line];
    if (!column) return null;
    if (at !== null) return column[at] ?? null;
    const { x, steps, timeline } = this.options;
    const resting = this.options.lines[line]?.ticks ? "total" : this.options.resting;
    const first = Math.max(0, steps ? floorIndex(x, timeline.from) : closestIndex(x, timeline.from));
    const last = steps ? Math.min(x.length - 2, floorIndex(x, timeline.to - 1e-12)) : closestIndex(x, timeline.to);
    let total = 0;
    let weight = 0;
    let most: number | null = null;
    for (let k = first; k <= last; k++) {
      const value = column[k];
      if (value === null || value === undefined) continue;
      const w = steps && resting === "mean" ? (x[k + 1] ?? 0) - (x[k] ?? 0) : 1;
      total += value * w;
      weight += w;
      most = most === null ? value : Math.max(most, value);
    }
    if (weight === 0) return null;
    return resting === "mean" ? total / weight : resting === "total" ? total : most;
  }

  /** What the picture shows, for those who cannot see it. */
  private describe(): void {
    const { options } = this;
    const parts = options.lines
      .map((line, i) => ({ line, i }))
      .filter(({ line }) => line.shown())
      .slice(0, 8)
      .map(({ line, i }) =>
        line.ticks
          ? `${line.label} ${this.valueText(i, null)}`
          : `${line.label} ${this.restingWord()} ${this.valueText(i, null)} ${this.unitName}`,
      );
    this.holder.setAttribute("aria-label", `${options.title}. ${parts.join("; ")}.`);
  }
}
