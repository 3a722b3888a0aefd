// Which reading of the verdict belongs to which chart, and the tables that list them.

import type { Evidence, RunDocument, Verdict } from "./document";
import { h, num, path, section, table, type Child } from "./dom";
import { isNumber, measured, NONE, seconds } from "./format";
import type { Mark } from "./lanes";

export type ChartId =
  | "throughput" | "cwnd" | "rtt" | "retransmits" | "packets" | "loss" | "queues" | "threads" | "cpu-client"
  | "cpu-server" | "latency-distribution";

// First match wins. The path is that of the document, as the verdict's source names it.
const SOURCES: readonly [RegExp, ChartId][] = [
  [/^host_series\.client\.(samples|softnet)/, "cpu-client"],
  [/^host_series\.server\.(samples|softnet)/, "cpu-server"],
  [/^latency/, "latency-distribution"],
  [/thread_|app_wait/, "threads"],
  [/intervals|goodput|delivery_rate|pacing|(rate|pace|speed)_bps|samples\[\]\.(bytes|packets)/, "throughput"],
  [/socket_drops|^udp|\.udp\.|losses|lost_packets/, "loss"],
  [/rtt/, "rtt"],
  [/retrans|\blost\b|_rto|reord|dsack|delivered_ce/, "retransmits"],
  [/rwnd|_wnd|sndbuf|rcvbuf|queue|notsent|rmem|wmem|unacked|rcv_space|busy_time/, "queues"],
  [/cwnd|ssthresh|congestion/, "cwnd"],
];

/** The chart a source is drawn in, if any. */
export function chartOf(source: string): ChartId | null {
  return SOURCES.find(([pattern]) => pattern.test(source))?.[1] ?? null;
}

/** Every reading of both verdicts that can be marked, by chart. */
export function evidenceMarks(run: RunDocument, extent: { start: number; end: number }): Map<ChartId, Mark[]> {
  const marks = new Map<ChartId, Mark[]>();
  numbered(run).forEach(({ evidence, number, row }) => {
    const chart = chartOf(evidence.source);
    if (!chart) return;
    const span = evidence.span_ns;
    const list = marks.get(chart) ?? [];
    list.push({
      number,
      row,
      text: `${evidence.metric} ${measured(evidence.value, evidence.unit)} (${evidence.threshold})`,
      from: span ? span[0] / 1e9 : extent.start,
      to: span ? span[1] / 1e9 : extent.end,
    });
    marks.set(chart, list);
  });
  return marks;
}

interface Numbered {
  evidence: Evidence;
  number: number;
  row: string;
  reverse: boolean;
}

function numbered(run: RunDocument): Numbered[] {
  const forward = run.verdict.evidence.map((evidence) => ({ evidence, reverse: false }));
  const back = (run.reverse_verdict?.evidence ?? []).map((evidence) => ({ evidence, reverse: true }));
  return [...forward, ...back].map((e, i) => ({ ...e, number: i + 1, row: `evidence-${i + 1}` }));
}

/** The section that shows what the verdict rests on. */
export function evidenceSection(run: RunDocument, charts: ReadonlySet<string>): HTMLElement | null {
  const all = numbered(run);
  const parts: Child[] = [
    ...verdictTables(run.verdict, all.filter((e) => !e.reverse), charts, run.reverse_verdict ? "client to server" : ""),
  ];
  if (run.reverse_verdict) {
    parts.push(...verdictTables(run.reverse_verdict, all.filter((e) => e.reverse), charts, "server to client"));
  }
  if (parts.length === 0) return null;
  return section("evidence", "Evidence", ...parts);
}

function verdictTables(verdict: Verdict, evidence: Numbered[], charts: ReadonlySet<string>, direction: string): Child[] {
  const out: Child[] = [];
  const suffix = direction ? `, ${direction}` : "";
  if (evidence.length > 0) {
    out.push(
      table(
        ["", "Reading", "Value", "Threshold", "Met", "Host", "Stream", "Span", "Source"].map((t) =>
          t === "Value" ? h("th.num", { scope: "col" }, t) : t,
        ),
        evidence.map((e) => row(e.evidence, charts, { number: e.number, id: e.row })),
        { caption: `What the verdict rests on${suffix}` },
      ),
    );
  }
  if (verdict.ruled_out.length > 0) {
    out.push(
      table(
        ["Ruled out", "Reading", "Value", "Threshold", "Met", "Host", "Stream", "Span", "Source"].map((t) =>
          t === "Value" ? h("th.num", { scope: "col" }, t) : t,
        ),
        verdict.ruled_out.map((e, i, all) => row(e, charts, { about: e.about === all[i - 1]?.about ? "" : causeName(e.about) })),
        { caption: `Considered and ruled out${suffix}` },
      ),
    );
  }
  if (verdict.missing.length > 0) {
    out.push(
      h("h3", null, `Not visible${suffix}`),
      h("ul", null, ...verdict.missing.map((m) => h("li", null, m))),
    );
  }
  return out;
}

function row(
  e: Evidence,
  charts: ReadonlySet<string>,
  lead: { number: number; id: string } | { about: string },
): HTMLTableRowElement {
  const chart = chartOf(e.source);
  const target = chart && charts.has(`chart-${chart}`) ? `#chart-${chart}` : null;
  const first =
    "number" in lead
      ? h("td", null, target ? h("a.mark", { href: target, "aria-label": `Evidence ${lead.number}, show its chart` }, lead.number) : h("span.mark", null, lead.number))
      : h("th", { scope: "row" }, lead.about);
  const span = e.span_ns ? `${seconds(e.span_ns[0] / 1e9, 0.01)} – ${seconds(e.span_ns[1] / 1e9, 0.01)}` : NONE;
  return h(
    "tr",
    { id: "id" in lead ? lead.id : null },
    first,
    h("td", null, e.metric),
    num(measured(e.value, e.unit), isNumber(e.value) ? `${e.value} ${e.unit}` : undefined),
    h("td.threshold", null, e.threshold),
    h("td", null, e.met ? "yes" : "no"),
    h("td", null, e.host ?? NONE),
    num(e.stream ?? NONE),
    h("td.nowrap", null, span),
    h("td.source", null, path(e.source)),
  );
}

/** The command that prints the page about a cause: its meaning, how to confirm it, what to do. The terminal prints it alike. */
export function causePage(cause: string): HTMLElement {
  return h("p", null, h("span.label", null, "More"), h("code", null, `landspeed explain ${cause}`));
}

/** A cause as people say it. */
export function causeName(cause: string): string {
  const names: Record<string, string> = {
    "receiver-window": "Receive window",
    "slow-reader": "Slow reader",
    "receive-buffer": "Receive buffer (UDP)",
    "send-buffer": "Send buffer",
    application: "Sending application",
    pacing: "Pacing",
    "sender-cpu": "Sender’s CPU",
    "receiver-cpu": "Receiver’s CPU",
    "link-rate": "Link rate",
    "network-congestion": "Network: a queue overflows",
    "network-loss": "Network: random loss",
    "network-path": "Network: the path is full",
    "bbr-pacing": "Sender: BBR paces below what a short path carries",
    "window-growth": "Network: the congestion window was still growing",
    "slow-start-overshoot": "Slow-start overshoot",
    "shallow-buffer": "Network: a shallow buffer overflows",
    policer: "Network: a policer drops",
    reordering: "Network: reordering",
    "receiver-host-drops": "Receiver host drops",
    "ack-path": "Network: the ACK path is congested",
    "local-qdisc": "Sender’s queueing discipline",
    "path-down": "Path down",
    "path-mtu": "Path MTU black hole",
    "round-trip": "Round trips",
    storage: "Storage",
    "request-gaps": "Gaps between requests",
    "cpu-quota": "CPU quota",
    firewall: "Packet filter of this host",
    undetermined: "Undetermined",
  };
  return Object.hasOwn(names, cause) ? (names[cause] as string) : cause;
}
