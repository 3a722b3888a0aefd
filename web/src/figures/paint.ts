// Colours, and what pictures have in common. Attributes only: a picture that is saved brings no style sheet.

import { svg } from "../dom";
import { colors } from "../theme";

/** The colours of a picture. */
export interface Palette {
  text: string;
  muted: string;
  grid: string;
  paper: string;
  series: readonly string[];
}

/** Those of the page. */
export function screen(): Palette {
  const { text, muted, grid, paper, streams } = colors();
  return { text, muted, grid, paper, series: streams };
}

/** Those of paper, for files: the palette of Okabe and Ito (2008), as crates/report/src/draw has it. */
export const PAPER: Palette = {
  text: "#16191d",
  muted: "#505860",
  grid: "#dce0e4",
  paper: "#ffffff",
  series: ["#0072b2", "#d55e00", "#009e73", "#aa4499", "#cc7900", "#56b4e9", "#000000", "#808080"],
};

const VIRIDIS = [
  [68, 1, 84], [71, 45, 123], [59, 82, 139], [44, 114, 142], [33, 145, 140], [40, 174, 128], [94, 201, 98], [173, 220, 48], [253, 231, 37],
] as const;

/** Viridis of a share 0..1, and black or white, whichever is readable on it. */
export function heat(share: number): { fill: string; ink: string } {
  const at = Math.min(1, Math.max(0, share)) * (VIRIDIS.length - 1);
  const [low, high] = [VIRIDIS[Math.floor(at)] ?? VIRIDIS[0], VIRIDIS[Math.ceil(at)] ?? VIRIDIS[8]];
  const rgb = low.map((v, i) => Math.round(v + ((high[i] ?? v) - v) * (at % 1)));
  const [r, g, b] = rgb as [number, number, number];
  return { fill: `rgb(${rgb.join(",")})`, ink: 0.299 * r + 0.587 * g + 0.114 * b > 140 ? "#000000" : "#ffffff" };
}

export const TEXT = 12;
/** Width of a letter, roughly. */
export const LETTER = 6.5;

export function color(palette: Palette, series: number): string {
  return palette.series[series % palette.series.length] ?? palette.text;
}

/** Lines beyond the palette are dashed. */
export function dash(series: number): string | null {
  return [null, "6 3", "2 2"][Math.floor(series / 8) % 3] ?? null;
}

export function text(x: number, y: number, fill: string, anchor: "start" | "middle" | "end", content: string, bold = false): SVGElement {
  return svg("text", { x, y, fill, "text-anchor": anchor, "font-size": TEXT, "font-weight": bold ? "bold" : null }, content);
}

export function line(x1: number, y1: number, x2: number, y2: number, stroke: string, width = 1, dashes: string | null = null): SVGElement {
  return svg("line", { x1, y1, x2, y2, stroke, "stroke-width": width, "stroke-dasharray": dashes });
}

/** A text cut to a width in pixels. */
export function cut(content: string, width: number): string {
  const most = Math.max(1, Math.floor(width / LETTER));
  return content.length <= most ? content : `${content.slice(0, most - 1)}…`;
}

/** A paragraph in lines of a width in pixels. */
export function wrapped(content: string, width: number): string[] {
  const most = Math.max(8, Math.floor(width / LETTER));
  const lines: string[] = [];
  let open = "";
  for (const word of content.split(/\s+/).filter(Boolean)) {
    if (open && open.length + 1 + word.length > most) {
      lines.push(open);
      open = "";
    }
    open = open ? `${open} ${word}` : word.length > most ? `${word.slice(0, most - 1)}…` : word;
  }
  if (open) lines.push(open);
  return lines;
}

/** The root of a picture. */
export function picture(width: number, height: number, label: string, ...children: (SVGElement | null)[]): SVGSVGElement {
  return svg("svg.figure", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": label }, ...children);
}
