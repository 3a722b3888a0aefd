// Tables of a capture's figures.

import type { PathDirection, TraceComparison, TraceDocument, TraceEndpoint, TraceFigure, TraceFlow, TraceStation } from "../document";
import { h, num, section, table, type Child } from "../dom";
import { bytes, integer, isNumber, nanos, NONE, percent, rate, significant, type Maybe } from "../format";

const right = (text: string) => h("th.num", { scope: "col" }, text);
const rowHead = (text: Child) => h("th", { scope: "row" }, text);

/** Maximum number of rows of a table. */
const SHOWN = 100;

export function endpoint(e: TraceEndpoint): string {
  return e.address.includes(":") ? `[${e.address}]:${e.port}` : `${e.address}:${e.port}`;
}

/** The protocol and ends of a flow. */
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
      num(rate(f.goodput_bps)),
      num(nanos(f.rtt_ns)),
      num(integer(f.retransmits), `fast ${r.fast}, RTO ${r.timeout}, TLP ${r.tail}, lost before the tap ${r.lost_before_tap}, unclassified ${r.unclassified}`),
      num(integer(r.timeout)),
      num(integer(r.spurious)),
      num(integer(f.forward.out_of_order)),
      num(integer(f.reverse.duplicate_acks)),
      num(integer(f.lost_network)),
      num(integer(f.lost_receiver)),
      h("td", null, limits(f)),
      num(bytes(f.forward.in_flight_max_bytes)),
      num(bytes(f.reverse.window_max_bytes)),
      num(bytes(f.forward.payload_bytes)),
      num(bytes(f.reverse.payload_bytes)),
      num(nanos(f.start_ns)),
      num(nanos(f.duration_ns)),
    );
  });
  const more = trace.flows.length - SHOWN + trace.unlisted.flows;
  return section(
    id,
    "Flows",
    table(
      ["Flow", right("Goodput"), right("RTT"), right("Retransmits"), right("RTO"), right("spurious"), right("Reordered"), right("Dup. ACKs"), right("Lost between taps"), right("dropped by receiver host"), "Limits", right("Max in flight"), right("Max rwnd"), right("Payload"), right("reverse"), right("Start"), right("Duration")],
      rows,
      { class: "wide", caption: "The flows with the most payload. Losses between taps need several captures" },
    ),
    more > 0 ? h("p.muted", null, `${integer(more)} flows with less payload are not listed.`) : null,
  );
}

/** The subflows of every multipath TCP connection. */
export function multipathSection(trace: TraceDocument, id = "multipath"): HTMLElement | null {
  const connections = trace.multipath ?? [];
  if (connections.length === 0) return null;
  const rows = connections.slice(0, SHOWN).flatMap((c, index) =>
    c.subflows.map((s, i) =>
      h(
        "tr",
        null,
        rowHead(`${index + 1}: ${endpoint(s.client)} → ${endpoint(s.server)}`),
        h("td", null, `${s.initial ? "initial" : "joined"}${s.backup ? ", backup" : ""}${s.established ? "" : ", not established"}`),
        num(bytes(s.client_payload_bytes)),
        num(bytes(s.server_payload_bytes)),
        num(nanos(s.start_ns)),
        num(nanos(s.duration_ns)),
        num(i === 0 ? rate(c.goodput_bps) : ""),
        num(i === 0 ? bytes(c.client_bytes) : ""),
        num(i === 0 ? bytes(c.server_bytes) : ""),
        num(i === 0 ? bytes(c.reinjected_bytes) : ""),
      ),
    ),
  );
  return section(
    id,
    "Multipath TCP",
    table(
      ["Connection and subflow", "Role", right("Payload of client"), right("of server"), right("Start"), right("Duration"), right("Goodput"), right("Acknowledged of client"), right("of server"), right("On several subflows")],
      rows,
      { class: "wide", caption: "Subflows joined by their tokens. The acknowledged data of a connection counts each byte once" },
    ),
  );
}

function limits(f: TraceFlow): string {
  const l = f.forward.limits;
  if (!l || l.total_ns === 0) return NONE;
  const parts: [string, number][] = [
    ["cwnd, pacing or path", l.sending_ns],
    ["receiver-limited (rwnd)", l.receiver_window_ns],
    ["recovery", l.recovery_ns],
    ["pacing or shaper before the tap", l.pacing_ns ?? 0],
    ["sender-limited (application)", l.idle_ns],
  ];
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
    "Stations and packet trains",
    table(
      ["Station", right("Frames"), right("Bytes"), right("Mean rate"), right("1 ms bins, p99"), right("max"), right("10 ms bins, max"), right("Trains"), right("frames: p50 / p99 / max"), right("rate within"), right("ACKs within 1 µs"), right("most common ACK gap")],
      rows,
      { class: "wide", caption: "Frames by source MAC address. The rate within long trains is that of the link they came from" },
    ),
  );
}

/** Losses and delays between each tap and the next. */
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
  const rows = trace.path.flatMap((p) => [row(`${p.from} → ${p.to}`, p.forward), row(`${p.to} → ${p.from}`, p.reverse)]);
  const clocks = trace.path.map((p) =>
    h("li", null, `${p.from} and ${p.to}: ${isNumber(p.round_trip_ns) ? `min RTT between taps ${nanos(p.round_trip_ns)}` : "min RTT between taps unknown"}${isNumber(p.clock_offset_ns) ? `; second clock ${nanos(Math.abs(p.clock_offset_ns))} ${p.clock_offset_ns < 0 ? "behind" : "ahead"}, assuming equal one-way delays` : ""}${p.given_up > 0 ? `; ${integer(p.given_up)} packets not matched for lack of memory` : ""}.`),
  );
  const placed = trace.flows.filter((f) => isNumber(f.lost_network) || isNumber(f.lost_receiver)).slice(0, SHOWN);
  return section(
    id,
    "Between the taps",
    table(
      ["Path", right("Matched"), right("Lost, with data"), right("without"), right("Downstream tap only"), right("Undetermined"), right("Reordered"), right("Queueing delay, p50"), right("p99"), right("max"), ...(chain ? [right("share of the path’s p99")] : [])],
      rows,
      { class: "wide", caption: "Packets matched at the next tap, and those missing there. Undetermined: the other tap was not capturing" },
    ),
    h("ul.notes", null, ...clocks),
    placed.length > 0
      ? table(
          ["Flow", right("Retransmits"), right("Lost between taps"), right("Dropped by the receiver host")],
          placed.map((f) => [rowHead(flowName(f)), num(integer(f.retransmits)), num(integer(f.lost_network)), num(integer(f.lost_receiver))]),
          { caption: "Losses of each flow" },
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
      d ? h(d.changed ? "b" : "span", null, d.changed ? "changed" : "not significant") : NONE,
    ];
  };
  const sure = both.figures.map((f) => f.difference).find((d) => d);
  return section(
    "figures",
    "Figures",
    table(["", right("A"), right("B"), right("B / A"), right(`B − A${sure ? `, ${percent(sure.level)} interval` : ""}`), "Result"], both.figures.map(row), { class: "pair", caption: "Of each capture’s largest flow and busiest stations" }),
    sure
      ? h("p.muted", null, `Intervals: block bootstrap over ${integer(sure.blocks[0])} blocks of ${nanos(sure.block_ns[0])} (A) and ${integer(sure.blocks[1])} of ${nanos(sure.block_ns[1])} (B). Variation from run to run is not included.`)
      : null,
    h("p.muted", null, "One run each: the table compares two captures, not the causes of their differences."),
  );
}
