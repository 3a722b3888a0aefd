// The varied keys: what their values are worth, and where they stand on an axis. Pure functions.

import { byName, bytes, nanos, percent, rate, significant } from "../format";

export type Kind = "rate" | "size" | "time" | "share" | "number" | "category";

/** A key's values along an axis. */
export interface Axis {
  name: string;
  kind: Kind;
  log: boolean;
  /** Distinct values in the axis's order, as they are written. */
  values: string[];
  /** Place of each value: its worth, or for categories 0, 1, 2 …. */
  at: number[];
  labels: string[];
}

const TIMES: Record<string, number> = { ns: 1, us: 1e3, "µs": 1e3, ms: 1e6, s: 1e9, min: 60e9, h: 3600e9, d: 86_400e9 };
const THOUSANDS: Record<string, number> = { k: 1e3, m: 1e6, g: 1e9, t: 1e12 };
const BINARY: Record<string, number> = { k: 2 ** 10, m: 2 ** 20, g: 2 ** 30, t: 2 ** 40 };
const SIZED = /limit|buffer|window|queue|bytes|size|\blen\b|memory|\bmin\b|\bmax\b/i;
const RATED = /rate|pace|pacing|speed/i;
/** Values further apart than this stand on a logarithmic axis. */
const WIDE = 20;

/** What a value is worth in its base unit, if it is a quantity. The name decides where a unit is ambiguous: `1M`. */
export function worth(value: unknown, name: string): { kind: Kind; amount: number } | null {
  if (typeof value === "number") return { kind: "number", amount: value };
  if (typeof value !== "string") return null;
  const share = /^\s*([\d.]+)\s*\/\s*([\d.]+)\s*$/.exec(value);
  if (share) return { kind: "share", amount: Number(share[1]) / Number(share[2]) };
  const match = /^\s*(\d+(?:\.\d+)?(?:e-?\d+)?)\s*([a-zµ%]+(?:\/s)?)\s*$/i.exec(value);
  if (!match) return null;
  const amount = Number(match[1]);
  const unit = match[2] as string;
  if (unit === "%") return { kind: "share", amount: amount / 100 };
  const time = Object.hasOwn(TIMES, unit) ? TIMES[unit] : undefined;
  if (time !== undefined) return { kind: "time", amount: amount * time };
  const letter = unit[0]?.toLowerCase() ?? "";
  const thousand = THOUSANDS[letter] ?? 1;
  if (/^[kmgt]?(bps|bit|bit\/s|b\/s)$/i.test(unit)) return { kind: "rate", amount: amount * thousand };
  if (/^[kKmMgGtT]?i?B$/.test(unit) || /^[kmgt]i$/i.test(unit)) {
    return { kind: "size", amount: amount * (/i/.test(unit) ? (BINARY[letter] ?? 1) : thousand) };
  }
  if (!/^[kmgt]$/i.test(unit)) return null;
  const isSize = SIZED.test(name) && !RATED.test(name);
  return isSize ? { kind: "size", amount: amount * (BINARY[letter] ?? 1) } : { kind: "rate", amount: amount * thousand };
}

/** A value as a comparable string. */
export const written = (value: unknown): string => (typeof value === "string" ? value : (JSON.stringify(value) ?? "–"));

/** The axis of a key, from all values it takes, in their order. */
export function axis(name: string, all: readonly unknown[]): Axis {
  const distinct = new Map(all.map((v) => [written(v), v]));
  const worths = [...distinct].map(([text, value]) => ({ text, value, worth: worth(value, name) }));
  const kinds = new Set(worths.flatMap((w) => (w.worth && w.worth.amount !== 0 ? [w.worth.kind] : [])));
  const [kind] = kinds;
  if (worths.length < 2 || kinds.size !== 1 || kind === undefined || worths.some((w) => !w.worth)) {
    return {
      name,
      kind: "category",
      log: false,
      values: worths.map((w) => w.text),
      at: worths.map((_, i) => i),
      labels: worths.map((w) => plain(w.value)),
    };
  }
  const amount = (w: (typeof worths)[number]) => w.worth?.amount ?? 0;
  worths.sort((a, b) => amount(a) - amount(b));
  const at = worths.map(amount);
  const [least, most] = [at[0] as number, at.at(-1) as number];
  return {
    name,
    kind,
    log: kind !== "number" && least > 0 && most / least > WIDE,
    values: worths.map((w) => w.text),
    at,
    labels: at.map((v) => spell(v, kind)),
  };
}

function spell(value: number, kind: Kind): string {
  switch (kind) {
    case "rate":
      return rate(value);
    case "size":
      return bytes(value);
    case "time":
      return nanos(value);
    case "share":
      return percent(value);
    default:
      return significant(value, 6).replace(/(\.\d*?)0+$/, "$1").replace(/\.$/, "");
  }
}

/** A value as people say it: of a table its `kind` first, then the rest. */
function plain(value: unknown): string {
  if (typeof value === "string") return value;
  if (value === true) return "yes";
  if (value === false) return "no";
  if (value === null || typeof value !== "object" || Array.isArray(value)) return byName("", value);
  const { kind, ...rest } = value as Record<string, unknown>;
  const words = Object.entries(rest).map(([k, v]) => `${k} ${plain(v)}`);
  return [...(kind === undefined ? [] : [plain(kind)]), ...words].join(", ");
}
