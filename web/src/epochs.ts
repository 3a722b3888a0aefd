// What limited the sender, over time: one strip for each direction that has a verdict.

import type { Epoch, EpochState, RunDocument, Verdict } from "./document";
import { h } from "./dom";
import { seconds } from "./format";
import { GUTTER, MARGIN } from "./panel";
import type { TimePart, Timeline } from "./timeline";

/** States in the order of the legend, each with the class of its colour. */
const STATES: readonly EpochState[] = [
  "slow-start",
  "recovery",
  "stalled",
  "cwnd-limited",
  "receive-window-limited",
  "send-buffer-limited",
  "application-limited",
  "pacing-limited",
  "cpu-limited",
  "unknown",
];

/** Share of the time below which a state is left out of the legend, thousandths. */
const LEAST_PERMILLE = 1;

export function stateName(state: EpochState): string {
  return state.replaceAll("-", " ").replace(/ limited$/, "-limited");
}

export class EpochStrip implements TimePart {
  readonly element: HTMLElement;
  private readonly spans: { from: number; to: number; element: HTMLElement }[] = [];
  private readonly line = h("div.crosshair");
  private readonly row: HTMLElement;
  private from = 0;
  private to = 1;
  private width = 900;

  constructor(id: string, title: string, epochs: readonly Epoch[], timeline: Timeline) {
    this.line.hidden = true;
    this.row = h("div.plot.epochrow", { role: "img", "aria-label": `${title}: ${describe(epochs)}` });
    for (const epoch of epochs) {
      for (const [start, end] of epoch.spans_ns) {
        const [from, to] = [start / 1e9, end / 1e9];
        const text = `${stateName(epoch.state)}, ${seconds(from, 0.001)} to ${seconds(to, 0.001)}`;
        const element = h(`div.epoch.e-${epoch.state}` as "div", { title: text });
        this.spans.push({ from, to, element });
        this.row.append(element);
      }
    }
    this.row.append(this.line);
    this.row.addEventListener("pointermove", (event) => {
      const box = this.row.getBoundingClientRect();
      const plot = box.width - GUTTER - MARGIN;
      if (plot > 0) timeline.setCursor(this.from + ((event.clientX - box.left - GUTTER) / plot) * (this.to - this.from));
    });
    this.row.addEventListener("pointerleave", () => timeline.setCursor(null));
    const shown = STATES.flatMap((state) => epochs.filter((epoch) => epoch.state === state && epoch.share_permille >= LEAST_PERMILLE));
    this.element = h(
      "figure.panel",
      { id: `chart-${id}` },
      h(
        "figcaption",
        null,
        h("strong", null, title),
        h("span.unit", { title: "shares of the time from the start to the end of the steady phase, from the sender’s tcp_info" }, "share of the time"),
        h(
          "span.legend",
          null,
          ...shown.map((epoch) =>
            h("span.item", null, h(`i.key.e-${epoch.state}` as "i"), ` ${stateName(epoch.state)} `, h("b", null, `${(epoch.share_permille / 10).toFixed(1)} %`)),
          ),
        ),
      ),
      this.row,
    );
  }

  setRange(from: number, to: number): void {
    this.from = from;
    this.to = to;
    this.place();
  }

  setWidth(width: number): void {
    this.width = width;
    this.row.style.width = `${width}px`;
    this.place();
  }

  setCursor(t: number | null): void {
    this.line.hidden = t === null || t < this.from || t > this.to;
    if (t !== null) this.line.style.left = `${this.at(t)}px`;
  }

  retheme(): void {}

  setStreams(): void {}

  private at(t: number): number {
    return GUTTER + ((this.width - GUTTER - MARGIN) * (t - this.from)) / (this.to - this.from);
  }

  private place(): void {
    for (const { from, to, element } of this.spans) {
      const [left, right] = [this.at(Math.max(from, this.from)), this.at(Math.min(to, this.to))];
      element.hidden = right <= left;
      element.style.left = `${left}px`;
      element.style.width = `${Math.max(1, right - left)}px`;
    }
  }
}

/** A strip for each direction whose verdict has epochs. */
export function epochStrips(run: RunDocument, timeline: Timeline): EpochStrip[] {
  const both = Boolean(run.reverse_verdict);
  const strip = (verdict: Verdict | null | undefined, id: string, way: string) =>
    verdict?.epochs && verdict.epochs.length > 0
      ? [new EpochStrip(id, `What limited the sender${both ? `, ${way}` : ""}`, verdict.epochs, timeline)]
      : [];
  return [...strip(run.verdict, "epochs", "client to server"), ...strip(run.reverse_verdict, "epochs-reverse", "server to client")];
}

function describe(epochs: readonly Epoch[]): string {
  return epochs.map((epoch) => `${(epoch.share_permille / 10).toFixed(1)} % ${stateName(epoch.state)}`).join(", ");
}
