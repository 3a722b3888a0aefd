// Tables of queues, links and checks, the scenario, and the provenance of the run.

import type { LabDocument, LabProgram, LabQueue, Reference } from "../document";
import { button, h, num, prose, section, table, type Child } from "../dom";
import { causeName } from "../evidence";
import { bytes, integer, isNumber, nanos, NONE, percent, rate, seconds, significant } from "../format";
import { fileName, saveAs } from "../save";
import { arrow, fullness } from "./flows";

const right = (text: string) => h("th.num", { scope: "col" }, text);
const rowHead = (text: Child) => h("th", { scope: "row" }, text);

/** Every queue. */
export function queuesSection(lab: LabDocument): HTMLElement | null {
  if (lab.queues.length === 0) return null;
  const groups: [LabQueue["role"], string][] = [["switch", "Switch ports"], ["host", "Host qdiscs"], ["wire", "Links: packets in flight, configured loss"]];
  const rows: HTMLTableRowElement[] = [];
  for (const [role, title] of groups) {
    const mine = lab.queues.filter((q) => q.role === role);
    if (mine.length === 0) continue;
    rows.push(h("tr.group", null, h("th", { colspan: 13, scope: "rowgroup" }, title)));
    for (const q of mine.sort((a, b) => b.drops - a.drops || b.peak_bytes - a.peak_bytes)) rows.push(queueRow(q));
  }
  return section(
    "queues",
    "Queues",
    table(
      ["", "Kind", right("Limit"), right("Drains at"), right("Packets"), right("Dropped"), right("Marked"), right("Peak"), right("of limit"), right("Mean"), right("Busy"), right("Delay, p50"), right("Delay, p99")],
      rows,
      { class: "wide queues", caption: "Delay: backlog over the drain rate. Busy: share of the samples with a backlog" },
    ),
  );
}

function queueRow(q: LabQueue): HTMLTableRowElement {
  const limit = isNumber(q.limit_bytes) ? bytes(q.limit_bytes) : isNumber(q.limit_packets) ? `${integer(q.limit_packets)} packets` : NONE;
  const detail = Object.entries(q.detail).map(([name, value]) => `${name} ${integer(value)}`).join(", ");
  return h(
    "tr",
    { class: q.drops > 0 && q.role !== "wire" ? "trouble" : null },
    rowHead(arrow(q.name)),
    h("td", { title: detail || null }, q.kind),
    num(limit),
    num(rate(q.rate_bps)),
    num(integer(q.packets), `${integer(q.bytes)} bytes`),
    num(integer(q.drops)),
    num(integer(q.marks)),
    num(bytes(q.peak_bytes), `${integer(q.peak_bytes)} bytes`),
    num(percent(fullness(q))),
    num(bytes(Math.round(q.mean_bytes))),
    num(percent(q.busy_ratio)),
    num(nanos(q.sojourn_ns_p50)),
    num(nanos(q.sojourn_ns_p99)),
  );
}

/** What changed during the run, and what limited each flow between the changes. */
export function eventsSection(lab: LabDocument): HTMLElement | null {
  const events = lab.events ?? [];
  if (events.length === 0) return null;
  const parts = lab.flows.flatMap((f) => (f.epochs ?? []).map((epoch) => ({ flow: f.name, epoch })));
  return section(
    "events",
    "Events",
    table(
      [right("Time"), "What", "Key", "New value", ""],
      events.map((e) =>
        h(
          "tr",
          { class: e.error ? "trouble" : null },
          num(nanos(e.applied_ns ?? e.at_ns)),
          h("td", null, arrow(e.object)),
          h("td", null, e.key),
          h("td", null, e.value),
          h("td", null, e.error ?? (isNumber(e.applied_ns) ? "" : "not made: the run ended before")),
        ),
      ),
      { caption: "Changes of the scenario during the run" },
    ),
    parts.length > 0
      ? table(
          ["Flow", right("From"), right("To"), right("Goodput"), "Limited by", "Confidence", "Summary"],
          parts.map(({ flow, epoch }) =>
            h(
              "tr",
              null,
              rowHead(flow),
              num(nanos(epoch.span_ns[0])),
              num(nanos(epoch.span_ns[1])),
              num(rate(epoch.goodput_bps)),
              h("td", null, epoch.cause ? causeName(epoch.cause) : NONE),
              h("td", null, epoch.confidence ?? NONE),
              h("td", null, epoch.summary),
            ),
          ),
          { caption: "Each flow between the changes of its path" },
        )
      : null,
  );
}

/** Every direction of every link. */
export function linksSection(lab: LabDocument): HTMLElement | null {
  if (lab.links.length === 0) return null;
  const impaired = (name: string) => {
    const [a, b] = name.split("->");
    const link = lab.topology.links.find(({ between: [p, q] }) => (p === a && q === b) || (p === b && q === a));
    return link?.impairments.join("; ") || NONE;
  };
  return section(
    "links",
    "Links",
    table(
      ["", right("Rate"), right("Delay"), right("Utilisation"), h("th.barhead", { scope: "col" }, "of the rate, whole run"), right("Frames"), right("Bytes"), right("Lost"), "Impairments"],
      lab.links.map((l) =>
        h(
          "tr",
          null,
          rowHead(arrow(l.name)),
          num(rate(l.rate_bps)),
          num(nanos(l.delay_ns)),
          num(percent(l.utilisation)),
          shareBar(l.utilisation),
          num(integer(l.packets)),
          num(bytes(l.bytes), `${integer(l.bytes)} bytes`),
          num(integer(l.lost)),
          h("td", null, impaired(l.name)),
        ),
      ),
      { class: "wide", caption: "One row per direction; bytes include framing" },
    ),
  );
}

/** A share as a bar in a cell. */
export function shareBar(share: number): HTMLTableCellElement {
  const fill = h("i.bar");
  fill.style.width = share > 0 ? `max(2px, ${(Math.min(1, share) * 100).toFixed(2)}%)` : "0";
  return h("td.barcell", { "aria-hidden": "true" }, h("div.bartrack", null, fill));
}

/** The checks; open when one failed. */
export function checksPart(lab: LabDocument): HTMLElement | null {
  if (lab.checks.length === 0) return null;
  const failed = lab.checks.filter((c) => !c.passed).length;
  const says = failed > 0 ? `${failed} of ${lab.checks.length} checks failed` : `All ${lab.checks.length} checks passed`;
  return h(
    "details.checks",
    { id: "checks", open: failed > 0 },
    h("summary", { class: failed > 0 ? "bad" : "good" }, says),
    table(
      ["Check", "Passed", "Detail"],
      [...lab.checks]
        .sort((a, b) => Number(a.passed) - Number(b.passed))
        .map((c) => h("tr", { class: c.passed ? null : "failed" }, rowHead(h("code", null, c.name)), h("td", null, c.passed ? "yes" : "NO"), h("td", null, ...prose(c.detail)))),
      { caption: "Checks of this run; one failure makes it invalid" },
    ),
  );
}

/** The reported result beside this one. */
export function referencePart(reference: Reference | null | undefined, got: Child): HTMLElement | null {
  if (!reference) return null;
  const pair = (name: string, value: Child, note?: Child) => h("div", null, h("dt", null, name), h("dd", null, value, note ? h("small.muted", null, note) : null));
  return h(
    "dl.reference",
    { id: "reference" },
    pair("Reported", reference.reported, ` ${reference.source}`),
    pair("Here", got),
    reference.why_different ? pair("Why they differ", reference.why_different) : null,
  );
}

/** The scenario's text. */
export function scenarioSection(lab: LabDocument): HTMLElement {
  const { text, name, cell } = lab.scenario;
  const values = Object.entries(cell);
  return section(
    "scenario",
    "Scenario",
    values.length > 0 ? h("p", null, "This cell: ", ...values.flatMap(([k, v], i) => [i > 0 ? ", " : "", h("code", null, k), ` = ${spelled(v)}`]), ".") : null,
    h("p.controls", null, button("save scenario", "Save as a file for `landspeed lab run`", () => saveAs(text, fileName(name, "toml"), "application/toml"))),
    h("pre.scenario", { tabindex: 0, role: "region", "aria-label": "text of the scenario" }, h("code", null, text)),
  );
}

/** Every program of the host that ran in the network, with what it printed. */
export function programsSection(lab: LabDocument): HTMLElement | null {
  const programs = lab.programs ?? [];
  if (programs.length === 0) return null;
  const printed = programs.flatMap((p) => {
    const outputs: [string, string][] = [["standard output", p.stdout.text], ["standard error", p.stderr.text], ...(p.files ?? []).map((f): [string, string] => [f.path, f.content?.text ?? ""])];
    return outputs.filter(([, text]) => text !== "").map(([name, text]): [string, string] => [`${p.name}: ${name}`, text]);
  });
  return section(
    "programs",
    "Programs",
    table(
      ["", "Host", "Command", right("Starts"), right("Ends"), "Result"],
      programs.map((p) =>
        h(
          "tr",
          { class: p.expected ? null : "trouble" },
          rowHead(p.name),
          h("td", null, p.host),
          h("td", null, h("code", null, p.command.join(" "))),
          num(nanos(p.start_ns)),
          num(nanos(p.end_ns)),
          h("td", { class: p.expected ? null : "bad" }, programEnd(p)),
        ),
      ),
      { caption: "Programs of this host on hosts of the network, in virtual time" },
    ),
    ...printed.map(([name, text]) => h("details", null, h("summary", null, name), h("pre.scenario", { tabindex: 0, role: "region", "aria-label": name }, h("code", null, text)))),
  );
}

function programEnd(p: LabProgram): string {
  if (p.end === "not-started") return `not started: ${p.error ?? "unknown error"}`;
  const ended = { exited: "ended", stopped: "stopped", "time-limit": "ended at its time limit", "output-limit": "ended at its output limit" }[p.end];
  if (isNumber(p.exit_status)) return `${ended}, exit status ${p.exit_status}`;
  return isNumber(p.signal) ? `${ended}, signal ${p.signal}` : ended;
}

/** A varied key's value as it is written. */
export function spelled(value: unknown): string {
  if (typeof value === "string") return value;
  if (value === null || value === undefined) return NONE;
  return JSON.stringify(value);
}

/** Everything that says which run this was. */
export function provenanceSection(lab: LabDocument): HTMLElement {
  const { kernel } = lab;
  const facts: [string, Child][] = [
    ["Digest of all results", lab.digest ? h("code", null, lab.digest) : "none: nothing was measured"],
    ["Scenario hash", h("code", null, lab.scenario.hash || NONE)],
    ["Seed", h("code", null, String(lab.seed))],
    ["Kernel", `${kernel.release}${kernel.source ? `, from ${kernel.source}` : ""}`],
    ["Kernel build id", h("code", null, kernel.build_id || NONE)],
    ["Virtual time", seconds(lab.virtual_s, 0.001)],
    ["Real time", `${significant(lab.wall_s)} s, including ${significant(lab.boot_s)} s of boot`],
    ["Memory of the guest", `${bytes(lab.memory_bytes)}${isNumber(lab.memory_peak_bytes) ? `; peak on this host ${bytes(lab.memory_peak_bytes)}` : ""}`],
    ...lab.captures.map((c): [string, Child] => [`Capture ${c.name}`, `${c.file}: ${integer(c.packets)} packets${c.missed > 0 ? `, ${integer(c.missed)} missed` : ""}`]),
  ];
  return section(
    "provenance",
    "Provenance",
    h("dl.list", null, ...facts.map(([name, value]) => h("div", null, h("dt", null, name), h("dd", null, value)))),
    h("p.muted", null, "The same scenario, seed and kernel give the same digest on any machine."),
  );
}

/** The caveat of every lab result. */
export function prediction(lab: LabDocument): HTMLElement {
  const hosts = (lab.cpus ?? []).length > 0
    ? "A prediction for hosts with the CPU costs of the scenario; everything else that they do takes no time."
    : "A network-limited prediction: the lab’s hosts have infinite CPU and no NIC.";
  return h("p.prediction", null, h("b", null, hosts), " Real hosts may be slower.");
}
