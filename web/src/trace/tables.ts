// What a capture says in figures.

import type { PathDirection, TraceComparison, TraceDocument, TraceEndpoint, TraceFigure, TraceFlow, TraceStation } from "../document";
import { h, num, section, table, type Child } from "../dom";
import { bytes, integer, isNumber, nanos, NONE, percent, rate, significant, type Maybe } from "../format";

const right = (text: string) => h("th.num", { scope: "col" }, text);
const rowHead = (text: Child) => h("th", { scope: "row" }, text);

/** Rows of a long table that are shown. */
const SHOWN = 100;

export function endpoint(e: TraceEndpoint): string {
  return e.address.includes(":") ? `[${e.address}]:${e.port}` : `${e.address}:${e.port}`;
}

/** A flow in a line. */
export function flowName(flow: TraceFlow | undefined): string {
  return flow ? `${flow.transport} ${endpoint(flow.source)} → ${endpoint(flow.destination)}` : "a flow";
}

export function stationName(station: TraceStation): string {
  return `${station.mac ?? "all frames"}${station.interface ? ` at ${station.interface}` : ""}`;
}

export function flowsSection(trace: TraceDocument, id = "flows"): HTMLElement | null {
  if (trace.flows.length === 0) return null;
  const rows = trace.flows.slice(0, SHOWN).map((f) => {
    const r = f.forward.retransmits;
    return h(
      "tr",
      null,
      rowHead(flowName(f)),
      num(nanos(f.start_ns)),
      num(nanos(f.duration_ns)),
      num(bytes(f.forward.payload_bytes)),
      num(bytes(f.reverse.payload_bytes)),
      num(rate(f.goodput_bps)),
      num(integer(f.retransmits), `fast ${r.fast}, timeout ${r.timeout}, tail ${r.tail}, lost before the tap ${r.lost_before_tap}, unclassified ${r.unclassified}`),
      num(integer(r.timeout)),
      num(integer(r.spurious)),
      num(integer(f.forward.out_of_order)),
      num(integer(f.reverse.duplicate_acks)),
      num(integer(f.lost_network)),
      num(integer(f.lost_receiver)),
      num(nanos(f.rtt_ns)),
      num(bytes(f.forward.in_flight_max_bytes)),
      num(bytes(f.reverse.window_max_bytes)),
      num(limits(f)),
    );
  });
  const more = trace.flows.length - SHOWN + trace.unlisted.flows;
  return section(
    id,
    "Flows",
    table(
      ["Flow", right("Begins"), right("Lasts"), right("Payload"), right("back"), right("Goodput"), right("Sent again"), right("timeout"), right("unneeded"), right("Out of order"), right("Dup. ACKs"), right("Lost in network"), right("in receiver"), right("RTT"), right("Most in flight"), right("Window, most"), right("Time spent")],
      rows,
      { class: "wide", caption: "The flows with the most payload. Lost: only where there are several taps" },
    ),
    more > 0 ? h("p.muted", null, `${integer(more)} flows with less payload are not listed.`) : null,
  );
}

function limits(f: TraceFlow): string {
  const l = f.forward.limits;
  if (!l || l.total_ns === 0) return NONE;
  const parts: [string, number][] = [["sending", l.sending_ns], ["window full", l.receiver_window_ns], ["repairing", l.recovery_ns], ["idle", l.idle_ns]];
  return parts.filter(([, ns]) => ns / l.total_ns >= 0.005).map(([name, ns]) => `${name} ${percent(Math.round((ns / l.total_ns) * 100) / 100)}`).join(", ");
}

export function stationsSection(trace: TraceDocument, id = "stations"): HTMLElement | null {
  if (trace.stations.length === 0) return null;
  const rows = trace.stations.map((s) => [
    rowHead(stationName(s)),
    num(integer(s.frames)),
    num(bytes(s.wire_bytes)),
    num(rate(s.per_1ms.mean_bps)),
    num(rate(s.per_1ms.p99_bps)),
    num(rate(s.per_1ms.max_bps)),
    num(rate(s.per_10ms.max_bps)),
    num(integer(s.trains.trains), `frames within ${nanos(s.trains.gap_ns)} of each other`),
    num(`${integer(s.trains.p50_frames)} / ${integer(s.trains.p99_frames)} / ${integer(s.trains.longest_frames)}`),
    num(rate(s.trains.rate_bps)),
    num(s.ack_spacing ? percent(s.ack_spacing.bunched) : NONE),
    num(s.ack_spacing && isNumber(s.ack_spacing.usual_gap_ns) ? `${nanos(s.ack_spacing.usual_gap_ns)} (${percent(s.ack_spacing.usual_gap_share)})` : NONE),
  ]);
  return section(
    id,
    "Stations and trains",
    table(
      ["Station", right("Frames"), right("Bytes"), right("Mean rate"), right("1 ms bins, 99 %"), right("1 ms, most"), right("10 ms, most"), right("Trains"), right("frames: median / 99 % / longest"), right("rate inside"), right("ACKs within 1 µs"), right("usual ACK gap")],
      rows,
      { class: "wide", caption: "What each source of frames put on the wire at the tap. The rate inside long trains is that of the line they came from" },
    ),
  );
}

/** Where packets were lost, between each tap and the next. */
export function pathsSection(trace: TraceDocument, id = "paths"): HTMLElement | null {
  if (trace.path.length === 0) return null;
  const chain = trace.path.length > 1;
  const row = (name: string, d: PathDirection) => [
    rowHead(name),
    num(integer(d.matched)),
    num(integer(d.lost_data)),
    num(integer(d.lost_other)),
    num(integer(d.appeared)),
    num(integer(d.undetermined ?? 0)),
    num(integer(d.reordered)),
    num(nanos(d.delay_variation_p50_ns)),
    num(nanos(d.delay_variation_p99_ns)),
    num(nanos(d.delay_variation_max_ns)),
    ...(chain ? [num(isNumber(d.delay_share) ? percent(d.delay_share) : NONE)] : []),
  ];
  const rows = trace.path.flatMap((p) => [row(`${p.from} → ${p.to}`, p.forward), row(`${p.to} → ${p.from}`, p.backward)]);
  const clocks = trace.path.map((p) =>
    h("li", null, `${p.from} and ${p.to}: ${isNumber(p.round_trip_ns) ? `${nanos(p.round_trip_ns)} there and back at the least` : "no round trip was seen"}${isNumber(p.clock_offset_ns) ? `; the second clock is ${nanos(Math.abs(p.clock_offset_ns))} ${p.clock_offset_ns < 0 ? "behind" : "ahead"}, if both ways take as long` : ""}${p.given_up > 0 ? `; ${integer(p.given_up)} packets were given up` : ""}.`),
  );
  const placed = trace.flows.filter((f) => isNumber(f.lost_network) || isNumber(f.lost_receiver)).slice(0, SHOWN);
  return section(
    id,
    "Between the taps",
    table(
      ["From tap to tap", right("Matched"), right("Lost, with data"), right("without"), right("Seen later only"), right("While one tap ran"), right("Reordered"), right("Delay over the least, median"), right("99 %"), right("most"), ...(chain ? [right("Share of all hops’ 99 %")] : [])],
      rows,
      { class: "wide", caption: "Packets known again at the next tap, and those that never came. What one tap saw before the other began, or after it ended, is neither lost nor made on the way" },
    ),
    h("ul.notes", null, ...clocks),
    placed.length > 0
      ? table(
          ["Flow", right("Sent again"), right("Lost between taps"), right("Lost in the receiver")],
          placed.map((f) => [rowHead(flowName(f)), num(integer(f.retransmits)), num(integer(f.lost_network)), num(integer(f.lost_receiver))]),
          { caption: "Where each flow’s losses were" },
        )
      : null,
  );
}

/** A figure in its unit. */
export function figureText(value: Maybe, unit: string): string {
  if (!isNumber(value)) return NONE;
  switch (unit) {
    case "bps":
      return rate(value);
    case "ns":
      return nanos(value);
    case "bytes":
      return bytes(value);
    case "ratio":
      return significant(value);
    default:
      return integer(value);
  }
}

export function figuresSection(both: TraceComparison): HTMLElement {
  const row = (f: TraceFigure) => {
    const ratio = isNumber(f.a) && isNumber(f.b) && f.a > 0 ? `× ${significant(f.b / f.a)}` : NONE;
    const d = f.difference;
    const end = (value: number) => `${value < 0 ? "−" : "+"}${figureText(Math.abs(value), f.unit)}`;
    return [
      rowHead(f.name),
      num(figureText(f.a, f.unit)),
      num(figureText(f.b, f.unit)),
      num(ratio),
      num(d ? `${end(d.low)} to ${end(d.high)}` : NONE),
      d ? h(d.changed ? "b" : "span", null, d.changed ? "changed" : "within the noise") : NONE,
    ];
  };
  const sure = both.figures.map((f) => f.difference).find((d) => d);
  return section(
    "figures",
    "Figures",
    table(["", right("A"), right("B"), right("B / A"), right(`B − A${sure ? `, ${percent(sure.level)}` : ""}`), "so it has"], both.figures.map(row), { class: "pair", caption: "Of each capture’s largest flow and busiest stations" }),
    sure
      ? h("p.muted", null, `The intervals come from blocks of time within each capture, resampled: ${integer(sure.blocks[0])} of ${nanos(sure.block_ns[0])} and ${integer(sure.blocks[1])} of ${nanos(sure.block_ns[1])}. What varies from one run to the next they cannot tell.`)
      : null,
    h("p.muted", null, "One run each: a difference is a fact about these two captures, not yet about their causes."),
  );
}
