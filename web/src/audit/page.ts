// The page of an audit: findings, the worst first, and everything else that was asked.

import type { Answer, AuditDocument, Change, Finding } from "../document";
import { h, prose, section, table, type Child } from "../dom";
import { integer, nanos, rate } from "../format";
import { commandLine, date, pageButtons, plural, sentence } from "../headline";
import { attempt, footer } from "../run";

/** Changes of one finding that are shown before the rest is folded. */
const CHANGES = 4;

const WEIGHTS = ["critical", "major", "minor", "note"] as const;
const ROLES: Record<AuditDocument["goal"]["role"], string> = {
  dtn: "a data transfer node",
  benchmark: "a benchmark",
  latency: "small messages",
  guest: "a virtual machine",
  router: "a router",
};

/** The whole page. */
export function auditPage(audit: AuditDocument, save: () => void): Child[] {
  const peer = audit.peer ?? null;
  return [
    header(audit, save),
    attempt("conclusion", () => h("p.conclusion", null, conclusion(audit))),
    attempt("headline", () => headline(audit)),
    notices(audit),
    attempt("findings", () => findings(audit, "findings", peer ? `Findings here, ${audit.hostname}` : "Findings")),
    peer ? attempt("peer-findings", () => findings(peer, "peer-findings", `Findings at the peer, ${peer.hostname}`)) : null,
    peer ? attempt("differences", () => differences(audit)) : null,
    attempt("answers", () => answers(audit, "answers", "Everything else that was asked")),
    peer ? attempt("peer-answers", () => answers(peer, "peer-answers", "The same of the peer")) : null,
    footer(audit.schema, plural(asked(audit), "answer")),
  ];
}

const asked = (a: AuditDocument) => a.findings.length + a.passed.length + a.not_applicable.length + a.unknown.length;

function header(audit: AuditDocument, save: () => void): HTMLElement {
  return h(
    "header.top",
    null,
    pageButtons(save),
    h("p.kicker", null, audit.peer ? "landspeed check, both ends of a path" : "landspeed check, a host's settings"),
    h("h1", null, audit.peer ? `${audit.hostname} and ${audit.peer.hostname}` : audit.hostname || "a host"),
    h(
      "p.meta",
      null,
      audit.command.length > 0 ? h("code", null, commandLine(audit.command)) : null,
      audit.started ? h("span", null, date(audit.started)) : null,
      audit.facts.kernel.release ? h("span", null, `Linux ${audit.facts.kernel.release}`) : null,
      h("span", null, `landspeed ${audit.landspeed.version}`),
    ),
  );
}

/** The result in one sentence. */
function conclusion(audit: AuditDocument): string {
  const weights = WEIGHTS.filter((w) => w !== "note").map((w): [number, string] => [audit.findings.filter((f) => f.severity === w).length, w]);
  const found = weights.filter(([count]) => count > 0).map(([count, weight]) => `${integer(count)} ${weight}`);
  const goal = [audit.goal.rate_bps ? rate(audit.goal.rate_bps) : "", audit.goal.rtt_ns ? `over ${nanos(audit.goal.rtt_ns)}` : ""].filter(Boolean).join(" ");
  const about = `${audit.hostname || "This host"}${goal ? `, for ${goal}` : ""}`;
  return found.length > 0 ? `${about}: ${found.join(", ")} of ${plural(asked(audit), "check")}.` : `${about}: nothing to change.`;
}

function notices(audit: AuditDocument): HTMLElement | null {
  if (audit.warnings.length === 0) return null;
  return h("div.notices", null, ...audit.warnings.map((w) => h("p.notice", null, ...prose(sentence(w.message)))));
}

function headline(audit: AuditDocument): HTMLElement {
  const goal = audit.goal;
  const count = (weight: Finding["severity"]) => audit.findings.filter((f) => f.severity === weight).length;
  const facts: [string, Child][] = [
    ...WEIGHTS.map((w): [string, Child] => [w === "note" ? "notes" : w, integer(count(w))]),
    ["as they should be", integer(audit.passed.length)],
    ["do not apply", integer(audit.not_applicable.length)],
    ["unknown", integer(audit.unknown.length)],
  ];
  const wanted = [
    `As ${ROLES[goal.role]}`,
    goal.rate_bps ? rate(goal.rate_bps) : null,
    goal.rtt_ns ? `over ${goal.rtt_ns / 1e6} ms` : null,
    audit.interface ? `on ${audit.interface}` : "on no interface",
    audit.ports.length > 1 ? `(${audit.ports.join(", ")})` : null,
  ];
  const weighty = audit.findings.filter((f) => f.severity !== "note").length;
  return h(
    "section.headline",
    { id: "headline", "aria-label": "Result" },
    h(
      "div.figures",
      null,
      h(
        "div.figure",
        null,
        h("p.big", { id: "count" }, integer(weighty)),
        h("p.of", null, weighty === 1 ? "thing to change" : "things to change"),
      ),
      h("dl.facts", null, ...facts.map(([name, value]) => h("div", null, h("dt", null, name), h("dd", null, value)))),
    ),
    h("div.verdicts", null, h("p.says", null, `${wanted.filter(Boolean).join(" ")}.`), h("p.help", null, "Nothing was changed. ", h("code", null, "landspeed tune plan"), " shows what would be.")),
  );
}

function findings(audit: AuditDocument, id: string, title: string): HTMLElement {
  if (audit.findings.length === 0) return section(id, title, h("p", null, "None: every setting that could be read is as it should be."));
  return section(id, title, ...audit.findings.map(finding));
}

function finding(f: Finding): HTMLElement {
  const rows: [string, Child][] = [
    ["now", f.observed],
    ["better", f.recommended],
    ["why", f.why],
    ["effect", f.effect],
    ["by hand", h("code", null, f.by_hand)],
    ["source", [f.source, ...f.sources].join("; ")],
  ];
  return h(
    `article.finding.${f.severity}`,
    { id: f.interface ? `${f.code}-${f.interface}` : f.code },
    h("h3", null, h("span.weight", null, f.severity), ` ${f.title} `, h("span.muted", null, [f.code, f.interface].filter(Boolean).join(", "))),
    h("dl.rows", null, ...rows.map(([name, value]) => h("div", null, h("dt", null, name), h("dd", null, value)))),
    changes(f),
  );
}

function changes(f: Finding): HTMLElement | null {
  if (f.changes.length === 0) return null;
  const care = { safe: "", "needs-care": " Needs care: read before applying.", "display-only": " By hand only." }[f.applicability];
  const lines = f.changes.map((c) => h("li", null, h("code", null, `${target(c)} = ${c.desired}`)));
  return h(
    "div.changes",
    null,
    h("p.help", null, `${plural(f.changes.length, "change")} for landspeed tune.${care}`),
    h("ul", null, ...lines.slice(0, CHANGES)),
    lines.length > CHANGES ? h("details", null, h("summary", null, `${lines.length - CHANGES} more`), h("ul", null, ...lines.slice(CHANGES))) : null,
  );
}

/** A setting by the words its target is made of: `eth0 rx ring`. */
function target(change: Change): string {
  const { kind, ...parts } = change.target;
  return kind === "sysctl" ? change.target.name : [...Object.values(parts), kind].join(" ");
}

function differences(audit: AuditDocument): HTMLElement {
  if (audit.differences.length === 0) return section("differences", "Where the two differ", h("p", null, "In nothing that matters to a transfer between them."));
  const rows = audit.differences.map((d) => h("tr", null, h("th", { scope: "row" }, d.what), h("td", null, d.here), h("td", null, d.there), h("td", null, d.why)));
  return section("differences", "Where the two differ", table(["What", "Here", "There", "Why it matters"], rows, { class: "wide" }));
}

function answers(audit: AuditDocument, id: string, title: string): HTMLElement {
  const part = (name: string, list: readonly Answer[], open: boolean): HTMLElement | null =>
    list.length === 0
      ? null
      : h(
          "details",
          { open },
          h("summary", null, `${name}: ${integer(list.length)}`),
          table(
            ["Code", "About", "Interface", "What was seen, or why there is no answer"],
            list.map((a) => h("tr", null, h("th", { scope: "row" }, a.code), h("td", null, a.title), h("td", null, a.interface ?? ""), h("td", null, a.text))),
            { class: "wide" },
          ),
        );
  return section(
    id,
    title,
    part("Unknown", audit.unknown, true),
    part("As they should be", audit.passed, false),
    part("Do not apply", audit.not_applicable, false),
  );
}
