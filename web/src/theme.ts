// Light and dark. Canvases cannot follow CSS by themselves, so the drawing code asks for colours and listens for changes.

export interface Colors {
  text: string;
  muted: string;
  grid: string;
  shade: string;
  paper: string;
  streams: string[];
  bad: string;
  dark: boolean;
}

type Listener = () => void;

const listeners: Listener[] = [];
let held: Colors | null = null;

/** The colours now in force. */
export function colors(): Colors {
  if (held) return held;
  const style = getComputedStyle(document.documentElement);
  const get = (name: string) => style.getPropertyValue(name).trim();
  held = {
    text: get("--text"),
    muted: get("--muted"),
    grid: get("--grid"),
    shade: get("--shade"),
    paper: get("--paper"),
    bad: get("--bad"),
    streams: Array.from({ length: 8 }, (_, i) => get(`--s${i}`)),
    dark: get("--is-dark") === "1",
  };
  return held;
}

export function onThemeChange(listener: Listener): void {
  listeners.push(listener);
}

export function isDark(): boolean {
  return colors().dark;
}

/** Fixes the theme, or follows the system again. */
export function setTheme(theme: "light" | "dark" | null): void {
  if (theme) document.documentElement.dataset["theme"] = theme;
  else delete document.documentElement.dataset["theme"];
  changed();
}

/** Calls every listener with fresh colours. */
export function changed(): void {
  held = null;
  for (const listener of listeners) listener();
}

export function watchSystem(): void {
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", changed);
}

interface Printed {
  before: (width: number) => void;
  after: () => void;
}

const printed: Printed[] = [];

/** Width of what is drawn for paper, CSS pixels: A4 and Letter within the margins of the style sheet. */
const PAPER = 690;

/** Calls `before` with the paper's width ahead of printing, and `after` behind it. */
export function onPrint(before: (width: number) => void, after: () => void): void {
  printed.push({ before, after });
}

/** Fills `holder` with a picture of its width, and of the paper's while printing. */
export function drawToFit(holder: HTMLElement, first: number, picture: (width: number) => Node): void {
  const draw = (width: number) => holder.replaceChildren(picture(width));
  let printing = false;
  let last = 0;
  draw(first);
  new ResizeObserver(() => {
    const width = Math.floor(holder.clientWidth);
    if (printing || width < 120 || width === last) return;
    last = width;
    draw(width);
  }).observe(holder);
  onPrint(
    (width) => {
      printing = true;
      draw(Math.min(width, last || width));
    },
    () => {
      printing = false;
      if (last > 0) draw(last);
    },
  );
}

/** Paper is white: while printing the light colours hold, whatever was on the screen. */
export function watchPrint(): void {
  let theme: string | undefined;
  let printing = false;
  const start = () => {
    if (printing) return;
    printing = true;
    theme = document.documentElement.dataset["theme"];
    setTheme("light");
    for (const part of printed) part.before(PAPER);
  };
  const stop = () => {
    if (!printing) return;
    printing = false;
    setTheme(theme === "light" || theme === "dark" ? theme : null);
    for (const part of printed) part.after();
  };
  addEventListener("beforeprint", start);
  addEventListener("afterprint", stop);
  matchMedia("print").addEventListener("change", (event) => (event.matches ? start() : stop()));
}
