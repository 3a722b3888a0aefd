// Scales and ticks of a figure.

import type { FigureAxis } from "../document";
import { minus, niceStep, ticks as labels } from "../format";
import { fitting, number, quantity } from "./quantity";

/** An axis laid on pixels. */
export interface Laid {
  from: number;
  to: number;
  ticks: { value: number; label: string }[];
  /** With the unit. */
  title: string;
  /** The pixel of a value, or null where the scale has no place for it. */
  at: (value: number) => number | null;
}

const TICKS = 5;
/** Levels up to this many are ticks themselves. */
const LEVELS = 12;
const DAY = 86_400;
const YEAR = 365.2425 * DAY;

function laid(scale: FigureAxis["scale"], low: number, high: number, from: number, to: number, ticks: Laid["ticks"], title: string): Laid {
  const log = scale === "log";
  const scaled = (v: number) => (log ? Math.log(v) : v);
  const at = (value: number) => {
    if (!Number.isFinite(value) || (log && value <= 0)) return null;
    const span = scaled(high) - scaled(low);
    return from + (to - from) * (span > 0 ? (scaled(value) - scaled(low)) / span : 0.5);
  };
  return { from, to, ticks, title, at };
}

/** The axis across, over these values. */
export function across(axis: FigureAxis, values: readonly number[], from: number, to: number): Laid {
  const levels = [...new Set(values.filter(Number.isFinite))].sort((a, b) => a - b);
  const [least, most] = [levels[0] ?? 0, levels.at(-1) ?? 1];
  if (axis.scale === "category") {
    const names = axis.labels ?? [];
    return laid("category", -0.5, Math.max(1, names.length) - 0.5, from, to, names.map((label, value) => ({ value, label })), axis.title);
  }
  if (axis.scale === "date") {
    const room = Math.max(60, most - least) * 0.04;
    return laid("date", least - room, most + room, from, to, dates(least - room, most + room), axis.title);
  }
  if (axis.scale === "log" && least > 0) {
    const shown = levels.length <= LEVELS ? levels : decades(least, most);
    const room = Math.max(2, most / least) ** 0.03;
    return laid("log", least / room, most * room, from, to, shown.map((value) => ({ value, label: quantity(value, axis.unit) })), axis.title);
  }
  const { size, name } = fitting(most, axis.unit);
  const named = titled(axis.title, name);
  if (levels.length <= LEVELS && levels.length > 0) {
    const room = most > least ? (most - least) * 0.04 : Math.max(1, Math.abs(most)) * 0.1;
    return laid("linear", least - room, most + room, from, to, levels.map((value) => ({ value, label: number(value / size) })), named);
  }
  const low = Math.min(0, least);
  const step = niceStep(Math.max((most - low) / size / (TICKS + 1), Number.MIN_VALUE)) * size;
  return laid("linear", low, most, from, to, steps(low, most, step, size), named);
}

/** The axis upwards, from 0 unless logarithmic; `from` is its lower edge. */
export function upwards(axis: FigureAxis, values: readonly number[], from: number, to: number): Laid {
  const finite = values.filter(Number.isFinite);
  const most = finite.reduce((a, b) => Math.max(a, b), Number.NEGATIVE_INFINITY);
  const top = Number.isFinite(most) ? most : 1;
  const positive = finite.filter((v) => v > 0).reduce((a, b) => Math.min(a, b), Number.POSITIVE_INFINITY);
  if (axis.scale === "log" && Number.isFinite(positive)) {
    const first = Math.floor(Math.log10(positive));
    const [low, high] = [10 ** first, 10 ** Math.max(Math.ceil(Math.log10(top)), first + 1)];
    return laid("log", low, high, from, to, decades(low, high).map((value) => ({ value, label: quantity(value, axis.unit) })), axis.title);
  }
  const least = finite.reduce((a, b) => Math.min(a, b), 0);
  const { size, name } = fitting(top, axis.unit);
  const step = niceStep((top > least ? top - least : 1) / size / TICKS) * size;
  const [low, high] = [Math.floor(least / step) * step, Math.max(1, Math.ceil(top / step - 1e-9)) * step];
  return laid("linear", low, high, from, to, steps(low, high, step, size), titled(axis.title, name));
}

/** An axis of ratios, with a little room. */
export function along(axis: FigureAxis, values: readonly number[], from: number, to: number): Laid {
  const least = values.reduce((a, b) => Math.min(a, b), Number.POSITIVE_INFINITY);
  const most = values.reduce((a, b) => Math.max(a, b), Number.NEGATIVE_INFINITY);
  const [a, b] = least <= most ? [least, most] : [0, 1];
  const room = Math.max((b - a) * 0.08, Math.abs(b) * 0.005, 1e-9);
  const step = niceStep((b - a + 2 * room) / TICKS);
  return laid("linear", a - room, b + room, from, to, steps(Math.ceil((a - room) / step) * step, b + room, step, 1), axis.title);
}

function titled(title: string, unit: string): string {
  return [title, unit].filter(Boolean).join(", ");
}

function steps(low: number, high: number, step: number, size: number): Laid["ticks"] {
  const count = Math.min(60, Math.max(0, Math.floor((high - low) / step + 1e-6)));
  const values = Array.from({ length: count + 1 }, (_, i) => low + step * i);
  const texts = labels(values, size);
  return values.map((value, i) => ({ value, label: texts[i] ?? "" }));
}

function decades(low: number, high: number): number[] {
  const [first, last] = [Math.floor(Math.log10(low)), Math.ceil(Math.log10(high))];
  const factors = last - first <= 2 ? [1, 2, 5] : [1];
  const all = Array.from({ length: last - first + 1 }, (_, i) => factors.map((f) => f * 10 ** (first + i))).flat();
  return all.filter((v) => v >= low * (1 - 1e-9) && v <= high * (1 + 1e-9));
}

function dates(low: number, high: number): Laid["ticks"] {
  const span = high - low;
  if (span > 3 * YEAR) {
    const step = Math.max(1, niceStep(span / YEAR / TICKS));
    const first = Math.ceil((1970 + low / YEAR) / step) * step;
    const count = Math.floor((1970 + high / YEAR - first) / step) + 1;
    return Array.from({ length: Math.max(0, count) }, (_, i) => first + i * step).map((year) => ({ value: (year - 1970) * YEAR, label: String(year) }));
  }
  return [0, 1, 2, 3, 4]
    .map((i) => low + span * (0.06 + 0.22 * i))
    .map((value) => {
      const text = moment(value);
      return { value, label: span > 4 * DAY ? text.slice(0, 10) : minus(text.slice(5, 16)) };
    });
}

/** A moment, UTC. */
export function moment(seconds: number): string {
  return new Date(seconds * 1000).toISOString().slice(0, 19).replace("T", " ");
}

/** Where a value stands across, in words. */
export function place(axis: FigureAxis, value: number): string {
  switch (axis.scale) {
    case "category":
      return axis.labels?.[value] ?? String(value);
    case "date":
      return `${moment(value)} UTC`;
    default:
      return quantity(value, axis.unit);
  }
}
