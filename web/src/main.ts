// Draws the document that stands in the page.

import "uplot/dist/uPlot.min.css";
import "./style.css";
import { charts } from "./charts";
import type { RunDocument } from "./document";
import { append, h } from "./dom";
import { countersSection, environmentSection, parametersSection } from "./environment";
import { evidenceSection } from "./evidence";
import { header, headline, notices, streamsSection } from "./headline";
import { latencySection } from "./latency";
import { costSection, ledgerSection } from "./ledger";
import { watchPrint, watchSystem } from "./theme";
import { unpackDocument } from "./unpack";

function main(): void {
  const root = document.getElementById("report");
  const source = document.getElementById("document")?.textContent ?? "";
  if (!root) return;
  const run = unpackDocument(JSON.parse(source) as RunDocument);
  const save = () => saveAs(JSON.stringify(run), `landspeed-${run.id.replaceAll(/[^\w-]/g, "").slice(0, 40) || "run"}.json`);
  const time = attempt("charts", () => charts(run));
  const latency = attempt("latency", () => latencySection(run));
  // Where requests are the measurement, they come first.
  const measured = run.latency.length > 0 ? [latency, time] : [time, latency];
  append(root, [
    header(run, save),
    notices(run),
    attempt("headline", () => headline(run)),
    ...measured,
    attempt("ledger", () => ledgerSection(run)),
    attempt("evidence", () => evidenceSection(run, identifiers(measured))),
    attempt("cost", () => costSection(run)),
    attempt("streams", () => streamsSection(run)),
    attempt("parameters", () => parametersSection(run)),
    attempt("environment", () => environmentSection(run)),
    attempt("counters", () => countersSection(run)),
    h(
      "footer",
      null,
      h("p", null, `Document ${run.schema}, ${run.id}. This file holds everything it shows and asks the network for nothing.`),
    ),
  ]);
  watchSystem();
  watchPrint();
}

/** A part that fails must not take the rest of the report with it; the failure is shown and thrown later. */
function attempt(name: string, make: () => HTMLElement | null): HTMLElement | null {
  try {
    return make();
  } catch (error) {
    setTimeout(() => {
      throw error;
    });
    return h("p.notice.bad", null, h("b", null, `The ${name} part could not be drawn: `), String(error));
  }
}

function identifiers(parts: readonly (HTMLElement | null)[]): Set<string> {
  return new Set(parts.flatMap((part) => [...(part?.querySelectorAll("[id]") ?? [])].map((e) => e.id)));
}

function saveAs(text: string, name: string): void {
  const url = URL.createObjectURL(new Blob([text], { type: "application/json" }));
  const link = h("a", { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

main();
