// The reported figures beside the measured ones, and the criteria: two tables.

import type { CheckedCriterion, ComparedFigure } from "../document";
import { h, num, section, table, type Child } from "../dom";
import { integer, isNumber, minus, NONE, significant } from "../format";

/** Largest absolute deviation that counts as reproduced; `ComparedFigure::TOLERANCE`. */
const TOLERANCE = 0.1;

/** Whether a figure is within 10 % of the reported one; null when nothing was measured. */
export function reproduced(figure: ComparedFigure): boolean | null {
  if (!isNumber(figure.measured)) return null;
  return isNumber(figure.deviation) && Math.abs(figure.deviation) <= TOLERANCE;
}

/** Whether a figure is one that a source reports: not computed, and not 0; `ComparedFigure::is_counted`. */
export function isCounted(figure: Pick<ComparedFigure, "basis" | "reported">): boolean {
  return figure.basis !== "computed" && figure.reported !== 0;
}

/** How many of the reported figures are within 10 %, how many were not run, and how many are not counted. */
export function countText(figures: ComparedFigure[]): string {
  const counted = figures.filter(isCounted);
  const measured = counted.filter((f) => isNumber(f.measured));
  const good = measured.filter((f) => reproduced(f)).length;
  const parts = [
    measured.length > 0 ? `${good} of ${measured.length} reported values within 10 %` : null,
    counted.length > measured.length ? `${counted.length - measured.length} not run` : null,
    figures.length > counted.length ? `${figures.length - counted.length} computed or zero` : null,
  ];
  return parts.filter((part) => part !== null).join("; ");
}

/** A deviation with its sign, in per cent. */
export function deviationText(deviation: number | null | undefined): string {
  if (!isNumber(deviation)) return NONE;
  // A half stays a half despite the error of floating point, as in the text of the program.
  const percent = deviation * 100 * (1 + 1e-12);
  if (Math.round(percent * 10) === 0) return "0 %";
  const text = Math.abs(percent) < 9.95 ? Math.abs(percent).toFixed(1) : integer(Math.round(Math.abs(percent)));
  return minus(`${percent < 0 ? "-" : "+"}${text} %`);
}

const number = (value: number) => (Number.isInteger(value) && Math.abs(value) < 1e6 ? integer(value) : significant(value));

/** A value with its unit; ratios and counts of segments have none. */
export function valueText(value: number | null | undefined, unit: ComparedFigure["unit"]): string {
  if (!isNumber(value)) return NONE;
  return unit === "ratio" || unit === "segments" ? number(value) : `${number(value)} ${unit}`;
}

/** The table; null without figures. A source that is the `whole` reference's is not repeated. */
export function referenceSection(document: { reference_figures?: ComparedFigure[] | null | undefined }, whole = ""): HTMLElement | null {
  const figures = document.reference_figures ?? [];
  if (figures.length === 0) return null;
  return section(
    "figures",
    "Reported figures",
    h("p.help", null, `${countText(figures)}. Measured: median over seeds; below it min and max.`),
    table(
      ["Figure", right("Reported"), right("Measured"), right("Deviation"), "Where reported", "Why it differs"],
      figures.map((f) => {
        const good = reproduced(f);
        return h(
          "tr",
          { class: good === false ? "apart" : null },
          h("th", { scope: "row" }, f.name),
          num(valueText(f.reported, f.unit)),
          h("td.num", null, good === null ? "not run" : valueText(f.measured, f.unit), extent(f)),
          h("td.num", null, good === false ? h("b", null, deviationText(f.deviation)) : deviationText(f.deviation)),
          h("td", null, f.source === whole ? "" : f.source),
          h("td", null, f.reason ?? (good === false ? "no known reason" : "")),
        );
      }),
      { class: "cells wide", caption: "Reported figures beside those of these runs" },
    ),
  );
}

/** The limits of a criterion. */
export function limitsText({ at_least, at_most, unit }: Pick<CheckedCriterion, "at_least" | "at_most" | "unit">): string {
  if (isNumber(at_least) && isNumber(at_most)) return `${number(at_least)} to ${valueText(at_most, unit)}`;
  if (isNumber(at_least)) return `≥ ${valueText(at_least, unit)}`;
  return isNumber(at_most) ? `≤ ${valueText(at_most, unit)}` : "no limit";
}

/** The table of criteria; null without one. */
export function criteriaSection(document: { criteria?: CheckedCriterion[] | null | undefined }): HTMLElement | null {
  const criteria = document.criteria ?? [];
  if (criteria.length === 0) return null;
  const decided = criteria.filter((c) => typeof c.met === "boolean");
  const good = decided.filter((c) => c.met).length;
  return section(
    "criteria",
    "Criteria",
    h("p.help", null, `${good} of ${decided.length} met.`),
    table(
      ["Criterion", right("Limit"), right("Measured"), "Result", "Source", "Why it is not met"],
      criteria.map((c) =>
        h(
          "tr",
          { class: c.met === false ? "apart" : null },
          h("th", { scope: "row" }, c.name),
          num(limitsText(c)),
          num(isNumber(c.measured) ? valueText(c.measured, c.unit) : "not run"),
          h("td", null, c.met === false ? h("b", null, "not met") : c.met ? "met" : NONE),
          h("td", null, c.source),
          h("td", null, c.met === false ? (c.reason ?? "no known reason") : ""),
        ),
      ),
      { class: "cells wide", caption: "Limits beside the figures of this run" },
    ),
  );
}

function extent(figure: ComparedFigure): Child {
  const { min, max, unit } = figure;
  return isNumber(min) && isNumber(max) && number(min) !== number(max) ? h("small", null, `${valueText(min, unit)} – ${valueText(max, unit)}`) : null;
}

const right = (text: string) => h("th.num", { scope: "col" }, text);
