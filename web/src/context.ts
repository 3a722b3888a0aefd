// What the charts over time have in common: the document, the timeline, and columns of what each end read.

import type { RunDocument, Sample, Stream } from "./document";
import type { ChartId } from "./evidence";
import type { Mark } from "./lanes";
import type { Line, Moment, PanelOptions, Shade } from "./panel";
import { gains, inSeconds, nearest, pick, sampleTimes, type Column } from "./series";
import type { Timeline } from "./timeline";
import { isNumber } from "./format";

export interface Context {
  run: RunDocument;
  timeline: Timeline;
  shades: Shade[];
  marks: Map<ChartId, Mark[]>;
  /** Events of the path, on the run's time. */
  moments: readonly Moment[];
}

/** A stream's name: its number, with an arrow when data moves both ways. */
export function streamName(stream: Stream, streams: readonly Stream[]): string {
  const mixed = streams.some((s) => s.direction !== streams[0]?.direction);
  return mixed ? `${stream.id}${stream.direction === "upload" ? "↑" : "↓"}` : `${stream.id}`;
}

/** From this many readings on lines are drawn thin: the ink is in their number. */
export const DENSE = 1500;

const DASHES: (number[] | undefined)[] = [undefined, [6, 3], [2, 2], [8, 2, 2, 2]];

export function streamLine(context: Context, stream: Stream, index: number, column: Column): Line {
  const { run, timeline } = context;
  const dash = run.streams.length > 32 ? undefined : DASHES[Math.floor(index / 8) % DASHES.length];
  const label = streamName(stream, run.streams);
  return {
    label: run.streams.length === 1 ? "stream 0" : label,
    color: index % 8,
    width: run.streams.length > 12 || column.length > DENSE ? 0.75 : 1.25,
    ...(dash ? { dash } : {}),
    values: () => column,
    shown: () => timeline.visible.has(stream.id),
  };
}

export function base(context: Context, id: ChartId): Pick<PanelOptions, "timeline" | "shades" | "marks" | "moments"> & { id: string } {
  const { timeline, shades, marks, moments } = context;
  return { id, timeline, shades, marks: marks.get(id) ?? [], moments };
}

export type Field = (s: Sample) => number | null | undefined;

/** Columns of one end of every stream on common times. */
export class Readings {
  readonly times: number[];
  readonly seconds: number[];
  /** Edges `0, t0, t1 …` for what was gained between readings. */
  readonly edges: number[];
  private readonly at: Int32Array[];
  private readonly samples: (readonly Sample[])[];

  constructor(streams: readonly Stream[], end: "sender" | "receiver", times?: number[]) {
    this.samples = streams.map((s) => s[end]?.samples ?? []);
    this.times = times ?? sampleTimes(this.samples);
    this.seconds = inSeconds(this.times);
    this.edges = this.seconds[0] === 0 ? this.seconds : [0, ...this.seconds];
    this.at = this.samples.map((s) => nearest(this.times, s));
  }

  column(stream: number, field: Field): Column {
    return pick(this.samples[stream] ?? [], this.at[stream] ?? new Int32Array(), field);
  }

  has(field: Field): boolean {
    return this.samples.some((list) => list.some((s) => isNumber(field(s))));
  }

  /** Gains of a counter on `edges`. */
  gained(stream: number, field: Field): Column {
    const out = gains(this.column(stream, field));
    return this.edges.length === this.seconds.length ? out.slice(1) : out;
  }
}
