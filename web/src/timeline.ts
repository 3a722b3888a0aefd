// The time axis everything over time shares: one range, one cursor, one set of visible streams.

import { h } from "./dom";
import { seconds } from "./format";

/** Something drawn over time. */
export interface TimePart {
  /** Shows this range of seconds. */
  setRange(from: number, to: number): void;
  /** Marks a moment, or none. */
  setCursor(t: number | null): void;
  /** Takes a new width, CSS pixels. */
  setWidth(width: number): void;
  /** Redraws in the current colours. */
  retheme(): void;
  /** Follows a change of the visible streams. */
  setStreams(): void;
}

export class Timeline {
  from: number;
  to: number;
  cursor: number | null = null;
  readonly visible: Set<number>;
  showSum = true;
  /** What all of it is called. */
  whole = "whole test";
  private readonly parts: TimePart[] = [];
  private readonly listeners: (() => void)[] = [];
  private pending = 0;
  private dirtyRange = false;

  /**
   * @param start first moment, seconds
   * @param end last moment, seconds
   * @param step finest reading interval, seconds: the cursor moves by it, and five of them are the closest zoom
   */
  constructor(
    readonly start: number,
    readonly end: number,
    readonly step: number,
    streams: readonly number[],
  ) {
    this.from = start;
    this.to = end;
    this.visible = new Set(streams);
  }

  add(part: TimePart): void {
    this.parts.push(part);
    part.setRange(this.from, this.to);
  }

  /** Calls back after the range, the cursor or the streams changed. */
  onChange(listener: () => void): void {
    this.listeners.push(listener);
  }

  setRange(from: number, to: number): void {
    const whole = this.end - this.start;
    const span = Math.min(whole, Math.max(to - from, Math.min(whole, this.step * 5)));
    const middle = (from + to) / 2;
    let left = middle - span / 2;
    left = Math.max(this.start, Math.min(this.end - span, left));
    this.from = left;
    this.to = left + span;
    this.dirtyRange = true;
    this.schedule();
  }

  reset(): void {
    this.setRange(this.start, this.end);
  }

  isWhole(): boolean {
    return this.to - this.from >= (this.end - this.start) * 0.9999;
  }

  /** Zooms around the cursor if it is in view, or the middle. */
  zoom(factor: number): void {
    const { cursor, from, to } = this;
    const centre = cursor !== null && cursor >= from && cursor <= to ? cursor : (from + to) / 2;
    this.setRange(centre - (centre - from) * factor, centre + (to - centre) * factor);
  }

  /** Moves by a share of what is in view. */
  pan(share: number): void {
    const by = (this.to - this.from) * share;
    this.setRange(this.from + by, this.to + by);
  }

  setCursor(t: number | null): void {
    if (t === this.cursor) return;
    this.cursor = t;
    this.schedule();
  }

  /** Moves the cursor by readings, bringing it into view. */
  stepCursor(steps: number): void {
    const { from, to, step } = this;
    let t = this.cursor ?? (steps > 0 ? from : to);
    t = Math.max(this.start, Math.min(this.end, Math.round(t / step + steps) * step));
    this.cursor = t;
    if (t < from || t > to) this.setRange(t - (to - from) / 2, t + (to - from) / 2);
    this.schedule();
  }

  toggleStream(id: number): void {
    if (!this.visible.delete(id)) this.visible.add(id);
    this.streamsChanged();
  }

  showStreams(ids: readonly number[]): void {
    this.visible.clear();
    for (const id of ids) this.visible.add(id);
    this.streamsChanged();
  }

  streamsChanged(): void {
    for (const part of this.parts) part.setStreams();
    this.schedule();
  }

  setWidth(width: number): void {
    for (const part of this.parts) part.setWidth(width);
  }

  retheme(): void {
    for (const part of this.parts) part.retheme();
  }

  /** Applies what changed, once for all changes of a frame. */
  flush(): void {
    cancelAnimationFrame(this.pending);
    this.pending = 0;
    if (this.dirtyRange) {
      this.dirtyRange = false;
      for (const part of this.parts) part.setRange(this.from, this.to);
    }
    for (const part of this.parts) part.setCursor(this.cursor);
    for (const listener of this.listeners) listener();
  }

  private schedule(): void {
    if (this.pending === 0) this.pending = requestAnimationFrame(() => this.flush());
  }

  /** Keys of the timeline. Returns whether the key was one of them. */
  key(event: KeyboardEvent): boolean {
    if (event.ctrlKey || event.metaKey || event.altKey) return false;
    switch (event.key) {
      case "ArrowLeft":
        event.shiftKey ? this.stepCursor(-1) : this.pan(-0.2);
        return true;
      case "ArrowRight":
        event.shiftKey ? this.stepCursor(1) : this.pan(0.2);
        return true;
      case "[":
        this.stepCursor(-1);
        return true;
      case "]":
        this.stepCursor(1);
        return true;
      case "+":
      case "=":
        this.zoom(0.5);
        return true;
      case "-":
      case "_":
        this.zoom(2);
        return true;
      case "0":
      case "Escape":
        this.setCursor(null);
        this.reset();
        return true;
      default:
        return false;
    }
  }

  /** The range in words. */
  describe(): string {
    const span = this.to - this.from;
    const text = `${seconds(this.from, span / 200)} to ${seconds(this.to, span / 200)}`;
    return this.isWhole() ? `${this.whole}, ${text}` : text;
  }
}

/** The keys, for the help line. */
export function keyHelp(whole: string): HTMLElement {
  const key = (name: string) => h("kbd", null, name);
  return h(
    "span.keys",
    null,
    "drag or ", key("+"), " ", key("−"), " zoom · ", key("←"), " ", key("→"), " pan · ",
    key("["), " ", key("]"), " step · double click or ", key("0"), ` ${whole} · where readings crowd: their mean, and a band from least to most`,
  );
}
