// The charts of the streams over time.

import { base, DENSE, Readings, streamLine, streamName, type Context, type Field } from "./context";
import type { Stream } from "./document";
import { h, type Child } from "./dom";
import { isNumber } from "./format";
import { Panel, type Line } from "./panel";
import {
  backdated, counterSpans, held, inSeconds, intervalEdges, least, missingPackets, packetsOn, ratesOn, sampleTimes, spread, sum, type Column,
} from "./series";

/** Every chart of the streams that the document has readings for, in their order on the page. In virtual time threads cost none. */
export function streamPanels(context: Context, virtual: boolean): Panel[] {
  return [
    ...throughput(context),
    ...senderPanels(context),
    ...packetPanels(context),
    ...queues(context),
    ...(virtual ? [] : threads(context)),
  ];
}

function throughput(context: Context): Panel[] {
  const { run, timeline } = context;
  const edges = intervalEdges(run.streams.map((s) => s.intervals));
  if (edges.length < 2) return [];
  const columns = run.streams.map((s) => ratesOn(edges, s.intervals));
  const lines = run.streams.map((s, i) => streamLine(context, s, i, columns[i] as Column));
  const directions = [...new Set(run.streams.map((s) => s.direction))];
  if (run.streams.length > 1) {
    for (const direction of directions) {
      const of = run.streams.map((s, i) => ({ s, i })).filter(({ s }) => s.direction === direction);
      lines.push({
        label: directions.length > 1 ? `sum ${direction === "upload" ? "↑" : "↓"}` : "sum",
        color: "text",
        width: edges.length > DENSE ? 1.25 : 2,
        ...(direction === directions[1] ? { dash: [8, 3] } : {}),
        values: () =>
          sum(of.filter(({ s }) => timeline.visible.has(s.id)).map(({ i }) => columns[i] as Column), edges.length),
        shown: () => timeline.showSum,
      });
    }
  }
  const estimated = run.streams.some((s) => s.intervals_from === "sender");
  return [
    new Panel({
      ...base(context, "throughput"),
      title: estimated ? "Throughput (some as acknowledged to the sender)" : "Throughput",
      note: "Payload delivered to the receiving application in each interval, divided by its length",
      height: 230,
      kind: "rate",
      x: inSeconds(edges),
      steps: true,
      lines,
      resting: "mean",
      nameShades: true,
    }),
  ];
}

function senderPanels(context: Context): Panel[] {
  const { run, timeline } = context;
  const readings = new Readings(run.streams, "sender");
  if (readings.times.length < 2 || !readings.has((s) => s.tcp?.snd_cwnd)) return [];
  const n = readings.times.length;
  const each = (field: Field) => run.streams.map((_, i) => readings.column(i, field));
  const cwnd = each((s) => (s.tcp ? s.tcp.snd_cwnd * s.tcp.snd_mss_bytes : null));
  const rtt = each((s) => (s.tcp && s.tcp.rtt_us > 0 ? s.tcp.rtt_us * 1e3 : null));
  const lowest = each((s) => (isNumber(s.tcp?.min_rtt_us) && s.tcp.min_rtt_us < 0xffffffff ? s.tcp.min_rtt_us * 1e3 : null));
  const lost = run.streams.map((_, i) => readings.gained(i, (s) => s.tcp?.total_retrans));
  const visible = (columns: Column[]) => columns.filter((_, i) => timeline.visible.has((run.streams[i] as Stream).id));
  const lines = (columns: Column[]) => run.streams.map((s, i) => streamLine(context, s, i, columns[i] as Column));
  const shared = { x: readings.seconds, steps: false, resting: "mean" as const };
  return [
    new Panel({
      ...base(context, "cwnd"),
      ...shared,
      title: "cwnd",
      note: "tcp_info: snd_cwnd × snd_mss at the sender",
      height: 150,
      kind: "size",
      lines: lines(cwnd),
    }),
    new Panel({
      ...base(context, "rtt"),
      ...shared,
      floating: true,
      title: "RTT",
      note: "tcp_info: smoothed RTT at the sender, and the least seen",
      height: 140,
      kind: "time",
      lines: [
        ...lines(rtt),
        {
          label: "min",
          color: "text",
          width: 1,
          dash: [4, 3],
          values: () => least(visible(lowest), n),
          shown: () => true,
        },
      ],
    }),
    new Panel({
      ...base(context, "retransmits"),
      x: readings.edges,
      steps: true,
      resting: "total",
      title: "Retransmitted segments",
      note: "tcp_info: total_retrans at the sender, gained in each sampling interval",
      height: 110,
      kind: "count",
      unit: "segments",
      lines: [
        {
          label: "visible streams",
          color: "bad",
          width: 1,
          fill: true,
          values: () => sum(visible(lost), readings.edges.length),
          shown: () => true,
        },
      ],
    }),
  ];
}

function packetPanels(context: Context): Panel[] {
  const { run, timeline } = context;
  const sender = new Readings(run.streams, "sender");
  if (run.udp === null || run.udp === undefined || sender.times.length < 2 || !sender.has((s) => s.packets)) return [];
  // The receivers' readings go on through the drain: only with them the packets that were under way are all home.
  const last = sender.times.at(-1) ?? 0;
  const after = sampleTimes(run.streams.map((s) => s.receiver?.samples ?? [])).filter((t) => t > last);
  const times = [...sender.times, ...after];
  const sent = new Readings(run.streams, "sender", times);
  const receiver = new Readings(run.streams, "receiver", times);
  const edges = intervalEdges(run.streams.map((s) => s.intervals));
  const visible = (columns: Column[]) => columns.filter((_, i) => timeline.visible.has((run.streams[i] as Stream).id));
  const indexes = run.streams.map((_, i) => i);
  const delivered = indexes.map((i) => packetsOn(edges, (run.streams[i] as Stream).intervals));
  const missing = indexes.map((i) => missingPackets(sent.gained(i, (s) => s.packets), receiver.gained(i, (s) => s.packets)));
  const drops = indexes.map((i) => receiver.gained(i, (s) => s.socket_drops));
  const n = receiver.edges.length;
  const panels = [
    new Panel({
      ...base(context, "loss"),
      x: receiver.edges,
      steps: true,
      resting: "total",
      title: "Packets sent − delivered",
      note:
        "Per sampling interval, visible streams. Packets in flight at an interval's edge count as missing in it and as " +
        "surplus in the next; the total is exact.",
      height: 130,
      kind: "count",
      unit: "packets",
      lines: [
        { label: "missing", color: "bad", width: 1, fill: true, values: () => sum(visible(missing), n), shown: () => true },
        {
          label: "dropped by the receiving sockets",
          color: 0,
          width: 1.25,
          values: () => sum(visible(drops), n),
          shown: () => true,
        },
      ],
    }),
  ];
  if (edges.length >= 2) {
    panels.unshift(
      new Panel({
        ...base(context, "packets"),
        x: inSeconds(edges),
        steps: true,
        resting: "mean",
        title: "Packets delivered",
        unit: "packets/s",
        note: "First copies delivered to the receiving application",
        height: 120,
        kind: "count",
        lines: run.streams.map((s, i) => streamLine(context, s, i, delivered[i] as Column)),
      }),
    );
  }
  return panels;
}

function queues(context: Context): Panel[] {
  const { run, timeline } = context;
  const sender = new Readings(run.streams, "sender");
  const receiver = sender.times.length > 0
    ? new Readings(run.streams, "receiver", sender.times)
    : new Readings(run.streams, "receiver");
  const times = sender.times.length > 0 ? sender : receiver;
  if (times.times.length < 2) return [];
  let chosen: number | null = null;
  const wanted = () =>
    run.streams.map((s, i) => ({ s, i })).filter(({ s }) => (chosen === null ? timeline.visible.has(s.id) : s.id === chosen));
  interface Kind {
    label: string;
    from: Readings;
    field: Field;
    color: Line["color"];
    limit?: boolean;
  }
  const kinds: Kind[] = [
    { label: "in flight", from: sender, field: (s) => (s.tcp ? s.tcp.unacked * s.tcp.snd_mss_bytes : null), color: 0 },
    { label: "send queue", from: sender, field: (s) => s.send_queue_bytes, color: 1 },
    { label: "receive queue", from: receiver, field: (s) => s.receive_queue_bytes, color: 2 },
    { label: "cwnd", from: sender, field: (s) => (s.tcp ? s.tcp.snd_cwnd * s.tcp.snd_mss_bytes : null), color: 3, limit: true },
    { label: "peer's window", from: sender, field: (s) => s.tcp?.snd_wnd_bytes, color: 4, limit: true },
    { label: "send buffer", from: sender, field: (s) => s.sndbuf_bytes, color: 5, limit: true },
    { label: "receive buffer", from: receiver, field: (s) => s.rcvbuf_bytes, color: 6, limit: true },
  ];
  const present = kinds.filter(({ from, field }) => from.has(field));
  if (present.length === 0) return [];
  const columns = present.map(({ from, field, limit }) =>
    run.streams.map((_, i) => (limit ? held(from.column(i, field)) : from.column(i, field))),
  );
  const peak = (list: Column[]) => Math.max(0, ...list.map((c) => c.reduce<number>((m, v) => Math.max(m, v ?? 0), 0)));
  const load = Math.max(...present.map((k, j) => (k.limit ? 0 : peak(columns[j] as Column[]))));
  // A limit far above what it limits would flatten everything else: it waits in the legend.
  const shown = present.map((k, j) => !k.limit || peak(columns[j] as Column[]) <= 2.5 * Math.max(load, 1));
  const lines = present.map((k, j): Line => ({
    label: k.label,
    color: k.color,
    width: k.limit ? 1 : 1.5,
    ...(k.limit ? { dash: [5, 3] } : {}),
    values: () => sum(wanted().map(({ i }) => (columns[j] as Column[])[i] as Column), times.times.length),
    shown: () => shown[j] ?? false,
    toggle: () => {
      shown[j] = !shown[j];
    },
  }));
  const controls: Child[] = [];
  let panel: Panel | null = null;
  if (run.streams.length > 1) {
    const select = h(
      "select",
      { "aria-label": "streams in the queue chart" },
      h("option", { value: "" }, "sum of visible streams"),
      ...run.streams.map((s) => h("option", { value: s.id }, `stream ${streamName(s, run.streams)}`)),
    );
    select.addEventListener("change", () => {
      chosen = select.value === "" ? null : Number(select.value);
      panel?.setStreams();
    });
    controls.push(select);
  }
  panel = new Panel({
    ...base(context, "queues"),
    x: times.seconds,
    steps: false,
    resting: "mean",
    title: "Queues and windows",
    note: "In flight = unacknowledged segments × MSS; queues from SIOCOUTQ and SIOCINQ. Dashed lines are limits.",
    height: 190,
    kind: "size",
    lines,
    controls,
  });
  return [panel];
}

/** CPU time of the visible streams' threads and time they waited for it, in cores: never above the number of threads. */
function threads(context: Context): Panel[] {
  const { run, timeline } = context;
  const dash = [4, 3];
  const kinds: { label: string; end: "sender" | "receiver"; field: Field; color: number; dash?: number[] }[] = [
    { label: "senders running", end: "sender", field: (s) => s.thread_cpu_ns, color: 0 },
    { label: "senders waiting for a core", end: "sender", field: (s) => s.thread_wait_ns, color: 0, dash },
    { label: "receivers running", end: "receiver", field: (s) => s.thread_cpu_ns, color: 1 },
    { label: "receivers waiting for a core", end: "receiver", field: (s) => s.thread_wait_ns, color: 1, dash },
  ];
  const spans = kinds.map(({ end, field }) => run.streams.map((s) => backdated(counterSpans(s[end]?.samples ?? [], field))));
  const edges = intervalEdges(spans.flat());
  if (edges.length < 3) return [];
  const lines = kinds.flatMap(({ label, color, dash }, j): Line[] => {
    const ofKind = spans[j] ?? [];
    if (ofKind.every((list) => list.length === 0)) return [];
    const columns = ofKind.map((list) => spread(edges, list));
    return [
      {
        label,
        color,
        width: 1.25,
        ...(dash ? { dash } : {}),
        values: () => sum(columns.filter((_, i) => timeline.visible.has((run.streams[i] as Stream).id)), edges.length),
        shown: () => true,
      },
    ];
  });
  return [
    new Panel({
      ...base(context, "threads"),
      x: inSeconds(edges),
      steps: true,
      resting: "mean",
      title: "Stream threads",
      note: "CPU time used by the threads of the visible streams, and time they were ready to run but waited for a core",
      height: 120,
      kind: "count",
      unit: "cores",
      lines,
    }),
  ];
}
