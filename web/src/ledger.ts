// Accounting: what was offered and where it went, and what moving it cost.

import type { Conservation, EndCost, EndTotals, LossLocation, RunDocument, Term } from "./document";
import { h, num, path, section, table, type Child } from "./dom";
import { bytes, integer, isNumber, nanos, NONE, percent, significant } from "./format";

/** Conservation as a table with a bar for each term. */
export function ledgerSection(run: RunDocument): HTMLElement | null {
  if (run.status === "failed" && !run.conservation.offered) return null;
  const accounting = run.conservation;
  const packets = accounting.unit === "packets" && accounting.terms.some((t) => isNumber(t.packets));
  const amount = (t: { bytes?: number | null | undefined; packets?: number | null | undefined }) => (packets ? t.packets : t.bytes) ?? null;
  // Shares need to know what was offered.
  const offered = accounting.terms.filter((t) => t.sign === "+").map(amount);
  const whole = offered.every(isNumber) ? Math.max(1, ...offered.filter(isNumber)) : null;
  const share = (value: number | null | undefined) => (isNumber(value) && whole !== null ? value / whole : null);
  const percentOf = (value: number | null | undefined) => percent(share(value));
  const gap = packets ? accounting.unaccounted_packets : accounting.unaccounted_bytes;
  const parts: Child[] = [balance(run, packets)];
  if (accounting.terms.length > 0) {
    let taken = 0;
    const row = (t: Term, share: string, picture: HTMLTableCellElement) =>
      h(
        "tr",
        { class: t.sign === "" ? "aside" : null },
        h("td.sign", null, t.sign === "-" ? "−" : t.sign),
        h("th", { scope: "row" }, t.name),
        ...(packets ? [num(integer(t.packets))] : []),
        num(isNumber(t.bytes) ? integer(t.bytes) : NONE, bytes(t.bytes)),
        num(share),
        picture,
        h("td.source", null, path(t.source)),
      );
    const rows = accounting.terms
      .filter((t) => t.sign !== "")
      .map((t) => {
        const value = amount(t);
        const start = t.sign === "+" ? 0 : taken;
        if (t.sign !== "+") taken += value ?? 0;
        return row(t, percentOf(value), bar(share(start) ?? 0, share(value) ?? 0, t.sign === "+" ? "offered" : "taken"));
      });
    rows.push(
      h(
        "tr.total",
        null,
        h("td.sign", null, "="),
        h("th", { scope: "row" }, "unaccounted for"),
        ...(packets ? [num(integer(accounting.unaccounted_packets))] : []),
        num(integer(accounting.unaccounted_bytes)),
        num(percentOf(gap)),
        isNumber(gap) ? bar(share(Math.min(taken, taken + gap)) ?? 0, share(Math.abs(gap)) ?? 0, "gap") : h("td"),
        h("td.source", null, "what remains"),
      ),
    );
    // Terms without a sign stand beside the equation, not in it.
    rows.push(...accounting.terms.filter((t) => t.sign === "").map((t) => row(t, "", h("td"))));
    const heads: Child[] = ["", "Term"];
    if (packets) heads.push(h("th.num", { scope: "col" }, "Packets"));
    heads.push(
      h("th.num", { scope: "col" }, "Bytes"),
      h("th.num", { scope: "col" }, "Share"),
      h("th.barhead", { scope: "col" }, "of what was offered"),
      "Source",
    );
    parts.push(table(heads, rows, { class: "ledger", caption: `Every ${packets ? "packet" : "byte"} offered, along the path` }));
  }
  if (run.udp || accounting.losses.length > 0) parts.push(places(run));
  if (accounting.notes.length > 0) parts.push(h("ul.notes", null, ...accounting.notes.map((n) => h("li", null, n))));
  return section("ledger", "Accounting", ...parts);
}

function balance(run: RunDocument, packets: boolean): HTMLElement {
  const accounting = run.conservation;
  if (accounting.terms.length === 0 && !accounting.offered) return h("p", null, "Nothing was offered; there is nothing to balance.");
  const intervals = accounting.intervals_minus_totals_bytes;
  const tail =
    intervals === 0
      ? " The intervals add up to the totals exactly."
      : ` The intervals differ from the totals by ${integer(intervals)} bytes.`;
  if (accounting.holds) {
    return h(
      "p.balance.good",
      null,
      h("b", null, "Balances: "),
      `offered − delivered − lost − queued = 0 ${packets ? "packets" : "bytes"}.`,
      tail,
    );
  }
  if (!isNumber(accounting.unaccounted_bytes)) {
    const why = run.unknown?.["conservation.unaccounted_bytes"] ?? "not every term was seen";
    return h("p.balance.bad", null, h("b", null, "Cannot be shown to balance: "), `${why}.`);
  }
  const gap =
    packets && isNumber(accounting.unaccounted_packets)
      ? `${integer(accounting.unaccounted_packets)} packets (${integer(accounting.unaccounted_bytes)} bytes)`
      : `${integer(accounting.unaccounted_bytes)} bytes`;
  const none = accounting.unaccounted_bytes === 0 && (accounting.unaccounted_packets ?? 0) === 0;
  return h(
    "p.balance.bad",
    null,
    h("b", null, none ? "Cannot be shown to balance: " : `Does not balance by ${gap}. `),
    none ? "the remainder is zero, but not every term was seen." : "",
    tail,
  );
}

function bar(start: number, share: number, kind: string): HTMLTableCellElement {
  const fill = h("i", { class: `bar ${kind}` });
  const left = Math.max(0, Math.min(1, start));
  const width = Math.max(0, Math.min(1 - left, share));
  fill.style.marginLeft = `min(${(left * 100).toFixed(3)}%, calc(100% - 2px))`;
  fill.style.width = share === 0 ? "0" : `max(2px, ${(width * 100).toFixed(3)}%)`;
  return h("td.barcell", { "aria-hidden": "true" }, h("div.bartrack", null, fill));
}

const PATH: readonly { place: LossLocation; name: string }[] = [
  { place: "sender-qdisc", name: "sender’s qdisc" },
  { place: "sender-nic", name: "sender’s NIC" },
  { place: "network", name: "network" },
  { place: "receiver-nic", name: "receiver’s NIC" },
  { place: "receiver-backlog", name: "receiver’s backlog" },
  { place: "receiver-socket", name: "receiver’s socket" },
];

/** Packets lost at each place of the path, in its order. */
function places(run: RunDocument): HTMLElement {
  const accounting: Conservation = run.conservation;
  const steps: Child[] = [];
  for (const { place, name } of PATH) {
    const found = accounting.losses.filter((l) => l.place === place);
    const count = found.length === 0 ? null : found.reduce((sum, l) => sum + l.packets, 0);
    const source = found
      .map((l) => (l.place === "network" ? l.source : `${l.source}, ${l.exact ? "this test’s own" : "other traffic included"}`))
      .join("; ");
    steps.push(
      h(
        "li",
        { class: count ? "lossy" : null },
        h("span", null, name),
        h("b", null, count === null ? "not seen" : integer(count)),
        h("small", null, count === null ? "" : source),
      ),
    );
  }
  const udp = run.udp;
  return h(
    "div.places",
    null,
    h("h3", null, "Where packets were lost"),
    udp && !isNumber(udp.lost_packets)
      ? h("p", null, `Unknown: ${run.unknown?.["udp.lost_packets"] ?? "not reported"}.`)
      : udp?.lost_packets === 0 && accounting.losses.every((l) => l.packets === 0)
      ? h("p", null, "None was.")
      : h("ol.path", null, ...steps),
    udp
      ? h(
          "p.muted",
          null,
          `${integer(udp.sent_packets)} sent, ${integer(udp.delivered_packets)} delivered, ${integer(udp.lost_packets)} lost ` +
            `(${percent(udp.loss_ratio)}), of which ${integer(udp.tail_lost_packets)} at the tail; ` +
            `${integer(udp.duplicate_packets)} duplicate, ${integer(udp.reordered_packets)} reordered, ` +
            `${integer(udp.late_packets)} late, ${integer(udp.refused_packets)} refused by the sender’s kernel. ` +
            `Payload ${integer(udp.payload_bytes)} bytes; jitter ${nanos(udp.jitter_ns)}.`,
        )
      : null,
  );
}

/** What each end spent, side by side. */
export function costSection(run: RunDocument): HTMLElement | null {
  const { client, server } = run.cost;
  const totals = run.totals;
  if (!client && !server && !totals.client && !totals.server) return null;
  type Pick<T> = (end: T) => string;
  const cost = (name: string, pick: Pick<EndCost>, title?: string) => ({ name, title, c: client ? pick(client) : NONE, s: server ? pick(server) : NONE });
  const total = (name: string, pick: Pick<EndTotals>, title?: string) => ({
    name,
    title,
    c: totals.client ? pick(totals.client) : NONE,
    s: totals.server ? pick(totals.server) : NONE,
  });
  const cpu = (s: number | null | undefined) => (isNumber(s) ? `${significant(s)} s` : NONE);
  const per = (v: number | null | undefined) => (isNumber(v) ? `${significant(v)} ns` : NONE);
  const rows = [
    total("Bytes written by its applications", (t) => integer(t.bytes_sent)),
    total("Bytes acknowledged to it", (t) => integer(t.bytes_acked)),
    total("Bytes read by its applications", (t) => integer(t.bytes_received)),
    total("Segments it retransmitted", (t) => integer(t.retransmits)),
    cost("CPU time, whole host", (c) => cpu(c.host_cpu_s), "all cores, other programs included"),
    cost("CPU time, stream threads", (c) => cpu(c.thread_cpu_s)),
    cost("CPU time, softirqs", (c) => cpu(c.softirq_cpu_s), "all cores"),
    cost("Stream threads, per byte", (c) => per(c.thread_ns_per_byte)),
    cost("Whole host, per byte", (c) => per(c.host_ns_per_byte)),
    cost("Busiest core", (c) => (c.busiest_core ? `core ${c.busiest_core[0]}, ${percent(c.busiest_core[1])}` : NONE)),
    cost("Stolen by the hypervisor", (c) => percent(c.steal)),
    cost("Resolution of these figures", (c) => nanos(c.tick_ns), "one kernel tick"),
  ].filter((r) => r.c !== NONE || r.s !== NONE);
  const name = (side: "client" | "server") => run.hosts[side]?.hostname || side;
  return section(
    "cost",
    "Totals and cost",
    table(
      ["", h("th.num", { scope: "col" }, `client (${name("client")})`), h("th.num", { scope: "col" }, `server (${name("server")})`)],
      rows.map((r) => h("tr", { title: r.title }, h("th", { scope: "row" }, r.name), num(r.c), num(r.s))),
      { class: "pair", caption: "Cost is that of the steady phase" },
    ),
  );
}
