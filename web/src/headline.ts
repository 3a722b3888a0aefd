// What was measured, how it ended, the figure, and what held it back.

import type { RunDocument, Verdict } from "./document";
import { button, h, num, prose, section, table, type Child } from "./dom";
import { causeName, causePage } from "./evidence";
import { bytes, integer, isNumber, micros, nanos, NONE, percent, perSecond, rate } from "./format";
import { isDark, setTheme } from "./theme";

/** The two ends by name. */
export function ends(run: RunDocument): [string, string] {
  const client = run.hosts.client?.hostname || run.path?.client_addr || "client";
  const named = run.command[1] === "run" && run.command[2] && !run.command[2].startsWith("-") ? run.command[2] : "";
  const server = run.hosts.server?.hostname || run.path?.target || named || "server";
  return [client, server];
}

/** Top of the page. */
export function header(run: RunDocument, save: () => void): HTMLElement {
  const [client, server] = ends(run);
  const direction = (run.effective ?? run.requested).direction;
  const arrow = { upload: "→", download: "←", both: "⇄" }[direction] ?? "→";
  return h(
    "header.top",
    null,
    pageButtons(save),
    h("p.kicker", null, run.requested.title || "landspeed report"),
    h("h1", null, client, h("span.arrow", null, ` ${arrow} `), server),
    h(
      "p.meta",
      null,
      h("code", null, commandLine(run.command)),
      h("span", null, date(run.started)),
      h("span", null, `landspeed ${run.landspeed.version}`, versionNote(run)),
    ),
  );
}

/** What the page as a whole can do. */
export function pageButtons(save: () => void): HTMLElement {
  return h(
    "div.buttons",
    null,
    button("light / dark", "Switch between light and dark", () => setTheme(isDark() ? "light" : "dark")),
    button("print", null, () => window.print()),
    button("save JSON", "Save the document this report was drawn from", save),
  );
}

/** A command as it was typed, without the directory of its program. */
export function commandLine(command: readonly string[]): string {
  return [command[0]?.replace(/^.*\//, "") ?? "", ...command.slice(1)].join(" ");
}

function versionNote(run: RunDocument): string {
  const server = run.landspeed.server_version;
  return server && server !== run.landspeed.version ? `, server ${server}` : "";
}

/** A moment as people write it. */
export function date(started: string): string {
  const match = /^(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(?:\.\d+)?Z$/.exec(started);
  return match ? `${match[1]} ${match[2]} UTC` : started;
}

/** The result in one sentence. */
export function conclusion(run: RunDocument): string {
  const [client, server] = ends(run);
  const s = run.summary;
  const back = (run.effective ?? run.requested).direction === "download";
  const figures = [
    ...(isNumber(s.goodput_bps) ? [`${rate(s.goodput_bps)} from ${back ? server : client} to ${back ? client : server}`] : []),
    ...(isNumber(s.reverse_goodput_bps) ? [`${rate(s.reverse_goodput_bps)} back`] : []),
    ...(isNumber(s.transactions_per_s) ? [`${perSecond(s.transactions_per_s)} between ${client} and ${server}`] : []),
    ...(isNumber(s.latency_p99_ns) ? [`p99 ${nanos(s.latency_p99_ns)}`] : []),
    ...(isNumber(s.loss_ratio) && s.loss_ratio > 0 ? [`${percent(s.loss_ratio)} lost`] : []),
  ];
  if (run.status === "failed" || figures.length === 0) return sentence(run.verdict.summary);
  return `${figures.join(", ")}; ${causeText(run.verdict)}.`;
}

/** A cause within a sentence. */
export function causeText(v: Verdict): string {
  if (v.cause === "undetermined") return "cause undetermined";
  return `cause: ${causeName(v.cause).replace(/^./, (c) => c.toLowerCase()).replace(": ", ", ")} (${v.confidence} confidence)`;
}

/** Why there are no figures, or not all: before any figure. */
export function notices(run: RunDocument): HTMLElement | null {
  const items: Child[] = [];
  if (run.status === "failed") items.push(h("p.notice.bad", { role: "alert" }, h("b", null, "Failed. "), "Nothing was measured."));
  if (run.status === "partial") {
    const text = run.warnings.some((warning) => warning.code === "contradiction")
      ? "The figures contradict each other; the warnings say where."
      : "The test was cut short; what was measured until then is kept.";
    items.push(h("p.notice.bad", { role: "alert" }, h("b", null, "Partial. "), text));
  }
  items.push(...remarked({ errors: run.errors, warnings: [] }));
  return items.length > 0 ? h("div.notices", null, ...items) : null;
}

/** What to know before trusting a figure: after the figures. */
export function caveats(document: Pick<RunDocument, "warnings">): HTMLElement | null {
  const items = remarked({ errors: [], warnings: document.warnings });
  return items.length > 0 ? h("div.notices", null, ...items) : null;
}

/** A document's errors and warnings. */
export function remarked(document: Pick<RunDocument, "errors" | "warnings">): Child[] {
  return [
    ...document.errors.map((e) =>
      h("p.notice.bad", null, h("b", null, `Error: ${sentence(e.message)} `), ...(e.advice ? ["Try: ", ...prose(sentence(e.advice)), " "] : []), h("code", null, e.code)),
    ),
    ...document.warnings.map((w) =>
      h("p.notice.warn", null, h("b", null, "Note: "), ...prose(sentence(w.message)), " ", h("code", null, w.code)),
    ),
  ];
}

/** Text that ends as a sentence does. */
export function sentence(text: string): string {
  return /[.!?…]$/.test(text) ? text : `${text}.`;
}

/** The figures and the verdict. */
export function headline(run: RunDocument): HTMLElement {
  if (run.status === "failed") {
    return h("section", { id: "headline", "aria-label": "Result" }, h("p", null, ...prose(run.verdict.summary)), next(run.verdict));
  }
  return h("section.headline", { id: "headline", "aria-label": "Result" }, figures(run), verdicts(run));
}

function figures(run: RunDocument): HTMLElement {
  const s = run.summary;
  const big: Child[] = [];
  const figure = (value: string, name: string, label: string) => {
    const [amount, ...unit] = value.split(" ");
    big.push(
      h("div.figure", null, h("p.big", { id: name }, amount ?? value, h("span", null, ` ${unit.join(" ")}`)), h("p.of", null, label)),
    );
  };
  const steady = isNumber(s.steady_ns) && s.steady_ns > 0 ? ` over ${nanos(s.steady_ns)}` : "";
  const both = isNumber(s.reverse_goodput_bps);
  const first = run.streams.filter((stream) => stream.direction === run.streams[0]?.direction);
  const acknowledged = first.some((stream) => stream.intervals_from === "sender");
  const seen = acknowledged ? "as acknowledged to the sender" : "at the receiver";
  if (isNumber(s.goodput_bps)) {
    figure(rate(s.goodput_bps), "goodput", `goodput ${seen}${both ? ", client to server" : ""}, steady phase${steady}`);
  }
  if (both) figure(rate(s.reverse_goodput_bps), "reverse-goodput", `goodput, server to client`);
  if (!isNumber(s.goodput_bps) && isNumber(s.transactions_per_s)) {
    figure(perSecond(s.transactions_per_s), "transactions", `transactions completed${steady}`);
  }
  if (big.length === 0) {
    const why = run.unknown?.["summary.goodput_bps"] ?? run.unknown?.["summary.transactions_per_s"];
    figure(NONE, "goodput", `goodput unknown: ${why ?? "the receiver’s figures are missing"}`);
  }
  const facts: [string, string, string?][] = [];
  if (isNumber(s.bytes_delivered) && s.bytes_delivered > 0) facts.push(["delivered", bytes(s.bytes_delivered), `${integer(s.bytes_delivered)} bytes`]);
  if (isNumber(s.goodput_cv)) facts.push(["varies by (CV)", `± ${percent(s.goodput_cv)}`, "coefficient of variation between intervals of the steady phase"]);
  if (isNumber(s.retransmits)) facts.push(["retransmitted", plural(s.retransmits, "segment")]);
  if (isNumber(s.loss_ratio)) facts.push(["packets lost", percent(s.loss_ratio)]);
  if (isNumber(s.min_rtt_us)) facts.push(["min RTT", micros(s.min_rtt_us), "as TCP saw it"]);
  if (isNumber(s.transactions_per_s) && isNumber(s.goodput_bps)) facts.push(["transactions", perSecond(s.transactions_per_s)]);
  if (isNumber(s.latency_p50_ns)) facts.push(["latency, p50", nanos(s.latency_p50_ns)]);
  if (isNumber(s.latency_p99_ns)) facts.push(["latency, p99", nanos(s.latency_p99_ns)]);
  if (run.streams.length > 0) facts.push(["streams", integer(run.streams.length)]);
  const { holds, terms } = run.conservation;
  if (terms.length > 0) facts.push(["accounting", holds ? "balanced" : "not balanced"]);
  return h(
    "div.figures",
    null,
    ...big,
    h("dl.facts", null, ...facts.map(([name, value, title]) => h("div", { title }, h("dt", null, name), h("dd", null, value)))),
  );
}

function verdicts(run: RunDocument): HTMLElement {
  const back = run.reverse_verdict;
  return h(
    "div.verdicts",
    null,
    verdict(run.verdict, back ? "Cause, client to server" : "Cause"),
    back ? verdict(back, "Cause, server to client") : null,
  );
}

function verdict(v: Verdict, lead: string): HTMLElement {
  const dots = { low: 1, medium: 2, high: 3 }[v.confidence] ?? 0;
  return h(
    "div.verdict",
    null,
    h("p.lead", null, lead),
    h(
      "p.cause",
      null,
      causeName(v.cause),
      h("span.confidence", { title: "how much the evidence supports it" }, h("i", { "aria-hidden": "true" }, "●".repeat(dots) + "○".repeat(3 - dots)), ` ${v.confidence} confidence`),
    ),
    h("p.says", null, ...prose(v.summary)),
    v.place ? h("p", null, h("span.label", null, "Where"), ...prose(v.place)) : null,
    next(v),
    causePage(v.cause),
    v.evidence.length + v.ruled_out.length > 0
      ? h("p.muted", null, h("a", { href: "#evidence" }, `${plural(v.evidence.length, "reading")} behind it, ${plural(new Set(v.ruled_out.map((e) => e.about)).size, "other cause")} ruled out`))
      : null,
  );
}

function next(v: Verdict): HTMLElement | null {
  return v.next_step ? h("p.next", null, h("span.label", null, "Next"), ...prose(v.next_step)) : null;
}

export function plural(count: number, word: string): string {
  return `${count === 0 ? "no" : integer(count)} ${word}${count === 1 ? "" : "s"}`;
}

/** The path and the streams. */
export function streamsSection(run: RunDocument): HTMLElement | null {
  const parts: Child[] = [];
  const path = run.path;
  if (path) {
    const facts: [string, Child][] = [
      ["Addresses", `${path.client_addr} – ${path.server_addr}${path.loopback ? ", loopback: one machine" : ""}`],
      ["Min RTT of the control connection", nanos(path.control_rtt_ns)],
      ["Clocks aligned to", `± ${nanos(path.clock.uncertainty_ns)}`],
      ["Authenticated", path.authenticated ? "yes: both ends hold the same key" : "no"],
    ];
    for (const probe of path.mtu) {
      const way = { upload: "client to server", download: "server to client", both: "both ways" }[probe.direction];
      facts.push([
        `Path MTU, ${way}`,
        `${isNumber(probe.path_mtu_bytes) ? `${probe.path_mtu_bytes} bytes proven` : "not proven"}` +
          (isNumber(probe.interface_mtu_bytes) ? `, interface ${probe.interface_mtu_bytes}` : "") +
          `, ${probe.probes} probes${probe.silent > 0 ? `, ${probe.silent} vanished silently` : ""}` +
          (probe.note ? `: ${probe.note}` : ""),
      ]);
    }
    parts.push(h("dl.list", null, ...facts.map(([name, value]) => h("div", null, h("dt", null, name), h("dd", null, value)))));
  }
  if (run.streams.length > 0) parts.push(streamTable(run));
  return parts.length > 0 ? section("streams", "Path and streams", ...parts) : null;
}

function streamTable(run: RunDocument): HTMLElement {
  const udp = Boolean(run.udp);
  const steady = run.streams.map((s) => {
    let [total, time] = [0, 0];
    for (const i of s.intervals) {
      if (i.phase !== "steady") continue;
      total += i.bytes;
      time += i.end_ns - i.start_ns;
    }
    return time > 0 ? (total * 8e9) / time : null;
  });
  const heads = ["", "Addresses", "Goodput", udp ? "Lost" : "Retransmits", "Control", "MSS", "Send buffer", "Receive buffer", "Cores", "Thread time, sender", "Thread time, receiver", "Remarks"];
  const numeric = new Set([2, 3, 5, 6, 7, 9, 10]);
  return table(
    heads.map((t, i) => (numeric.has(i) ? h("th.num", { scope: "col" }, t) : t)),
    run.streams.map((s, i) => {
      const { sender, receiver } = s;
      const lost = udp
        ? sender?.udp && receiver?.udp
          ? integer(sender.udp.sent_packets - receiver.udp.delivered_packets)
          : NONE
        : integer(sender?.retransmits);
      const cores = [sender?.cpu, receiver?.cpu].map((c) => (isNumber(c) ? String(c) : NONE)).join(" → ");
      return [
        h("th", { scope: "row" }, `${s.id}${s.direction === "download" ? " ↓" : ""}`) as unknown as HTMLTableCellElement,
        h("td.nowrap", null, `${s.client_addr} – ${s.server_addr}`),
        num(rate(steady[i])),
        num(lost),
        sender?.congestion ?? NONE,
        num(integer(sender?.mss_bytes)),
        num(bytes(sender?.sndbuf_bytes)),
        num(bytes(receiver?.rcvbuf_bytes)),
        h("td.nowrap", null, cores),
        num(nanos(sender?.thread_cpu_ns), sender ? `${integer(sender.syscalls)} system calls` : undefined),
        num(nanos(receiver?.thread_cpu_ns), receiver ? `${integer(receiver.syscalls)} system calls` : undefined),
        remarks(s),
      ];
    }),
    { class: "wide", caption: "Streams" },
  );
}

function remarks(s: RunDocument["streams"][number]): string {
  const out: string[] = [];
  if (s.intervals_from === "sender") out.push("intervals from the sender");
  for (const [side, end] of [["sender", s.sender], ["receiver", s.receiver]] as const) {
    if (!end) {
      out.push(`${side} not seen`);
      continue;
    }
    if (end.error) out.push(`${side}: ${end.error}`);
    const zero = end.zerocopy;
    if (zero) {
      out.push(`zero copy: ${integer(zero.completions)} sends, ${integer(zero.copied)} copied after all${zero.enobufs > 0 ? `, ${integer(zero.enobufs)} refused (ENOBUFS)` : ""}`);
    }
    const udp = end.udp;
    if (udp?.departure_error) out.push(`departure jitter: p50 ${nanos(udp.departure_error.p50_ns)}, p99 ${nanos(udp.departure_error.p99_ns)}`);
    if (udp && side === "receiver") {
      out.push(`jitter ${nanos(udp.jitter_ns)}, ${integer(udp.reordered_packets)} reordered, ${integer(udp.socket_drops)} dropped by the socket`);
    }
  }
  return out.length > 0 ? out.join("; ") : NONE;
}
