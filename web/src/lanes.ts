// Evidence of the verdict above the chart it was read from: a bracket over its span, numbered as in the table.

import { h } from "./dom";

export interface Mark {
  /** Number in the evidence table. */
  number: number;
  /** Identifier of the table's row. */
  row: string;
  /** What it says. */
  text: string;
  /** Seconds; the whole time axis when the evidence names no span. */
  from: number;
  to: number;
}

const LANE = 16;

export class Lanes {
  readonly element: HTMLElement;
  private readonly brackets: { mark: Mark; box: HTMLElement }[] = [];
  private readonly textWidths = new Map<HTMLElement, number>();
  private from = 0;
  private to = 1;

  constructor(
    marks: readonly Mark[],
    private readonly left: number,
    private readonly right: number,
  ) {
    this.element = h("div.lanes");
    this.element.style.height = `${marks.length * LANE}px`;
    this.element.hidden = marks.length === 0;
    marks.forEach((mark, lane) => {
      const tint = h("div.tint");
      const box = h(
        "div.bracket",
        null,
        tint,
        h(
          "a.mark",
          { href: `#${mark.row}`, title: mark.text, "aria-label": `Evidence ${mark.number}: ${mark.text}` },
          mark.number,
        ),
        h("span.says", null, mark.text),
      );
      box.style.top = `${lane * LANE}px`;
      tint.style.top = `${(marks.length - lane) * LANE - 7}px`;
      this.brackets.push({ mark, box });
      this.element.append(box);
    });
  }

  setRange(from: number, to: number): void {
    this.from = from;
    this.to = to;
    this.place();
  }

  setWidth(width: number): void {
    this.element.style.width = `${width}px`;
    this.place();
  }

  setPlotHeight(height: number): void {
    for (const { box } of this.brackets) (box.firstElementChild as HTMLElement).style.height = `${height - 24}px`;
  }

  /** Widths of the texts, once they have a font to be measured in. */
  private measure(): void {
    if (this.textWidths.size > 0 || !this.element.isConnected) return;
    for (const { box } of this.brackets) {
      box.hidden = false;
      const says = box.lastElementChild as HTMLElement;
      says.hidden = false;
      this.textWidths.set(says, says.scrollWidth);
    }
  }

  private place(): void {
    this.measure();
    const width = parseFloat(this.element.style.width) || this.element.clientWidth;
    const plot = width - this.left - this.right;
    const at = (t: number) => this.left + (plot * (t - this.from)) / (this.to - this.from);
    for (const { mark, box } of this.brackets) {
      const start = Math.max(this.left, at(mark.from));
      const end = Math.min(this.left + plot, at(mark.to));
      box.hidden = end <= start;
      box.style.left = `${start}px`;
      box.style.width = `${Math.max(2, end - start)}px`;
      const says = box.lastElementChild as HTMLElement;
      const need = (this.textWidths.get(says) ?? 0) + 34;
      const inside = need <= end - start;
      const room = this.left + plot - end - 8;
      says.hidden = !inside && room < 60;
      says.classList.toggle("outside", !inside);
      says.style.left = inside ? "" : `${Math.max(30, end - start + 6)}px`;
      says.style.maxWidth = inside ? "" : `${room}px`;
      box.classList.toggle("opens", mark.from >= this.from);
      box.classList.toggle("closes", mark.to <= this.to);
    }
  }
}
