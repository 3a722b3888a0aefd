// Values of a figure with their units.

import { bytes, fit, integer, nanos, NONE, rate, significant } from "../format";

const RECORDS = [
  { size: 1e12, name: "Tb·m/s" },
  { size: 1e9, name: "Gb·m/s" },
  { size: 1e6, name: "Mb·m/s" },
  { size: 1, name: "b·m/s" },
];

/** The unit that fits a value of a base unit: its size and name. */
export function fitting(value: number, unit: string): { size: number; name: string } {
  switch (unit) {
    case "bit/s":
      return fit(value, "rate");
    case "B":
      return fit(value, "size");
    case "ns":
      return fit(value, "time");
    case "bit·m/s":
      return RECORDS.find((step) => Math.abs(value) * 1.0005 >= step.size) ?? { size: 1, name: "b·m/s" };
    default:
      return { size: 1, name: unit === "ratio" ? "" : unit };
  }
}

/** A number: whole ones in full. */
export function number(value: number): string {
  return Number.isInteger(value) && Math.abs(value) < 1e6 ? integer(value) : significant(value);
}

/** A value with its unit. */
export function quantity(value: number | null | undefined, unit: string): string {
  if (value === null || value === undefined) return NONE;
  switch (unit) {
    case "bit/s":
      return rate(value);
    case "B":
      return bytes(value);
    case "ns":
      return nanos(value);
    default: {
      const { size, name } = fitting(value, unit);
      return `${number(value / size)}${name ? ` ${name}` : ""}`;
    }
  }
}
