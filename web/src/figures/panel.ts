// One figure on the page: title, legend, picture, what is under the pointer or the cursor, and its files.

import type { Figure } from "../document";
import { button, h, svg } from "../dom";
import { fileName, saveAs, saveUrl } from "../save";
import { onThemeChange } from "../theme";
import { drawToFit } from "../theme";
import { drawChart } from "./chart";
import { figureCsv } from "./csv";
import { drawGrid } from "./grid";
import { PAPER, screen, text, wrapped, type Palette } from "./paint";
import { drawRows } from "./rows";

/** A place to point at. */
export interface Spot {
  x: number;
  y: number;
  /** Left, top, right, bottom of where pointing means it. */
  box: [number, number, number, number];
  /** What is marked: a line through the chart, or the cell. */
  cross: "column" | "cell";
  title: string;
  rows: { name: string; series: number | null; value: string; sort: number }[];
}

/** A picture, and what can be pointed at. */
export interface Drawn {
  element: SVGSVGElement;
  spots: Spot[];
  /** Of a grid: cells of a row. */
  columns?: number;
}

/** Lines that a tip lists. */
const LISTED = 12;
/** Width of a saved picture, as crates/report/src/draw has it. */
const WIDTH = 760;

/** The figure, drawn to fit. */
export function figurePanel(figure: Figure): HTMLElement {
  const hidden = new Set<number>();
  const drawing = figure.drawing;
  const draw = (width: number, palette: Palette): Drawn => {
    if ("chart" in drawing) return drawChart(drawing.chart, width, palette, (s) => !hidden.has(s), figure.title);
    if ("grid" in drawing) return drawGrid(drawing.grid, width, palette, figure.title);
    return drawRows(drawing.rows, width, palette, figure.title);
  };
  const pointable = !("rows" in drawing);
  const holder = h("div.plot.figureplot", pointable ? { tabindex: 0, role: "group", "aria-label": `${figure.title}: arrow keys move from value to value` } : null);
  const tip = h("div.tip", { role: "status" });
  const cross = h("div.spot");
  tip.hidden = true;
  cross.hidden = true;
  let drawn: Drawn | null = null;
  let last = 0;
  const fill = (width: number) => {
    last = width;
    drawn = draw(width, screen());
    const parts = document.createDocumentFragment();
    parts.append(drawn.element, cross, tip);
    show(null);
    return parts;
  };
  const redraw = () => {
    if (last > 0) holder.replaceChildren(fill(last));
  };
  let at: number | null = null;
  const show = (index: number | null) => {
    at = index;
    const spot = index === null ? undefined : drawn?.spots[index];
    tip.hidden = cross.hidden = !spot;
    if (!spot) return;
    point(spot, cross, tip, last);
  };
  if (pointable) listen(holder, () => drawn, () => at, show);
  drawToFit(holder, 900, fill);
  onThemeChange(redraw);
  const legend = "chart" in drawing ? legendOf(drawing.chart.series, new Set(drawing.chart.panels.flatMap((p) => p.lines.map((l) => l.series))), hidden, redraw) : null;
  return h(
    "figure.panel.figurepanel",
    { id: `figure-${figure.id}` },
    h("figcaption", null, h("strong", null, figure.title), legend),
    holder,
    h("p.help", null, figure.caption),
    files(figure, draw),
  );
}

function legendOf(series: readonly string[], used: ReadonlySet<number>, hidden: Set<number>, redraw: () => void): HTMLElement | null {
  const names = series.map((name, i) => ({ name, i })).filter(({ name, i }) => name && used.has(i));
  if (names.length === 0) return null;
  const buttons = names.map(({ name, i }) => {
    const item = button(name, `Show or hide ${name}; with Alt: only this one`, (event) => {
      if (event.altKey) for (const other of used) (other === i ? hidden.delete(other) : hidden.add(other));
      else if (!hidden.delete(i)) hidden.add(i);
      for (const [n, element] of entries) element.setAttribute("aria-pressed", String(!hidden.has(n)));
      redraw();
    });
    item.className = `chip c${i % 8}${i >= 8 ? " dashed" : ""}`;
    item.setAttribute("aria-pressed", "true");
    return item;
  });
  const entries = names.map(({ i }, n) => [i, buttons[n] as HTMLButtonElement] as const);
  return h("span.legend", { role: "group", "aria-label": "lines" }, ...buttons);
}

/** Follows the pointer, and the arrow keys. */
function listen(holder: HTMLElement, drawn: () => Drawn | null, at: () => number | null, show: (index: number | null) => void): void {
  holder.addEventListener("pointermove", (event) => {
    const box = holder.getBoundingClientRect();
    show(nearest(drawn()?.spots ?? [], event.clientX - box.left, event.clientY - box.top));
  });
  holder.addEventListener("pointerleave", () => show(null));
  holder.addEventListener("blur", () => show(null));
  holder.addEventListener("keydown", (event) => {
    const { spots, columns } = drawn() ?? { spots: [] };
    const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -(columns ?? 1), ArrowDown: columns ?? 1, Home: -spots.length, End: spots.length }[event.key];
    if (event.key === "Escape") show(null);
    if (step === undefined || spots.length === 0) return;
    event.preventDefault();
    const before = at();
    show(before === null ? 0 : Math.min(spots.length - 1, Math.max(0, before + step)));
  });
}

/** The spot whose box holds the pointer, the nearest of them. */
function nearest(spots: readonly Spot[], x: number, y: number): number | null {
  let found: number | null = null;
  let distance = Number.POSITIVE_INFINITY;
  spots.forEach((spot, i) => {
    const [left, top, right, bottom] = spot.box;
    if (x < left - 4 || x > right + 4 || y < top - 4 || y > bottom + 4) return;
    const away = Math.hypot(spot.x - x, spot.cross === "cell" ? spot.y - y : 0);
    if (away < distance) [found, distance] = [i, away];
  });
  return found;
}

function point(spot: Spot, cross: HTMLElement, tip: HTMLElement, width: number): void {
  const [left, top, right, bottom] = spot.box;
  const cell = spot.cross === "cell";
  Object.assign(cross.style, {
    left: `${cell ? left : spot.x}px`,
    top: `${top}px`,
    width: `${cell ? right - left : 0}px`,
    height: `${bottom - top}px`,
  });
  const rows = spot.rows.slice(0, LISTED);
  const more = spot.rows.length - rows.length;
  tip.replaceChildren(
    h("strong", null, spot.title),
    ...rows.flatMap((row) => [h("span", { class: row.series === null ? null : `named c${row.series % 8}` }, row.name), h("b", null, row.value)]),
    ...(more > 0 ? [h("span", null, `and ${more} more`), h("b")] : []),
  );
  const beside = spot.x < width / 2;
  Object.assign(tip.style, {
    left: beside ? `${Math.min(spot.x + 14, width * 0.6)}px` : "auto",
    right: beside ? "auto" : `${Math.min(width - spot.x + 14, width * 0.6)}px`,
    top: `${Math.max(0, cell ? spot.y + 14 : top + 8)}px`,
  });
}

/** What can be saved. */
function files(figure: Figure, draw: (width: number, palette: Palette) => Drawn): HTMLElement {
  const whole = () => framed(figure, draw(WIDTH, PAPER).element);
  return h(
    "p.files",
    null,
    h("span.muted", null, "save as "),
    button("SVG", `Save ${figure.title} as SVG`, () => saveAs(serialized(whole()), fileName(figure.id, "svg"), "image/svg+xml")),
    button("PNG", `Save ${figure.title} as PNG`, () => savePng(whole(), fileName(figure.id, "png"))),
    button("CSV", `Save the values of ${figure.title} as CSV`, () => saveAs(figureCsv(figure), fileName(figure.id, "csv"), "text/csv")),
  );
}

/** A picture with its title, the names of its lines and its caption: a file of its own. */
function framed(figure: Figure, inner: SVGSVGElement): SVGSVGElement {
  const height = Number(inner.getAttribute("height"));
  const names = "chart" in figure.drawing ? figure.drawing.chart.series.map((name, i) => ({ name, i })).filter((s) => s.name) : [];
  let [x, y] = [14, 46];
  const legend = names.flatMap(({ name, i }) => {
    const width = 34 + name.length * 7 + 12;
    if (x + width > WIDTH - 10 && x > 14) [x, y] = [14, y + 18];
    const parts = [
      svg("line", { x1: x, y1: y - 4, x2: x + 24, y2: y - 4, stroke: PAPER.series[i % 8], "stroke-width": 2.5 }),
      text(x + 30, y, PAPER.text, "start", name),
    ];
    x += width;
    return parts;
  });
  const top = names.length > 0 ? y + 10 : 34;
  const caption = wrapped(figure.caption, WIDTH - 28);
  const total = top + height + caption.length * 17 + 14;
  inner.setAttribute("x", "0");
  inner.setAttribute("y", String(top));
  return svg(
    "svg",
    { xmlns: "http://www.w3.org/2000/svg", width: WIDTH, height: total, viewBox: `0 0 ${WIDTH} ${total}`, "font-family": "DejaVu Sans, Verdana, Helvetica, Arial, sans-serif" },
    svg("rect", { width: WIDTH, height: total, fill: PAPER.paper }),
    svg("text", { x: 14, y: 24, "font-size": 15, "font-weight": "bold", fill: PAPER.text }, figure.title),
    ...legend,
    inner,
    ...caption.map((part, i) => text(14, top + height + 14 + i * 17, PAPER.muted, "start", part)),
  );
}

function serialized(element: SVGSVGElement): string {
  return new XMLSerializer().serializeToString(element);
}

function savePng(element: SVGSVGElement, name: string): void {
  const image = new Image();
  image.addEventListener("load", () => {
    const canvas = document.createElement("canvas");
    canvas.width = Number(element.getAttribute("width")) * 2;
    canvas.height = Number(element.getAttribute("height")) * 2;
    canvas.getContext("2d")?.drawImage(image, 0, 0, canvas.width, canvas.height);
    saveUrl(canvas.toDataURL("image/png"), name);
  });
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(serialized(element))}`;
}
