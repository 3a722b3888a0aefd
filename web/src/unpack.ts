// Long lists come by columns (crates/report/src/pack.rs says how and why); this makes rows of them again.

import type { LabDocument, RunDocument } from "./document";

type Row = Record<string, unknown>;

interface Packed {
  $n?: number;
  $c?: unknown;
  $d?: number[];
  $o?: Record<string, Column>;
  $z?: number[];
  $a?: Column[];
}

type Column = unknown[] | Packed;

/** The document in which every list is a list. Works in place. */
export function unpackDocument(run: RunDocument): RunDocument {
  for (const stream of run.streams) {
    stream.intervals = list(stream.intervals);
    for (const end of [stream.sender, stream.receiver]) if (end) end.samples = list(end.samples);
  }
  for (const series of [run.host_series.client, run.host_series.server]) if (series) series.samples = list(series.samples);
  const load = run.latency_under_load;
  for (const result of [...run.latency, load?.idle, load?.loaded]) if (result) result.histogram = list(result.histogram);
  return run;
}

/** The same of a lab's document. */
export function unpackLab(lab: LabDocument): LabDocument {
  for (const flow of lab.flows) if (flow.run) unpackDocument(flow.run);
  for (const { series } of lab.queues) {
    series.backlog_bytes_max = list(series.backlog_bytes_max);
    series.drops = list(series.drops);
    series.bytes = list(series.bytes);
  }
  return lab;
}

/** A document in which every packed list, wherever it stands, is a list. Works in place. */
export function unpackDeep(value: unknown): unknown {
  if (Array.isArray(value)) {
    if (typeof value[0] === "object") for (let i = 0; i < value.length; i++) value[i] = unpackDeep(value[i]);
    return value;
  }
  if (typeof value !== "object" || value === null) return value;
  if ("$n" in value) return list(value as unknown as unknown[]);
  const object = value as Row;
  for (const key of Object.keys(object)) object[key] = unpackDeep(object[key]);
  return object;
}

function list<T>(value: T[]): T[] {
  const column = value as unknown as Column;
  return unpack(column, Array.isArray(column) ? column.length : (column.$n ?? 0)) as T[];
}

/** A column's values. */
export function unpack(column: Column, length: number): unknown[] {
  if (Array.isArray(column)) return column;
  if ("$c" in column) return new Array<unknown>(length).fill(column.$c);
  if (column.$d) {
    let sum = 0;
    return column.$d.map((difference) => (sum += difference));
  }
  if (column.$a) {
    const columns = column.$a.map((c) => unpack(c, length));
    return Array.from({ length }, (_, row) => columns.map((c) => c[row]));
  }
  const keys = Object.keys(column.$o ?? {});
  const columns = keys.map((key) => unpack((column.$o as Record<string, Column>)[key] as Column, length));
  const rows: (Row | null)[] = Array.from({ length }, (_, row) => {
    const out: Row = {};
    for (let k = 0; k < keys.length; k++) out[keys[k] as string] = (columns[k] as unknown[])[row];
    return out;
  });
  for (const row of column.$z ?? []) rows[row] = null;
  return rows;
}
