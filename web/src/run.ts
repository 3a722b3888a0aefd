// The page of a run, and its parts where a run is one flow among others.

import { charts } from "./charts";
import type { RunDocument } from "./document";
import { h, identifiers, prose, type Child } from "./dom";
import { countersSection, environmentSection, parametersSection } from "./environment";
import { evidenceSection } from "./evidence";
import { caveats, conclusion, header, headline, notices, streamsSection } from "./headline";
import { latencySection } from "./latency";
import { costSection, ledgerSection } from "./ledger";
import type { Moment } from "./panel";

/** The whole page. */
export function runPage(run: RunDocument, save: () => void): Child[] {
  return [header(run, save), ...runParts(run, false), footer(run.schema, run.id)];
}

/** Everything but the page's head and foot. In virtual time CPUs are infinitely fast, so none is shown. */
export function runParts(run: RunDocument, virtual: boolean, moments: readonly Moment[] = []): Child[] {
  const time = attempt("charts", () => charts(run, virtual, moments));
  const latency = attempt("latency", () => latencySection(run));
  // Where requests are the measurement, they come first.
  const measured = run.latency.length > 0 ? [latency, time] : [time, latency];
  return [
    notices(run),
    virtual ? null : attempt("conclusion", () => h("p.conclusion", null, ...prose(conclusion(run)))),
    attempt("headline", () => headline(run)),
    ...measured,
    caveats(run),
    attempt("ledger", () => ledgerSection(run)),
    attempt("evidence", () => evidenceSection(run, identifiers(measured))),
    virtual ? null : attempt("cost", () => costSection(run)),
    attempt("streams", () => streamsSection(run)),
    ...(virtual ? [h("details", null, h("summary", null, "Parameters, environment and counters"), ...background(run))] : background(run)),
  ];
}

function background(run: RunDocument): (Element | null)[] {
  return [
    attempt("parameters", () => parametersSection(run)),
    attempt("environment", () => environmentSection(run)),
    attempt("counters", () => countersSection(run)),
  ];
}

/** The page's last line. */
export function footer(schema: string, name: string): HTMLElement {
  return h(
    "footer",
    null,
    h("p", null, `Document ${schema}, ${name}. This file holds everything it shows and asks the network for nothing.`),
  );
}

/** A part that fails must not take the rest of the report with it; the failure is shown and thrown later. */
export function attempt<T extends Element>(name: string, make: () => T | null): Element | null {
  try {
    return make();
  } catch (error) {
    setTimeout(() => {
      throw error;
    });
    return h("p.notice.bad", null, h("b", null, `The ${name} part could not be drawn: `), String(error));
  }
}
