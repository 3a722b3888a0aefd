// Numbers as people read them: three significant digits, a unit, no false precision.

export type Maybe = number | null | undefined;

/** Shown where there is no figure. */
export const NONE = "–";

const SPACE = "\u202f";

export function isNumber(value: unknown): value is number {
  return typeof value === "number" && Number.isFinite(value);
}

/** A number with `digits` significant digits, never in exponent form between 1e-6 and 1e15. */
export function significant(value: number, digits = 3): string {
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size < 1e-6 || size >= 1e15) return value.toExponential(digits - 1);
  const rounded = Number(value.toPrecision(digits));
  const magnitude = Math.floor(Math.log10(Math.abs(rounded)));
  return minus(rounded.toFixed(Math.max(0, digits - 1 - magnitude)));
}

/** A whole number in groups of three. */
export function integer(value: Maybe): string {
  if (!isNumber(value)) return NONE;
  const text = Math.abs(Math.round(value)).toString();
  return minus((value < 0 ? "-" : "") + text.replace(/\B(?=(\d{3})+$)/g, SPACE));
}

interface Step {
  size: number;
  name: string;
}

const RATES: readonly Step[] = [
  { size: 1e12, name: "Tb/s" },
  { size: 1e9, name: "Gb/s" },
  { size: 1e6, name: "Mb/s" },
  { size: 1e3, name: "kb/s" },
  { size: 1, name: "b/s" },
];
const SIZES: readonly Step[] = [
  { size: 2 ** 50, name: "PiB" },
  { size: 2 ** 40, name: "TiB" },
  { size: 2 ** 30, name: "GiB" },
  { size: 2 ** 20, name: "MiB" },
  { size: 2 ** 10, name: "KiB" },
  { size: 1, name: "B" },
];
const DECIMAL_SIZES: readonly Step[] = [
  { size: 1e12, name: "TB" },
  { size: 1e9, name: "GB" },
  { size: 1e6, name: "MB" },
  { size: 1e3, name: "kB" },
];
const TIMES: readonly Step[] = [
  { size: 3600e9, name: "h" },
  { size: 60e9, name: "min" },
  { size: 1e9, name: "s" },
  { size: 1e6, name: "ms" },
  { size: 1e3, name: "µs" },
  { size: 1, name: "ns" },
];
const COUNTS: readonly Step[] = [
  { size: 1e9, name: "G" },
  { size: 1e6, name: "M" },
  { size: 1, name: "" },
];

/** The unit that fits a value: its size and name. */
export function fit(value: number, kind: "rate" | "size" | "time" | "count"): Step {
  const steps = { rate: RATES, size: SIZES, time: TIMES, count: COUNTS }[kind];
  const size = Math.abs(value) * 1.0005;
  return steps.find((s) => size >= s.size) ?? (steps[steps.length - 1] as Step);
}

function scaled(value: Maybe, kind: "rate" | "size" | "time"): string {
  if (!isNumber(value)) return NONE;
  if (value === 0) return { rate: "0 b/s", size: "0 B", time: "0 s" }[kind];
  const step = fit(value, kind);
  const amount = value / step.size;
  const text = Number.isInteger(amount) ? integer(amount) : significant(amount);
  return `${text} ${step.name}`;
}

/** Bits per second. */
export const rate = (bps: Maybe): string => scaled(bps, "rate");
/** Bytes: in powers of 1024, or of 1000 where only that shows the size exactly; below 10 kB always exact. */
export function bytes(n: Maybe): string {
  if (!isNumber(n) || n === 0) return scaled(n, "size");
  if (isExact(n / fit(n, "size").size)) return scaled(n, "size");
  if (n < 10_000 && Number.isInteger(n)) return `${integer(n)} B`;
  const decimal = DECIMAL_SIZES.find((s) => n >= s.size);
  return decimal && isExact(n / decimal.size) ? `${n / decimal.size} ${decimal.name}` : scaled(n, "size");
}
/** Whether three significant digits show `amount` exactly. */
const isExact = (amount: number): boolean => Number.isInteger(amount) || Number(amount.toPrecision(3)) === amount;
/** Nanoseconds. */
export const nanos = (n: Maybe): string => scaled(n, "time");
/** A time that was measured in whole microseconds, as TCP measures its RTT: no decimals below a millisecond. */
export const micros = (us: Maybe): string =>
  isNumber(us) && us < 1000 && Number.isInteger(us) ? `${us} µs` : nanos(isNumber(us) ? us * 1e3 : us);
/** Hertz times 1000. */
export const megahertz = (mhz: Maybe): string =>
  isNumber(mhz) ? (mhz >= 1000 ? `${significant(mhz / 1000)} GHz` : `${significant(mhz)} MHz`) : NONE;
/** Per second. */
export const perSecond = (n: Maybe): string => (isNumber(n) ? `${n >= 1000 ? integer(n) : significant(n)} /s` : NONE);

/** A share as a percentage, with enough digits that a small one does not read as none. */
export function percent(share: Maybe): string {
  if (!isNumber(share)) return NONE;
  if (share === 0) return "0 %";
  const value = share * 100;
  if (value > 99 && value < 100) return `${Math.min(99.9999, value).toFixed(value > 99.99 ? 4 : 2)} %`;
  return `${significant(value)} %`;
}

/** Tick labels with as many decimals as needed to distinguish them. */
export function ticks(values: readonly number[], unit: number): string[] {
  const scaled = values.map((v) => Number((v / unit).toPrecision(6)));
  const decimals = Math.min(6, Math.max(0, ...scaled.map((v) => (v.toString().split(".")[1] ?? "").length)));
  return scaled.map((v) => (decimals === 0 ? integer(v) : v === 0 ? "0" : minus(v.toFixed(decimals))));
}

/** 1, 2 or 5 times a power of ten, at least `value`. */
export function niceStep(value: number): number {
  const power = 10 ** Math.floor(Math.log10(value));
  for (const factor of [1, 2, 5, 10]) if (power * factor >= value) return power * factor;
  return power * 10;
}

/** Seconds on the time axis, with the digits a tick spacing calls for. */
export function seconds(value: number, spacing: number): string {
  const least = Math.min(6, Math.max(0, Math.ceil(-Math.log10(spacing) - 1e-9)));
  // A spacing of 0.25 s or 2.5 s needs one more.
  const isWhole = (digits: number) => Math.abs(spacing * 10 ** digits - Math.round(spacing * 10 ** digits)) < 1e-6;
  const digits = !isWhole(least) && isWhole(least + 1) ? least + 1 : least;
  return `${minus(value.toFixed(digits))} s`;
}

/** A value whose unit is a word of the document (`ratio`, `bytes`, `bps` …). */
export function measured(value: Maybe, unit: string): string {
  if (!isNumber(value)) return `${NONE} ${unit}`;
  switch (unit) {
    case "ratio":
      return significant(value);
    case "bytes":
      return bytes(value);
    case "bps":
      return rate(value);
    case "ns":
      return nanos(value);
    case "us":
    case "µs":
      return nanos(value * 1e3);
    case "ms":
      return nanos(value * 1e6);
    case "percent":
    case "%":
      return `${significant(value)} %`;
    default:
      return `${Number.isInteger(value) ? integer(value) : significant(value)} ${unit}`.trim();
  }
}

/** A field by the unit its name ends in. */
export function byName(name: string, value: unknown): string {
  if (value === null || value === undefined || value === "") return NONE;
  if (Array.isArray(value)) {
    if (value.length === 0) return NONE;
    return value.map((v) => byName(name, v)).join(", ");
  }
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value === "object") {
    return Object.entries(value)
      .filter(([, v]) => v !== null && v !== undefined)
      .map(([k, v]) => `${words(k)} ${byName(k, v)}`)
      .join(", ");
  }
  if (typeof value !== "number") return String(value);
  if (name.endsWith("_ns")) return nanos(value);
  if (name.endsWith("_us")) return nanos(value * 1e3);
  if (/_bytes$|^bytes$/.test(name)) return bytes(value);
  if (name.endsWith("_bps")) return rate(value);
  if (name.endsWith("_khz")) return megahertz(value / 1e3);
  if (name.endsWith("_per_s")) return perSecond(value);
  return Number.isInteger(value) ? integer(value) : significant(value);
}

/** A field's name without its unit, in words. */
export function words(name: string): string {
  return name.replace(/_(ns|us|bytes|bps|khz|per_s|s)$/, "").replaceAll("_", " ");
}

export function minus(text: string): string {
  return text.replace("-", "−");
}
