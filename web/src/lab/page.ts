// The page of one run of a scenario in virtual time.

import type { LabDocument, LabFlow } from "../document";
import { h, num, prose, scoped, section, table, type Child } from "../dom";
import { causeName } from "../evidence";
import { integer, isNumber, nanos, NONE, percent, perSecond, rate, seconds, significant } from "../format";
import { caveats, commandLine, date, causeText, pageButtons, plural, remarked, sentence } from "../headline";
import { attempt, footer, runParts } from "../run";
import type { Moment } from "../panel";
import { criteriaSection, referenceSection } from "./reference";
import { arrow, totalGoodput, totalRetransmits } from "./flows";
import { topologySection } from "./picture";
import { checksPart, eventsSection, linksSection, prediction, programsSection, provenanceSection, queuesSection, referencePart, scenarioSection, spelled } from "./tables";
import { labTimeline, moments } from "./timeline";

/** The whole page. */
export function labPage(lab: LabDocument, save: () => void): Child[] {
  return [
    header(lab, save),
    trust(lab),
    lab.flows.length > 0 ? attempt("conclusion", () => h("p.conclusion", null, conclusion(lab.flows))) : null,
    attempt("headline", () => headline(lab)),
    attempt("figures", () => referenceSection(lab, lab.scenario.reference?.source)),
    attempt("criteria", () => criteriaSection(lab)),
    attempt("charts", () => labTimeline(lab)),
    caveats(lab),
    attempt("events", () => eventsSection(lab)),
    attempt("programs", () => programsSection(lab)),
    attempt("topology", () => topologySection(lab)),
    attempt("queues", () => queuesSection(lab)),
    attempt("links", () => linksSection(lab)),
    attempt("flows", () => flowsSection(lab)),
    attempt("scenario", () => scenarioSection(lab)),
    attempt("provenance", () => provenanceSection(lab)),
    footer(lab.schema, lab.digest ?? "without a digest"),
  ];
}

function header(lab: LabDocument, save: () => void): HTMLElement {
  const cell = Object.entries(lab.scenario.cell).map(([k, v]) => `${k} = ${spelled(v)}`);
  return h(
    "header.top",
    null,
    pageButtons(save),
    h("p.kicker", null, "landspeed lab, one run in virtual time"),
    h("h1", null, lab.scenario.name, cell.length > 0 ? h("span.arrow", null, ` ${cell.join(", ")}`) : null),
    h(
      "p.meta",
      null,
      lab.command.length > 0 ? h("code", null, commandLine(lab.command)) : null,
      lab.started ? h("span", null, date(lab.started)) : null,
      h("span", null, `Linux ${lab.kernel.release || "unknown"}`),
      h("span", null, `seed ${lab.seed}`),
      h("span", null, `landspeed ${lab.landspeed.version}`),
    ),
  );
}

/** Why the figures cannot be used, before any of them. */
function trust(lab: LabDocument): HTMLElement | null {
  const items: Child[] = [];
  const bad = (lead: string, ...says: Child[]) => items.push(h("p.notice.bad", { role: "alert" }, h("b", null, lead), ...says));
  const failed = lab.checks.filter((c) => !c.passed);
  if (lab.status === "invalid") bad("Invalid: do not use these figures. ", failed.length > 0 ? `${plural(failed.length, "check")} failed.` : "A check failed.");
  if (lab.status === "partial") bad("Partial. ", "The run was cut short: the results are those until then.");
  if (lab.status === "failed") bad("Failed. ", "Nothing was measured.");
  for (const c of failed) items.push(h("p.notice.bad", null, h("b", null, "Failed check: "), ...prose(sentence(c.detail)), " ", h("code", null, c.name)));
  items.push(...remarked({ errors: lab.errors, warnings: [] }));
  return items.length > 0 ? h("div.notices", null, ...items) : null;
}

/** What each flow got, in one sentence. */
function conclusion(flows: readonly LabFlow[]): string {
  const said = flows.slice(0, 4).map((f) => {
    const s = f.run?.summary;
    const figures = isNumber(f.goodput_bps) ? rate(f.goodput_bps) : isNumber(s?.transactions_per_s) ? perSecond(s.transactions_per_s) : "not measured";
    const lost = isNumber(s?.loss_ratio) && s.loss_ratio > 0 ? `, ${percent(s.loss_ratio)} lost` : "";
    return `${f.name} ${figures}${lost}${f.run && flows.length <= 2 ? `, ${causeText(f.run.verdict)}` : ""}`;
  });
  return `${said.join("; ")}${flows.length > 4 ? `; ${plural(flows.length - 4, "more flow")}` : ""}.`;
}

function headline(lab: LabDocument): HTMLElement {
  const goodput = totalGoodput(lab.flows);
  const retransmits = totalRetransmits(lab.flows);
  const drops = lab.queues.filter((q) => q.role === "switch").reduce((sum, q) => sum + q.drops, 0);
  const lost = lab.links.reduce((sum, l) => sum + l.lost, 0);
  const [amount, ...unit] = rate(goodput).split(" ");
  const facts: [string, Child, (string | undefined)?][] = [
    ["status", h("b", { class: lab.status === "complete" ? "good" : "bad" }, lab.status)],
    ["flows", integer(lab.flows.length)],
    ...(isNumber(retransmits) ? [["retransmits", integer(retransmits)] as [string, Child]] : []),
    ["dropped by switches", plural(drops, "packet")],
    ...(lost > 0 ? [["lost by links", plural(lost, "frame")] as [string, Child]] : []),
    ["virtual time", seconds(lab.virtual_s, 0.01)],
    ["real time", `${significant(lab.wall_s)} s`],
    ["kernel", lab.kernel.release || NONE],
    ["kernel build", lab.kernel.build_id || NONE],
    ["seed", String(lab.seed)],
    ["digest", lab.digest ? h("code", null, lab.digest.slice(0, 12)) : NONE, lab.digest ?? undefined],
  ];
  return h(
    "section.headline",
    { id: "headline", "aria-label": "Result" },
    h(
      "div.figures",
      null,
      h("div.figure", null, h("p.big", { id: "goodput" }, amount ?? NONE, h("span", null, ` ${unit.join(" ")}`)), h("p.of", null, lab.flows.length === 0 ? "no flows" : isNumber(goodput) ? `goodput${lab.flows.length > 1 ? ", sum of all flows" : ""}, in the steady phase` : "goodput unknown")),
      h("dl.facts", null, ...facts.map(([name, value, title]) => h("div", { title }, h("dt", null, name), h("dd", null, value)))),
    ),
    h(
      "div.verdicts",
      null,
      lab.scenario.description ? h("p.says", null, ...prose(lab.scenario.description)) : null,
      prediction(lab),
      referencePart(lab.scenario.reference, got(lab.flows, goodput)),
      lab.flows.length > 0 ? flowTable(lab.flows) : null,
      checksPart(lab),
    ),
  );
}

function got(flows: readonly LabFlow[], total: number | null): string {
  const each = flows.map((f) => `${f.name} ${rate(f.goodput_bps)}`).slice(0, 6);
  if (flows.length < 2) return rate(total);
  return `${rate(total)} in total: ${each.join(", ")}${flows.length > 6 ? ", …" : ""}.`;
}

function flowTable(flows: readonly LabFlow[]): HTMLElement {
  return table(
    ["Flow", "Path", ...["Starts", "Goodput", "Retransmits", "Loss"].map((t) => h("th.num", { scope: "col" }, t)), "Limited by", "Accounting"],
    flows.map((f, i) => {
      const { run } = f;
      const accounting = run && run.conservation.terms.length > 0 ? (run.conservation.holds ? "balanced" : "not balanced") : NONE;
      const name = run ? h("a", { href: `#flow-${i}` }, f.name) : f.name;
      return h(
        "tr",
        null,
        h("th", { scope: "row" }, h("i", { class: `key c${i % 8}`, "aria-hidden": "true" }), name),
        h("td.nowrap", null, arrow(`${f.from}->${f.to}`)),
        num(nanos(f.start_ns)),
        num(rate(f.goodput_bps)),
        num(integer(f.retransmits)),
        num(percent(run?.summary.loss_ratio)),
        h("td", null, run ? causeName(run.verdict.cause) : NONE),
        h("td", { class: accounting === "not balanced" ? "bad" : null }, accounting),
      );
    }),
    { caption: "Each flow in its steady phase" },
  );
}

/** Everything a run has, for each flow; drawn when it is opened. */
function flowsSection(lab: LabDocument): HTMLElement | null {
  if (lab.flows.length === 0) return null;
  return section(
    "flows",
    "Each flow as a run",
    ...lab.flows.map((f, i) => {
      const { run } = f;
      const title = [h("b", null, f.name), ` ${arrow(`${f.from}->${f.to}`)}, ${run ? rate(f.goodput_bps) : "not measured"}`];
      if (!run) return h("p", { id: `flow-${i}` }, ...title);
      const body = h("div.body");
      const details = h("details.flow", { id: `flow-${i}` }, h("summary", null, ...title, run.status === "complete" ? "" : `, ${run.status}`), body);
      details.addEventListener("toggle", () => {
        if (!details.open || body.childElementCount > 0) return;
        const own = moments(lab).map((m) => ({ ...m, at: m.at - f.start_ns / 1e9 }));
        body.append(...parts(run, `flow-${i}-`, own));
      });
      return details;
    }),
  );
}

function parts(run: NonNullable<LabFlow["run"]>, scope: string, own: readonly Moment[]): Element[] {
  return scoped(scope, () => [h("p.muted", null, "Times count from the flow’s start."), ...runParts(run, true, own)]).filter(
    (part): part is Element => part instanceof Element,
  );
}
