// The reported figures beside the measured ones: a table.

import type { ComparedFigure } from "../document";
import { h, num, section, table, type Child } from "../dom";
import { integer, isNumber, minus, NONE, significant } from "../format";

/** Largest absolute deviation that counts as reproduced; `ComparedFigure::TOLERANCE`. */
const TOLERANCE = 0.1;

/** Whether a figure is within 10 % of the reported one; null when nothing was measured. */
export function reproduced(figure: ComparedFigure): boolean | null {
  if (!isNumber(figure.measured)) return null;
  return isNumber(figure.deviation) && Math.abs(figure.deviation) <= TOLERANCE;
}

/** A deviation with its sign, in per cent. */
export function deviationText(deviation: number | null | undefined): string {
  if (!isNumber(deviation)) return NONE;
  const percent = deviation * 100;
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
  const measured = figures.filter((f) => isNumber(f.measured));
  const good = measured.filter((f) => reproduced(f)).length;
  const rest = figures.length - measured.length;
  return section(
    "figures",
    "Reported figures",
    h("p.help", null, `${good} of ${measured.length} within 10 % of the reported value${rest > 0 ? `; ${rest} not run` : ""}. Measured: median over seeds; below it min and max.`),
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

function extent(figure: ComparedFigure): Child {
  const { min, max, unit } = figure;
  return isNumber(min) && isNumber(max) && number(min) !== number(max) ? h("small", null, `${valueText(min, unit)} – ${valueText(max, unit)}`) : null;
}

const right = (text: string) => h("th.num", { scope: "col" }, text);
