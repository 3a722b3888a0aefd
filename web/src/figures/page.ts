// The page of figures: of a sweep, a comparison, or several results together.

import type { FiguresDocument } from "../document";
import { h, section, type Child } from "../dom";
import { date, pageButtons, plural } from "../headline";
import { attempt, footer } from "../run";
import { figurePanel } from "./panel";

/** The whole page. */
export function figuresPage(page: FiguresDocument, save: () => void): Child[] {
  const serious = page.notes.filter((n) => n.serious);
  const others = page.notes.filter((n) => !n.serious);
  return [
    h(
      "header.top",
      null,
      pageButtons(save),
      h("p.kicker", null, `landspeed ${page.about}`),
      h("h1", null, page.title || "Figures"),
      h("p.meta", null, page.started ? h("span", null, date(page.started)) : null, h("span", null, plural(page.figures.length, "figure")), h("span", null, `landspeed ${page.landspeed.version}`)),
    ),
    h("p.conclusion", null, page.answer),
    serious.length > 0 ? h("div.notices", null, ...serious.map((n) => h("p.notice.bad", { role: "alert" }, n.text))) : null,
    ...page.figures.map((figure) => attempt(figure.id, () => figurePanel(figure))),
    page.description ? h("p.says", null, page.description) : null,
    others.length > 0 ? h("div.notices", null, ...others.map((n) => h("p.notice.warn", null, n.text))) : null,
    section(
      "experiment",
      "Experiment",
      h("dl.list", null, ...page.facts.map(([name, value]) => h("div", null, h("dt", null, name ?? ""), h("dd", null, value ?? "")))),
      page.sources.length > 0 ? h("p.muted", null, `From ${page.sources.join(", ")}.`) : null,
    ),
    footer(page.schema, plural(page.figures.length, "figure")),
  ];
}
